"""Read rows from JSON and from JSON lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn

from pytest_ctxeval.errors import ConfigError

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


class Row(NamedTuple):
    """What a file holds at one place, not checked yet."""

    where: str
    value: Any


class BrokenJsonError(ValueError):
    """Text that is not JSON, or JSON with a value that cannot be carried. `line` is None where it is not known."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse_jsonl(text: str, file: str) -> Iterator[Row]:
    """Read one row a line; blank lines are passed over. Only a line feed ends a line."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(" \t\r"):
            continue
        where = f"{file}, line {number}"
        try:
            value = parse_value(line)
        except BrokenJsonError as error:
            raise ConfigError(f"{where}: {error}") from None
        yield Row(where, value)


def parse_json(text: str, file: str) -> Iterator[Row]:
    """Read the items of a list, or the one dataset that the file is."""
    start = _skip_space(text, 0)
    if text.startswith("[", start):
        yield from _parse_list(text, start, file)
        return
    try:
        value = parse_value(text)
    except BrokenJsonError as error:
        place = file if error.line is None else f"{file}, line {error.line}"
        hint = "; a file with one object a line is named .jsonl" if "Extra data" in str(error) else ""
        raise ConfigError(f"{place}: {error}{hint}") from None
    check_is_dataset(value, file)
    yield Row(file, value)


def parse_value(text: str) -> Any:
    """Read the one value that the text is, or raise `BrokenJsonError`."""
    value, end = _parse_at(text, _skip_space(text, 0))
    _check_is_end(text, end)
    return value


def check_is_dataset(value: Any, file: str) -> None:
    """Refuse a file that holds neither a list nor one whole dataset."""
    if not isinstance(value, dict) or "conversation" not in value:
        raise ConfigError(
            f"{file}: it holds {type(value).__name__} and no 'conversation'; "
            "it must be a list of rows, or one dataset with its 'conversation'"
        )


def _parse_list(text: str, start: int, file: str) -> Iterator[Row]:
    """Walk a list item by item, since only that tells the line of each."""
    place, line, counted, number = file, 1, 0, 0
    at = _skip_space(text, start + 1)
    more = not text.startswith("]", at)
    try:
        while more:
            number += 1
            place = f"{file}, item {number}"
            line += text.count("\n", counted, at)
            counted = at
            value, at = _parse_at(text, at)
            yield Row(f"{place}, line {line}", value)
            at = _skip_space(text, at)
            more = text.startswith(",", at)
            at = _skip_space(text, at + 1) if more else at
        place = file
        if not text.startswith("]", at):
            _raise_broken("Expecting ',' delimiter", text, at)
        _check_is_end(text, at + 1)
    except BrokenJsonError as error:
        raise ConfigError(f"{place}, line {error.line or line}: {error}") from None


def _parse_at(text: str, at: int) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
        _check_has_no_half_characters(value, text[at:end])
    except json.JSONDecodeError as error:
        _raise_broken(error.msg, text, error.pos)
    except RecursionError:
        raise BrokenJsonError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise BrokenJsonError(str(error)) from None
    return value, end


def _check_has_no_half_characters(value: Any, text: str) -> None:
    """Refuse what no request to a judge could carry: half of a surrogate pair, as left by cutting an emoji."""
    if not _SURROGATE.search(text):
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"\\u{ord(error.object[error.start]):04x} is half of a character") from None


def _check_is_end(text: str, at: int) -> None:
    if (end := _skip_space(text, at)) < len(text):
        _raise_broken("Extra data", text, end)


def _raise_broken(problem: str, text: str, at: int) -> NoReturn:
    told = json.JSONDecodeError(problem, text, at)
    raise BrokenJsonError(f"its JSON is broken at column {told.colno}: {problem}", line=told.lineno) from None


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"field {next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is too large a number")
    return number


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_float=_finite)
