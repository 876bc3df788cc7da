"""What a replayed test costs when there are many: time, memory and the section, beside plain parametrised tests.

    python benchmarks/scale.py [small] [large] [--suites FOLDER]

Every case is a test with a cassette of its own, recorded by the plugin from a server on this machine, which takes most
of the time (the recorded suites are kept in FOLDER, or taken from there). The client is a chat model of a few lines, so
that what is left is LangChain's, pytest's and ours. The plain tests are as many, in the same folder, with the same
plugins, and run next to the judged ones.

What a case costs is CPU time of all processes, over the plain tests, less what a suite of 10 costs over 10 plain ones:
imports are paid once. Memory is the peak of the process that was started, the controller, in the same way. The exponent
says how the cost of a case grows from the small size to the large one: 0 is not at all, 1 is in proportion. The section
is what this plugin does after the last test: the summary, the gates, what is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import NamedTuple

from child import run_tests
from judge_server import serving

FEW = 10
SESSIONS = 100
TARGET_EXPONENT, TARGET_SECTION_S, TARGET_MIB, TARGET_MS = 0.05, 1.0, 200, 3.0
CONFTEST = """
import json
import os
import resource
import sys
import time
from pathlib import Path

import pytest

MEASURED = {{"section_s": 0.0, "peak_mib": 0.0}}


class Innermost:
    left = 0.0

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self):
        try:
            return (yield)
        finally:
            self.left = time.monotonic()


class Outermost:
    def __init__(self, innermost):
        self.innermost = innermost

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self):
        try:
            return (yield)
        finally:
            MEASURED["section_s"] += time.monotonic() - self.innermost.left

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_terminal_summary(self):
        start = time.monotonic()
        try:
            return (yield)
        finally:
            MEASURED["section_s"] += time.monotonic() - start

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self):
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        MEASURED["peak_mib"] = kib / 1024 / (1024 if sys.platform == "darwin" else 1)
        Path("measured.json").write_text(json.dumps(MEASURED))


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        innermost = Innermost()
        config.pluginmanager.register(innermost)
        config.pluginmanager.register(Outermost(innermost))


@pytest.fixture(scope="session")
def judge_model():
    import httpx
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Cheap(BaseChatModel):
        http: object = None

        @property
        def _llm_type(self):
            return "cheap"

        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            said = [each.content for each in messages]
            told = self.http.post("{url}/chat/completions", json=said).json()
            message = AIMessage(told["choices"][0]["message"]["content"])
            return ChatResult(generations=[ChatGeneration(message=message)])

    with httpx.Client() as client:
        yield Cheap(http=client)
"""
JUDGED = """
import pytest
from pytest_ctxeval import assert_context_awareness


@pytest.mark.ctxeval(dataset="answers.jsonl", metrics=["context_awareness"])
def test_it(context_case):
    assert_context_awareness(context_case, min=0.5)
"""
PLAIN = """
import json
from pathlib import Path

import pytest

CASES = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['session_id']}-{case['qa_id']}" for case in CASES])
def test_it(case):
    assert 0.9 >= 0.5
"""


class Suite(NamedTuple):
    """So many cases over so many sessions."""

    cases: int
    sessions: int


class Found(NamedTuple):
    wall_s: float
    cpu_s: float
    section_s: float
    peak_mib: float


class Pair(NamedTuple):
    """The judged tests and as many plain ones."""

    judged: Found
    plain: Found

    @property
    def over_s(self) -> float:
        return self.judged.cpu_s - self.plain.cpu_s

    @property
    def over_mib(self) -> float:
        return self.judged.peak_mib - self.plain.peak_mib


class Case(NamedTuple):
    """What one case costs over a plain test."""

    ms: float
    kib: float


def write(folder: Path, suite: Suite, url: str) -> None:
    folder.mkdir(parents=True)
    rows = [
        {
            "session_id": f"s{number % suite.sessions}",
            "qa_id": f"q{number}",
            "context": "Returns are accepted within 30 days with the receipt. " * 5,
            "query": "Returns?",
            "assistant": f"In {number} days. [case {number}]",
        }
        for number in range(suite.cases)
    ]
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST.format(url=url), encoding="utf-8")
    (folder / "test_judged.py").write_text(JUDGED, encoding="utf-8")
    (folder / "test_plain.py").write_text(PLAIN, encoding="utf-8")


def run(folder: Path, cases: int, module: str, *arguments: str) -> Found:
    cost = run_tests(folder, cases, "-p", "xdist", *arguments, module)
    return Found(*cost, **json.loads((folder / "measured.json").read_text(encoding="utf-8")))


def record(folder: Path, suite: Suite) -> float:
    """Record the suite, one call a case, unless that has been done; give the seconds that it took."""
    if folder.exists():
        return 0.0
    scores = [round(0.5 + number / suite.cases / 2, 6) for number in range(suite.cases)]
    with serving(0.0, scores) as server:
        write(folder, suite, server.url)
        taken = run(folder, suite.cases, "test_judged.py", "--ctxeval-record=once").wall_s
        if len(server.calls) != suite.cases:
            raise SystemExit(f"{suite.cases} cases were recorded with {len(server.calls)} calls")
    return taken


def measure(folder: Path, suite: Suite, processes: int) -> Pair:
    judged = run(folder, suite.cases, "test_judged.py", "--ctxeval-record=none", f"-n{processes}")
    return Pair(judged, run(folder, suite.cases, "test_plain.py", f"-n{processes}"))


def per_case(pair: Pair, few: Pair, cases: int) -> Case:
    more = cases - FEW
    return Case((pair.over_s - few.over_s) / more * 1e3, (pair.over_mib - few.over_mib) / more * 1024)


def exponent(small: float, large: float, growth: float) -> str:
    """Say how a cost grows, where both are costs at all."""
    return f"{log(large / small) / log(growth):.3f}" if min(small, large) > 0 else "not to be told"


def verdicts(found: dict[tuple[Suite, int], Pair], small: Suite, large: list[Suite]) -> Iterator[str]:
    """Hold the figures against the targets."""
    for suite in large:
        for processes in (0, 2):
            few = found[Suite(FEW, 1), processes]
            first = per_case(found[small, processes], few, small.cases)
            last = per_case(found[suite, processes], few, suite.cases)
            growth = suite.cases / small.cases
            yield (
                f"{small.cases:,} to {suite.cases:,} over {suite.sessions}, -n {processes}: exponent of time "
                f"{exponent(first.ms, last.ms, growth)}, of memory {exponent(first.kib, last.kib, growth)}; "
                f"target: below {TARGET_EXPONENT}"
            )
    for suite in (small, *large):
        gain = found[suite, 0].judged.wall_s / found[suite, 2].judged.wall_s
        yield f"{suite.cases:,} over {suite.sessions}: -n 2 is {gain:.2f} times as fast as -n 0; target: above 1"
    sections = max(pair.judged.section_s for pair in found.values())
    peak = max(pair.judged.peak_mib for pair in found.values())
    yield f"longest section {sections:.2f} s; target: below {TARGET_SECTION_S}"
    yield f"highest peak of a controller {peak:.0f} MiB; target: below {TARGET_MIB}"
    yield f"target of ms a case: at most {TARGET_MS}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("small", type=int, nargs="?", default=1_000)
    parser.add_argument("large", type=int, nargs="?", default=10_000)
    parser.add_argument("--suites", type=Path, help="keep the recorded suites in this folder, or use those there")
    given = parser.parse_args()
    if not FEW < given.small < given.large:
        parser.error(f"small must be above {FEW}, and large above small")
    small, large = Suite(given.small, 1), [Suite(given.large, 1), Suite(given.large, SESSIONS)]
    found: dict[tuple[Suite, int], Pair] = {}
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores; plain tests in parentheses")
    head = f"{'cases':>7}{'sessions':>9}{'-n':>4}{'s':>8}{'(s)':>8}{'CPU s':>8}{'(CPU s)':>9}"
    print(f"{head}{'ms a case':>11}{'peak MiB':>10}{'(MiB)':>7}{'KiB a case':>12}{'section s':>11}")
    with tempfile.TemporaryDirectory() as temporary:
        for suite in (Suite(FEW, 1), small, *large):
            folder = (given.suites or Path(temporary)).resolve() / f"{suite.cases}-{suite.sessions}"
            record_s = record(folder, suite)
            for processes in (0, 2):
                pair = found[suite, processes] = measure(folder, suite, processes)
                judged, plain = pair
                case = per_case(pair, found[Suite(FEW, 1), processes], suite.cases) if suite.cases > FEW else None
                ms, kib = (f"{case.ms:.2f}", f"{case.kib:.2f}") if case else ("", "")
                about = f"{suite.cases:>7,}{suite.sessions:>9}{processes:>4}{judged.wall_s:>8.2f}{plain.wall_s:>8.2f}"
                memory = f"{judged.peak_mib:>10.0f}{plain.peak_mib:>7.0f}{kib:>12}"
                times = f"{judged.cpu_s:>8.2f}{plain.cpu_s:>9.2f}{ms:>11}"
                print(f"{about}{times}{memory}{judged.section_s:>11.3f}", flush=True)
            if record_s:
                print(f"{'':>20}  recorded in {record_s:.1f} s, one call a case", flush=True)
    print("\n".join(verdicts(found, small, large)))


if __name__ == "__main__":
    main()
