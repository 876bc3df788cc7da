"""Ask a model for a verdict on a case."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import fmean
from typing import NamedTuple

from pytest_ctxeval._core.data import ContextCase
from pytest_ctxeval._core.verdict import Calls, Cost, Sample, Source, Verdict
from pytest_ctxeval._judge.ask import Question
from pytest_ctxeval._judge.cassette.tape import Tape
from pytest_ctxeval._judge.cassette.transport import install
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._judge.placeholder import placeholder_keys
from pytest_ctxeval._judge.threads import side_by_side
from pytest_ctxeval._metrics.prompt import Clauses, Metric, Prompt, Scored
from pytest_ctxeval.errors import ConfigError, JudgeError, JudgeUnreachableError

_Prompts = Callable[[Clauses | None], tuple[Prompt, ...]]


class Judged(NamedTuple):
    """What came of judging a case: a verdict, or the error in its place, what it cost either way, and who judged.

    `judge` is None where nothing had to be asked.
    """

    verdict: Verdict | None
    error: Exception | None
    cost: Cost
    judge: JudgeModel | None

    @property
    def is_final(self) -> bool:
        """Whether the judge has had its say, so that there is no reason to ask it again."""
        error = self.error
        if isinstance(error, JudgeUnreachableError):
            return not error.transient
        return error is None or isinstance(error, JudgeError)

    def unwrap(self) -> Verdict:
        """Give the verdict, or raise the error."""
        __tracebackhide__ = True
        if self.verdict is None:
            assert self.error is not None
            raise self.error
        return self.verdict


class Judge:
    """Asks a model for verdicts. `tape` is the cassette, None where calls go live and nothing is kept.

    `samples` is how often each case is judged, `concurrency` how many calls run at a time, `attempts` how often the
    judge is asked until its reply can be read, `timeout_s` how long one call may take.
    """

    def __init__(
        self,
        judge_model: Callable[[], JudgeModel],
        *,
        tape: Tape | None = None,
        samples: int = 1,
        concurrency: int = 8,
        attempts: int = 2,
        timeout_s: float = 120.0,
        clauses: Clauses | None = None,
    ) -> None:
        self.judge_model = judge_model
        self.tape = tape
        self.samples = samples
        self.concurrency = concurrency
        self.attempts = attempts
        self.timeout_s = timeout_s
        self.clauses = clauses or Clauses()

    def assess(self, metric: Metric, case: ContextCase) -> Verdict:
        """Judge a case by a metric.

        Raises `ConfigError` where the case lacks what the metric needs (before any call), `JudgeError` where the judge
        fails, `CassetteError` where the mode is to replay and there is nothing to replay.
        """
        __tracebackhide__ = True
        judged = self.attempt(metric, case)
        if judged.judge is not None:
            judged.judge.tell()
        return judged.unwrap()

    def attempt(self, metric: Metric, case: ContextCase) -> Judged:
        """Judge a case by a metric, and give the error in place of the verdict instead of raising it."""
        costs: list[Cost] = []
        judge = None
        try:
            prompts = self._prompts(metric, case)
            width = len(prompts(self.clauses))
            if not width:
                return Judged(_verdict(metric, [metric.score(case, [])], Cost(), source="none"), None, Cost(), None)
            judge = self.judge_model()
            verdict = self._verdict(metric, case, judge, prompts, costs)
        except Exception as error:
            return Judged(None, error, sum(costs, Cost()), judge)
        return Judged(verdict, None, sum(costs, Cost()), judge)

    def _prompts(self, metric: Metric, case: object) -> _Prompts:
        """Give the prompts of a case for given clauses, made once; says what is missing before a model is built."""
        if not isinstance(case, ContextCase):
            raise ConfigError(
                f"judge.assess: a {type(case).__name__} is no case; give a ContextCase, for instance "
                "context_case(query=..., assistant=...)"
            )
        return functools.cache(partial(metric.prompts, case))

    def _verdict(
        self, metric: Metric, case: ContextCase, judge: JudgeModel, prompts: _Prompts, costs: list[Cost]
    ) -> Verdict:
        width = len(prompts(self.clauses))
        questions = [
            Question(
                judge=judge,
                prompt=lambda clauses, number=number: prompts(clauses)[number],  # type: ignore[misc]
                tape=self.tape,
                rank=self.tape.next_rank() if self.tape else 0,
                sample=sample,
                clauses=self.clauses,
                attempts=self.attempts,
                timeout_s=self.timeout_s,
                costs=costs,
            )
            for sample in range(self.samples)
            for number in range(width)
        ]
        with self._ready(judge):
            replies = side_by_side([question.answer for question in questions], limit=self.concurrency)
        scored = [metric.score(case, replies[start : start + width]) for start in range(0, len(replies), width)]
        cost = sum(costs, Cost())
        shown = self.tape.source if self.tape else None
        return _verdict(metric, scored, cost, source=_source(cost.calls), judge=judge, cassette=shown)

    @contextmanager
    def _ready(self, judge: JudgeModel) -> Iterator[None]:
        if self.tape is None:
            yield
            return
        install()
        self.tape.judge, self.tape.client = judge.name, judge.client
        with placeholder_keys():
            yield


def _verdict(
    metric: Metric,
    scored: Sequence[Scored],
    cost: Cost,
    *,
    source: Source,
    judge: JudgeModel | None = None,
    cassette: str | None = None,
) -> Verdict:
    lowest = min(scored, key=lambda each: each.score)
    return Verdict(
        metric=metric.name,
        score=min(max(fmean(each.score for each in scored), 0.0), 1.0),
        reason=lowest.reason,
        samples=tuple(Sample(each.score, each.reason) for each in scored),
        statements=lowest.statements,
        judge=judge.name if judge else "",
        temperature=judge.temperature if judge else None,
        prompt_version=metric.version,
        source=source,
        calls=cost.calls,
        tokens=cost.tokens,
        cassette=cassette,
    )


def _source(calls: Calls) -> Source:
    if calls.recorded:
        return "recorded"
    return "live" if calls.live else "replayed"
