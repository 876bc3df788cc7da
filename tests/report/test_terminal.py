"""The section at the end: what stands in it, how long it gets, and that nothing is left uncounted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.reports import case, report

from pytest_ctxeval._core.text import columns
from pytest_ctxeval._core.verdict import CaseResult
from pytest_ctxeval._report.report import Report
from pytest_ctxeval._report.terminal import lines


def told(report: Report, *, width: int = 120, verbosity: int = 0) -> list[str]:
    return [line.text for line in lines(report, width=width, verbosity=verbosity)]


def sessions(n: int, score: float | None = 0.9, **fields: Any) -> list[CaseResult]:
    return [case("q", score, session_id=f"s{at}", node_id=f"test_it.py::test[s{at}-q]", **fields) for at in range(n)]


def of_every_kind(n: int) -> Report:
    """Much of all that the section may tell of: low, unscored, undecided, with notes and gates, against a baseline."""
    low = [replace(each, reruns=1) for each in sessions(n, 0.5, weight=0.7)]
    broken = [replace(each, qa_id="r", weight=0.7) for each in sessions(n, None)]
    gone = [replace(each, session_id=f"gone-{each.session_id}") for each in sessions(n)]
    gates = [f"context_awareness@nowhere{at}:0.5" for at in range(n)]
    gates += [f"context_awareness:0.{at}" for at in range(1, 9)]
    return report(
        *low, *broken, *sessions(n, 0.9, metric="contextual_relevancy"),
        old=[*sessions(n), *gone],
        gates=[*gates, "drop:0.05", "unscored:0", "missing:0"],
        unused=["3 recordings", "a.yaml", "b.yaml", "c.yaml"],
    )  # fmt: skip


@pytest.mark.parametrize("n", [10, 100])
def test_the_section_stays_short_whatever_there_is_to_tell(n: int) -> None:
    assert len(told(of_every_kind(n))) <= 36
    assert len(told(report(*sessions(n), gates=["context_awareness:0.5"]))) <= 12


def test_the_section_of_a_thousand_is_as_long_as_that_of_a_hundred() -> None:
    assert len(told(of_every_kind(1000))) == len(told(of_every_kind(100)))


def test_gates_of_sessions_that_are_not_shown_are_counted() -> None:
    shown = told(report(*sessions(20, 0.5), gates=["context_awareness:0.8"]))
    assert sum("FAILED  0.50 < 0.80" in line for line in shown) == 7
    assert "... and 13 more, 13 FAILED, means 0.50 to 0.50" in shown


def test_of_many_gates_on_nothing_those_that_failed_come_first_and_all_are_counted() -> None:
    gates = [f"context_awareness@nowhere{at}:0.8" for at in range(30)]
    shown = told(report(case("q", 0.9), gates=["unscored:0", *gates]))
    assert sum(line.startswith("gate ") for line in shown) == 3
    assert "          and 28 more gates: 27 FAILED, 1 passed" in shown


def test_of_many_gates_of_one_session_those_that_failed_come_first_and_all_are_counted() -> None:
    gates = [f"context_awareness:0.{at}" for at in range(1, 10)]
    _, row, *_ = told(report(case("q", 0.75), gates=gates))
    assert row.endswith("FAILED  0.75 < 0.80, FAILED  0.75 < 0.90, and 7 more gates: 7 passed")


def test_weights_that_were_set_aside_in_many_sessions_are_counted() -> None:
    shown = [line for line in told(report(*sessions(100, weight=0.7))) if line.startswith("note")]
    assert len(shown) == 4
    assert shown[-1] == "note      and 97 more sessions whose weights were set aside"


def test_every_case_below_its_bar_is_counted_whatever_else_has_regressed() -> None:
    regressed = [case(f"up{at}", 0.85) for at in range(3)]
    low = [case(f"low{at}", 0.5) for at in range(6)]
    shown = told(report(*regressed, *low, old=[*(case(f"up{at}", 0.95) for at in range(3)), *low]))
    assert sum(line.startswith("regressed") for line in shown) == 3
    assert sum(line.startswith("lowest") for line in shown) == 3
    assert "          and 3 more below their bar" in shown


def test_a_case_that_has_regressed_is_not_counted_again_as_below_its_bar() -> None:
    shown = told(report(*(case(f"q{at}", 0.5) for at in range(8)), old=[case(f"q{at}", 0.9) for at in range(8)]))
    assert "          and 5 more regressed" in shown
    assert not any("more below" in line for line in shown)


def test_a_case_that_was_expected_to_fail_is_no_fault_and_is_told() -> None:
    shown = told(report(case("q1", 0.3, expected=True), case("q2", None, expected=True), case("q3", 0.9)))
    assert [line for line in shown if line.startswith(("expected", "lowest", "unscored"))] == [
        "lowest    0.90  test_shop.py::test_answers[shop-q3]  because",
        "expected  0.30  test_shop.py::test_answers[shop-q1]  because",
        "expected   -    test_shop.py::test_answers[shop-q2]  the judge could not be reached",
    ]
    shown = told(report(*(case(f"q{at}", 0.1, expected=True) for at in range(10))))
    assert "          and 7 more that did not pass, as their tests expected" in shown


def test_names_as_wide_as_two_columns_a_letter_stand_in_line() -> None:
    head, *rows, _, _ = told(report(case("q", 0.9, session_id="\u65e5\u672c\u8a9e"), case("q", 0.9, session_id="shop")))
    at = head.index("context awareness") if "context awareness" in head else head.index("metric")
    assert {columns(row[: row.index("context awareness")]) for row in rows} == {at}


def test_a_long_test_id_leaves_room_for_the_reason() -> None:
    (line,) = [
        each for each in told(report(case("q", 0.3, node_id="test_it.py::test[" + "x" * 3000))) if "lowest" in each
    ]
    assert len(line) < 220
    assert line.endswith("because")
