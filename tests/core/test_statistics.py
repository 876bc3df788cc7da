from __future__ import annotations

import itertools
import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ctxeval._core import statistics
from pytest_ctxeval._core.statistics import Aggregate, BayesianMode, FrequentistMode, Method
from pytest_ctxeval._core.weights import resolve_weights
from pytest_ctxeval.errors import ConfigError

ORACLE: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "stats.json").read_text("utf-8"))
STEADY = settings(deadline=None, derandomize=True, database=None, max_examples=60)
QUICK = BayesianMode(mc_samples=200)

cases = st.lists(
    st.tuples(
        st.floats(0, 1) | st.sampled_from([0.0, 0.8, 1.0]),
        st.floats(0, 1) | st.sampled_from([1e-300, 1e-9, 1.0]),
    ),
    min_size=1,
    max_size=30,
).filter(lambda cases: any(weight for _, weight in cases))


def interval(mode: BayesianMode, scores: list[float], weights: list[float] | None = None) -> tuple[float, float]:
    _, low, high = mode.aggregate(scores, weights or [1 / len(scores)] * len(scores))
    assert low is not None
    assert high is not None
    return low, high


@pytest.mark.parametrize("name", ORACLE)
def test_the_frequentist_mean_is_that_of_the_seeds(name: str) -> None:
    case = ORACLE[name]
    mean, low, high = FrequentistMode().aggregate(case["scores"], resolve_weights(case["weights"]).values)

    assert mean == pytest.approx(case["freq"][0], abs=1e-12)
    assert (low, high) == (None, None)


@pytest.mark.parametrize("name", ORACLE)
@pytest.mark.parametrize(
    ("column", "mode"),
    [
        ("bayes_default", BayesianMode(method="bootstrap")),
        (
            "bayes_1000_.90_seed7",
            BayesianMode(method="bootstrap", mc_samples=1000, ci_level=0.90, rng_seed=7),
        ),
    ],
    ids=["default", "1000-draws"],
)
def test_the_bootstrap_has_the_bounds_of_the_seeds_and_the_weighted_mean(
    name: str, column: str, mode: BayesianMode
) -> None:
    case = ORACLE[name]
    found = mode.aggregate(case["scores"], resolve_weights(case["weights"]).values)

    assert found == pytest.approx((case["freq"][0], *case[column][1:]), abs=1e-12)


def test_the_posterior_of_the_seeds_example_stays_as_it_is() -> None:
    assert BayesianMode().aggregate([1.0, 0.9, 0.05], [1 / 3] * 3) == pytest.approx(
        (0.65, 0.21521195, 0.90815897), abs=1e-6
    )


def test_three_perfect_scores_are_not_certainty() -> None:
    low, high = interval(BayesianMode(mc_samples=100_000), [1.0] * 3)

    assert low == pytest.approx(0.025 ** (1 / 4), abs=0.01)  # three cases and the prior's two: Beta(4, 1)
    assert high == 1.0


def test_two_weighted_perfect_scores_are_worth_their_effective_number() -> None:
    low, _ = interval(BayesianMode(mc_samples=100_000), [1.0, 1.0], [0.9, 0.1])

    assert low == pytest.approx(0.025 ** (1 / (1 + 1 / 0.82)), abs=0.01)


@pytest.mark.parametrize("score", [0.0, 0.8, 1.0])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_equal_scores_get_a_wide_interval(score: float, n: int) -> None:
    low, high = interval(BayesianMode(), [score] * n)

    assert low <= score <= high
    assert high - low > 0.3


@pytest.mark.parametrize("mode", [FrequentistMode(), BayesianMode(), BayesianMode(method="bootstrap")])
def test_no_score_has_no_mean_and_no_interval(mode: FrequentistMode | BayesianMode) -> None:
    assert mode.aggregate([], []) == Aggregate(None, None, None)
    assert mode.aggregate([0.9], [0.0]) == Aggregate(None, None, None)


@STEADY
@given(cases, st.sampled_from([0.01, 0.5, 0.95, 0.999999]))
def test_the_posterior_interval_holds_the_mean_and_stays_within_0_and_1(
    cases: list[tuple[float, float]], level: float
) -> None:
    scores, weights = zip(*cases, strict=True)
    mean, low, high = BayesianMode(mc_samples=100, ci_level=level).aggregate(scores, weights)

    assert mean is not None
    assert low is not None
    assert high is not None
    assert 0 <= low <= mean <= high <= 1


@STEADY
@given(cases)
def test_the_bootstrap_stays_within_its_scores(cases: list[tuple[float, float]]) -> None:
    scores, weights = zip(*cases, strict=True)
    mean, low, high = BayesianMode(mc_samples=100, method="bootstrap").aggregate(scores, weights)

    assert mean is not None
    assert low is not None
    assert high is not None
    assert min(scores) - 1e-12 <= low <= high <= max(scores) + 1e-12


def test_the_bootstrap_is_not_widened_to_hold_the_mean() -> None:
    assert BayesianMode(method="bootstrap").aggregate([0.0, 1.0], [0.999, 0.001]) == (0.001, 0.0, 0.0)


@STEADY
@given(cases, st.randoms(use_true_random=False))
def test_the_order_of_the_cases_never_changes_the_posterior(cases: list[tuple[float, float]], chance: Any) -> None:
    shuffled = chance.sample(cases, len(cases))

    assert QUICK.aggregate(*zip(*cases, strict=True)) == QUICK.aggregate(*zip(*shuffled, strict=True))


@STEADY
@given(cases, st.floats(0, 1))
def test_a_case_that_weighs_nothing_changes_no_posterior(cases: list[tuple[float, float]], score: float) -> None:
    scores, weights = (list(column) for column in zip(*cases, strict=True))

    assert interval(QUICK, [*scores, score], [*weights, 0.0]) == pytest.approx(
        interval(QUICK, scores, weights), abs=1e-12
    )


@pytest.mark.parametrize("method", ["posterior", "bootstrap"])
def test_the_same_cases_give_the_same_bytes_whatever_ran_before(method: Method) -> None:
    mode = BayesianMode(method=method)
    first = mode.aggregate([1.0, 0.9, 0.05], [0.5, 0.3, 0.2])
    mode.aggregate([0.1, 0.2], [0.5, 0.5])

    assert mode.aggregate([1.0, 0.9, 0.05], [0.5, 0.3, 0.2]) == first


def test_another_seed_gives_other_draws() -> None:
    assert interval(BayesianMode(rng_seed=1), [1.0, 0.0]) != interval(BayesianMode(rng_seed=2), [1.0, 0.0])


@pytest.mark.parametrize("method", ["posterior", "bootstrap"])
@pytest.mark.parametrize("n", [1, 2, 9, 150, 2_500])
@pytest.mark.parametrize("cells", [1, 700, 9_999])
def test_chunked_draws_are_bit_identical_to_one_big_draw(
    monkeypatch: pytest.MonkeyPatch, method: Method, n: int, cells: int
) -> None:
    scores = np.random.default_rng(3).random(n).tolist()
    weights = np.random.default_rng(4).random(n).tolist()
    mode = BayesianMode(mc_samples=60, method=method)
    monkeypatch.setattr(statistics, "CHUNK_CELLS", 10**9)
    at_once = mode.aggregate(scores, weights)
    monkeypatch.setattr(statistics, "CHUNK_CELLS", cells)

    assert mode.aggregate(scores, weights) == at_once


@pytest.mark.parametrize(("method", "mc_samples"), [("posterior", 3_000), ("bootstrap", 200)])
def test_memory_is_bounded_however_many_cases_there_are(method: Method, mc_samples: int) -> None:
    scores = np.linspace(0, 1, 50_000).tolist()
    weights = [1 / 50_000] * 50_000
    mode = BayesianMode(mc_samples=mc_samples, method=method)
    tracemalloc.start()
    try:
        mode.aggregate(scores, weights)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 16 * 2**20  # a draw of all cells at once takes 80 MiB and more


def test_the_grid_for_many_different_scores_keeps_mass_and_mean_and_hardly_widens() -> None:
    # Reaches inside: from outside, the draws' own noise hides what is looked for.
    scores = np.random.default_rng(5).beta(8, 2, 5_000)
    shares = np.full(5_000, 1 / 5_000)
    points, cases = statistics._with_prior(scores, shares)
    mass, mean = cases.sum(), (cases * points).sum() / cases.sum()
    spread = (cases * points**2).sum() / cases.sum() - mean**2
    exact = np.concatenate(([0.0], scores, [1.0]))

    assert points.size == statistics.GRID_STEPS + 1
    assert mass == pytest.approx(5_002)
    assert mean == pytest.approx(exact.mean())
    assert exact.var() <= spread <= exact.var() + 1 / (4 * statistics.GRID_STEPS**2)


def test_a_perfect_score_stays_on_the_grid() -> None:
    points, cases = statistics._with_prior(np.linspace(0, 1, 3_001), np.full(3_001, 1 / 3_001))

    assert (points[0], points[-1], cases.min() > 0) == (0.0, 1.0, True)


WEIGHTINGS = [[0.5, 0.3, 0.2], [0.9, 0.05, 0.05], *([1 / n] * n for n in (2, 3, 5))]


@pytest.mark.parametrize(("good", "bad", "chance"), [(1.0, 0.0, 0.9), (0.95, 0.1, 0.8)])
@pytest.mark.parametrize("weights", WEIGHTINGS, ids=str)
def test_the_interval_covers_the_true_mean_of_two_valued_scores(
    good: float, bad: float, chance: float, weights: list[float]
) -> None:
    true_mean = chance * good + (1 - chance) * bad
    covered = 0.0
    for outcome in itertools.product((True, False), repeat=len(weights)):
        low, high = interval(BayesianMode(), [good if is_good else bad for is_good in outcome], weights)
        if low <= true_mean <= high:
            covered += math.prod(chance if is_good else 1 - chance for is_good in outcome)

    assert covered >= 0.88


@pytest.mark.parametrize(("good", "bad", "chance"), [(1.0, 0.0, 0.9), (0.95, 0.1, 0.8)])
@pytest.mark.parametrize("n", [10, 20, 50])
def test_the_interval_covers_the_true_mean_of_many_two_valued_scores(
    good: float, bad: float, chance: float, n: int
) -> None:
    true_mean = chance * good + (1 - chance) * bad
    covered = 0.0
    for n_good in range(n + 1):
        low, high = interval(BayesianMode(), [good] * n_good + [bad] * (n - n_good))
        if low <= true_mean <= high:
            covered += math.comb(n, n_good) * chance**n_good * (1 - chance) ** (n - n_good)

    assert covered >= 0.92


@pytest.mark.parametrize(
    "weights", [*WEIGHTINGS, [1 / 20] * 20], ids=lambda weights: f"{len(weights)}-{weights[0]:.2f}"
)
def test_the_interval_covers_the_true_mean_of_graded_scores(weights: list[float]) -> None:
    rng = np.random.default_rng(6)
    intervals = [
        interval(BayesianMode(mc_samples=1_000), rng.beta(8, 2, len(weights)).tolist(), weights) for _ in range(200)
    ]

    assert sum(low <= 0.8 <= high for low, high in intervals) >= 0.88 * 200


def test_fifty_graded_scores_give_an_interval_hardly_wider_than_that_of_the_seeds() -> None:
    rng = np.random.default_rng(7)
    ours = theirs = 0.0
    for _ in range(20):
        scores = rng.beta(8, 2, 50).tolist()
        low, high = interval(BayesianMode(mc_samples=1_000), scores)
        ours += high - low
        low, high = interval(BayesianMode(mc_samples=1_000, method="bootstrap"), scores)
        theirs += high - low

    assert ours <= 1.6 * theirs


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("mc_samples", 0, "mc_samples: 0 is not a number of draws; use an integer from 1"),
        ("mc_samples", True, "mc_samples: True is not a number of draws; use an integer from 1"),
        ("mc_samples", 1.5, "mc_samples: 1.5 is not a number of draws; use an integer from 1"),
        ("ci_level", 0.0, "ci_level: 0.0 is not a level; use a number between 0 and 1, as 0.95"),
        ("ci_level", 1.0, "ci_level: 1.0 is not a level; use a number between 0 and 1, as 0.95"),
        ("ci_level", 95, "ci_level: 95 is not a level; use a number between 0 and 1, as 0.95"),
        ("ci_level", math.nan, "ci_level: nan is not a level; use a number between 0 and 1, as 0.95"),
        ("ci_level", "0.9", "ci_level: '0.9' is not a level; use a number between 0 and 1, as 0.95"),
        ("rng_seed", -1, "rng_seed: -1 is not a seed; use an integer from 0"),
        ("rng_seed", None, "rng_seed: None is not a seed; use an integer from 0"),
        ("method", "bayes", "method: 'bayes' is not a method; use posterior or bootstrap"),
        ("method", ["posterior"], "method: ['posterior'] is not a method; use posterior or bootstrap"),
    ],
)
def test_a_wrong_setting_is_refused_when_the_mode_is_built(field: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BayesianMode(**{field: value})

    assert str(refused.value) == message


def test_the_smallest_settings_are_accepted() -> None:
    low, high = interval(BayesianMode(mc_samples=1, ci_level=1e-9, rng_seed=0), [0.5])

    assert 0 <= low <= 0.5 <= high <= 1
