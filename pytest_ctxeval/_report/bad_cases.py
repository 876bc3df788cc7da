"""The cases that someone has to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pytest_ctxeval._core.baseline import CaseChange
from pytest_ctxeval._core.numbers import below
from pytest_ctxeval._core.verdict import CaseResult
from pytest_ctxeval._report.report import Report

Kind = Literal["regressed", "below the bar", "unscored"]


@dataclass(frozen=True, slots=True)
class BadCase:
    """A case that regressed, or is below its bar, or has no score; `old` is what it was before, if that is known."""

    kind: Kind
    result: CaseResult
    old: CaseResult | None = None
    fault: str = ""


def bad_cases(report: Report) -> list[BadCase]:
    """Give them, each once: those that regressed, those below their bar, lowest first, those without a score."""
    sessions = report.comparison.sessions if report.comparison else ()
    changes = {id(case.new): case for session in sessions for case in session.cases if case.new is not None}
    found = [_found(result, changes.get(id(result))) for result in report.summary.results]
    bad = [case for case in found if case is not None]
    return [
        *(case for case in bad if case.kind == "regressed"),
        *sorted((case for case in bad if case.kind == "below the bar"), key=lambda case: case.result.score or 0.0),
        *(case for case in bad if case.kind == "unscored"),
    ]


def counted(cases: Iterable[BadCase]) -> str:
    """Count cases by their kind, as "2 regressed, 1 unscored"."""
    return ", ".join(f"{n} {kind}" for kind, n in Counter(case.kind for case in cases).items())


def _found(result: CaseResult, change: CaseChange | None) -> BadCase | None:
    old = change.old if change else None
    if change is not None and change.change == "regressed":
        return BadCase("regressed", result, old, f"regressed {change.text}")
    if not result.failed:
        return None
    if result.score is None:
        return BadCase("unscored", result, old, "unscored")
    assert result.min is not None  # what is asked for without a bar passes
    return BadCase("below the bar", result, old, below(result.score, result.min))
