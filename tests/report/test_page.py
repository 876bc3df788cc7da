"""The page on reports is kept: what it shows is what is written."""

from pathlib import Path

from support.reports import case, report

from pytest_ctxeval._report.github import annotation_lines
from pytest_ctxeval._report.markdown import markdown_report

PAGE = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
ANSWER = {"query": "When are you open?", "position": 1}
OLD = [
    case("hours", 0.9, assistant="From 9 to 5.", reason="agrees with the stated hours", **ANSWER),
    case("returns", 1.0, position=2),
    case("shipping", 0.9, position=3),
]
NEW = [case("hours", 0.05, assistant="Around the clock!", reason="contradicts the stated hours", **ANSWER), *OLD[1:]]
SHOWN = report(*NEW, old=OLD, gates=["context_awareness:0.8"])


def block(mark: str, fence: str) -> str:
    start = PAGE.index("\n", PAGE.index(f"<!-- {mark} -->\n{fence}") + len(f"<!-- {mark} -->\n")) + 1
    return PAGE[start : PAGE.index(f"\n{fence}\n", start) + 1]


def test_the_markdown_is_what_is_written() -> None:
    assert block("markdown", "````") == markdown_report(SHOWN)


def test_the_annotations_are_what_is_printed() -> None:
    lines = annotation_lines(SHOWN, shown_path=lambda file: f"app/{file}")
    assert block("annotations", "```").splitlines() == lines
