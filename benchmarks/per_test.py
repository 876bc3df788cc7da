"""What a judged test costs beside an empty one, in CPU time: each replays one call from a cassette of its own.

    python benchmarks/per_test.py [rounds] [tests]

Three suites of so many tests are run in turn, and medians are compared: empty tests; tests that call a client which is
cheap to call, answered from memory; tests that are judged through that client, replayed. The judge is a chat model of a
few lines over httpx, so that what is left is LangChain's, pytest's and ours.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import textwrap
from pathlib import Path
from statistics import median

from child import run_tests

from pytest_ctxeval import ContextCase
from pytest_ctxeval._judge.cassette.file import Recording, dump
from pytest_ctxeval._judge.cassette.trim import Interaction, pretty
from pytest_ctxeval._metrics.context_awareness import CONTEXT_AWARENESS
from pytest_ctxeval._metrics.prompt import Clauses
from pytest_ctxeval._plugin.cassettes import cassette_path

TARGET_MS = 3.0
URL = "http://judge.example/v1"
CONFTEST = """
    import httpx
    import pytest
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    REPLY = {reply!r}

    class Cheap(BaseChatModel):
        http: object = None

        @property
        def _llm_type(self):
            return "cheap"

        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            said = [each.content for each in messages]
            answer = self.http.post({url!r}, json=said).text
            return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])

    @pytest.fixture(scope="session")
    def judge_model():
        with httpx.Client() as client:
            yield Cheap(http=client)

    @pytest.fixture(scope="session")
    def from_memory():
        return Cheap(http=httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(200, text=REPLY))))
"""
EMPTY = """
    import pytest

    @pytest.mark.parametrize("number", range({tests}))
    def test_it(number):
        pass
"""
CALLED = """
    import pytest
    from langchain_core.messages import HumanMessage, SystemMessage

    @pytest.mark.parametrize("number", range({tests}))
    def test_it(number, from_memory):
        from_memory.invoke([SystemMessage("judge" * 200), HumanMessage("case" * 200)])
"""
JUDGED = """
    import pytest
    from pytest_ctxeval import assert_context_awareness

    @pytest.mark.ctxeval(dataset="answers.jsonl")
    def test_it(context_case):
        assert_context_awareness(context_case)
"""
REPLY = '```json\n{"insight": "The context says so, and so does the answer.", "score": 0.9}\n```'


def cases(tests: int) -> list[ContextCase]:
    context = "Returns are accepted within 30 days with the receipt. " * 5
    return [
        ContextCase(
            qa_id=f"q{number}", session_id="s", context=context, query="Returns?", assistant=f"In {number} days."
        )
        for number in range(tests)
    ]


def write(folder: Path, tests: int) -> None:
    """Write the three suites and the cassettes of the last one."""
    (folder / "conftest.py").write_text(textwrap.dedent(CONFTEST.format(reply=REPLY, url=URL)), encoding="utf-8")
    for name, source in {"empty": EMPTY, "called": CALLED, "judged": JUDGED}.items():
        (folder / f"test_{name}.py").write_text(textwrap.dedent(source.format(tests=tests)), encoding="utf-8")
    about = ("qa_id", "session_id", "context", "query", "assistant")
    rows = [json.dumps({name: getattr(case, name) for name in about}) for case in cases(tests)]
    (folder / "answers.jsonl").write_text("\n".join(rows), encoding="utf-8")
    for case in cases(tests):
        (prompt,) = CONTEXT_AWARENESS.prompts(case, Clauses())
        node = f"test_judged.py::test_it[s-{case.qa_id}]"
        made = Interaction(
            method="POST",
            uri=URL,
            body=pretty(json.dumps([prompt.system, prompt.user])),
            status=200,
            reason="OK",
            headers={"content-type": ["text/plain"]},
            answer=REPLY,
        )
        path = folder / "cassettes" / cassette_path(node)
        path.parent.mkdir(parents=True, exist_ok=True)
        recording = Recording(node=node, judge="Cheap", client="conftest", complete=True, interactions=(made,))
        path.write_text(dump(recording), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rounds", type=int, nargs="?", default=3)
    parser.add_argument("tests", type=int, nargs="?", default=1_000)
    given = parser.parse_args()
    if min(given.rounds, given.tests) < 1:
        parser.error("rounds and tests must be 1 or more")
    names = ("empty", "called", "judged")
    few = max(given.tests // 10, 1)
    taken: dict[tuple[str, int], list[float]] = {(name, count): [] for name in names for count in (few, given.tests)}
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as part:
        folders = {given.tests: Path(whole), few: Path(part)}
        for count, folder in folders.items():
            write(folder, count)
        for _ in range(given.rounds):
            for (name, count), seconds in taken.items():
                cost = run_tests(folders[count], count, "--ctxeval-record=none", f"test_{name}.py")
                seconds.append(cost.cpu_s)
    print(f"{'suite':>8}{'tests':>7}{'seconds':>9}{'ms a test':>11}   (a test: from {few} to {given.tests})")
    per_test: dict[str, float] = {}
    for name in names:
        small, large = median(taken[name, few]), median(taken[name, given.tests])
        per_test[name] = (large - small) / (given.tests - few) * 1e3 if given.tests > few else large * 1e3
        print(f"{name:>8}{given.tests:>7}{large:>9.2f}{per_test[name]:>11.2f}")
    over = per_test["judged"] - per_test["empty"]
    print(f"a judged test costs {over:.2f} ms over an empty one; target: at most {TARGET_MS}")


if __name__ == "__main__":
    main()
