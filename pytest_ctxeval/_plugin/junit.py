"""What pytest's own `--junitxml` shows of a test: a property for each thing that a verdict says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_ctxeval._core.numbers import figure
from pytest_ctxeval._core.summary import in_order
from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import CaseResult

if TYPE_CHECKING:
    from pytest_ctxeval._plugin.ledger import Ledger


def add_properties(report: pytest.TestReport, ledger: Ledger) -> None:
    """Put on a report what was judged in its test.

    pytest writes the properties of a test's last report: of the teardown, or of a failed call where the teardown fails
    too. An attempt that is followed by another has none: its results do not count.
    """
    if report.when == "teardown" or (report.when == "call" and report.failed):
        report.user_properties += _properties(*ledger.judged(report.nodeid))


def _properties(results: Iterable[CaseResult], not_judged: str | None) -> Iterator[tuple[str, object]]:
    """Name them by the metric; a second verdict by the same metric has a number."""
    if not_judged:
        yield "ctxeval.unscored", one_line(not_judged)
    seen: Counter[str] = Counter()
    for result in in_order(results):
        seen[result.metric] += 1
        number = f".{seen[result.metric]}" if seen[result.metric] > 1 else ""
        for name, value in _facts(result):
            yield f"ctxeval.{result.metric}{number}.{name}", one_line(value)


def _facts(result: CaseResult) -> Iterator[tuple[str, str]]:
    yield "session", result.session_id
    yield "case", result.qa_id
    if result.score is not None:
        yield "score", figure(result.score)
    if result.min is not None:
        yield "min", figure(result.min)
    if len(result.samples) > 1:
        yield "samples", " ".join(figure(sample.score) for sample in result.samples)
    if result.score is None:
        yield "unscored", result.unscored or ""
    else:
        yield "reason", result.reason
    if result.judge:
        yield "judge", result.judge
