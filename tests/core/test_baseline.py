from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ctxeval._core.baseline import Change, Comparison, SessionChange, paired_interval
from pytest_ctxeval._core.baseline import compare as compare_runs
from pytest_ctxeval._core.gate import check_gates, parse_gate
from pytest_ctxeval._core.run import Run
from pytest_ctxeval._core.selection import Selection
from pytest_ctxeval._core.statistics import BayesianMode
from pytest_ctxeval._core.summary import Summary, summarise
from pytest_ctxeval._core.verdict import CaseResult, Sample

METRICS = ("context_awareness", "contextual_relevancy")
STEADY = settings(deadline=None, derandomize=True, database=None)


def case(
    name: str, score: float | None, *, position: int = 0, samples: Sequence[float] = (), **fields: Any
) -> CaseResult:
    about: dict[str, Any] = {
        "node_id": f"test_it.py::test[{name}]",
        "session_id": "shop",
        "assistant_id": "bot",
        "metric": "context_awareness",
        "judge": "gpt",
        "prompt_version": "1",
        "temperature": 0.0,
        "min": 0.8,
        "unscored": "the judge is gone" if score is None else None,
    }
    scores = samples or ([] if score is None else [score])
    return CaseResult(
        qa_id=name,
        position=position,
        score=score,
        samples=tuple(Sample(each, "why") for each in scores),
        **{**about, **fields},
    )


def run(*cases: CaseResult) -> Summary:
    return summarise([replace(each, position=at) for at, each in enumerate(cases)], BayesianMode())


def compare(old: Summary, new: Summary, selection: Selection = Selection()) -> Comparison:  # noqa: B008  # frozen
    return compare_runs(Run(old.results), Run(new.results, selection=selection))


def changes(comparison: Comparison) -> dict[str, tuple[str, str]]:
    return {each.result.qa_id: (each.change, each.text) for session in comparison.sessions for each in session.cases}


def checked(comparison: Comparison, summary: Summary, *texts: str) -> list[tuple[str, str]]:
    gates = [parse_gate(text, metrics=METRICS, required=True) for text in texts]
    return [(check.status, check.text) for check in check_gates(gates, summary, comparison)]


def test_e10_two_runs_show_what_regressed_what_is_new_and_what_is_missing() -> None:
    old = run(case("q1", 0.9), case("q2", 0.9), case("q3", 0.4, min=None))
    new = run(case("q1", 0.7), case("q3", 0.6, min=None), case("q4", 1.0))
    assert changes(compare(old, new)) == {
        "q1": ("regressed", "0.90 -> 0.70, 0.70 < 0.80"),
        "q3": ("improved", "0.40 -> 0.60"),
        "q4": ("new", "1.00"),
        "q2": ("missing", "was 0.90"),
    }


@pytest.mark.parametrize(
    ("old", "new", "change", "text"),
    [
        (case("q", 0.9), case("q", 0.9), "same", "0.90 -> 0.90"),
        (case("q", 0.9), case("q", 0.9 + 1e-12), "same", "0.90 -> 0.90"),
        (case("q", 0.95), case("q", 0.85), "regressed", "0.95 -> 0.85"),
        (case("q", 0.85), case("q", 0.95), "improved", "0.85 -> 0.95"),
        # Ranges of samples that touch tell nothing apart; those that do not, do.
        (
            case("q", 0.90, samples=(0.85, 0.95)),
            case("q", 0.87, samples=(0.84, 0.90)),
            "within noise",
            "0.90 -> 0.87",
        ),
        (case("q", 0.90, samples=(0.85, 0.95)), case("q", 0.85), "within noise", "0.90 -> 0.85"),
        (case("q", 0.95, samples=(0.94, 0.96)), case("q", 0.85), "regressed", "0.95 -> 0.85"),
        # A case that fell through its bar has regressed, however its samples spread.
        (
            case("q", 0.82, samples=(0.6, 1.0)),
            case("q", 0.78, samples=(0.6, 0.96)),
            "regressed",
            "0.82 -> 0.78, 0.78 < 0.80",
        ),
        # The bar is that of today: a bar that was raised is no fall.
        (case("q", 0.85, min=0.8), case("q", 0.85, min=0.9), "same", "0.85 -> 0.85"),
        (case("q", 0.5, min=0.8), case("q", 0.4, min=0.8), "regressed", "0.50 -> 0.40"),
        (case("q", 0.9), case("q", None), "regressed", "0.90 -> unscored"),
        (case("q", None), case("q", 0.9), "new", "unscored -> 0.90"),
        (case("q", None), case("q", None), "unscored", "unscored -> unscored"),
    ],
)
def test_what_became_of_a_case(old: CaseResult, new: CaseResult, change: Change, text: str) -> None:
    assert changes(compare(run(old), run(new))) == {"q": (change, text)}


def test_a_case_that_the_run_was_not_to_have_is_left_out_and_not_missing() -> None:
    old, selection = run(*(case(f"q{n}", 0.9) for n in (1, 2, 3))), Selection(deselected=("test_it.py::test[q2]",))
    comparison = compare(old, run(case("q1", 0.9)), selection)
    assert changes(comparison)["q2"] == ("left out", "was 0.90")
    assert changes(comparison)["q3"] == ("missing", "was 0.90")
    assert checked(comparison, run(case("q1", 0.9)), "drop:0.05") == [("failed", "q3 missing")]
    comparison = compare(old, run(case("q1", 0.9)), Selection(("test_it.py::test[q1]",)))
    assert checked(comparison, run(case("q1", 0.9)), "drop:0.05") == [("passed", "drop <= 0.05")]


def test_cases_are_paired_by_session_case_and_metric_whatever_their_tests_are_called() -> None:
    old = run(
        case("q1", 0.9),
        case("q1", 0.8, session_id="other"),
        case("q1", 0.7, metric="contextual_relevancy"),
    )
    new = run(
        case("q1", 0.7, metric="contextual_relevancy", node_id="test_new.py::test"),
        case("q1", 0.8, session_id="other", node_id="test_new.py::test"),
        case("q1", 0.9, node_id="test_new.py::test"),
    )
    comparison = compare(old, new)
    assert [each.change for session in comparison.sessions for each in session.cases] == ["same"] * 3


def test_a_case_that_is_judged_twice_is_paired_with_its_like() -> None:
    old = run(case("q", 0.9, prompt_version="1"), case("q", 0.5, prompt_version="custom", min=None))
    new = run(case("q", 0.5, prompt_version="custom", min=None), case("q", 0.9, prompt_version="1"))
    assert [each.change for row in compare(old, new).sessions for each in row.cases] == ["same", "same"]

    old = run(case("q", 0.9, node_id="a.py::a"), case("q", 0.5, node_id="b.py::b", min=None))
    new = run(case("q", 0.5, node_id="b.py::b", min=None), case("q", 0.9, node_id="c.py::renamed"))
    assert [each.change for row in compare(old, new).sessions for each in row.cases] == ["same", "same"]


def test_e11_what_makes_two_runs_hard_to_compare_is_said() -> None:
    old = run(case("q1", 0.9), case("q2", 0.9), case("q3", 0.9))
    new = run(
        case("q1", 0.9, judge="claude", prompt_version="2", temperature=0.7, samples=(0.9, 0.9)),
        case("q2", 0.9, judge="claude", prompt_version="2", temperature=None, samples=(0.9, 0.9)),
        case(
            "q3", 0.9, judge="gpt", prompt_version="2", query="Another?", context="Other.", ground_truth_assistant="x"
        ),
    )
    assert compare(old, new).differs == (
        "judge gpt -> claude (2 of 3 cases)",
        "temperature 0 -> 0.7 (1 of 3 cases)",
        "temperature 0 -> not told (1 of 3 cases)",
        "samples 1 -> 2 (2 of 3 cases)",
        "prompt of context awareness 1 -> 2",
        "query of 1 case is another: q3",
        "context of 1 case is another: q3",
        "reference answer of 1 case is another: q3",
    )
    assert compare(old, old).differs == ()


def test_another_answer_is_what_a_comparison_is_about() -> None:
    assert compare(run(case("q", 0.9, assistant="a")), run(case("q", 0.9, assistant="b"))).differs == ()


def test_the_weights_are_those_of_the_new_run() -> None:
    old = run(case("q1", 0.9, weight=0.5), case("q2", 0.9, weight=0.5))
    new = run(case("q1", 0.5, weight=0.9), case("q2", 0.9, weight=0.1))
    (row,) = compare(old, new).sessions
    assert row.difference == pytest.approx(-0.4 * 0.9)


def test_the_weight_of_a_new_case_counts_for_no_difference() -> None:
    old = run(case("q1", 0.9), case("q2", 0.9))
    new = run(case("q1", 0.5, weight=0.2), case("q2", 0.9, weight=0.2), case("q3", 0.1, weight=0.6))
    (row,) = compare(old, new).sessions
    assert row.difference == pytest.approx(-0.2)
    assert row.n_pairs == 2


@pytest.mark.parametrize(("n", "excludes"), [(1, False), (3, False), (4, False), (5, True), (20, True)])
def test_it_takes_five_cases_that_all_fall_alike_to_exclude_0(n: int, excludes: bool) -> None:
    _, _, high = paired_interval([-0.5] * n, [1 / n] * n)
    assert high is not None
    assert (high < 0) == excludes


def test_nothing_that_moved_has_no_interval_and_no_case_no_mean() -> None:
    assert paired_interval([0.0, 0.0], [0.5, 0.5]) == (0, 0, 0)
    assert paired_interval([], []) == (None, None, None)
    assert paired_interval([-0.5], [0.0]) == (None, None, None)


@STEADY
@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 1)), min_size=1, max_size=8))
def test_an_interval_holds_its_mean_whatever_the_order(pairs: list[tuple[float, float]]) -> None:
    mean, low, high = paired_interval([d for d, _ in pairs], [w for _, w in pairs])
    assert mean is not None
    assert low is not None
    assert high is not None
    assert -1 - 1e-9 <= low <= mean <= high <= 1 + 1e-9
    assert paired_interval([d for d, _ in reversed(pairs)], [w for _, w in reversed(pairs)]) == pytest.approx(
        (mean, low, high)
    )


scores = st.one_of(st.none(), st.floats(0, 1))


@STEADY
@given(st.lists(scores, max_size=6), st.lists(scores, max_size=6))
def test_every_case_of_both_runs_is_in_a_comparison_once(old: list[float | None], new: list[float | None]) -> None:
    before = run(*(case(f"q{at}", score) for at, score in enumerate(old)))
    after = run(*(case(f"q{at + 2}", score) for at, score in enumerate(new)))
    comparison = compare(before, after)
    cases = [each for row in comparison.sessions for each in row.cases]
    assert sorted(each.old.qa_id for each in cases if each.old) == sorted(each.qa_id for each in before.results)
    assert sorted(each.new.qa_id for each in cases if each.new) == sorted(each.qa_id for each in after.results)
    assert sum(len(comparison.having(change)) for change in get_args(Change)) == len(cases)
    swapped = compare(after, before)
    assert len(swapped.having("new")) == len(comparison.having("missing")) + sum(
        each.change == "regressed" and each.new is not None and each.new.score is None for each in cases
    )


def fallen(n: int, by: float, *, start: float = 0.95, bar: float | None = None) -> tuple[Summary, Summary]:
    return (
        run(*(case(f"q{at}", start, min=bar) for at in range(n))),
        run(*(case(f"q{at}", start - by, min=bar) for at in range(n))),
    )


@pytest.mark.parametrize(
    ("n", "by", "expected"),
    [
        (10, 0.1, ("failed", "fell by 0.10 > 0.05")),
        (10, 0.05, ("passed", "drop <= 0.05")),  # not by more than 0.05
        (10, 0.0501, ("failed", "fell by 0.0501 > 0.0500")),
        (10, 0.0, ("passed", "drop <= 0.05")),
        (10, -0.05, ("passed", "drop <= 0.05")),
        (3, 0.1, ("passed", "fell by 0.10 > 0.05, within the noise of 3 cases")),  # three cases are no proof
    ],
)
def test_a_session_whose_mean_fell_fails_where_that_is_no_noise(n: int, by: float, expected: tuple[str, str]) -> None:
    old, new = fallen(n, by)
    assert checked(compare(old, new), new, "drop:0.05") == [expected]


def test_one_case_that_fell_through_its_own_bar_fails_the_gate() -> None:
    old, new = fallen(1, 0.2, bar=0.8)
    assert checked(compare(old, new), new, "drop:0.5") == [("failed", "q0 fell below its bar")]
    old, new = fallen(5, 0.2, bar=0.8)
    assert checked(compare(old, new), new, "drop:0.5") == [("failed", "q0, q1, q2 and 2 more fell below their bar")]


def test_a_case_that_can_no_more_be_judged_fails_the_gate_unless_told_otherwise() -> None:
    old, new = run(case("q1", 0.9), case("q2", 0.9)), run(case("q1", 0.9), case("q2", None))
    comparison = compare(old, new)
    assert checked(comparison, new, "drop:0.5") == [("failed", "q2 unscored, not so before")]
    assert checked(comparison, new, "drop:0.5", "unscored:1") == [
        ("passed", "drop <= 0.50"),
        ("passed", "1 unscored, 1 allowed"),
    ]


def test_a_missing_case_fails_the_gate_unless_told_otherwise() -> None:
    old, new = run(case("q1", 0.9), case("q2", 0.9)), run(case("q1", 0.9))
    comparison = compare(old, new)
    assert checked(comparison, new, "drop:0.5") == [("failed", "q2 missing")]
    assert checked(comparison, new, "drop:0.5", "missing:1") == [
        ("passed", "drop <= 0.50"),
        ("passed", "1 missing, 1 allowed"),
    ]
    assert checked(comparison, new, "missing:0") == [("failed", "1 missing, 0 allowed")]


def test_a_session_that_is_gone_fails_the_gate() -> None:
    old, new = run(case("q1", 0.9), case("q2", 0.9, session_id="desk")), run(case("q1", 0.9))
    assert checked(compare(old, new), new, "drop:0.5") == [
        ("passed", "drop <= 0.50"),
        ("failed", "desk, context awareness: q2 missing"),
    ]


def test_a_drop_is_looked_for_in_the_metric_and_session_that_are_named() -> None:
    fields: list[dict[str, Any]] = [{}, {"session_id": "desk"}, {"metric": "contextual_relevancy"}]
    old = run(*(case(f"q{at}", 0.9, **each) for each in fields for at in range(6)))
    new = run(
        *(case(f"q{at}", 0.9 - number / 10, min=None, **each) for number, each in enumerate(fields) for at in range(6))
    )
    comparison = compare(old, new)
    assert checked(comparison, new, "drop:0.05") == [
        ("passed", "drop <= 0.05"),
        ("failed", "fell by 0.10 > 0.05"),
        ("failed", "fell by 0.20 > 0.05"),
    ]
    assert checked(comparison, new, "drop@shop:0.15") == [("passed", "drop <= 0.15"), ("failed", "fell by 0.20 > 0.15")]
    assert checked(comparison, new, "context_awareness.drop:0.15") == [("passed", "drop <= 0.15")] * 2
    assert checked(comparison, new, "context_awareness.drop@desk:0.05") == [("failed", "fell by 0.10 > 0.05")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("drop@nowhere:0.05", "the baseline has no case in session 'nowhere'; there are shop"),
        ("contextual_relevancy.drop:0.05", "the baseline has no case for contextual_relevancy"),
    ],
)
def test_a_gate_that_finds_nothing_to_compare_fails_where_it_was_asked_for(text: str, told: str) -> None:
    old, new = fallen(3, 0.0)
    assert checked(compare(old, new), new, text) == [("failed", told)]
    gate = parse_gate(text, metrics=METRICS, required=False)
    assert [check.status for check in check_gates([gate], new, compare(old, new))] == ["not checked"]


def test_a_gate_of_the_ini_file_waits_for_a_baseline() -> None:
    _, new = fallen(3, 0.0)
    gates = [parse_gate(text, metrics=METRICS, required=False) for text in ("drop:0.05", "missing:0")]
    assert [(check.status, check.text) for check in check_gates(gates, new)] == [
        ("not checked", "there is no baseline"),
        ("not checked", "there is no baseline"),
    ]


def test_rows_follow_the_new_run_and_missing_cases_their_like() -> None:
    old = run(case("q1", 0.9), case("q9", 0.9), case("q2", 0.9, metric="contextual_relevancy"))
    new = run(case("q1", 0.9, prompt_version="2"))
    rows = compare(old, new).sessions
    assert [(row.metric, row.prompt_version, [each.change for each in row.cases]) for row in rows] == [
        ("context_awareness", "2", ["same", "missing"]),
        ("contextual_relevancy", "1", ["missing"]),
    ]
    assert isinstance(rows[0], SessionChange)


def test_a_gate_on_what_has_changed_does_not_pass_where_there_is_no_pair_to_compare() -> None:
    old, new = run(case("q1", None), case("q2", None)), run(case("q1", 0.9), case("q2", None))
    told = "no case has a score in both runs"
    assert checked(compare(old, new), new, "drop:0.05") == [("failed", told)]
    gates = [parse_gate("drop:0.05", metrics=METRICS, required=False)]
    assert [each.status for each in check_gates(gates, new, compare(old, new))] == ["not checked"]


@pytest.mark.parametrize("text", ["missing:0", "drop:0.05"])
def test_nothing_passes_against_a_baseline_that_has_no_case_of_the_run(text: str) -> None:
    new = run(case("q1", 0.9))
    assert checked(compare(run(), new), new, text) == [("failed", "the baseline has no case")]
    left_out = Selection(deselected=("test_it.py::test[q2]",))
    comparison = compare(run(case("q2", 0.9)), new, left_out)
    assert checked(comparison, new, text) == [("failed", "no case was judged that the baseline has")]


def test_what_a_run_that_was_broken_off_did_not_come_to_is_not_missing() -> None:
    old = run(case("q1", 0.9), case("q2", 0.9))
    comparison = compare_runs(Run(old.results), Run(old.results[:1], broken_off=True))
    assert changes(comparison)["q2"] == ("left out", "was 0.90")


def test_of_many_kinds_of_change_the_rest_is_counted() -> None:
    old = run(*(case(f"q{at}", 0.9, judge=f"judge-{at}") for at in range(8)))
    new = run(*(case(f"q{at}", 0.9) for at in range(8)))
    assert compare(old, new).differs[-1] == "judge -> others (5 of 8 cases)"


def test_a_small_change_is_shown_with_the_digits_that_it_takes() -> None:
    comparison = compare(run(case("q", 0.804)), run(case("q", 0.8004)))
    assert changes(comparison)["q"] == ("regressed", "0.804 -> 0.800")


def test_a_case_that_is_gone_is_missing_where_its_file_is_called_otherwise_today() -> None:
    old = run(
        case("q1", 0.9, node_id="tests/test_it.py::test[q1]"), case("q2", 0.9, node_id="tests/test_it.py::test[q2]")
    )
    new = run(case("q1", 0.9, node_id="test_it.py::test[q1]"))
    assert changes(compare(old, new, Selection(("test_it.py",))))["q2"][0] == "missing"
    selection = Selection(("test_it.py",), deselected=("test_it.py::test[q2]",))
    assert changes(compare(old, new, selection))["q2"][0] == "left out"
