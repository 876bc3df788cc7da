"""How often the interval of a comparison holds the true change, and how often it finds one.

    python benchmarks/paired_coverage.py [replicates]

Each line draws the differences of n cases from one distribution. "covers" is the share of the 95% intervals that hold
the true mean; "finds" the share that lie below 0, which for no change at all is the share of false alarms.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

import numpy as np

from pytest_ctxeval._core.baseline import paired_interval

Draw = Callable[[np.random.Generator, int], "np.typing.NDArray[np.float64]"]
SIZES: Final = (3, 5, 10, 20, 50)
CELLS: Final[dict[str, tuple[Draw, float]]] = {
    "no change: noise of 0.1 in 60% of the cases": (
        lambda rng, n: rng.choice([-0.1, 0, 0.1], n, p=[0.3, 0.4, 0.3]),
        0.0,
    ),
    "all a little worse: -0.03 with a deviation of 0.05": (lambda rng, n: rng.normal(-0.03, 0.05, n), -0.03),
    "half fall by 0.5": (lambda rng, n: rng.choice([-0.5, 0], n), -0.25),
    "20% fall by 0.8, 5% rise by it": (lambda rng, n: rng.choice([-0.8, 0, 0.8], n, p=[0.2, 0.75, 0.05]), -0.12),
    "10% fall by 0.5": (lambda rng, n: rng.choice([-0.5, 0], n, p=[0.1, 0.9]), -0.05),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("replicates", type=int, nargs="?", default=400)
    replicates = parser.parse_args().replicates
    if replicates < 1:
        parser.error("replicates must be 1 or more")
    rng = np.random.default_rng(1)
    print(f"{'differences':<52}{'n':>4}{'covers':>8}{'finds':>7}")
    for name, (draw, mean) in CELLS.items():
        for n in SIZES:
            found = [paired_interval(draw(rng, n).tolist(), [1 / n] * n) for _ in range(replicates)]
            known = [(low, high) for _, low, high in found if low is not None and high is not None]
            covers = sum(low - 1e-9 <= mean <= high + 1e-9 for low, high in known) / replicates
            finds = sum(high < 0 for _, high in known) / replicates
            print(f"{name if n == SIZES[0] else '':<52}{n:>4}{covers:>8.0%}{finds:>7.0%}")


if __name__ == "__main__":
    main()
