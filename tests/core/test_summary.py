from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ctxeval._core.statistics import Aggregate, BayesianMode, FrequentistMode
from pytest_ctxeval._core.summary import SessionSummary, Summary, failed, lowest, summarise
from pytest_ctxeval._core.verdict import CaseResult
from pytest_ctxeval.errors import ConfigError

STEADY = settings(deadline=None, derandomize=True, database=None, max_examples=60)
QUICK = BayesianMode(mc_samples=100)


def case(position: int, score: float | None, **fields: Any) -> CaseResult:
    given = {
        "node_id": f"test_bot.py::test[{position}]",
        "session_id": "techstore",
        "assistant_id": "bot",
        "qa_id": f"q{position}",
        "metric": "context_awareness",
        "unscored": "the judge was unreachable" if score is None else None,
    }
    return CaseResult(position=position, score=score, **{**given, **fields})


def only_row(*cases: CaseResult, mode: Any = FrequentistMode()) -> SessionSummary:  # noqa: B008
    (row,) = summarise(cases, mode).sessions
    return row


class Fixed(NamedTuple):
    """A statistical mode that a user wrote."""

    answer: Any

    def aggregate(self, scores: Any, weights: Any) -> Any:
        return self.answer


def test_a_session_becomes_one_row() -> None:
    row = only_row(case(0, 1.0, weight=0.5), case(1, 0.9, weight=0.3), case(2, 0.05, weight=0.2))

    assert row == SessionSummary("techstore", "bot", "context_awareness", 3, 0, 0.78, None, None, None)


def test_no_result_makes_no_row() -> None:
    assert summarise([], FrequentistMode()) == Summary((), ())


def test_the_mean_is_over_the_scored_cases_and_the_others_are_counted() -> None:
    row = only_row(*(case(n, 0.9 if n < 5 else None) for n in range(10)))

    assert (row.n, row.n_scored, row.n_unscored, row.mean) == (10, 5, 5, 0.9)


def test_a_session_without_a_score_has_no_mean_and_asks_no_mode() -> None:
    row = only_row(case(0, None), case(1, None), mode=Fixed("never asked"))

    assert (row.n, row.n_unscored, row.mean, row.low, row.high) == (2, 2, None, None, None)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, 1.5, -0.1])
def test_a_score_that_is_no_number_from_0_to_1_makes_its_case_unscored(score: float) -> None:
    summary = summarise([case(0, score), case(1, None), case(2, 0.7), case(3, 0.8), case(4, 0.9)], BayesianMode())
    (row,) = summary.sessions

    assert (row.n, row.n_unscored) == (5, 2)
    assert row.mean == pytest.approx(0.8)
    assert summary.results[0].score is None
    assert summary.results[0].unscored == f"the score {score!r} is not a number from 0 to 1"
    assert failed(summary) == summary.results[:2]


def test_weights_are_resolved_before_unscored_cases_are_left_out() -> None:
    row = only_row(case(0, None, weight=0.5), case(1, 1.0, weight=0.3), case(2, 0.5, weight=0.2))

    assert row.mean == pytest.approx((0.3 * 1.0 + 0.2 * 0.5) / 0.5)
    assert row.note is None


def test_weights_that_are_set_aside_are_noted() -> None:
    row = only_row(case(0, 1.0, weight=0.5), case(1, 0.5, weight=1.0))

    assert row.mean == 0.75
    assert row.note == "the weights sum to 1.5, not 1: every case counts the same"


def test_a_session_of_which_only_cases_that_weigh_nothing_were_scored_has_no_mean() -> None:
    row = only_row(case(0, None, weight=1.0), case(1, 1.0, weight=0.0))

    assert (row.n_unscored, row.mean) == (1, None)


def test_rows_stand_in_the_order_in_which_the_sessions_were_collected() -> None:
    results = [
        case(3, 0.4, session_id="b"),
        case(2, 0.3, session_id="a", metric="contextual_relevancy"),
        case(2, 0.2, session_id="a"),
        case(1, 0.1, session_id="b"),
    ]
    summary = summarise(results, FrequentistMode())

    assert [(row.session_id, row.metric, row.n) for row in summary.sessions] == [
        ("b", "context_awareness", 2),
        ("a", "context_awareness", 1),
        ("a", "contextual_relevancy", 1),
    ]
    assert [result.score for result in summary.results] == [0.1, 0.2, 0.3, 0.4]


def test_results_of_one_test_have_an_order_that_does_not_depend_on_its_threads() -> None:
    results = [case(0, 0.9, qa_id=name) for name in ("a", "q1", "q2", "q10", "q10b")]

    assert summarise(reversed(results), FrequentistMode()).results == tuple(results)


def test_what_another_version_of_a_metric_judged_has_a_row_of_its_own() -> None:
    plain = [case(0, 1.0, weight=0.8), case(1, 0.5, weight=0.1), case(2, 0.5, weight=0.1)]
    results = [replace(each, prompt_version=version) for version in ("1", "1-strict") for each in plain]
    rows = summarise(results, FrequentistMode()).sessions

    assert [(row.measure, row.n, row.mean, row.note) for row in rows] == [
        ("context awareness", 3, 0.9, None),
        ("context awareness 1-strict", 3, 0.9, None),
    ]


def test_one_bad_session_of_five_has_its_own_row() -> None:
    results = [case(n, 0.0 if n // 20 == 3 else 1.0, session_id=f"s{n // 20}") for n in range(100)]

    assert [row.mean for row in summarise(results, BayesianMode()).sessions] == [1.0, 1.0, 1.0, 0.0, 1.0]


@STEADY
@given(
    st.lists(
        st.tuples(
            st.none() | st.just(math.nan) | st.floats(0, 1),
            st.none() | st.floats(0, 1),
            st.sampled_from(["a", "b"]),
        ),
        max_size=20,
    ),
    st.integers(0, 2**32),
)
def test_the_order_of_arrival_changes_nothing(drawn: list[tuple[float | None, float | None, str]], seed: int) -> None:
    results = [case(n, score, weight=weight, session_id=name) for n, (score, weight, name) in enumerate(drawn)]
    shuffled = [results[n] for n in np.random.default_rng(seed).permutation(len(results))]
    summary = summarise(results, QUICK)

    assert summarise(shuffled, QUICK) == summary
    for row in summary.sessions:
        assert row.mean is None or 0 <= (row.low or 0) <= row.mean <= (row.high or 0) <= 1


def test_the_lowest_scores_come_first_and_equal_ones_as_collected() -> None:
    summary = summarise([case(3, 0.2), case(1, 0.5), case(0, None), case(2, 0.2), case(4, 0.1)], FrequentistMode())

    assert [result.position for result in lowest(summary, 3)] == [4, 2, 3]
    assert [result.position for result in lowest(summary, 10)] == [4, 2, 3, 1]
    assert lowest(summary, 0) == ()


def test_a_result_below_its_bar_failed_and_so_did_an_unscored_one() -> None:
    summary = summarise(
        [
            case(0, 0.79, min=0.8),
            case(1, 0.8, min=0.8),
            case(2, None),
            case(3, 0.0),
            case(4, 0.7999999999999999, min=0.8),
        ],
        FrequentistMode(),
    )

    assert [result.position for result in failed(summary)] == [0, 2]


@pytest.mark.parametrize(
    ("answer", "figures"),
    [
        ((0.5, None, None), (0.5, None, None)),
        (Aggregate(0.5, 0.4, 0.6), (0.5, 0.4, 0.6)),
        ([0.5, 0.4, 0.4], (0.5, 0.4, 0.4)),
        (np.array([0.5, 0.25, 0.75], dtype=np.float32), (0.5, 0.25, 0.75)),
        ((None, None, None), (None, None, None)),
        ((1, 0, 1), (1.0, 0.0, 1.0)),
    ],
    ids=str,
)
def test_a_mode_of_the_user_gives_the_figures_as_plain_floats(answer: Any, figures: Any) -> None:
    row = only_row(case(0, 0.5), mode=Fixed(answer))

    assert (row.mean, row.low, row.high) == figures
    assert {type(row.mean), type(row.low), type(row.high)} <= {float, type(None)}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        0.5,
        (0.5,),
        (0.5, 0.4, 0.6, 0.7),
        "0.5",
        ("0.5", None, None),
        (math.nan, None, None),
        (math.inf, 0.4, 0.6),
        (0.5, 0.6, 0.4),
        (0.5, math.nan, 0.6),
        (0.5, None, 0.6),
        (0.5, 0.4, None),
        (1.5, 0.4, 0.6),
        (0.5, -0.1, 0.6),
    ],
    ids=str,
)
def test_a_mode_of_the_user_that_gives_anything_else_is_refused(answer: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        only_row(case(0, 0.5), mode=Fixed(answer))

    assert str(refused.value) == (
        f"Fixed.aggregate gave {answer!r}; a statistical mode gives (mean, low, high), "
        "numbers from 0 to 1 with low <= high, or None for both bounds"
    )
