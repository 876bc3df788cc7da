"""Read rows from CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

from pytest_ctxeval._core.data import ContextCase
from pytest_ctxeval._core.text import nearest
from pytest_ctxeval._datasets.json_rows import BrokenJsonError, Row, parse_value
from pytest_ctxeval.errors import ConfigError

JSON_COLUMNS: Final = frozenset({"retrieval_context", "logprobs", "agentic", "ground_truth_agentic", "metadata"})


def parse_csv(text: str, file: str) -> Iterator[Row]:
    """Read one row a record, under a header of field names. An empty cell is a field that is not given."""
    records = [(line, cells) for line, cells in _records(text, file) if any(cells)]
    for number, (line, cells) in enumerate(records):
        where = f"{file}, line {line}"
        if not number:
            names = _header(cells, where)
        elif len(cells) != len(names):
            raise ConfigError(
                f"{where}: the header has {len(names)} cells, this row {len(cells)}; "
                "a cell with a comma, a quote or a newline stands in double quotes"
            )
        else:
            yield Row(where, {name: _value(name, cell, where) for name, cell in zip(names, cells, strict=True) if cell})


def _records(text: str, file: str) -> list[tuple[int, list[str]]]:
    """Give each record's first line and its cells."""
    # A carriage return alone ends a line only where nothing else does: elsewhere it belongs to a cell.
    lines = io.StringIO(text, newline="\n" if "\n" in text else "")
    reader = csv.reader(lines, strict=True)
    records, line = [], 1
    limit = csv.field_size_limit(len(text))
    try:
        for cells in reader:
            records.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise ConfigError(f"{file}, line {line}: its CSV is broken: {str(error).partition(' - ')[0]}") from None
    finally:
        csv.field_size_limit(limit)
    return records


def _header(names: list[str], where: str) -> list[str]:
    known = ContextCase.model_fields
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise ConfigError(f"{where}: column {number} has no name")
        if name not in known:
            cure = "its cells must be parted by commas" if len(names) == 1 else nearest(name, known)
            raise ConfigError(f"{where}: unknown field {name!r}; {cure}")
        if name in names[: number - 1]:
            raise ConfigError(f"{where}: field {name!r} stands there twice")
    return names


def _value(name: str, cell: str, where: str) -> Any:
    if name == "weight":
        return _number(cell)
    if name not in JSON_COLUMNS:
        return cell
    try:
        return parse_value(cell)
    except BrokenJsonError as error:
        raise ConfigError(f"{where}: field {name!r}: {error}; lists and objects are written as JSON") from None


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell
