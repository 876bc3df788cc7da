"""What all reports tell: a run, and what was made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ctxeval._core.baseline import Comparison
from pytest_ctxeval._core.gate import GateCheck
from pytest_ctxeval._core.run import Run
from pytest_ctxeval._core.summary import Summary


@dataclass(frozen=True, slots=True)
class Report:
    """All that there is to tell of a run; each writer takes from it what its readers need.

    `level` is that of the intervals, None where there are none. `comparison` is with the run that `baseline` names,
    None where there is none. `unused` tells of recordings that nobody needs, and `unused_fails` says that they make the
    run red.
    """

    run: Run
    summary: Summary
    checks: Sequence[GateCheck] = ()
    level: float | None = 0.95
    comparison: Comparison | None = None
    baseline: str = ""
    notes: Sequence[str] = ()
    unused: Sequence[str] = ()
    unused_fails: bool = False

    @property
    def failed(self) -> bool:
        """Whether a gate has failed."""
        return any(check.status == "failed" for check in self.checks)
