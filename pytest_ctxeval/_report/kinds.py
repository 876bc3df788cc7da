"""The kinds of reports, by the ending of a file's name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pytest_ctxeval._report.markdown import markdown_report
from pytest_ctxeval._report.report import Report
from pytest_ctxeval._report.stored_run import run_json


def _html(report: Report) -> str:
    from pytest_ctxeval._report.html import html_report  # noqa: PLC0415  # jinja2 is an extra

    return html_report(report)


WRITERS: Final = {
    ".json": run_json,
    ".md": markdown_report,
    ".html": _html,
}


def report_text(path: Path, report: Report) -> str:
    """Give a report as text, of the kind that the name of its file says."""
    return WRITERS[path.suffix](report)
