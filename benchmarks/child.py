"""Runs of other processes for the benchmarks, and what they cost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Cost(NamedTuple):
    """Seconds on the clock, and CPU seconds of a process and its children."""

    wall_s: float
    cpu_s: float


def measured(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str], *, limit_s: float | None = None
) -> tuple[subprocess.CompletedProcess[str], Cost]:
    """Run a command. Raises `subprocess.TimeoutExpired` where it takes longer than `limit_s` seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=limit_s
    )
    wall_s, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, Cost(wall_s, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def run_tests(folder: Path, tests: int, *arguments: str) -> Cost:
    """Run so many tests with this plugin and no other, but those that are named; all must pass."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CTXEVAL_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_ctxeval.plugin"]
    environment = {**inherited, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done, cost = measured([*command, *arguments], folder, environment)
    if f"{tests} passed" not in done.stdout:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return cost
