"""How the scores of a run lie, as its page draws them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pytest_ctxeval._core.text import harmless
from pytest_ctxeval._core.verdict import CaseResult
from pytest_ctxeval._report.report import Report

BINS: Final = 10


class Bin(NamedTuple):
    """The scores from `low`, a tenth wide, the last one with 1: how many passed, did not, and were there before."""

    low: float
    passed: int
    below: int
    old: int


class Distribution(NamedTuple):
    """The scores of a metric; `most` is the height of the highest bin, 1 or more."""

    metric: str
    n_scored: int
    n_unscored: int
    bins: Sequence[Bin]
    most: int


def distributions(report: Report) -> list[Distribution]:
    """Give those of the metrics that have a score, today or in the baseline."""
    changes = [case for row in (report.comparison.sessions if report.comparison else ()) for case in row.cases]
    today, before = _by_metric(report.summary.results), _by_metric(case.old for case in changes if case.old)
    found = [_distribution(metric, today.get(metric, []), before.get(metric, [])) for metric in {**today, **before}]
    return [each for each in found if each.most]


def _by_metric(results: Iterable[CaseResult]) -> dict[str, list[CaseResult]]:
    found: dict[str, list[CaseResult]] = {}
    for result in results:
        found.setdefault(result.metric, []).append(result)
    return found


def _distribution(metric: str, today: Sequence[CaseResult], before: Sequence[CaseResult]) -> Distribution:
    counts = [[0, 0, 0] for _ in range(BINS)]
    for result in today:
        if result.score is not None:
            counts[_bin(result.score)][0 if result.passed else 1] += 1
    for result in before:
        if result.score is not None:
            counts[_bin(result.score)][2] += 1
    scored = sum(result.score is not None for result in today)
    return Distribution(
        metric=harmless(metric.replace("_", " ")),
        n_scored=scored,
        n_unscored=len(today) - scored,
        bins=[Bin(at / BINS, *each) for at, each in enumerate(counts)],
        most=max(max(passed + below, old) for passed, below, old in counts),
    )


def _bin(score: float) -> int:
    return min(int(score * BINS + 1e-9), BINS - 1)
