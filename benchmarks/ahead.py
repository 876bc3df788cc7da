"""What judging ahead gains: the same suite recorded one call at a time and many at a time, side by side in one run.

    python benchmarks/ahead.py [cases] [latency in seconds] [concurrency]

A server on this machine answers each call after the same time. Both runs end with the same bytes on disk, which is
checked. Two times are compared: of judging, from the first request that the server sees to its last answer, and of the
whole pytest run, which begins with the import of the client and ends with the tests themselves.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from child import run_tests
from judge_server import serving

TARGET = 20.0
CONFTEST = """
import pytest
from langchain_openai import ChatOpenAI


@pytest.fixture(scope="session")
def judge_model():
    return ChatOpenAI(model="m", base_url="{url}", api_key="none", temperature=0.0)
"""
MODULE = """
import pytest
from pytest_ctxeval import assert_context_awareness


@pytest.mark.ctxeval(dataset="answers.jsonl"{named})
def test_answers(context_case):
    assert_context_awareness(context_case)
"""


class Taken(NamedTuple):
    """Seconds, and how many calls the server saw."""

    judging_s: float
    run_s: float
    calls: int


def write(folder: Path, url: str, cases: int, named: str) -> None:
    rows = [
        {
            "session_id": "s",
            "qa_id": f"q{number}",
            "context": "Open 9 to 5.",
            "query": "When?",
            "assistant": f"{number}",
        }
        for number in range(cases)
    ]
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST.format(url=url), encoding="utf-8")
    (folder / "test_it.py").write_text(MODULE.format(named=named), encoding="utf-8")


def digest(folder: Path) -> str:
    """Give one name for all that is on disk."""
    found = sha256()
    for path in sorted(folder.rglob("*.yaml")):
        found.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return found.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", type=int, nargs="?", default=500)
    parser.add_argument("latency", type=float, nargs="?", default=0.2)
    parser.add_argument("concurrency", type=int, nargs="?", default=32)
    given = parser.parse_args()
    taken: list[Taken] = []
    digests: set[str] = set()
    with serving(given.latency) as server:
        for name, named in {"one at a time": "", "ahead": ', metrics=["context_awareness"]'}.items():
            with tempfile.TemporaryDirectory() as folder:
                write(Path(folder), server.url, given.cases, named)
                server.calls.clear()
                asked = ("--ctxeval-record=once", f"--ctxeval-concurrency={given.concurrency}")
                run_s = run_tests(Path(folder), given.cases, *asked).wall_s
                judging_s = max(call.went for call in server.calls) - min(call.came for call in server.calls)
                taken.append(Taken(judging_s, run_s, len(server.calls)))
                digests.add(digest(Path(folder)))
                print(f"{name:>14}: judging {judging_s:6.1f} s, whole run {run_s:6.1f} s, {taken[-1].calls} calls")
    slow, fast = taken
    print(
        f"judging {slow.judging_s / fast.judging_s:.1f} times as fast (target: at least {TARGET:.0f}), "
        f"the whole run {slow.run_s / fast.run_s:.1f} times; bytes on disk the same: {len(digests) == 1}"
    )


if __name__ == "__main__":
    main()
