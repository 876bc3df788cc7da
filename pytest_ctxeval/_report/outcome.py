"""What came of a run, in one line: the same in every report."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pytest_ctxeval._core.numbers import count
from pytest_ctxeval._report.report import Report


class Outcome(NamedTuple):
    """Whether all that was judged reached its bars; `text` says so with the counts, as "passed: 3 cases, 1 gate"."""

    status: Literal["passed", "failed", "broken off", "nothing judged"]
    text: str


def outcome_of(report: Report) -> Outcome:
    """Give what came of a run. It has failed where a case, a gate or an unused recording has."""
    results = report.summary.results
    low = sum(result.score is not None and result.failed for result in results)
    unscored = sum(result.score is None and result.failed for result in results)
    failed = sum(check.status == "failed" for check in report.checks)
    of = f"of {count(len(results), 'case')}"
    faults = ", ".join([
        *([f"{low:,} {of} below {'its' if low == 1 else 'their'} bar"] if low else []),
        *([f"{unscored:,} {'unscored' if low else f'{of} unscored'}"] if unscored else []),
        *([f"{count(failed, 'gate')} failed"] if failed else []),
        *(["unused recordings"] if report.unused and report.unused_fails else []),
    ])  # fmt: skip
    expected = sum(result.expected for result in results)
    but = f", {expected:,} of them expected to fail" if expected else ""
    if report.run.broken_off:
        return Outcome("broken off", f"broken off: {faults or count(len(results), 'case') + ' so far'}")
    if faults:
        return Outcome("failed", f"failed: {faults}{but.replace(' of them', '')}")
    passed = sum(check.status == "passed" for check in report.checks)
    gates = f", {count(passed, 'gate')}" if passed else ""
    if not results:
        return Outcome("nothing judged", "judged no case")
    return Outcome("passed", f"passed: {count(len(results), 'case')}{but}{gates}")
