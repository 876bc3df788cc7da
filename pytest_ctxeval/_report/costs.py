"""What judging has cost, in words."""

from __future__ import annotations

from typing import Final

from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import Calls, Cost
from pytest_ctxeval._report.report import Report

_NAMED: Final = 3  # judges


def judging_text(report: Report) -> str:
    """Name the judges of a run, and count their calls and tokens, those of attempts that were rerun included."""
    results, spent = report.summary.results, report.run.spent
    judged = [result for result in results if result.score is not None]
    judges = dict.fromkeys(result.judge for result in judged if result.judge)
    asked = dict.fromkeys(one_line(judge, 60) for judge in judges)
    more = [f"{len(asked) - _NAMED} more"] if len(asked) > _NAMED else []
    names = ", ".join([*[*asked][:_NAMED], *more]) or ("not asked" if judged else "no verdict")
    total = sum((result.calls for result in results), spent.calls)
    known = [result.tokens for result in results if result.score is not None or result.tokens is not None]
    known += [spent.tokens] if spent != Cost() else []
    tokens = "tokens unknown" if None in known or not known else f"{sum(filter(None, known)):,} tokens"
    return f"{names}: {calls_text(total)}, {tokens}, record={report.run.record}"


def calls_text(calls: Calls) -> str:
    """Count calls by what became of them."""
    return f"{calls.replayed} replayed, {calls.recorded} recorded, {calls.live} live"
