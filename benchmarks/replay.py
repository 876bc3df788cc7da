"""What one replayed judge call costs beside the same client answered from memory, in CPU time of the process.

    python benchmarks/replay.py [rounds]

All are called in turn, and medians are compared: `client` is ChatOpenAI over a transport that answers from memory,
with no call of ours active; `replayed` is `Judge.assess` with the same client on a cassette of so many interactions.
Reading the file is timed apart: a test does it once, so the ratio of a test with one call is printed below. The
exponent says how the cost of a call grows with the interactions: 0 is not at all, 1 is in proportion.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from math import log
from operator import truediv
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
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._judge.judge import Judge

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


def client(transport: httpx2.BaseTransport | None = None) -> ChatOpenAI:
    """Give a client that uses the network, or the transport in its place."""
    http = httpx2.Client(transport=transport)
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


def load(path: Path, size: int) -> tuple[Tape, float, float]:
    """Give a tape that has read its file, in how many seconds, and the megabytes it read."""
    write_cassette(path, size)
    tapes = [Tape(path, node="", mode="none", shown=path.name) for _ in range(21 if size == 1 else 1)]
    seconds = median(cpu_seconds(lambda tape=tape: tape.old) for tape in tapes)  # type: ignore[misc]
    return tapes[0], seconds, path.stat().st_size / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rounds", type=int, nargs="?", default=300)
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("rounds must be 1 or more")
    model = client(httpx2.MockTransport(answer))
    for _ in range(20):
        ask(model)
    judge_model = JudgeModel(client())
    costs: dict[int, list[float]] = {size: [] for size in SIZES}
    with tempfile.TemporaryDirectory() as folder:
        loaded = {size: load(Path(folder, f"{size}.yaml"), size) for size in SIZES}
    judges = {size: Judge(lambda: judge_model, tape=tape) for size, (tape, _, _) in loaded.items()}
    before = len(sent)
    client_s = []
    for _ in range(rounds):
        client_s.append(cpu_seconds(lambda: ask(model)))
        for size, judge in judges.items():
            costs[size].append(cpu_seconds(lambda: judge.assess(CONTEXT_AWARENESS, CASE)))  # noqa: B023
    assert len(sent) - before == rounds, "a replayed call was sent"

    base, cost = median(client_s), {size: median(found) for size, found in costs.items()}
    ratio = {size: median(map(truediv, found, client_s)) for size, found in costs.items()}
    print(f"{'interactions':>12}{'MB':>7}{'load s':>9}{'client ms':>11}{'replayed ms':>13}{'ratio':>7}")
    for size, (_, load_s, megabytes) in loaded.items():
        times = f"{base * 1e3:>11.3f}{cost[size] * 1e3:>13.3f}{ratio[size]:>7.2f}"
        print(f"{size:>12,}{megabytes:>7.2f}{load_s:>9.4f}{times}")
    first, last = SIZES[0], SIZES[-1]
    print(f"a test that reads its file for one call: ratio {ratio[first] + loaded[first][1] / base:.2f}")
    growth = median(map(truediv, costs[last], costs[first]))
    exponent = log(growth) / log(last / first)
    print(f"exponent {exponent:.3f}; targets: ratio at most {TARGET_RATIO}, exponent below {TARGET_EXPONENT}")


if __name__ == "__main__":
    main()
