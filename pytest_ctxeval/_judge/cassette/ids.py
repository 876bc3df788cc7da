"""Fixed ids in place of those that servers make up: the same answer, recorded again, is then the same file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pytest_ctxeval._judge.cassette.trim import CONTENT, Interaction, as_json, in_chat, is_blocks

_IDS: Final = frozenset({"id", "call_id", "item_id", "response_id", "request_id", "tool_call_id", "tool_use_id"}) | {
    "previous_response_id"
}


def settled(exchanges: Sequence[Interaction]) -> list[Interaction]:
    """Give exchanges, in the order in which they were made, with fixed ids.

    An id that is sent back as an id, as that of a tool call, is renamed there too. One that stands in an address, in a
    text, under another name, or in a request before any answer, is left alone everywhere: something hangs on it.
    """
    left_alone = _left_alone(exchanges)
    renamed: dict[str, str] = {}
    made = []
    for each in exchanges:
        asked = replace(each, body=_renamed(each.body, renamed))
        made.append(replace(asked, answer=_fixed(each.answer, asked.key, renamed, left_alone)))
    return made


def _left_alone(exchanges: Sequence[Interaction]) -> set[str]:
    first: dict[str, int] = {}  # the exchange whose answer brings an id
    for number, each in enumerate(exchanges):
        for found in _ids_of(each.answer):
            first.setdefault(found, number)
    left = set()
    for number, each in enumerate(exchanges):
        body = each.body if isinstance(each.body, str) else each.body.decode("latin-1")
        text = f"{each.uri}\n{body}"
        for found, brought in first.items():
            if found in text and (number <= brought or _sent_as_id(body, found) < text.count(found)):
                left.add(found)
    return left


def _ids_of(answer: str | bytes) -> list[str]:
    found = _Found()
    if isinstance(answer, str):
        in_chat(answer, lambda value: _with_ids(value, found))
    return found.ids


def _sent_as_id(body: str, wanted: str) -> int:
    found = _Found()
    as_json(body, lambda value: _swapped(value, found))
    return found.ids.count(wanted)


class _Found:
    """Notes the ids that it is asked to change, and changes none."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def __call__(self, value: str) -> str:
        self.ids.append(value)
        return value


def _renamed(body: str | bytes, renamed: Mapping[str, str]) -> str | bytes:
    if not isinstance(body, str) or not any(name in body for name in renamed):
        return body
    return as_json(body, lambda value: _swapped(value, lambda each: renamed.get(each, each))) or body


def _fixed(answer: str | bytes, key: str, renamed: dict[str, str], left_alone: set[str]) -> str | bytes:
    def change(found: str) -> str:
        if found in left_alone:
            return found
        if found not in renamed:
            renamed[found] = _fixed_id(found, key, renamed)
        return renamed[found]

    if not isinstance(answer, str):
        return answer
    return in_chat(answer, lambda value: _with_ids(value, change))


def _fixed_id(value: str, key: str, renamed: Mapping[str, str]) -> str:
    """Derive an id from the request, so that it is the same at every recording; the kind before - or _ stays."""
    kind = re.match(r"[A-Za-z]{1,12}[-_]", value)
    return f"{kind[0] if kind else ''}{key[:12]}{sum(key[:12] in fixed for fixed in renamed.values())}"


def _with_ids(value: Any, change: Callable[[str], str]) -> Any:
    """Change the ids of what a chat API says, and nothing that a model or a user wrote."""
    if isinstance(value, list):
        return [_with_ids(item, change) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: change(item)
        if name in _IDS and isinstance(item, str) and item
        else item
        if name in CONTENT and not is_blocks(item)
        else _with_ids(item, change)
        for name, item in value.items()
    }


def _swapped(value: Any, change: Callable[[str], str]) -> Any:
    """Only where an id is meant: a server may take the name of a tool for the id of its call."""
    if isinstance(value, list):
        return [_swapped(item, change) for item in value]
    if isinstance(value, dict):
        return {
            name: change(item) if name in _IDS and isinstance(item, str) else _swapped(item, change)
            for name, item in value.items()
        }
    return value
