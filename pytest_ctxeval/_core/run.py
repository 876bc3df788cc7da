"""A run: what was judged, and how. All that a stored run holds; the rest follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pytest_ctxeval._core.selection import Selection
from pytest_ctxeval._core.verdict import Calls, CaseResult, Cost

StatMode = Literal["frequentist", "bayesian"]


@dataclass(frozen=True, slots=True)
class Run:
    """The results of a run, in the order of the collection, and what is to be known of it.

    `assistant` are the calls of assistants under test, `spent` is what attempts that were rerun have cost. `partial`
    says why some tests were left out, None where none was, and `selection` which ones those are; `broken_off` says that
    the run did not come to its end.
    """

    results: tuple[CaseResult, ...]
    record: str = "none"
    stat: StatMode = "bayesian"
    assistant: Calls = field(default_factory=Calls)
    spent: Cost = field(default_factory=Cost)
    partial: str | None = None
    selection: Selection = field(default_factory=Selection)
    broken_off: bool = False
