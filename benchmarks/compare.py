"""This plugin beside its neighbours, on the same cases and the same judge, in one table.

    python benchmarks/compare.py [cases] [rounds] [latency in seconds] [--envs FOLDER]

Each neighbour gets an environment of its own (kept in FOLDER, if one is given). A round runs every suite twice, in
turn, and medians are shown; `x` is the median of the ratios to plain pytest in the same round. The judge is a server on
this machine that takes the same time for each call and gives each case a score of its own; the calls are counted there,
and the scores that a suite noted are compared with those that were given. Seconds are those of the whole process.

`unrelated` is the CPU time of a run of one empty test where the neighbour is installed, over plain pytest's; beside it
without the plugin of langsmith, which langchain-core brings. A neighbour that does not work has a row that says why.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from child import Cost, measured
from judge_server import JudgeServer, serving
from neighbours import NEIGHBOURS, OURS, PLAIN_NAME, PYTEST, SHARED, Neighbour

ROOT = Path(__file__).parent.parent
PER_SESSION = 10
LIMIT_S = 600
UNSET = (
    "CTXEVAL_",
    "PYTEST_",
    "OPENAI_",
    "LANGSMITH_",
    "LANGCHAIN_",
    "DEEPEVAL_",
    "CONFIDENT_",
    "PYTHON",
    "COV_",
    "COVERAGE_",
    "CI",
)
QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
}


class NotWorking(Exception):
    """Says why a neighbour has no figures."""


class Run(NamedTuple):
    """What a run cost, how many calls the server saw, and the cases whose score was not the given one."""

    cost: Cost
    calls: int
    wrong: int


def timed(command: Sequence[str | Path], folder: Path, environment: dict[str, str], wanted: str) -> Cost:
    """Run a command whose output must hold what is wanted."""
    try:
        done, cost = measured(command, folder, environment, limit_s=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise NotWorking(f"took more than {LIMIT_S} s") from None
    if done.returncode or wanted not in done.stdout:
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()] or [
            "nothing is said"
        ]
        reason = next((line for line in said if "error" in line.lower()), said[-1])
        raise NotWorking(f"exit code {done.returncode}: {reason[:120]}")
    return cost


def clean(home: Path, server: JudgeServer | None = None) -> dict[str, str]:
    """Give the environment of a run: none of the settings that are about it, and telemetry off."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(UNSET)}
    judge = {"JUDGE_URL": server.url, "JUDGE_URL_OF_TEN": server.url_of_ten} if server else {}
    return {**kept, **QUIET, **judge, "HOME": str(home)}


def install(neighbour: Neighbour, folder: Path) -> None:
    """Make the environment, or take the one that is there; this plugin is installed anew from the sources."""
    python, listed = folder / "bin" / "python", folder / "packages.txt"
    pip: list[str | Path] = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    try:
        if not listed.exists() or listed.read_text().split() != list(neighbour.packages):
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, text=True)
            told = [str(ROOT) if package == OURS else package for package in neighbour.packages]
            subprocess.run([*pip, *told], check=True, capture_output=True, text=True)
            listed.write_text("\n".join(neighbour.packages))
        elif OURS in neighbour.packages:
            subprocess.run([*pip, "--no-deps", "--force-reinstall", ROOT], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as failed:
        said = [line for line in str(failed.stderr).splitlines() if line.startswith("ERROR")]
        raise NotWorking(f"cannot be installed: {said[-1][:120] if said else failed}") from failed


def versions(neighbour: Neighbour, python: Path) -> dict[str, str]:
    source = "import sys, json, importlib.metadata as m; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    told = subprocess.run([python, "-c", source, *neighbour.packages], check=True, capture_output=True, text=True)
    return dict(json.loads(told.stdout))


def write(folder: Path, neighbour: Neighbour, cases: int) -> None:
    """Write the suite into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = [
        {
            "session_id": f"s{number // PER_SESSION}",
            "qa_id": f"q{number}",
            "context": "Open 9 to 5.",
            "query": f"When do you open on day {number}?",
            "assistant": f"At 9. [case {number}]",
        }
        for number in range(cases)
    ]
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name, source in {"shared.py": SHARED, **neighbour.files}.items():
        (folder / name).write_text(source, encoding="utf-8")


def noted(folder: Path) -> dict[str, float]:
    """Give the scores that the suite noted, or that deepeval stored by itself."""
    path = folder / "scores.jsonl"
    if path.exists():
        return dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    (stored,) = (folder / "results").glob("*.json")
    cases = json.loads(stored.read_text(encoding="utf-8"))["testCases"]
    return {
        "q" + each["actualOutput"].rpartition("[case ")[2].rstrip("]"): each["metricsData"][0]["score"]
        for each in cases
    }


def run(neighbour: Neighbour, python: Path, folder: Path, server: JudgeServer, arguments: Sequence[str]) -> Run:
    server.calls.clear()
    (folder / "scores.jsonl").unlink(missing_ok=True)
    shutil.rmtree(folder / "results", ignore_errors=True)
    environment = clean(folder, server) | {"DEEPEVAL_RESULTS_FOLDER": str(folder / "results")}
    cost = timed([python, *arguments], folder, environment, f"{len(server.scores)} passed")
    found = noted(folder)
    given = {f"q{number}": score for number, score in enumerate(server.scores)}
    wrong = sum(abs(found.get(name, -1.0) - score) > 1e-9 for name, score in given.items())
    return Run(cost, len(server.calls), 0 if neighbour.name == PLAIN_NAME else wrong)


class Row:
    """A neighbour with all that was found out about it."""

    def __init__(self, neighbour: Neighbour, environments: Path) -> None:
        self.neighbour = neighbour
        self.home = environments / neighbour.environment
        self.python = self.home / "bin" / "python"
        self.trouble = ""
        self.versions: dict[str, str] = {}
        self.runs: tuple[list[Run], list[Run]] = ([], [])
        self.unrelated: tuple[list[float], list[float]] = ([], [])

    def attempt(self, work: Callable[[], None]) -> None:
        """Do it, unless this neighbour has failed before; if it fails now, remember why."""
        if self.trouble:
            return
        try:
            work()
        except (NotWorking, OSError, KeyError, ValueError, subprocess.CalledProcessError) as trouble:
            self.trouble = str(trouble) or type(trouble).__name__

    def prepare(self) -> None:
        install(self.neighbour, self.home)
        self.versions = versions(self.neighbour, self.python)

    def judge(self, folder: Path, server: JudgeServer) -> None:
        write(folder, self.neighbour, len(server.scores))
        for kept, arguments in zip(self.runs, (self.neighbour.first, self.neighbour.second), strict=True):
            kept.append(run(self.neighbour, self.python, folder, server, arguments))

    def start_up(self, folder: Path) -> None:
        for kept, without in zip(self.unrelated, ((), ("-p", "no:langsmith_plugin")), strict=True):
            kept.append(timed([self.python, *PYTEST, *without], folder, clean(folder), "1 passed").cpu_s)


def ratio(some: Sequence[float], others: Sequence[float]) -> float:
    return median(one / other for one, other in zip(some, others, strict=True))


def told(row: Row, plain: Row, cases: int) -> str:
    """Give the row of the table."""
    name = f"{row.neighbour.name:<27}{next(iter(row.versions.values()), ''):>8}"
    if row.trouble:
        return f"{name}  no figures: {row.trouble}"
    cells = ""
    for runs, floor in zip(row.runs, plain.runs, strict=True):
        seconds, base = [each.cost.wall_s for each in runs], [each.cost.wall_s for each in floor]
        calls = median(each.calls for each in runs) / cases
        cells += f"{median(seconds):>9.2f}{ratio(seconds, base):>7.1f}{calls:>7.2f}"
    cpu_s = median(each.cost.cpu_s for each in row.runs[1])
    unrelated = "".join(f"{ratio(*pair):>7.2f}" for pair in zip(row.unrelated, plain.unrelated, strict=True))
    wrong = sum(each.wrong for runs in row.runs for each in runs)
    checked = "-" if row is plain else "equal" if not wrong else f"{wrong} differ"
    return f"{name}{cells}{cpu_s:>8.2f}{unrelated}  {checked}"


def table(rows: Sequence[Row], cases: int) -> list[str]:
    plain = rows[0]
    if plain.trouble:
        return [f"plain pytest does not work, so nothing can be compared: {plain.trouble}"]
    over = f"{'':<35}{'first run':>23}{'second run':>31}{'unrelated':>14}"
    head = f"{'':<27}{'version':>8}" + f"{'s':>9}{'x':>7}{'calls':>7}" * 2 + f"{'CPU s':>8}{'x':>7}{'no ls':>7}  scores"
    return [over, head, *(told(row, plain, cases) for row in rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", type=int, nargs="?", default=100)
    parser.add_argument("rounds", type=int, nargs="?", default=3)
    parser.add_argument("latency", type=float, nargs="?", default=0.05)
    parser.add_argument("--envs", type=Path, help="keep the environments in this folder, or use those that are there")
    given = parser.parse_args()
    if min(given.cases, given.rounds) < 1:
        parser.error("cases and rounds must be 1 or more")
    scores = [round(0.5 + number / given.cases / 2, 4) for number in range(given.cases)]
    with tempfile.TemporaryDirectory() as temporary, serving(given.latency, scores) as server:
        work = Path(temporary)
        rows = [Row(neighbour, (given.envs or work / "envs").resolve()) for neighbour in NEIGHBOURS]
        empty = work / "empty"
        empty.mkdir()
        (empty / "test_empty.py").write_text("def test():\n    pass\n", encoding="utf-8")
        for row in rows:
            row.attempt(row.prepare)
            row.attempt(lambda row=row: row.start_up(empty))  # type: ignore[misc]  # fills the caches
            for kept in row.unrelated:
                kept.clear()
        for _ in range(given.rounds):
            for row in rows:
                row.attempt(lambda row=row: row.judge(work / "suite", server))  # type: ignore[misc]
        for _ in range(max(given.rounds, 5)):
            for row in rows:
                row.attempt(lambda row=row: row.start_up(empty))  # type: ignore[misc]
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    latency = f"{given.latency * 1e3:.0f} ms a judge call"
    print(f"{given.cases} cases, medians of {given.rounds} rounds, {latency}, {machine}\n")
    print("\n".join(table(rows, given.cases)), end="\n\n")
    print(
        "x: over plain pytest. calls: that the judge got, per case; 0.00: nothing was sent. no ls: without langsmith's"
    )
    for row in rows:
        found = ", ".join(f"{name} {version}" for name, version in row.versions.items())
        print(f"{row.neighbour.name}: {row.neighbour.remark} ({found or 'not installed'})")


if __name__ == "__main__":
    main()
