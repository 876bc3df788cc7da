"""What `Context.run` takes beside the time that its judge takes, and how much of a stream it holds.

    python benchmarks/library.py [rounds]

The judge is a chat model that sleeps, so the best that can be had is cases / concurrency rounds of its time; `ratio` is
the time taken over that. Rows are measured in turn, and medians shown. The second table streams datasets of one case
each, with a context of 100,000 characters, from a generator: the peak of what Python had allocated must not grow with
their number, but for the results.
"""

from __future__ import annotations

import argparse
import math
import time
import tracemalloc
from collections.abc import Iterator
from statistics import median
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from pytest_ctxeval import Batch, Dataset, Retriever
from pytest_ctxeval.metrics import Context

CALL_S = 0.05
TARGET_S = 0.6  # of 100 calls, 16 at a time
ROWS = ((100, 1, 100), (100, 4, 1), (100, 16, 100), (100, 16, 1), (400, 16, 1))  # cases, concurrency, cases a session
STREAMS = (50, 500, 2_000)


class Sleeping(BaseChatModel):
    seconds: float

    @property
    def _llm_type(self) -> str:
        return "sleeping"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        del messages, stop, run_manager, kwargs
        time.sleep(self.seconds)
        return ChatResult(generations=[ChatGeneration(message=AIMessage('{"insight": "as stated", "score": 0.9}'))])


class Stream(Retriever):
    def __init__(self, cases: int, per_session: int, context: int) -> None:
        self.cases, self.per_session, self.context = cases, per_session, context

    def load_dataset(self) -> Iterator[Dataset]:
        for number in range(self.cases // self.per_session):
            batches = [Batch(qa_id=f"q{each}", query="When?", assistant="9 to 5.") for each in range(self.per_session)]
            context = f"{number} " + "Open from 9 to 5. " * (self.context // 18 + 1)
            yield Dataset(session_id=f"s{number}", assistant_id="bot", context=context, conversation=batches)


def run(cases: int, concurrency: int, *, per_session: int = 1, context: int = 18, seconds: float = 0.0) -> float:
    start = time.perf_counter()
    found = Context.run(
        Stream,
        model=Sleeping(seconds=seconds),
        concurrency=concurrency,
        cases=cases,
        per_session=per_session,
        context=context,
    )
    assert sum(metric.n_interactions - metric.n_unscored for metric in found) == cases
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("rounds must be 1 or more")
    run(16, 16)
    taken: dict[tuple[int, int, int], list[float]] = {row: [] for row in ROWS}
    for _ in range(rounds):
        for row in ROWS:
            cases, concurrency, per_session = row
            taken[row].append(run(cases, concurrency, per_session=per_session, seconds=CALL_S))
    print(f"{'cases':>6}{'a session':>11}{'at a time':>11}{'seconds':>9}{'slowest':>9}{'best':>7}{'ratio':>7}")
    for (cases, concurrency, per_session), seconds in taken.items():
        best = math.ceil(cases / concurrency) * CALL_S
        told = f"{median(seconds):>9.3f}{max(seconds):>9.3f}{best:>7.2f}{median(seconds) / best:>7.2f}"
        print(f"{cases:>6}{per_session:>11}{concurrency:>11}{told}")
    print(f"target: 100 cases of {CALL_S * 1e3:.0f} ms, 16 at a time, in under {TARGET_S} s")

    print(f"\n{'datasets':>9}{'MB in all':>11}{'peak MB':>9}")
    for datasets in STREAMS:
        tracemalloc.start()
        run(datasets, 16, context=100_000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"{datasets:>9,}{datasets * 0.1:>11.0f}{peak / 1e6:>9.1f}")


if __name__ == "__main__":
    main()
