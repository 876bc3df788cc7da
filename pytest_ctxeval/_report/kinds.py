"""The kinds of reports, by the ending of a file's name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pytest_ctxeval._report.markdown import markdown_report
from pytest_ctxeval._report.report import Report
from pytest_ctxeval._report.stored_run import run_json

WRITERS: Final = {
    ".json": run_json,
    ".md": markdown_report,
}


def report_text(path: Path, report: Report) -> str:
    """Give a report as text, of the kind that the name of its file says."""
    return WRITERS[path.suffix](report)
