"""Ask a model for a verdict on a case."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from statistics import fmean
from typing import Any, Final, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from pytest_ctxeval._core.data import ContextCase
from pytest_ctxeval._core.text import harmless
from pytest_ctxeval._core.verdict import Calls, Sample, Source, Verdict
from pytest_ctxeval._judge.cassette.miss import keyless_error, miss_error
from pytest_ctxeval._judge.cassette.secrets import redact
from pytest_ctxeval._judge.cassette.tape import Call, Tape
from pytest_ctxeval._judge.cassette.transport import install
from pytest_ctxeval._judge.model import client_of, cut_reply, explain, is_refused_form, model_name
from pytest_ctxeval._judge.placeholder import placeholder_keys
from pytest_ctxeval._judge.reply import UnreadableReplyError, is_cut, read_reply, text_of
from pytest_ctxeval._judge.threads import in_thread, side_by_side
from pytest_ctxeval._metrics.prompt import Clauses, Metric, Prompt, Scored
from pytest_ctxeval.errors import (
    CassetteError,
    CtxEvalWarning,
    JudgeError,
    JudgeReplyError,
)

_TEXT: Final = "text"
_STEPS: Final = ("json_schema", "function_calling", _TEXT)


class JudgeModel:
    """A chat model that judges, and what has been learnt of it: which form of structured output it takes.

    One per session and process; several threads may use it.
    """

    def __init__(self, model: BaseChatModel, *, use_structured_output: bool = False) -> None:
        self.model = model
        self.name = model_name(model)
        self.client = client_of(model)
        self._steps: tuple[str, ...] = _STEPS if use_structured_output else (_TEXT,)
        self._lock = threading.Lock()

    @property
    def steps(self) -> tuple[str, ...]:
        """The forms that may still be asked for, the best first."""
        return self._steps

    def step_down(self, refused: str, why: str) -> None:
        """Never ask for a form again that the model refused; said once."""
        with self._lock:
            if refused not in self._steps or refused == _TEXT:
                return
            self._steps = self._steps[self._steps.index(refused) + 1 :]
        warnings.warn(
            CtxEvalWarning(
                f"the judge {self.name} does not take {refused}, so it is asked for {self._steps[0]}: {why}"
            ),
            stacklevel=2,
        )


class _Answer(NamedTuple):
    """A reply that could be read, and what it cost."""

    reply: BaseModel
    tokens: int | None
    calls: Calls


class _MissedError(Exception):
    """The cassette does not hold what this form asks for; another form may be there."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


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
        width = len(metric.prompts(case, self.clauses))  # says what is missing before a model is built
        judge = self.judge_model()
        jobs = [(sample, number) for sample in range(self.samples) for number in range(width)]
        with self._ready(judge):
            answers = side_by_side(
                [lambda job=job: self._answer(judge, metric, case, *job) for job in jobs],  # type: ignore[misc]
                limit=self.concurrency,
            )
        scored = [
            metric.score(case, [answer.reply for answer in answers[start : start + width]])
            for start in range(0, len(answers), width)
        ]
        return self._verdict(metric, judge, scored, answers)

    def _verdict(
        self, metric: Metric, judge: JudgeModel, scored: Sequence[Scored], answers: Sequence[_Answer]
    ) -> Verdict:
        calls = sum((answer.calls for answer in answers), Calls())
        tokens = [answer.tokens for answer in answers]
        return Verdict(
            metric=metric.name,
            score=min(max(fmean(each.score for each in scored), 0.0), 1.0),
            reason=scored[0].reason,
            samples=tuple(Sample(each.score, each.reason) for each in scored),
            statements=scored[0].statements,
            judge=judge.name,
            prompt_version=metric.version,
            source=_source(calls),
            calls=calls,
            tokens=None if None in tokens else sum(filter(None, tokens)),
            cassette=self.tape.shown if self.tape else None,
        )

    @contextmanager
    def _ready(self, judge: JudgeModel) -> Iterator[None]:
        if self.tape is None:
            yield
            return
        install()
        self.tape.judge, self.tape.client = judge.name, judge.client
        with placeholder_keys():
            yield

    def _answer(self, judge: JudgeModel, metric: Metric, case: ContextCase, sample: int, number: int) -> _Answer:
        """Get one answer: in the best form that is recorded, else in the best form that the model takes."""
        first_miss: _MissedError | None = None
        if self.tape is not None and (len(judge.steps) > 1 or not self.tape.records):
            for step in judge.steps:
                try:
                    return self._asked(judge, self._prompt(metric, case, number, step), step, sample, may_record=False)
                except _MissedError as missed:
                    first_miss = first_miss or missed
            assert first_miss is not None
            if not self.tape.records:
                raise miss_error(self.tape, first_miss.call.misses[0], client=self.tape.client) from None
        while True:
            step = judge.steps[0]
            try:
                return self._asked(judge, self._prompt(metric, case, number, step), step, sample, may_record=True)
            except _RefusedFormError as refused:
                judge.step_down(step, str(refused))

    def _prompt(self, metric: Metric, case: ContextCase, number: int, step: str) -> Prompt:
        return metric.prompts(case, self.clauses if step == _TEXT else None)[number]

    def _asked(self, judge: JudgeModel, prompt: Prompt, step: str, sample: int, *, may_record: bool) -> _Answer:
        """Ask until the reply can be read, and keep the exchanges if it can."""
        messages: list[BaseMessage] = [SystemMessage(prompt.system), HumanMessage(prompt.user)]
        tokens: list[int | None] = []
        scope = self.tape.call(sample=sample, may_record=may_record) if self.tape else nullcontext()
        with scope as call:
            for attempt in range(self.attempts):
                message = self._said(judge, prompt, step, messages, call)
                tokens.append(_tokens(message))
                text = _said_text(message)
                if is_cut(message):
                    raise cut_reply(judge.name, raw=text)
                try:
                    reply = read_reply(text, prompt, self.clauses)
                except UnreadableReplyError as error:
                    if attempt + 1 == self.attempts:
                        raise self._unreadable(judge, text, str(error)) from None
                    messages += [AIMessage(text or "(nothing)"), HumanMessage(_ask_again(str(error)))]
                else:
                    break
            calls = self.tape.keep(call) if self.tape and call else Calls(live=len(tokens))
        return _Answer(reply, None if None in tokens else sum(filter(None, tokens)), calls)

    def _unreadable(self, judge: JudgeModel, text: str, why: str) -> JudgeReplyError:
        shown = harmless(redact(text)) or "(nothing)"
        return JudgeReplyError(
            f"the judge {judge.name} gave no verdict in {self.attempts} replies; of the last one, "
            f"{harmless(why)}:\n\n{shown[:2000]}",
            raw=text,
        )

    def _said(
        self, judge: JudgeModel, prompt: Prompt, step: str, messages: Sequence[BaseMessage], call: Call | None
    ) -> AIMessage:
        """Call the model once; its errors come out as ours."""
        started = time.monotonic()
        misses = len(call.misses) if call else 0
        seen = call.seen if call else 0
        try:
            message = in_thread(lambda: _invoke(judge.model, prompt, step, messages), timeout_s=self.timeout_s)
        except Exception as error:
            self._check_traffic(judge, call, misses)
            if step != _TEXT and is_refused_form(error):
                raise _RefusedFormError(type(error).__name__, harmless(redact(str(error)))[:300]) from None
            raise explain(error, judge=judge.name, after_s=time.monotonic() - started) from None
        self._check_traffic(judge, call, misses)
        if call is not None and call.seen == seen:
            raise CassetteError(
                f"the judge {judge.name} ({type(judge.model).__name__}) answered without any request over HTTP that "
                "could be recorded or replayed; a model that runs in this process or talks gRPC is used with "
                "--ctxeval-record=off"
            )
        return message

    def _check_traffic(self, judge: JudgeModel, call: Call | None, misses: int) -> None:
        if call is None:
            return
        if len(call.misses) > misses:
            raise _MissedError(call)
        if call.keyless:
            raise keyless_error(call.tape, f"the judge {judge.name}")


class _RefusedFormError(Exception):
    """The model or its server does not take this form of structured output."""

    def __str__(self) -> str:
        return ": ".join(str(part) for part in self.args)


def _invoke(model: BaseChatModel, prompt: Prompt, step: str, messages: Sequence[BaseMessage]) -> AIMessage:
    if step == _TEXT:
        said: Any = model.invoke(list(messages))
    else:
        schema = dict(prompt.json_schema)
        said = model.with_structured_output(schema, method=step, include_raw=True).invoke(list(messages))
        said = said["raw"] if isinstance(said, dict) else said
    if not isinstance(said, AIMessage):
        raise JudgeError(f"the model gave a {type(said).__name__} and no message")
    return said


def _said_text(message: AIMessage) -> str:
    """The reply as text; where the model called the tool it was offered, what it called it with."""
    if message.tool_calls:
        return json.dumps(message.tool_calls[0]["args"])
    if message.invalid_tool_calls:
        return message.invalid_tool_calls[0]["args"] or ""
    return text_of(message)


def _tokens(message: AIMessage) -> int | None:
    """What the call cost; a client that was not told says nothing, or 0."""
    return message.usage_metadata["total_tokens"] or None if message.usage_metadata else None


def _ask_again(why: str) -> str:
    return f"That reply could not be read: {why}. Reply again, with the JSON object alone, in the form asked for."


def _source(calls: Calls) -> Source:
    if calls.live:
        return "live"
    return "recorded" if calls.recorded else "replayed"
