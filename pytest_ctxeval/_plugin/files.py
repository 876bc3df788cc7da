"""Stored runs and reports: read and written."""

from __future__ import annotations

from pathlib import Path

from pytest_ctxeval._core.run import Run
from pytest_ctxeval._core.summary import Summary
from pytest_ctxeval._core.text import shown_path
from pytest_ctxeval._report.kinds import report_text
from pytest_ctxeval._report.report import Report
from pytest_ctxeval._report.stored_run import parse_run
from pytest_ctxeval.errors import ConfigError


def read_run(path: Path) -> tuple[Run, Summary]:
    """Read a stored run from its file, and sum it up. Raises `ConfigError`."""
    where = shown_path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"{where}: {why}") from None
    return parse_run(text, where=where)


def write_report(path: Path, report: Report) -> None:
    """Write a report of the kind that the name of its file says: the whole of it or nothing. Raises `OSError`."""
    kind, path = path, path.resolve()  # a link stays one
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.tmp")
    try:
        beside.write_text(report_text(kind, report), encoding="utf-8")
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
