"""What a step of GitHub Actions is told: its summary, in a file, and annotations, in its output."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_ctxeval._report.github import annotation_lines
from pytest_ctxeval._report.markdown import markdown_report
from pytest_ctxeval._report.report import Report


def append_summary(report: Report) -> None:
    """Append a run to the summary of the step. Raises `OSError`."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        raise FileNotFoundError(2, "$GITHUB_STEP_SUMMARY is not set")
    with Path(path).open("a", encoding="utf-8", newline="\n") as file:
        begun = file.seekable() and file.tell() > 0
        file.write(("\n" if begun else "") + markdown_report(report))


def workflow_commands(report: Report, rootpath: Path) -> list[str]:
    """Give the lines that annotate tests; their files are told from the root of what was checked out."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    base = Path(workspace).resolve() if workspace else rootpath.resolve()

    def shown_path(file: str) -> str:
        path = (rootpath / file).resolve()
        return path.relative_to(base).as_posix() if path.is_relative_to(base) else file

    return annotation_lines(report, shown_path=shown_path)
