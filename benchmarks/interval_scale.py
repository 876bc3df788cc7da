"""What the interval of a session costs in time and memory, each size in a process of its own.

    python benchmarks/interval_scale.py

All scores differ and all weights too, which is the dearest case. The time is that of `aggregate` alone; the
memory is the peak of the whole process, and beside it what the process held before (Python, numpy, the data).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np

from pytest_ctxeval._core.statistics import BayesianMode

SIZES = (3, 1_000, 100_000)


def measure(n: int) -> None:
    rng = np.random.default_rng(0)
    scores, weights = rng.random(n).tolist(), rng.random(n).tolist()
    before = peak_mib()
    start = time.perf_counter()
    BayesianMode().aggregate(scores, weights)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "before": before, "peak": peak_mib()}))


def peak_mib() -> float:
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib / 1024 / (1024 if sys.platform == "darwin" else 1)


def main() -> None:
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]))
        return
    print(f"{'cases':>8}{'seconds':>10}{'us/case':>10}{'peak MiB':>10}{'before':>8}")
    for n in SIZES:
        command = [sys.executable, __file__, str(n)]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(run.stdout)
        per_case = found["seconds"] / n * 1e6
        print(f"{n:>8,}{found['seconds']:>10.3f}{per_case:>10.1f}{found['peak']:>10.0f}{found['before']:>8.0f}")


if __name__ == "__main__":
    main()
