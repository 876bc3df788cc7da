"""Read a dataset file of any known format."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from pytest_ctxeval._core.data import Dataset, build
from pytest_ctxeval._datasets.csv_rows import parse_csv
from pytest_ctxeval._datasets.json_rows import Row, parse_json, parse_jsonl
from pytest_ctxeval._datasets.pieces import Piece, piece_of_dataset, piece_of_row
from pytest_ctxeval._datasets.yaml_rows import parse_yaml
from pytest_ctxeval.errors import ConfigError

READERS: Final[Mapping[str, Callable[[str, str], Iterator[Row]]]] = {
    ".jsonl": parse_jsonl,
    ".ndjson": parse_jsonl,
    ".json": parse_json,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
    ".csv": parse_csv,
}


def read_file(given: str | os.PathLike[str], *, base: Path, defaults: Mapping[str, str]) -> Iterator[Piece]:
    """Give the rows and datasets of a file, whose path is relative to `base`.

    `defaults` are the fields of a session that rows may leave out. Raises `ConfigError` for a file that is not
    there or cannot be read, and for the first wrong row, naming file, line or item, and field.
    """
    path = base / given
    file = path.relative_to(base).as_posix() if path.is_relative_to(base) else Path(given).as_posix()
    content = _read(path, file)
    parse = READERS.get(path.suffix.lower())
    if parse is None:
        raise ConfigError(f"{file}: {path.suffix!r} is not a dataset's suffix; use {', '.join(READERS)}")
    text = _decode(content, file)
    if not text.strip():
        return
    of_file = {"session_id": path.stem, **defaults}
    for where, value in parse(text, file):
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: a row is an object of fields, not {type(value).__name__}")
        if "conversation" in value and parse is not parse_csv:
            yield piece_of_dataset(build(Dataset, {**defaults, **value}, where=where), where)
        else:
            yield piece_of_row(value, where, defaults=of_file)


def _read(path: Path, file: str) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ValueError):  # a path with NUL in it is a ValueError
        raise ConfigError(_not_found(path, file)) from None
    except OSError as error:
        raise ConfigError(f"{file}: it cannot be read: {error.strerror}") from None


def _decode(content: bytes, file: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{file}, line {line}: byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None


def _not_found(path: Path, file: str) -> str:
    resolved = Path(os.path.normpath(path))
    shown = resolved.relative_to(Path.cwd()) if resolved.is_relative_to(Path.cwd()) else resolved
    folder = resolved.parent
    if not folder.is_dir():
        return f"{file}: no such file; the folder {shown.parent.as_posix()} does not exist"
    names = sorted(each.name for each in folder.iterdir() if each.suffix.lower() in READERS)
    near = difflib.get_close_matches(resolved.name, names, n=3)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"{file}: no such file: {shown.as_posix()}{hint}"
