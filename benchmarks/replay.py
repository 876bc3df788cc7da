"""What one replayed judge call costs beside the same client answered from memory, in CPU time of the process.

    python benchmarks/replay.py [calls]

The two are called in turn, and medians are compared: `client` is ChatOpenAI over a transport that answers from memory,
with no call of ours active; `replayed` is `Judge.assess` with the same client on a cassette of so many interactions.
Reading the file is timed apart: a test does it once, so `a test` is a file's first call, its reading included. The
exponent says how the cost of a call grows with the interactions: 0 is not at all, 1 is in proportion.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from math import log
from pathlib import Path
from statistics import median

import httpx2
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from pytest_ctxeval import CONTEXT_AWARENESS, ContextCase
from pytest_ctxeval._judge.cassette.file import Recording, dump
from pytest_ctxeval._judge.cassette.tape import Tape
from pytest_ctxeval._judge.cassette.trim import Interaction, pretty
from pytest_ctxeval._judge.judge import Judge, JudgeModel

SIZES = (1, 1_000, 10_000)
TARGET_RATIO, TARGET_EXPONENT = 1.5, 0.1
REPLY = '```json\n{"insight": "The context says 30 days, and so does the answer.", "score": 0.9}\n```'
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 0,
    "model": "gpt-4o-mini",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": REPLY}}],
    "usage": {"prompt_tokens": 700, "completion_tokens": 30, "total_tokens": 730},
}
CASE = ContextCase(
    qa_id="q1",
    session_id="techstore",
    query="What is your return policy?",
    assistant="You can return anything within 30 days, as long as you have the receipt.",
    context="Returns are accepted within 30 days with the receipt. Opened software cannot be returned. " * 5,
)
PROMPT = CONTEXT_AWARENESS.prompts(CASE, Judge(lambda: JudgeModel(client())).clauses)[0]
sent: list[httpx2.Request] = []


def answer(request: httpx2.Request) -> httpx2.Response:
    sent.append(request)
    return httpx2.Response(200, json=ANSWER)


def client() -> ChatOpenAI:
    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    key = SecretStr("nobody's")
    return ChatOpenAI(model="gpt-4o-mini", temperature=0.0, api_key=key, max_retries=0, http_client=http)


def ask(model: ChatOpenAI) -> None:
    model.invoke([SystemMessage(PROMPT.system), HumanMessage(PROMPT.user)])


def write_cassette(path: Path, size: int) -> None:
    """Write a cassette of so many questions; the last one is the one that will be asked."""
    body, uri = sent[0].content.decode(), str(sent[0].url)
    made = [
        Interaction(
            method="POST",
            uri=uri,
            body=pretty(body.replace(CASE.query, f"{number}: {CASE.query}") if number else body),
            status=200,
            reason="OK",
            headers={"content-type": ["application/json"]},
            answer=json.dumps(ANSWER, indent=2),
        )
        for number in reversed(range(size))
    ]
    about = Recording(node="test_it.py::test", judge="", client="", complete=True, interactions=tuple(made))
    path.write_text(dump(about), encoding="utf-8")


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    model = client()
    for _ in range(20):
        ask(model)
    judge_model = JudgeModel(model)
    costs: list[float] = []
    print(f"{'interactions':>12}{'MB':>7}{'load s':>9}{'client ms':>11}{'replayed ms':>13}{'ratio':>7}{'a test':>8}")
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "cassette.yaml")
            write_cassette(path, size)
            tapes = [Tape(path, node="", mode="none", shown=path.name) for _ in range(21 if size == 1 else 1)]
            load_s = median(cpu_seconds(lambda tape=tape: tape.old) for tape in tapes)  # type: ignore[misc]
            megabytes = path.stat().st_size / 1e6
        judge = Judge(lambda: judge_model, tape=tapes[0])
        judge.assess(CONTEXT_AWARENESS, CASE)
        before = len(sent)
        pairs = [
            (cpu_seconds(lambda: ask(model)), cpu_seconds(lambda: judge.assess(CONTEXT_AWARENESS, CASE)))  # noqa: B023
            for _ in range(calls)
        ]
        assert len(sent) - before == calls, "a replayed call was sent"
        base, cost = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
        costs.append(cost)
        print(
            f"{size:>12,}{megabytes:>7.2f}{load_s:>9.4f}{base * 1e3:>11.3f}{cost * 1e3:>13.3f}{cost / base:>7.2f}"
            f"{(load_s + cost) / base:>8.2f}",
            flush=True,
        )
    exponent = log(costs[-1] / costs[0]) / log(SIZES[-1] / SIZES[0])
    print(f"exponent {exponent:.3f}; targets: ratio at most {TARGET_RATIO}, exponent below {TARGET_EXPONENT}")


if __name__ == "__main__":
    main()
