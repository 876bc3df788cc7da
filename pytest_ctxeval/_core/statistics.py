"""From the scores of a session to one mean and, in Bayesian mode, an interval around it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np
import numpy.typing as npt

from pytest_ctxeval._core.run import StatMode
from pytest_ctxeval._core.weights import weighted_mean
from pytest_ctxeval.errors import ConfigError

Floats = npt.NDArray[np.float64]
Method = Literal["posterior", "bootstrap"]

CHUNK_CELLS = 100_000
GRID_STEPS = 2_000


class Aggregate(NamedTuple):
    """A session's mean and its bounds; the mean is None where no case that counts was scored."""

    mean: float | None
    low: float | None
    high: float | None


class StatisticalMode(Protocol):
    """Anything that turns a session's scores (0 to 1) and their weights, in the same order, into a mean."""

    def aggregate(
        self, scores: Sequence[float], weights: Sequence[float]
    ) -> tuple[float | None, float | None, float | None]:
        """Give the mean and the two bounds, finite and with low <= high; both bounds None for no interval."""
        ...


@dataclass(frozen=True, slots=True)
class FrequentistMode:
    """The weighted mean, without an interval."""

    def aggregate(self, scores: Sequence[float], weights: Sequence[float]) -> Aggregate:
        """Give the weighted mean; both bounds are None."""
        return Aggregate(weighted_mean(scores, weights), None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesianMode:
    """The same weighted mean, with an equal-tailed credible interval from `mc_samples` seeded draws.

    `"posterior"` is honest about few cases: a Bayesian bootstrap (Rubin 1981) in which the cases are worth
    their effective number (Kish: 1 / sum of the squared shares) and stand beside two prior cases, one scored
    0 and one scored 1. Three perfect scores give 0.4 to 1, not 1 to 1. The order of cases does not matter.

    `"bootstrap"` is the percentile bootstrap of alquimia-fair-forge and gaussia, kept to the last digit for
    comparison with them: too narrow for few cases, of no width for one, and it may miss its own mean.

    Each call makes its own generator from `rng_seed`, so the same cases give the same bytes whatever ran
    before. Draws are made 100,000 cells at a time, so memory is bounded whatever the number of cases.
    """

    mc_samples: int = 5000
    ci_level: float = 0.95
    rng_seed: int = 42
    method: Method = "posterior"

    def __post_init__(self) -> None:
        if not _is_int(self.mc_samples) or self.mc_samples < 1:
            raise ConfigError(f"mc_samples: {self.mc_samples!r} is not a number of draws; use an integer from 1")
        if not _is_level(self.ci_level):
            raise ConfigError(f"ci_level: {self.ci_level!r} is not a level; use a number between 0 and 1, as 0.95")
        if not _is_int(self.rng_seed) or self.rng_seed < 0:
            raise ConfigError(f"rng_seed: {self.rng_seed!r} is not a seed; use an integer from 0")
        if self.method not in get_args(Method):
            raise ConfigError(f"method: {self.method!r} is not a method; use {' or '.join(get_args(Method))}")

    def aggregate(self, scores: Sequence[float], weights: Sequence[float]) -> Aggregate:
        """Give the weighted mean and the interval; all None where nothing that counts was scored."""
        mean = weighted_mean(scores, weights)
        if mean is None:
            return Aggregate(None, None, None)
        shares = np.array(weights, dtype=np.float64) / math.fsum(weights)
        draw = _posterior_means if self.method == "posterior" else _bootstrap_means
        chunks = list(draw(np.array(scores, dtype=np.float64), shares, self))
        tail = (1 - self.ci_level) / 2
        low, high = np.quantile(np.concatenate(chunks), [tail, 1 - tail]).tolist()
        if self.method == "bootstrap":
            return Aggregate(mean, low, high)
        return Aggregate(mean, min(low, mean), max(high, mean))


def statistical_mode(name: StatMode) -> FrequentistMode | BayesianMode:
    """Give the statistics of that name."""
    return FrequentistMode() if name == "frequentist" else BayesianMode()


def _posterior_means(scores: Floats, shares: Floats, mode: BayesianMode) -> Iterator[Floats]:
    points, concentrations = _with_prior(scores, shares)
    rng = np.random.default_rng(mode.rng_seed)
    for rows in _chunks(mode.mc_samples, points.size):
        # Dirichlet draws as gamma draws over their sum. The sum cannot vanish, however small a concentration
        # is, because both ends hold a prior case. No matrix product: its rounding depends on the chunk.
        mass = rng.standard_gamma(concentrations, (rows, points.size))
        total = mass.sum(axis=1)
        mass *= points
        yield np.minimum(mass.sum(axis=1) / total, 1.0)


def _bootstrap_means(scores: Floats, shares: Floats, mode: BayesianMode) -> Iterator[Floats]:
    rng = np.random.default_rng(mode.rng_seed)
    for rows in _chunks(mode.mc_samples, scores.size):
        yield scores[rng.choice(scores.size, (rows, scores.size), p=shares)].mean(axis=1)


def _with_prior(scores: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Merge equal scores, sorted, drop those that weigh nothing, and add the prior cases.

    A Dirichlet draw over merged cases is distributed as the sum over the single ones, so nothing is lost and
    a session of 100,000 cases costs what its different scores cost. Where there are more than GRID_STEPS of
    those, each is shared between its two neighbours on a grid in a way that keeps its mean: the interval
    becomes wider by far less than the draws' own noise.
    """
    order = np.lexsort((shares, scores))
    order = order[shares[order] > 0]
    scores, shares = scores[order], shares[order]
    cases = shares / np.square(shares).sum()
    scores = np.concatenate(([0.0], scores, [1.0]))
    cases = np.concatenate(([1.0], cases, [1.0]))
    points, which = np.unique(scores, return_inverse=True)
    if points.size <= GRID_STEPS:
        concentrations = np.zeros(points.size)
        np.add.at(concentrations, which, cases)
        return points, concentrations
    below = np.minimum(np.floor(scores * GRID_STEPS), GRID_STEPS - 1)
    part_above = scores * GRID_STEPS - below
    step = below.astype(np.intp)
    concentrations = np.zeros(GRID_STEPS + 1)
    np.add.at(concentrations, step, cases * (1 - part_above))
    np.add.at(concentrations, step + 1, cases * part_above)
    return np.arange(GRID_STEPS + 1) / GRID_STEPS, concentrations


def _chunks(rows: int, cells_per_row: int) -> Iterator[int]:
    """How many rows to draw at a time: rows of one generator are the same in one draw or in several."""
    at_once = max(1, CHUNK_CELLS // cells_per_row)
    for start in range(0, rows, at_once):
        yield min(at_once, rows - start)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_level(value: object) -> bool:
    return isinstance(value, float) and 0 < value < 1
