"""What an unrelated pytest run pays for having the plugin installed: CPU seconds or instructions of the whole process.

    python benchmarks/startup.py [pairs]
    python benchmarks/startup.py instructions

One empty test in an empty project is run with a plugin and without it, in turn, so that a slow moment of the machine
hits both; the ratio is the median over the pairs. Instructions are counted once, by valgrind, and do not depend on what
else the machine does. Bytecode is cached as on a user's machine, in a folder of this run's own.

Given by `-p`, a plugin makes pytest read every installed package's entry points, which a normal run does anyway: so the
first row compares with an empty plugin. The last row is not ours: langsmith, which langchain-core requires, brings one.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
# What is compared: the environment, and the arguments of the run with the plugin and of the one without it.
ROWS: tuple[tuple[str, dict[str, str], list[str], list[str]], ...] = (
    ("ctxeval, no other plugin", ALONE, ["-p", "pytest_ctxeval.plugin"], ["-p", "empty_plugin"]),
    ("an empty plugin by -p, no other", ALONE, ["-p", "empty_plugin"], []),
    ("ctxeval, all that is installed", {}, [], ["-p", "no:ctxeval"]),
    ("langsmith, all that is installed", {}, [], ["-p", "no:langsmith_plugin"]),
)
TARGET = 1.03
UNSET = ("PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")


def run(project: Path, environment: dict[str, str], arguments: list[str], *before: str) -> str:
    command = [*before, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True, text=True).stderr


def cpu_seconds(project: Path, environment: dict[str, str], arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(project, environment, arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def billions_of_instructions(project: Path, environment: dict[str, str], arguments: list[str]) -> float:
    told = run(project, environment, arguments, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    return int(told.rpartition("Collected :")[2].split()[0]) / 1e9


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else "9"
    counts = given == "instructions"
    pairs, cost, unit = (1, billions_of_instructions, "Gi") if counts else (int(given), cpu_seconds, "s")
    inherited = {name: value for name, value in os.environ.items() if name not in UNSET}
    print(f"{f'pairs: {pairs}':<34}{f'with {unit}':>8}{f'without {unit}':>11}{'ratio':>8}{'lowest':>8}{'highest':>9}")
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        project.mkdir()
        (project / "pytest.ini").write_text("[pytest]\n")
        (project / "empty_plugin.py").touch()
        (project / "test_empty.py").write_text("def test():\n    pass\n")
        for name, extra, on, off in ROWS:
            environment = {**inherited, "PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode")), "PYTHONHASHSEED": "0"}
            environment |= {"PYTHONPATH": str(project), **extra}
            for arguments in (on, off):  # fills the caches
                run(project, environment, arguments)
            measured = [(cost(project, environment, on), cost(project, environment, off)) for _ in range(pairs)]
            ratios = [with_it / without for with_it, without in measured]
            own = median(pair[0] for pair in measured), median(pair[1] for pair in measured)
            spread = f"{min(ratios):>8.3f}{max(ratios):>9.3f}"
            print(f"{name:<34}{own[0]:>8.3f}{own[1]:>11.3f}{median(ratios):>8.3f}{spread}", flush=True)
    print(f"target of the ctxeval rows: at most {TARGET}")


if __name__ == "__main__":
    main()
