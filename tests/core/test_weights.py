from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ctxeval._core.weights import Weights, resolve_weights, weighted_mean

ORACLE: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "weights.json").read_text("utf-8"))
STEADY = settings(deadline=None, derandomize=True, database=None)

some_weights = st.lists(st.none() | st.floats(0, 2), max_size=30)
pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30)


@pytest.mark.parametrize("name", ORACLE)
def test_weights_are_those_of_the_seeds(name: str) -> None:
    values, note = resolve_weights(ORACLE[name]["given"])

    assert values == pytest.approx(ORACLE[name]["weights"], abs=1e-12)
    assert (note is not None) == ORACLE[name]["warned"]


def test_no_case_has_no_weight() -> None:
    assert resolve_weights([]) == Weights((), None)


def test_weights_that_do_not_sum_to_1_are_told_with_their_sum() -> None:
    note = "the weights sum to 1.5, not 1: every case counts the same"

    assert resolve_weights([0.5, 0.5, 0.5]) == Weights((1 / 3, 1 / 3, 1 / 3), note)


def test_a_sum_just_beside_1_is_told_with_the_digits_that_show_it() -> None:
    assert resolve_weights([0.5, 0.5000011]).note == "the weights sum to 1.0000011, not 1: every case counts the same"


def test_weights_that_leave_nothing_for_one_case_are_told() -> None:
    note = "the weights sum to 1.3 and leave nothing for 1 case without one: every case counts the same"

    assert resolve_weights([0.9, 0.4, None]) == Weights((1 / 3, 1 / 3, 1 / 3), note)


def test_weights_that_leave_nothing_for_several_cases_are_told() -> None:
    note = "the weights sum to 1 and leave nothing for 2 cases without one: every case counts the same"

    assert resolve_weights([1.0, None, None]) == Weights((1 / 3, 1 / 3, 1 / 3), note)


def test_ten_tenths_leave_nothing_for_the_eleventh_case() -> None:
    values, note = resolve_weights([0.1] * 10 + [None])

    assert values == (1 / 11,) * 11
    assert note == "the weights sum to 1 and leave nothing for 1 case without one: every case counts the same"


def test_weights_too_large_to_sum_are_set_aside() -> None:
    assert resolve_weights([1e308] * 4).note == "the weights sum to inf, not 1: every case counts the same"


def test_100_000_weights_sum_to_1() -> None:
    values, note = resolve_weights([0.25] + [None] * 99_999)

    assert len(values) == 100_000
    assert sum(values) == pytest.approx(1, abs=1e-9)
    assert note is None


@STEADY
@given(some_weights)
def test_resolved_weights_are_one_per_case_and_sum_to_1(weights: list[float | None]) -> None:
    values, _ = resolve_weights(weights)

    assert len(values) == len(weights)
    assert all(value >= 0 for value in values)
    assert not weights or sum(values) == pytest.approx(1, abs=2e-6)


@STEADY
@given(some_weights)
def test_a_weight_goes_by_its_position(weights: list[float | None]) -> None:
    values, note = resolve_weights(weights)

    assert resolve_weights(weights[::-1]) == (values[::-1], note)


@STEADY
@given(pairs, st.randoms(use_true_random=False))
def test_a_mean_is_the_same_to_the_last_bit_in_any_order(cases: list[tuple[float, float]], chance: Any) -> None:
    shuffled = chance.sample(cases, len(cases))

    assert weighted_mean(*zip(*cases, strict=True)) == weighted_mean(*zip(*shuffled, strict=True))


@STEADY
@given(pairs)
def test_a_mean_lies_within_its_scores(cases: list[tuple[float, float]]) -> None:
    scores, weights = zip(*cases, strict=True)
    mean = weighted_mean(scores, weights)

    assert mean is None or min(scores) <= mean <= max(scores)


def test_equal_scores_have_themselves_as_their_mean() -> None:
    assert weighted_mean([0.8] * 5, [0.2] * 5) == 0.8


def test_no_score_has_no_mean() -> None:
    assert weighted_mean([], []) is None


def test_scores_that_all_weigh_nothing_have_no_mean() -> None:
    assert weighted_mean([0.9, 1.0], [0.0, 0.0]) is None
