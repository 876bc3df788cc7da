"""Each case's share in its session."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

TOLERANCE = 1e-6


class Weights(NamedTuple):
    """One weight per case, in order. `note` says why the given ones were set aside, None where they stand."""

    values: tuple[float, ...]
    note: str | None


def resolve_weights(given: Sequence[float | None]) -> Weights:
    """Give each case its share of 1, by position; None is a case without a weight of its own.

    Weights that do not sum to 1 (within 1e-6), or that leave nothing for the cases without one, are set
    aside as a whole: to rescale them would be a guess, and it would move a gate unseen.
    """
    known = [weight for weight in given if weight is not None]
    unweighted = len(given) - len(known)
    if not known:
        return _equal(len(given), None)
    total = _total(known)
    if not unweighted:
        if abs(total - 1) <= TOLERANCE:
            return Weights(tuple(known), None)
        return _equal(len(given), f"the weights sum to {total:.10g}, not 1: every case counts the same")
    if total < 1 - TOLERANCE:
        share = (1 - total) / unweighted
        return Weights(tuple(share if weight is None else weight for weight in given), None)
    without = f"{unweighted} {'case' if unweighted == 1 else 'cases'} without one"
    note = f"the weights sum to {total:.10g} and leave nothing for {without}: every case counts the same"
    return _equal(len(given), note)


def weighted_mean(scores: Sequence[float], weights: Sequence[float]) -> float | None:
    """`sum(w * s) / sum(w)`, never outside the scores; the same to the last bit in any order.

    None where there is no score, and also where all that were scored weigh 0: of the cases that count, none
    was scored, and a mean of the others would stand for them.
    """
    total = _total(weights)
    if not total:
        return None
    mean = _total(weight * score for score, weight in zip(scores, weights, strict=True)) / total
    return min(max(mean, min(scores)), max(scores))


def _equal(n: int, note: str | None) -> Weights:
    return Weights((1 / n,) * n if n else (), note)


def _total(values: Iterable[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf
