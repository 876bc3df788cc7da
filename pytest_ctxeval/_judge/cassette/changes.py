"""Compare the body of a request with a recorded one as its reader would: the prompt first, then the rest."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

# Where the chat APIs put what the model is told: OpenAI's two, Anthropic's, Ollama's two, Google's.
_SYSTEM: Final = ("system", "instructions", "system_instruction", "systemInstruction")
_PROMPT: Final = (*_SYSTEM, "messages", "input", "prompt", "contents")
_COMPARED: Final = 20_000  # characters of a prompt


class Difference(NamedTuple):
    """What stands at a path before and now: a value, or a whole part of the body where the other has none."""

    path: str
    before: Any
    now: Any

    @property
    def is_of_text(self) -> bool:
        """Whether one text became another there."""
        return _is_prose(self.path, self.before) and _is_prose(self.path, self.now)


class Said(NamedTuple):
    """One text of a prompt: where it stands, whose it is, and itself."""

    path: str
    role: str
    text: str


class Nothing:
    """What stands where nothing does."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final = Nothing()


def parse_body(body: str | bytes) -> Any:
    """Give the JSON of a body; anything else as the one value of an object."""
    try:
        return json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {"body": body}


def differences(before: Any, now: Any) -> list[Difference]:
    """Give where two bodies differ, in the order of their paths.

    A part that only one of them has is one difference, however much it holds.
    """
    found: list[Difference] = []
    todo: list[tuple[str, Any, Any]] = [("", before, now)]
    while todo:
        path, was, is_now = todo.pop()
        if isinstance(was, dict) and isinstance(is_now, dict):
            names = sorted(was.keys() | is_now.keys(), reverse=True)
            todo += [(_joined(path, name), was.get(name, NOTHING), is_now.get(name, NOTHING)) for name in names]
        elif isinstance(was, list) and isinstance(is_now, list):
            longest = range(max(len(was), len(is_now)) - 1, -1, -1)
            todo += [(f"{path}[{number}]", _item(was, number), _item(is_now, number)) for number in longest]
        elif _is_other(was, is_now):
            found.append(Difference(path or "body", was, is_now))
    return found


def prompt_of(body: Any) -> list[Said]:
    """Give the texts that the model is told, what the system says first; none where no place of them is known."""
    return [said for name in _PROMPT if isinstance(body, dict) and name in body for said in _said(name, body[name])]


def is_of_prompt(path: str) -> bool:
    """Whether a path leads into the prompt."""
    return re.split(r"[.\[]", path, maxsplit=1)[0] in _PROMPT


def moves(before: Any, now: Any) -> list[tuple[Said, Said]]:
    """Pair the texts of two prompts in which the same ones speak in the same order, at other places.

    Given are the pairs that have another place or text; none where all stand where they stood.
    """
    was, is_now = prompt_of(before), prompt_of(now)
    if [said.role for said in was] != [said.role for said in is_now]:
        return []
    pairs = [pair for pair in zip(was, is_now, strict=True) if pair[0] != pair[1]]
    return pairs if any(old.path != new.path for old, new in pairs) else []


def is_same_prompt(before: Any, now: Any) -> bool:
    """Whether both tell the model the same, wherever it stands."""
    was, is_now = ([said.text for said in prompt_of(body)] for body in (before, now))
    if was or is_now:
        return was == is_now
    return not any(each.is_of_text for each in differences(before, now))


def likeness_to(now: Any) -> Callable[[Any], tuple[float, int]]:
    """Give what says how near a recorded body is to this one: by its prompt first, then by how little else differs."""
    matcher = difflib.SequenceMatcher(None, "", _prose(now), autojunk=False)

    def likeness(before: Any) -> tuple[float, int]:
        matcher.set_seq1(_prose(before))
        return matcher.quick_ratio(), -len(differences(before, now))

    return likeness


def _prose(body: Any) -> str:
    texts: Iterable[str] = [said.text for said in prompt_of(body)]
    return "\n".join(texts or (leaf for _, leaf in _leaves("", body) if _is_text(leaf)))[:_COMPARED]


def _said(name: str, value: Any) -> Iterator[Said]:
    leaves = dict(_leaves(name, value))
    for path, leaf in leaves.items():
        message = re.match(r"\w+\[\d+\]", path)
        role = leaves.get(f"{message[0]}.role") if message and name not in _SYSTEM else None
        if _is_prose(path, leaf):
            yield Said(path, role or ("system" if name in _SYSTEM else "user"), leaf)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Give every value that holds no other by its path, in the order of the body."""
    todo = [(path, value)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, dict):
            todo += [(_joined(path, name), item) for name, item in reversed(value.items())]
        elif isinstance(value, list):
            todo += [(f"{path}[{number}]", item) for number, item in reversed([*enumerate(value)])]
        else:
            yield path, value


def _is_text(value: Any) -> bool:
    """Whether a value is a message rather than a setting."""
    return isinstance(value, str) and ("\n" in value or " " in value or len(value) > 40)


def _is_prose(path: str, value: Any) -> bool:
    """Whether a message stands there: of more than a word, or where messages do."""
    return _is_text(value) or (isinstance(value, str) and (path in _PROMPT or path.endswith(("content", ".text"))))


def _is_other(was: Any, is_now: Any) -> bool:
    return was != is_now or isinstance(was, bool) is not isinstance(is_now, bool)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _item(items: list[Any], number: int) -> Any:
    return items[number] if number < len(items) else NOTHING
