"""Annotations on GitHub: what stands in them, and that no text of others is a command (CASES E7)."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reports import case, report

from pytest_ctxeval._core.text import harmless, one_line
from pytest_ctxeval._report.github import annotation_lines
from pytest_ctxeval._report.report import Report

STEADY = settings(deadline=None, derandomize=True, database=None)


def lines(told: Report) -> list[str]:
    return annotation_lines(told, shown_path=lambda file: f"shop/{file}")


def read(line: str) -> tuple[str, dict[str, str], str]:
    """Read a command as GitHub's runner does."""
    found = re.fullmatch(r"::(\w+) (.*?)::(.*)", line)
    assert found, line
    properties = dict(part.split("=", 1) for part in found[2].split(","))
    in_properties = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ","}

    def unescaped(text: str, escapes: dict[str, str]) -> str:
        for escape, character in escapes.items():
            text = text.replace(escape, character)
        return text.replace("%25", "%")

    data = unescaped(found[3], {"%0D": "\r", "%0A": "\n"})
    return found[1], {name: unescaped(value, in_properties) for name, value in properties.items()}, data


def test_the_most_important_stand_first_each_at_its_test() -> None:
    old = [case("q1", 1.0, position=1), case("q2", 0.9, position=2), case("q3", 0.9, position=3)]
    new = [
        case("q1", 0.85, position=1),
        case("q2", 0.4, reason="says 24/7: wrong, 50% off", position=2),
        case("q3", None, position=3, line=None),
        case("q4", 0.5, position=4),
        case("q5", 0.1, position=5),
        case("q6", None, position=6),
    ]
    told = lines(report(*new, old=old, gates=["context_awareness:0.8", "unscored:0"]))
    assert told == [
        "::error title=gate context_awareness%3A0.8 failed::shop, context awareness: 0.46 < 0.80",
        "::error title=gate unscored%3A0 failed::2 unscored, 0 allowed",
        (
            "::error file=shop/test_shop.py,line=7,title=context awareness of q2%3A regressed 0.90 -> 0.40%2C 0.40 < 0.80"
            "::says 24/7: wrong, 50%25 off%0Atest_shop.py::test_answers[shop-q2]"
        ),
        (
            "::error file=shop/test_shop.py,title=context awareness of q3%3A regressed 0.90 -> unscored"
            "::the judge could not be reached%0Atest_shop.py::test_answers[shop-q3]"
        ),
        (
            "::error file=shop/test_shop.py,line=7,title=context awareness of q5%3A 0.10 < 0.80"
            "::because%0Atest_shop.py::test_answers[shop-q5]"
        ),
        (
            "::error file=shop/test_shop.py,line=7,title=context awareness of q4%3A 0.50 < 0.80"
            "::because%0Atest_shop.py::test_answers[shop-q4]"
        ),
        (
            "::error file=shop/test_shop.py,line=7,title=context awareness of q6%3A unscored"
            "::the judge could not be reached%0Atest_shop.py::test_answers[shop-q6]"
        ),
        (
            "::warning file=shop/test_shop.py,line=7,title=context awareness of q1%3A regressed 1.00 -> 0.85"
            "::because%0Atest_shop.py::test_answers[shop-q1]"
        ),
    ]


def test_a_run_that_passed_annotates_nothing() -> None:
    assert lines(report(case("q1", 0.9), case("q2", 0.1, min=None), gates=["context_awareness:0.5"])) == []


@pytest.mark.parametrize(("n", "last"), [(10, None), (11, 2), (500, 491)])
def test_of_more_than_github_shows_the_last_says_how_many(n: int, last: int | None) -> None:
    told = lines(report(*[case(f"q{number}", 0.1) for number in range(n)]))
    assert len(told) == 10
    more = f"::error title=context evaluation::and {last} more; a report of the run, as --ctxeval-report=run.html, has all of them"
    assert told[-1] == more if last else told[-1].startswith("::error file=")


def test_errors_and_warnings_are_counted_apart() -> None:
    old = [case(f"q{number}", 1.0) for number in range(30)]
    new = [case(f"q{number}", 0.9 if number % 2 else 0.1) for number in range(30)]
    told = lines(report(*new, old=old))
    assert [line.split(" ")[0] for line in told] == ["::error"] * 10 + ["::warning"] * 10
    assert "::and 6 more; " in told[9]
    assert "::and 6 more; " in told[19]


HOSTILE = [
    "::error::x", "::set-output name=a::b", "::stop-commands::x", "##[error]x", "%0A::error::x", "%25", "\n::error::x", "\r::error::x",
    "\r\n", "\x1b[31m", "\x07", "a,line=1", "a=b", "x::", ":", ",", "%", "\u2028::error::x", "\x85", "\ud800", "\u202e", "]]>", " ",
]  # fmt: skip


@STEADY
@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), min_size=1, max_size=6).map("".join))
def test_any_text_stands_within_one_command(text: str) -> None:
    given: dict[str, Any] = {"session_id": text, "node_id": f"{text}::{text}"}
    told = annotation_lines(
        report(case(text, 0.1, reason=text, **given), case(text, None, unscored=text, **given), gates=["context_awareness:0.8"]),
        shown_path=lambda file: file,
    )  # fmt: skip
    assert len(told) == 3
    for line in told:
        assert line.splitlines() == [line]
        assert "##[" not in line
        assert line.isprintable() or not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]", line)
        kind, properties, data = read(line)
        assert kind == "error"
        assert set(properties) <= {"file", "line", "title"}
        if "file" in properties:
            assert properties["line"] == "7"
            assert properties["file"] == harmless(f"{text}::".partition("::")[0])
            assert data.endswith(harmless(f"\n{one_line(f'{text}::{text}')}"))
