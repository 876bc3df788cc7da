"""The cases of a run, as data for the script of its page. All text in it is harmless."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, Final

from pytest_ctxeval._core.baseline import CaseChange
from pytest_ctxeval._core.numbers import below
from pytest_ctxeval._core.text import harmless
from pytest_ctxeval._core.verdict import CaseResult, spread_of
from pytest_ctxeval._report.report import Report

_KEPT: Final = (
    "node_id", "session_id", "assistant_id", "qa_id", "metric", "score", "reason", "unscored", "min", "weight", "query",
    "assistant", "retrieval_context", "ground_truth_assistant", "judge", "prompt_version", "temperature", "source",
    "tokens", "cassette",
)  # fmt: skip
_OF_TODAY: Final = ("score", "reason", "unscored", "assistant", "samples", "statements", "spread", "undecided", "fault")


def case_data(report: Report) -> dict[str, Any]:
    """Give the cases, without what they have not. Contexts stand there once: many cases share one."""
    contexts: dict[str, int] = {}
    cases = [_case(result, change, contexts) for result, change in _cases(report)]
    return {"cases": cases, "contexts": [harmless(each) for each in contexts]}


def _cases(report: Report) -> Iterator[tuple[CaseResult, CaseChange | None]]:
    """Every result of the run, and those of the baseline that are gone, each with what became of it."""
    if report.comparison is None:
        yield from ((result, None) for result in report.summary.results)
        return
    yield from ((case.result, case) for row in report.comparison.sessions for case in row.cases)


def _case(result: CaseResult, change: CaseChange | None, contexts: dict[str, int]) -> dict[str, Any]:
    spread = spread_of(result.samples)
    case = {
        **{name: _clean(getattr(result, name)) for name in _KEPT},
        "reruns": result.reruns or None,
        "context": contexts.setdefault(result.context, len(contexts)),
        "samples": [[each.score, harmless(each.reason)] for each in result.samples] if spread else None,
        "spread": spread[:2] if spread else None,
        "undecided": bool(spread and result.min is not None and spread.holds(result.min)),
        "statements": [
            [each.chunk, harmless(each.statement), each.relevant, harmless(each.reason or "")]
            for each in result.statements
        ],
        "status": _status(result),
        "fault": _fault(result),
        **(_changed(change) if change else {}),
    }  # fmt: skip
    return {
        name: value
        for name, value in case.items()
        if value is not None and value is not False and value not in ("", [])
    }


def _changed(change: CaseChange) -> dict[str, Any]:
    """What a comparison says of a case; of one that is gone, nothing is left to say of today."""
    told: dict[str, Any] = {"change": change.change, "difference": change.difference}
    if change.new is None:
        told |= {**dict.fromkeys(_OF_TODAY), "status": change.change}
    if change.old is not None:
        told["old"] = _old(change.old, change.new)
    return told


def _old(old: CaseResult, new: CaseResult | None) -> dict[str, Any]:
    """The score, the answer and the reason of before, the texts only where they are not those of today."""
    told: dict[str, Any] = {"score": old.score, "unscored": _clean(old.unscored)}
    for name in ("assistant", "reason"):
        if new is None or getattr(old, name) != getattr(new, name):
            told[name] = harmless(getattr(old, name))
    return {name: value for name, value in told.items() if value is not None}


def _status(result: CaseResult) -> str:
    if result.expected:
        return "expected to fail"
    if result.score is None:
        return "unscored"
    if result.min is None:
        return "no bar"
    return "passed" if result.passed else "below bar"


def _fault(result: CaseResult) -> str | None:
    return None if result.passed or result.score is None or result.min is None else below(result.score, result.min)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, float) and not isfinite(value):  # JSON has no word for it
        return None
    return [_clean(each) for each in value] if isinstance(value, Sequence) else value
