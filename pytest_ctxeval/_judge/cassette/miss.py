"""Say why a request is not on the cassette, and what to do."""

from __future__ import annotations

import difflib
import shlex
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final
from urllib.parse import urlsplit

from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._judge.cassette.changes import (
    Difference,
    Said,
    differences,
    is_of_prompt,
    is_same_prompt,
    likeness_to,
    moves,
    parse_body,
)
from pytest_ctxeval._judge.cassette.key import origin_of
from pytest_ctxeval._judge.cassette.secrets import redact, unset_variables
from pytest_ctxeval._judge.cassette.tape import Miss, Tape
from pytest_ctxeval._judge.cassette.trim import Interaction
from pytest_ctxeval._judge.provider import KEY_VARIABLES, PROVIDERS
from pytest_ctxeval.errors import CassetteMissError, ConfigError

_COMPARED: Final = 200  # recordings that are looked through for the nearest one
_SHOWN: Final = 6  # differences that are shown
_WIDTH: Final = 159  # characters of a line
_BEFORE: Final = 40  # and those of them before the first that differs, where it stands further on


def miss_error(tape: Tape, misses: Sequence[Miss], *, client: str = "") -> CassetteMissError:
    """Explain a miss: there is no cassette, it is incomplete, or it is stale and what has changed.

    `misses` is one, or the same question in each form it was asked in: told is the one that is nearest to a recording.
    """
    old = tape.old
    if old is None:
        return CassetteMissError(f"no recording: there is no cassette {tape.shown}\n\n{_cure(tape, 'once')}")
    if not old.complete:
        return CassetteMissError(
            f"not recorded yet: the cassette {tape.shown} is incomplete, its test did not come to its end when it "
            f"was recorded\n\n{_cure(tape, 'once')}"
        )
    recorded, miss = _nearest(old.interactions, misses)
    changed = _changes(recorded, miss, _versions(old.client, client))
    lines = "\n".join(f"    {line}" for line in changed)
    if not lines:
        return _same_request_error(tape, old.interactions, recorded, miss)
    return CassetteMissError(
        f"stale: the cassette {tape.shown} holds no answer to this request; against the nearest recorded one\n\n"
        f"{lines}\n\n{_cure(tape, 'all')}"
    )


def _same_request_error(
    tape: Tape, held: Sequence[Interaction], recorded: Interaction, miss: Miss
) -> CassetteMissError:
    """Explain the miss of a request that is recorded, word by word: for fewer samples, or at another server."""
    same = [each for each in held if each.key == replace(recorded, sample=each.sample).key]
    origins = {each.origin for each in same}
    if len(origins) > 1 and origin_of(miss.uri) not in origins:
        return CassetteMissError(
            f"stale: the cassette {tape.shown} holds this request, asked of other servers of that host: "
            f"{', '.join(sorted(origins))}\n\n{_cure(tape, 'all')}"
        )
    count = len({each.sample for each in same})
    return CassetteMissError(
        f"not recorded yet: the cassette {tape.shown} holds {count} {'sample' if count == 1 else 'samples'} of this "
        "request, and more are asked for (samples= of the marker, or --ctxeval-samples); what is there stays, and the "
        f"others are recorded with\n\n    pytest {shlex.quote(tape.node)} --ctxeval-record=new_episodes\n\nand with "
        "--ctxeval-samples, where it was given now"
    )


def keyless_error(tape: Tape, who: str, *, client: str = "") -> ConfigError:
    """Say that something is to be recorded and the key for it is missing; the request has not gone out.

    `client` is the package of the judge's model and its version; without it, all variables that are not set are named.
    """
    unset = unset_variables(KEY_VARIABLES)
    package = client.partition(" ")[0].replace("-", "_")
    own = [each.key for each in PROVIDERS.values() if each.module == package and each.key in unset]
    names = ", ".join(filter(None, own or unset)) or "its key variable"
    name = f"one of {names}" if ", " in names else names
    another = "take another judge (the fixture judge_model, or --ctxeval-judge=PROVIDER:NAME), " if client else ""
    return ConfigError(
        f"{tape.node}: this request is not recorded, and to record it {who} needs a key; set {name} in the environment "
        f"(to any value, where the server asks for none), {another}or replay alone with --ctxeval-record=none"
    )


def _cure(tape: Tape, mode: str) -> str:
    return f"record this one test with\n\n    pytest {shlex.quote(tape.node)} --ctxeval-record={mode}"


def _nearest(recorded: Sequence[Interaction], misses: Sequence[Miss]) -> tuple[Interaction, Miss]:
    held = [(made, parse_body(made.body)) for made in recorded[:_COMPARED]]
    asked = [(miss, likeness_to(parse_body(miss.body))) for miss in misses]
    pairs = [(likeness(before), made, miss) for miss, likeness in asked for made, before in held]
    _, made, miss = max(pairs, key=lambda pair: pair[0])
    return made, miss


def _changes(recorded: Interaction, miss: Miss, versions: str) -> Iterator[str]:
    if recorded.method != miss.method.upper():
        yield f"method: {recorded.method} -> {one_line(miss.method.upper(), 20)}"
    for name in ("hostname", "path", "query"):
        was, is_now = getattr(urlsplit(recorded.uri), name), getattr(urlsplit(miss.uri), name)
        if was != is_now:
            yield f"{name}: {one_line(redact(str(was)), 80)} -> {one_line(redact(str(is_now)), 80)}"
    before, now = parse_body(recorded.body), parse_body(miss.body)
    moved = moves(before, now)
    differing = [each for each in differences(before, now) if not (moved and is_of_prompt(each.path))]
    if (differing or moved) and is_same_prompt(before, now):
        yield f"the prompt is the same, the request is not{versions}"
    told = [*(_told_of_move(old, new) for old, new in moved), *map(_told, differing)]
    for lines in told[:_SHOWN]:
        yield from lines
    if len(told) > _SHOWN:
        yield f"and {len(told) - _SHOWN} more"


def _versions(old: str, new: str) -> str:
    """Give both versions of the client if they differ, its name once if that is the same."""
    if not new or new == old:
        return ""
    name, _, version = new.rpartition(" ")
    return f" ({old} -> {version if name and old.startswith(f'{name} ') else new})"


def _told(found: Difference) -> list[str]:
    if found.is_of_text:
        return [f"{_name(found.path)}:", *(f"  {line}" for line in _diff(found.before, found.now))]
    return [f"{_name(found.path)}: {_short(found.before)} -> {_short(found.now)}"]


def _told_of_move(old: Said, new: Said) -> list[str]:
    place = f"{_name(old.path)}: now at {_name(new.path)}" if old.path != new.path else f"{_name(new.path)}:"
    return [place, *(f"  {line}" for line in _diff(old.text, new.text))]


def _name(path: str) -> str:
    return one_line(redact(path), 120)


def _diff(before: str, now: str) -> Iterator[str]:
    """The lines that differ, a few of them."""
    was, is_now = (redact(text).split("\n") for text in (before, now))
    lines: list[str] = []
    for tag, start, end, now_start, now_end in difflib.SequenceMatcher(None, was, is_now).get_opcodes():
        if tag != "equal":
            olds = [line for line in was[start:end] if not _is_boundary(line)]
            news = [line for line in is_now[now_start:now_end] if not _is_boundary(line)]
            lines += [f"-{_shown(old, new)}" for old, new in zip(olds, [*news, *olds[len(news) :]], strict=False)]
            lines += [f"+{_shown(new, old)}" for new, old in zip(news, [*olds, *news[len(olds) :]], strict=False)]
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"... and {len(lines) - _SHOWN} more lines"


def _shown(line: str, other: str) -> str:
    """Give a line as it is shown beside another: the part that differs, spelt out where the eye cannot tell it."""
    if line == other or _look(line) != _look(other):
        return one_line(line, _WIDTH)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(line, other, strict=False)))
    start = max(same - _BEFORE, 0)
    part, other_part = line[start : start + _WIDTH], other[start : start + _WIDTH]
    shown = ascii(part) if _look(part) == _look(other_part) else one_line(part)
    return f"...{shown}" if start else shown


def _look(line: str) -> str:
    """Give what the eye sees of a line that is shown: neither how a letter is put together nor what has no width."""
    seen = unicodedata.normalize("NFC", one_line(line, _WIDTH))
    return "".join(each for each in seen if unicodedata.category(each) != "Cf")


def _is_boundary(line: str) -> bool:
    return line.startswith("<<<") and line.endswith(">>>")


def _short(value: Any) -> str:
    return one_line(redact(repr(value)), 80)
