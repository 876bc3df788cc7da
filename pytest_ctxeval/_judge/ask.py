"""Put one question to a judge, until there is a reply that can be read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from pytest_ctxeval._core.strict_json import no_duplicates
from pytest_ctxeval._core.text import harmless
from pytest_ctxeval._core.verdict import Calls, Cost
from pytest_ctxeval._judge.cassette.miss import keyless_error, miss_error
from pytest_ctxeval._judge.cassette.secrets import redact
from pytest_ctxeval._judge.cassette.tape import Call, Miss, Tape
from pytest_ctxeval._judge.form import TEXT, JudgeModel, UnknownFormError, invoke, said_text, tokens_of
from pytest_ctxeval._judge.model import cut_reply, explain, is_refused_form
from pytest_ctxeval._judge.reply import UnreadableReplyError, is_cut, read_reply
from pytest_ctxeval._judge.threads import in_thread
from pytest_ctxeval._metrics.prompt import Clauses, Prompt
from pytest_ctxeval.errors import CassetteError, JudgeReplyError


class _MissedError(Exception):
    """The cassette does not hold what this form asks for; another form may be there."""

    def __init__(self, misses: Sequence[Miss]) -> None:
        super().__init__()
        self.misses = misses


class _RefusedFormError(Exception):
    """The model or its server does not take this form of structured output."""

    def __str__(self) -> str:
        return ": ".join(str(part) for part in self.args if part)


@dataclass(slots=True)
class Question:
    """One question: to whom, on which cassette (None: live, and nothing is kept), as which sample of its case.

    `prompt` gives the prompt for the clauses that the JSON is to stand between, None where the form has a schema.
    `rank` is its place among the calls of its test. `costs` gathers what is spent on it.
    """

    judge: JudgeModel
    prompt: Callable[[Clauses | None], Prompt]
    tape: Tape | None
    rank: int
    sample: int
    clauses: Clauses
    attempts: int
    timeout_s: float
    costs: list[Cost] = field(default_factory=list)

    def answer(self) -> BaseModel:
        """Get the reply: in the best form that is recorded, else in the best form that the model takes."""
        if self.tape is not None and (len(self.judge.forms) > 1 or not self.tape.records):
            reply = self._recorded(self.tape)
            if reply is not None:
                return reply
        refusals: list[str] = []
        for form in self.judge.forms:
            try:
                reply = self._asked(form, may_record=True)
            except _RefusedFormError as refused:
                refusals.append(f"{form} ({refused})")
            else:
                self.judge.settle(form, refusals)
                return reply
        raise AssertionError  # text is the last form, and is never refused

    def _recorded(self, tape: Tape) -> BaseModel | None:
        """Give what is recorded in any form, so that a form refused in one test makes no cassette of another stale."""
        misses: list[Miss] = []
        for form in self.judge.forms:
            try:
                return self._asked(form, may_record=False)
            except _MissedError as missed:
                misses += missed.misses
            except _RefusedFormError:  # the client does not know of this form
                continue
        if not tape.records:
            raise miss_error(tape, misses, client=tape.client) from None
        return None

    def _asked(self, form: str, *, may_record: bool) -> BaseModel:
        """Ask in one form, and keep the exchanges if the reply can be read."""
        spent: list[Cost] = []
        with self._routed(may_record=may_record) as call:
            try:
                reply = self._readable(form, call, spent)
            except _MissedError:  # nothing went out, and another form may be asked for the same
                raise
            except Exception:
                self.costs += [*spent, Cost(call.costs if call else Calls())]
                raise
            self.costs += [*spent, Cost(call.tape.keep(call, of_judge=True) if call else Calls())]
        return reply

    def _routed(self, *, may_record: bool) -> AbstractContextManager[Call | None]:
        """Put what is asked in the block on the cassette, if there is one."""
        if self.tape is None:
            return nullcontext()
        return self.tape.call(rank=self.rank, sample=self.sample, may_record=may_record)

    def _readable(self, form: str, call: Call | None, spent: list[Cost]) -> BaseModel:
        """Ask until the reply can be read."""
        prompt = self.prompt(self.clauses if form == TEXT else None)
        messages: list[BaseMessage] = [SystemMessage(prompt.system), HumanMessage(prompt.user)]
        text = problem = ""
        for _ in range(self.attempts):
            try:
                message = self._said(form, prompt, messages, call, spent)
            except _MissedError:
                if problem and call and not call.tape.records:
                    raise self._unreadable(text, f"{problem} (recorded in {call.tape.shown})") from None
                raise
            text = said_text(message)
            if is_cut(message):
                raise cut_reply(self.judge.name, raw=text)
            try:
                _check_parsed(message, call)
                return read_reply(text, prompt, self.clauses)
            except UnreadableReplyError as error:
                problem = str(error)
            messages += [AIMessage(text or "(nothing)"), HumanMessage(_ask_again(problem))]
        raise self._unreadable(text, problem, replies=self.attempts)

    def _unreadable(self, text: str, why: str, *, replies: int = 1) -> JudgeReplyError:
        shown = harmless(redact(text)) or "(nothing)"
        count = "1 reply" if replies == 1 else f"{replies} replies"
        return JudgeReplyError(
            f"the judge {self.judge.name} gave no verdict in {count}; of the last one, {harmless(why)}:\n\n"
            f"{shown[:2000]}",
            raw=text,
        )

    def _said(
        self, form: str, prompt: Prompt, messages: Sequence[BaseMessage], call: Call | None, spent: list[Cost]
    ) -> AIMessage:
        """Call the model once, when its turn has come; its errors come out as ours."""
        pace = call.tape.pace if call is not None and call.records else None
        with pace.turn() if pace is not None else nullcontext():
            return self._said_at_once(form, prompt, messages, call, spent)

    def _said_at_once(
        self, form: str, prompt: Prompt, messages: Sequence[BaseMessage], call: Call | None, spent: list[Cost]
    ) -> AIMessage:
        started = time.monotonic()
        misses, seen = (len(call.misses), call.seen) if call else (0, 0)
        spent += [] if call else [Cost(Calls(live=1))]
        model = self.judge.model
        try:
            message = in_thread(lambda: invoke(model, prompt, form, messages), timeout_s=self.timeout_s)
        except UnknownFormError as unknown:
            told = harmless(redact(str(unknown.__cause__)))[:300]
            raise _RefusedFormError(type(unknown.__cause__).__name__, told) from None
        except Exception as error:
            self._check_traffic(call, misses)
            if form != TEXT and is_refused_form(error, asked=call.seen > seen if call else None):
                raise _RefusedFormError(type(error).__name__, harmless(redact(str(error)))[:300]) from None
            after_s = time.monotonic() - started
            raise explain(error, judge=self.judge.name, after_s=after_s, answer=_answered(call)) from None
        self._check_traffic(call, misses)
        if call is not None and call.seen == seen:
            raise CassetteError(
                f"the judge {self.judge.name} ({type(model).__name__}) answered without any request over HTTP that "
                "could be recorded or replayed; a model that runs in this process or talks gRPC is used with "
                "--ctxeval-record=off"
            )
        spent.append(Cost(tokens=tokens_of(message)))
        return message

    def _check_traffic(self, call: Call | None, misses: int) -> None:
        if call is None:
            return
        if len(call.misses) > misses:
            raise _MissedError(call.misses)
        if call.keyless:
            raise keyless_error(call.tape, f"the judge {self.judge.name}", client=self.judge.client)
        if call.mocked:
            raise CassetteError(
                f"another tool (respx, for instance) answered in the place of the judge {self.judge.name}, so there is "
                "nothing to record; let its requests pass, or record this test without that tool"
            )


def _answered(call: Call | None) -> str:
    """What the server said last, if it was no error."""
    last = call.last if call else None
    return str(last.answer) if last and last.is_good else ""


def _check_parsed(message: AIMessage, call: Call | None) -> None:
    """Look at what the client has parsed already, of a call of a tool: it has dropped a name that stood there twice."""
    if any(each["args"] != message.tool_calls[0]["args"] for each in message.tool_calls):
        raise UnreadableReplyError("it calls the tool more than once, with different verdicts")
    answer = _answered(call) if message.tool_calls else ""
    for text in (answer, *answer.splitlines()):  # whole, or one object a line
        _check_names(text.strip().removeprefix("data:"))


def _check_names(text: str) -> None:
    """Raise `UnreadableReplyError` where a name stands twice in an object, or in the arguments of a call."""

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = no_duplicates(pairs)
        if isinstance(found.get("arguments"), str):
            _check_names(found["arguments"])
        return found

    try:
        json.loads(text, object_pairs_hook=checked)
    except json.JSONDecodeError:
        return
    except ValueError as error:
        raise UnreadableReplyError(str(error)) from None


def _ask_again(why: str) -> str:
    return f"That reply could not be read: {why}. Reply again, with the JSON object alone, in the form asked for."
