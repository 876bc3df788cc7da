"""Read a judge's reply: it becomes a verdict only if it says so beyond doubt."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError

from pytest_ctxeval._core.strict_json import no_constant, no_duplicates
from pytest_ctxeval._metrics.prompt import Clauses, Prompt

_CUT: Final = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
_THINKING: Final = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT: Final = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_STANDARD: Final = Clauses()
_FAILURES: Final = 100  # beginnings of JSON that come to nothing; a reply with more of them is no reply
_START: Final = re.compile(r"[{\[]")
_OPENING: Final = re.compile(r"\{\s*[\"']|\{\s*\w+\s*:|\[\s*[{\[]")  # what can only be meant as JSON


class UnreadableReplyError(ValueError):
    """The reply holds no verdict; the message says what is wrong with the best candidate."""


def text_of(message: BaseMessage) -> str:
    """The text that the model answered with: its text blocks, without the thinking before them."""
    text = message.content if isinstance(message.content, str) else "".join(_texts(message.content))
    return _without_thinking(text).lstrip("\ufeff")


def is_cut(message: BaseMessage) -> bool:
    """Whether the model stopped because it ran out of tokens."""
    about = message.response_metadata
    reasons = [about.get("finish_reason"), about.get("stop_reason"), about.get("done_reason")]
    details = about.get("incomplete_details")
    if isinstance(details, dict):
        reasons.append(details.get("reason"))
    return any(isinstance(reason, str) and reason.lower() in _CUT for reason in reasons)


def read_reply(text: str, prompt: Prompt, clauses: Clauses) -> BaseModel:
    """Give the first candidate that satisfies the prompt's schema, the last one in the text first.

    Candidates are what stands between the clauses, then every top-level JSON object of the text. Raises
    `UnreadableReplyError` where none satisfies it, and where another verdict seems to follow: no number is fished out
    of prose, rescaled or clamped.
    """
    thoughts, mark, said = _parted(text)
    if not mark:
        return _read(text, prompt, clauses)[0]
    try:  # a verdict may speak of such a mark
        reply, candidate = _read(text, prompt, clauses)
        if _THOUGHT.search(candidate):
            return reply
    except UnreadableReplyError:
        pass
    reply, candidate = _read(said, prompt, clauses)
    try:
        draft = _read(thoughts, prompt, clauses)[0]
    except UnreadableReplyError:
        draft = reply
    rest = said.replace(candidate, "").replace(clauses.bos, "").replace(clauses.eos, "").strip("`").strip()
    if draft != reply and rest:  # the mark may be a quotation, and so may be what follows it
        raise UnreadableReplyError("it seems to hold more than one verdict")
    return reply


def _read(text: str, prompt: Prompt, clauses: Clauses) -> tuple[BaseModel, str]:
    """Give the verdict and the text that says it."""
    problem = "it holds no JSON object"
    for number, candidate in enumerate(_candidates(text, clauses)):
        try:
            reply = _unquoted(candidate.text, prompt)
        except UnreadableReplyError as error:
            problem = problem if number else str(error)
        else:
            tail = text[candidate.end :]
            if candidate.is_marked and clauses != _STANDARD:  # which are known to nobody else, and stand for themselves
                _check_unmarked(tail, clauses)
            else:
                _check_tail(tail, reply, prompt)
            return reply, candidate.text
    raise UnreadableReplyError(problem)


def _parted(text: str) -> tuple[str, str, str]:
    """Part a reply at the mark that closes what was thought; the one that opens it may stand in the model's prompt."""
    marks = [found for found in _THOUGHT.finditer(text) if found[1]]
    last = marks[-1] if marks else None
    return (text[: last.start()], last[0], text[last.end() :]) if last else ("", "", text)


class _Candidate(NamedTuple):
    """What may be the verdict, where the text goes on behind it, and whether it stood between the clauses."""

    text: str
    end: int
    is_marked: bool = False


def _check_unmarked(tail: str, clauses: Clauses) -> None:
    """Refuse a verdict behind which another is marked, one that could not be read: the first was a draft."""
    if clauses.bos in tail:
        raise UnreadableReplyError("it seems to hold more than one verdict")


def _check_tail(tail: str, reply: BaseModel, prompt: Prompt) -> None:
    """Refuse a verdict behind which there is talk of another: it may be a draft, or a quotation of what was judged."""
    names, numbers = _field_names(prompt.schema)
    talk = rf"[\"'](?:{names})[\"']\s*:|\b(?:{numbers})\b(?:\s+(?:is|of|was|should be|would be))?\W{{0,8}}\d"
    if not re.search(talk, tail, re.IGNORECASE):
        return
    try:
        later = [_validated(candidate.text, prompt) for candidate in _objects(tail)]
    except UnreadableReplyError:
        later = []
    if not later or any(each != reply for each in later):
        raise UnreadableReplyError("it seems to hold more than one verdict")


@functools.cache
def _field_names(schema: type[BaseModel]) -> tuple[str, str]:
    """Give patterns for the names of all fields at any depth, and for those whose value is a score."""
    written = schema.model_json_schema()
    fields = [written["properties"], *(each["properties"] for each in written.get("$defs", {}).values())]
    names = {name: about for each in fields for name, about in each.items()}
    numbers = [name for name, about in names.items() if about.get("type") == "number"]
    return "|".join(names), "|".join(numbers) or "(?!)"


def _unquoted(candidate: str, prompt: Prompt) -> BaseModel:
    """Give the verdict, unless it stood in the texts that were to be judged: what they say of themselves is none."""
    reply = _validated(candidate, prompt)
    if "".join(candidate.split()) in "".join(prompt.user.split()):
        raise UnreadableReplyError("it repeats what the texts that it was to judge say")
    return reply


def _without_thinking(text: str) -> str:
    """Drop what a model thought before it answered, where it says so by both marks."""
    while (shorter := _THINKING.sub("", text)) != text:
        text = shorter
    return text


def _texts(blocks: Sequence[Any]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, str):
            yield block
        elif block.get("type") == "text":
            yield str(block.get("text", ""))


def _candidates(text: str, clauses: Clauses) -> Iterator[_Candidate]:
    yield from reversed(list(_between(text, clauses)))
    yield from reversed(_objects(text))


def _between(text: str, clauses: Clauses) -> Iterator[_Candidate]:
    """What stands between an opening mark and the next closing one."""
    at = text.find(clauses.bos)
    while at >= 0:
        start = at + len(clauses.bos)
        end = text.find(clauses.eos, start)
        if end < 0:
            return
        yield _Candidate(text[start:end].strip(), end + len(clauses.eos), is_marked=True)
        at = text.find(clauses.bos, end + len(clauses.eos))


def _objects(text: str) -> list[_Candidate]:
    """Every top-level JSON object in the text; none where something begins as JSON and is broken.

    What stands inside broken JSON may be a quotation of the answer under test.
    """
    decoder = json.JSONDecoder()
    objects: list[_Candidate] = []
    failures = 0
    at = _next_start(text, 0)
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            failures += 1
            if failures > _FAILURES or _OPENING.match(text, at):
                return []
            end = at + 1
        else:
            if isinstance(found, dict):
                objects.append(_Candidate(text[at:end], end))
        at = _next_start(text, end)
    return objects


def _next_start(text: str, at: int) -> int:
    found = _START.search(text, at)
    return found.start() if found else -1


def _validated(candidate: str, prompt: Prompt) -> BaseModel:
    try:
        found = json.loads(candidate, object_pairs_hook=no_duplicates, parse_constant=no_constant)
    except RecursionError:
        raise UnreadableReplyError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise UnreadableReplyError(f"its JSON is broken: {error}") from None
    try:
        reply = prompt.schema.model_validate(found)
    except ValidationError as error:
        told = "; ".join(_told(problem) for problem in error.errors(include_url=False)[:3])
        raise UnreadableReplyError(told) from None
    wrong = prompt.check(reply)
    if wrong:
        raise UnreadableReplyError(wrong)
    return reply


def _told(problem: Any) -> str:
    path = ".".join(str(part) for part in problem["loc"]) or "the reply"
    if problem["type"] == "missing":
        return f"{path} is missing"
    given = repr(problem["input"])
    given = given if len(given) <= 60 else given[:57] + "..."
    return f"{path}: {problem['msg'].lower()}, not {given}"
