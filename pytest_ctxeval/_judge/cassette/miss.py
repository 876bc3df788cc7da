"""Say why a request is not on the cassette, and what to do."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._judge.cassette.secrets import redact, unset_variables
from pytest_ctxeval._judge.cassette.tape import Miss, Tape
from pytest_ctxeval._judge.cassette.trim import Interaction
from pytest_ctxeval._judge.provider import KEY_VARIABLES
from pytest_ctxeval.errors import CassetteMissError, ConfigError

_COMPARED: Final = 200  # recordings that are looked through for the nearest one
_SHOWN: Final = 6  # differences that are shown
_Leaves = dict[str, Any]


def miss_error(tape: Tape, miss: Miss, *, client: str = "") -> CassetteMissError:
    """Explain a miss: there is no cassette, it is incomplete, or it is stale and what has changed."""
    old = tape.old
    if old is None or not old.interactions:
        return CassetteMissError(f"no recording: there is no cassette {tape.shown}\n\n{_cure(tape, 'once')}")
    nearest = _nearest(miss, old.interactions)
    changed = list(_changes(nearest, miss, old.client, client)) if nearest else []
    if not old.complete:
        return CassetteMissError(
            f"not recorded yet: the cassette {tape.shown} is incomplete, its test did not come to its end when it "
            f"was recorded\n\n{_cure(tape, 'once')}"
        )
    lines = "\n".join(f"    {line}" for line in changed) or "    the same request, for another sample of it"
    return CassetteMissError(
        f"stale: the cassette {tape.shown} holds no answer to this request; against the nearest recorded one\n\n"
        f"{lines}\n\n{_cure(tape, 'all')}"
    )


def keyless_error(tape: Tape, who: str) -> ConfigError:
    """Say that something is to be recorded and the key for it is missing; the request has not gone out."""
    names = ", ".join(unset_variables(KEY_VARIABLES)) or "its key variable"
    return ConfigError(
        f"{tape.node}: this request is not recorded, and to record it {who} needs a key; set it in the environment "
        f"(not set: {names}; to any value, where the server asks for none), or replay alone with --ctxeval-record=none"
    )


def _cure(tape: Tape, mode: str) -> str:
    return f"record this one test with\n\n    pytest {shlex.quote(tape.node)} --ctxeval-record={mode}"


def _nearest(miss: Miss, recorded: Sequence[Interaction]) -> Interaction | None:
    wanted = _prose(_leaves(miss.body))

    def likeness(made: Interaction) -> float:
        return difflib.SequenceMatcher(None, _prose(_leaves(made.body)), wanted, autojunk=False).quick_ratio()

    return max(recorded[:_COMPARED], key=likeness, default=None)


def _changes(recorded: Interaction, miss: Miss, old_client: str, client: str) -> Iterator[str]:
    before, now = _leaves(recorded.body), _leaves(miss.body)
    for name in ("hostname", "path"):
        was, is_now = getattr(urlsplit(recorded.uri), name), getattr(urlsplit(miss.uri), name)
        if was != is_now:
            yield f"{name}: {one_line(redact(str(was)), 80)} -> {one_line(redact(str(is_now)), 80)}"
    differing = [path for path in sorted(before.keys() | now.keys()) if before.get(path, _NOT) != now.get(path, _NOT)]
    texts = [path for path in differing if _is_prose(path, before) and _is_prose(path, now)]
    if differing and not texts:
        clients = f" ({old_client} -> {client})" if client and old_client != client else ""
        yield f"the prompt is the same, the request is not{clients}"
    for path in differing[:_SHOWN]:
        if path in texts:
            yield f"{path}:"
            yield from (f"  {line}" for line in _diff(before[path], now[path]))
        else:
            yield f"{path}: {_short(before.get(path, _NOT))} -> {_short(now.get(path, _NOT))}"
    if len(differing) > _SHOWN:
        yield f"and {len(differing) - _SHOWN} more"


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NOT: Final = _Nothing()


def _leaves(body: str | bytes) -> _Leaves:
    """Give every value of a JSON body by its path."""
    try:
        found = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {"body": body}
    leaves: _Leaves = {}
    todo: list[tuple[str, Any]] = [("", found)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, dict) and value:
            todo += [(f"{path}.{name}" if path else str(name), item) for name, item in value.items()]
        elif isinstance(value, list) and value:
            todo += [(f"{path}[{number}]", item) for number, item in enumerate(value)]
        else:
            leaves[path or "body"] = value
    return leaves


def _prose(leaves: _Leaves) -> str:
    return "\n".join(str(leaves[path]) for path in sorted(leaves) if _is_text(leaves[path]))[:20_000]


def _is_text(value: Any) -> bool:
    """Whether a value is a message rather than a setting."""
    return isinstance(value, str) and ("\n" in value or " " in value or len(value) > 40)


def _is_prose(path: str, leaves: _Leaves) -> bool:
    """Whether a message stands there: of more than a word, or where messages do."""
    found = leaves.get(path)
    return _is_text(found) or (isinstance(found, str) and path.endswith(("content", ".text")))


def _diff(before: str, now: str) -> Iterator[str]:
    """The lines that differ, a few of them."""
    lines = [
        one_line(redact(line), 160)
        for line in difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@")) and not _is_boundary(line[1:])
    ]
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"... and {len(lines) - _SHOWN} more lines"


def _is_boundary(line: str) -> bool:
    return line.startswith("<<<") and line.endswith(">>>")


def _short(value: Any) -> str:
    return one_line(redact(repr(value)), 80)
