"""From the results of a run to one row for each session and metric."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from numbers import Real
from operator import attrgetter
from typing import Any, Final

from pytest_ctxeval._core.statistics import Aggregate, StatisticalMode
from pytest_ctxeval._core.verdict import CaseResult
from pytest_ctxeval._core.weights import resolve_weights
from pytest_ctxeval.errors import ConfigError


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One session judged by one metric, in one version of it: `n` cases, of which `n_unscored` are in no mean.

    `mean`, `low` and `high` are 0 to 1; the mean is None where no case that counts was scored, the bounds
    also where the mode gives none. `note` says why the given weights were set aside.
    """

    session_id: str
    assistant_id: str
    metric: str
    n: int
    n_unscored: int
    mean: float | None
    low: float | None
    high: float | None
    note: str | None
    prompt_version: str | None = None

    @property
    def measure(self) -> str:
        """The metric in words, with its version where that is not the standard one."""
        title = self.metric.replace("_", " ")
        return title if self.prompt_version in (None, "1") else f"{title} {self.prompt_version}"

    @property
    def n_scored(self) -> int:
        """How many cases have a score."""
        return self.n - self.n_unscored


@dataclass(frozen=True, slots=True)
class Summary:
    """A run: its rows in order of first appearance, and its results in the order of the collection."""

    sessions: tuple[SessionSummary, ...]
    results: tuple[CaseResult, ...]


def summarise(results: Iterable[CaseResult], mode: StatisticalMode) -> Summary:
    """Summarise a run, whatever the order in which its tests ended.

    Results are sorted by position, and within a test by metric, version and case: a test may judge in threads. What
    another prompt or setting judged is another measure, with a row of its own. A score that is no number from 0 to 1
    makes its case unscored. Raises `ConfigError` where a custom mode gives something else than (mean, low, high).
    """
    ordered = in_order(results)
    rows: dict[tuple[str, str, str | None], list[CaseResult]] = {}
    for result in ordered:
        rows.setdefault((result.session_id, result.metric, result.prompt_version), []).append(result)
    return Summary(tuple(_session(cases, mode) for cases in rows.values()), tuple(ordered))


def in_order(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Sort results as a run's are, those whose score is no number from 0 to 1 made unscored."""
    tests = groupby(sorted(map(_checked, results), key=_position), _position)
    # Where a result stands within its test takes more memory than the result: it is found out for one test at a time,
    # and not at all for the many that have one result.
    together = ([*of_test] for _, of_test in tests)
    return [result for each in together for result in (sorted(each, key=_place) if len(each) > 1 else each)]


def check_mode(mode: object) -> None:
    """Raise `ConfigError` for what is no statistical mode. It is tried on one score of 0.5, and on 1, 1, 1, 0.7."""
    name = f"the class {mode.__name__}" if isinstance(mode, type) else f"an object of type {type(mode).__name__}"
    if isinstance(mode, type) or not callable(getattr(mode, "aggregate", None)):
        raise ConfigError(
            f"statistical_mode= is {name}; give FrequentistMode(), BayesianMode() or any object with "
            "aggregate(scores, weights)"
        )
    tried: Any = mode
    for scores in ((0.5,), (1.0, 1.0, 1.0, 0.7)):
        try:
            _aggregate([(score, 1 / len(scores)) for score in scores], tried)
        except ConfigError as error:
            raise ConfigError(f"statistical_mode= is {name}; on the scores {[*scores]} {error}") from None
        except Exception as error:
            told = f"whose aggregate failed on the scores {[*scores]} with {type(error).__name__}: {error}"
            raise ConfigError(f"statistical_mode= is {name}, {told}") from error


def lowest(summary: Summary, n: int) -> tuple[CaseResult, ...]:
    """Give the `n` results with the lowest scores, lowest first; of equal ones, the first collected."""
    scored = [(result.score, result) for result in summary.results if result.score is not None]
    return tuple(result for _, result in sorted(scored, key=lambda pair: pair[0])[:n])


def failed(summary: Summary) -> tuple[CaseResult, ...]:
    """Give the results that did not pass: below their bar, or unscored."""
    return tuple(result for result in summary.results if not result.passed)


def _session(cases: list[CaseResult], mode: StatisticalMode) -> SessionSummary:
    weights = resolve_weights([case.weight for case in cases])
    scored = [
        (case.score, weight) for case, weight in zip(cases, weights.values, strict=True) if case.score is not None
    ]
    mean, low, high = _aggregate(_shared_out(scored, of=len(cases)), mode) if scored else Aggregate(None, None, None)
    return SessionSummary(
        session_id=cases[0].session_id,
        assistant_id=cases[0].assistant_id,
        metric=cases[0].metric,
        prompt_version=cases[0].prompt_version,
        n=len(cases),
        n_unscored=len(cases) - len(scored),
        mean=mean,
        low=low,
        high=high,
        note=weights.note,
    )


def _shared_out(scored: list[tuple[float, float]], *, of: int) -> list[tuple[float, float]]:
    """Give the weights of unscored cases to the others: those of what is averaged sum to 1."""
    total = math.fsum(weight for _, weight in scored)
    if len(scored) == of or not total:
        return scored
    return [(score, weight / total) for score, weight in scored]


def _aggregate(scored: list[tuple[float, float]], mode: StatisticalMode) -> Aggregate:
    answer: Any = mode.aggregate([score for score, _ in scored], [weight for _, weight in scored])
    try:
        mean, low, high = answer
    except (TypeError, ValueError):
        mean = low = high = math.nan
    bounds_fit = (low is None and high is None) or (_is_score(low) and _is_score(high) and low <= high)
    if not bounds_fit or not (mean is None or _is_score(mean)):
        raise ConfigError(
            f"{type(mode).__name__}.aggregate gave {answer!r}; a statistical mode gives (mean, low, high), "
            "numbers from 0 to 1 with low <= high, or None for both bounds"
        )
    return Aggregate(*(None if figure is None else float(figure) for figure in (mean, low, high)))


_position: Final = attrgetter("position")


def _place(result: CaseResult) -> tuple[Any, ...]:
    """Where a result stands within its test; q10 behind q9."""
    numbers = [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", result.qa_id)]
    return (result.node_id, result.metric, result.prompt_version or "", numbers)


def _checked(result: CaseResult) -> CaseResult:
    score: object = result.score
    if score is None or _is_score(score):
        return result
    return replace(result, score=None, unscored=f"the score {score!r} is not a number from 0 to 1")


def _is_score(value: object) -> bool:
    return isinstance(value, Real) and 0 <= float(value) <= 1
