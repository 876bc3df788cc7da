"""A run as Markdown: what it says, that it stays short, and that no text of others does anything in it (CASES E6)."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rendered import RENDERERS, columns, content, parts, skeleton
from support.reports import case, report

from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import Calls, Sample, Statement
from pytest_ctxeval._plugin.options import REPORTS
from pytest_ctxeval._report.kinds import WRITERS
from pytest_ctxeval._report.markdown import markdown_report
from pytest_ctxeval._report.report import Report

COMMENT = 65_536  # characters that a comment on GitHub may have
STEADY = settings(deadline=None, derandomize=True, database=None)


def test_a_run_that_passed_is_a_few_lines() -> None:
    told = markdown_report(report(case("q1", 1.0), case("q2", 0.9), gates=["context_awareness:0.8", "unscored:0"]))
    assert (
        told
        == """\
### Context evaluation passed: 2 cases, 2 gates

| session | metric | n | mean | 95% interval | gate |
| --- | --- | ---: | ---: | --- | --- |
| `shop` | context awareness | 2 | 0.95 | 0.28 ... 0.97 | passed `>= 0.80` |

- gate `unscored:0` passed `0 unscored, 0 allowed`

judge `gpt-4o-mini: 2 replayed, 0 recorded, 0 live, 140 tokens, record=none`
"""
    )


def test_a_run_that_fell_below_its_baseline_tells_what_differs_before_any_number_and_shows_each_case() -> None:
    old = [case("q1", 1.0), case("q3", 0.9, assistant="From 9.", judge="gpt-4o"), case("q9", 0.9)]
    new = [case("q1", 1.0), case("q2", 0.5), case("q3", 0.05, reason="24/7 | is\nwrong"), case("q4", None)]
    told = markdown_report(report(*new, old=old, gates=["context_awareness:0.8", "drop:0.05"]))
    assert (
        told
        == """\
### Context evaluation failed: 2 of 4 cases below their bar, 1 unscored, 2 gates failed

Hard to compare with `main.json`:

- `judge gpt-4o -> gpt-4o-mini (1 of 2 cases)`

| session | metric | n | mean | 95% interval | change | gate |
| --- | --- | ---: | ---: | --- | --- | --- |
| `shop` | context awareness | 3/4 | 0.52 | 0.17 ... 0.85 | -0.42, -0.74 ... +0.46 | **failed** `0.52 < 0.80; 1 of 4 unscored`, **failed** `q3 fell below its bar; q9 missing` |

- against `main.json`: 1 regressed, 1 missing, 1 same, 2 new
- missing `shop-q9`

<details><summary><b>regressed 0.90 -&gt; 0.05, 0.05 &lt; 0.80</b> <code>test_shop.py::test_answers[shop-q3]</code> context awareness</summary>

- query: `When?`
- assistant: `9 to 5.`
- assistant before: `From 9.`
- reason: `24/7 `&#124;` is wrong`
- before: 0.90 `because`

</details>

<details><summary><b>0.50 &lt; 0.80</b> <code>test_shop.py::test_answers[shop-q2]</code> context awareness</summary>

- query: `When?`
- assistant: `9 to 5.`
- reason: `because`

</details>

<details><summary><b>unscored</b> <code>test_shop.py::test_answers[shop-q4]</code> context awareness</summary>

- query: `When?`
- assistant: `9 to 5.`
- unscored: `the judge could not be reached`

</details>

judge `gpt-4o-mini: 4 replayed, 0 recorded, 0 live, 280 tokens, record=none`
"""
    )


def test_what_was_retrieved_is_shown_by_its_statements() -> None:
    statements = (
        Statement(1, "It opens at 9.", relevant=True),
        *(Statement(2, f"Helmet {n} is red.", relevant=False, reason="about helmets") for n in range(4)),
        Statement(3, "", relevant=False, reason="it states nothing"),
    )
    told = markdown_report(report(case("q1", 0.2, metric="contextual_relevancy", statements=statements)))
    fold = told[told.index("- query") : told.index("\n\n</details>")]
    assert fold.splitlines() == [
        "- query: `When?`",
        "- not relevant in chunk 2: `Helmet 0 is red.`",
        "- not relevant in chunk 2: `Helmet 1 is red.`",
        "- not relevant in chunk 2: `Helmet 2 is red.`",
        "- not relevant: 2 more",
        "- reason: `because`",
    ]


def test_all_else_that_there_is_to_know_is_told() -> None:
    samples = (Sample(0.7, "low"), Sample(1.0, "high"))
    cases = [
        case("q1", 0.85, samples=samples, weight=3.0, reruns=2),
        case("q2", 0.75, samples=(Sample(0.7, "low"), Sample(0.8, "high"))),
    ]
    told = markdown_report(
        report(
            *cases, notes=["the report a.json could not be written"], unused=["1 recording that no test asks for"],
            unused_fails=True, partial="tests were left out", assistant=Calls(live=3),
        )
    )  # fmt: skip
    assert told.startswith("### Context evaluation failed: 1 of 2 cases below its bar, unused recordings\n")
    assert "- samples: 2, within the spread of the bar 0.80, 0.70 to 0.80\n" in told
    assert told.endswith("""\
record=none`

assistant `0 replayed, 0 recorded, 3 live`
""")  # fmt: skip
    for line in (
        "1 case passed within the spread of its bar",
        "2 reruns",
        "not all tests: `tests were left out`",
        "note `the report a.json could not be written`",
        "unused `1 recording that no test asks for`",
    ):
        assert f"- {line}\n" in told


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (report(), "judged no case"),
        (report(gates=["unscored:0"]), "failed: 1 gate failed"),
        (report(case("q1", None)), "failed: 1 of 1 case unscored"),
        (report(case("q1", 0.1, min=None)), "passed: 1 case"),
        (report(case("q1", 0.9), broken_off=True), "broken off: 1 case so far"),
        (report(case("q1", 0.1), broken_off=True), "broken off: 1 of 1 case below its bar"),
    ],
)
def test_the_verdict_stands_first(given: Report, verdict: str) -> None:
    assert markdown_report(given).splitlines()[0] == f"### Context evaluation {verdict}"


@pytest.mark.parametrize(
    ("old", "change"),
    [
        ([case("q1", 0.9)], "same"),
        ([case("q1", None)], "no pair"),
        ([case("q2", 0.9)], "no pair"),
        ([], "new"),
        ([case("q1", 0.8)], "+0.10, -0.07 ... +0.10"),
    ],
)
def test_the_change_of_a_session_is_told(old: list[Any], change: str) -> None:
    row = markdown_report(report(case("q1", 0.9), old=old)).splitlines()[4]
    assert row.split(" | ")[-2] == change


def test_means_without_intervals_have_no_column_for_them() -> None:
    told = markdown_report(replace(report(case("q1", 0.9)), level=None))
    assert "| session | metric | n | mean | gate |" in told


HOSTILE = [
    "@someone", "@org/team", "<script>alert(1)</script>", "#123", "GH-1", "org/repo#5", "org/repo@0a1b2c3d", "</details>",
    "![x](http://x.invalid/a.png)", "[x](http://x.invalid)", "http://x.invalid", "www.x.invalid", "me@x.invalid", "<!--", "-->",
    ":shipit:", "[^1]", "[^1]: note", "```", "~~~", "`", "``", "|", "\\|", "\\", "\\`", "$x$", "$`x`$", "$$", "**b**", "__b__", "~~s~~",
    "<img src=x onerror=y>", "<a href='javascript:x'>", "&lt;", "&#64;someone", "&commat;", "\n", "\n\n", "\r", "- [ ] x", "# x", "> x",
    "1. x", "| a | b |", "| --- |", "---", "===", "\x1b[31m", "\x07", "\u202e", "\u2028", "\ud800", "\ufffe", "\x00", "    x", "\t", "<b",
    "&", '"', "'", "<![CDATA[", "<?x", "<!DOCTYPE x>", "::error::x", "0123456789abcdef0123456789abcdef01234567", "`" * 100,
    "[!NOTE]", "> [!WARNING]", "<details open>", "</code>", "</summary>", "http://[::1]/", "ftp://x.invalid", "xmpp:a@x.invalid",
]  # fmt: skip


def stuffed(text: str) -> Report:
    """A report that holds a text wherever one can stand that is not our own."""
    statements = (Statement(1, text, relevant=False),)
    new = {"session_id": text, "node_id": text, "query": text, "assistant": text, "judge": text, "metric": text}
    cases = [
        case("q1", 0.1, reason=text, position=1, **new),
        case("q2", None, unscored=text, position=2, **new),
        case(text, 0.9, session_id="other", metric="contextual_relevancy", position=3),
        case("q4", 0.1, reason=text, position=4, **{**new, "metric": "contextual_relevancy"}, statements=statements),
    ]
    old = [
        case("q1", 0.9, reason=text, **{**new, "judge": f"{text}0", "query": f"{text}0", "assistant": f"{text}0"}),
        case(text, 0.9, session_id=text),
    ]
    made = report(
        *cases, old=old, gates=["drop:0.05", "unscored:0"], baseline=text, notes=[text], unused=[text], unused_fails=True,
        partial=text, record=text,
    )  # fmt: skip
    named = [replace(check, text=f"{check.text} {text}") for check in made.checks]
    return replace(made, checks=[*named, replace(named[0], session=None, gate=replace(named[0].gate, text=text))])


def is_text(text: str) -> bool:
    return one_line(text).strip("`|") != ""


@cache
def plain_skeleton(rendered: Callable[[str], str]) -> list[str]:
    return skeleton(parts(rendered(markdown_report(stuffed("X")))))


def check(text: str, told: str) -> None:
    """Rendered, a report with this text is made of what one with a plain word is made of, and shows the text."""
    for rendered in RENDERERS:
        page = parts(rendered(told))
        assert skeleton(page) == plain_skeleton(rendered)
        assert columns(page) == [7] * 4
        assert {tag for kind, tag in page if kind == "open"} <= {
            "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "strong", "ul", "li", "details", "summary", "b",
        }  # fmt: skip
        shown = re.sub(r"\s+", " ", content(page))
        assert re.sub(r"\s+", " ", one_line(text, 60)) in shown


@pytest.mark.parametrize("text", [text for text in HOSTILE if is_text(text)], ids=ascii)
def test_a_hostile_text_renders_as_text_and_mentions_nobody(text: str) -> None:
    for each in (text, f"x {text} y", f"{text}\n{text}{text}"):
        check(each, markdown_report(stuffed(each)))


@STEADY
@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), min_size=1, max_size=8).map("".join).filter(is_text))
def test_any_text_renders_as_text(text: str) -> None:
    check(text, markdown_report(stuffed(text)))


@pytest.mark.parametrize("character", ["`", "|", "&", "<", "x", "\x00", "é", "\U0001f600"], ids=ascii)
def test_a_report_of_a_thousand_cases_fits_in_a_comment_whatever_they_say(character: str) -> None:
    text = f"{character}y" * 5_000
    cases = [
        case(f"{n}{text}", 0.1, session_id=f"{n % 100}{text}", query=text, assistant=text, reason=text, node_id=f"{n}{text}")
        for n in range(1_000)
    ]  # fmt: skip
    old = [replace(each, score=0.9, reason=text, assistant=f"{text}0", samples=()) for each in cases]
    told = markdown_report(report(*cases, old=old, gates=["context_awareness:0.8", "drop:0"], notes=[text] * 50))
    assert len(told) < COMMENT
    assert len(told.encode()) < 300_000
    assert told.count("<details>") == told.count("</details>") <= 10
    assert re.search(r"\.\.\. and \d\d more rows\n", told)
    assert re.search(r"\.\.\. and more: 99\d regressed\n", told)
    assert re.search(r"- \.\.\. and \d\d more\n", told)


def test_a_text_that_is_cut_says_so() -> None:
    told = markdown_report(report(case("q1", 0.1, assistant="x" * 5_000)))
    assert f"- assistant: `{'x' * 397}...` (cut, 5,000 characters in all)\n" in told


def test_every_kind_of_report_has_an_ending_that_is_accepted() -> None:
    assert set(REPORTS) == set(WRITERS)


def test_of_many_gates_those_that_failed_come_first_and_all_are_counted() -> None:
    gates = [f"context_awareness:0.{at}" for at in range(1, 9)]
    told = markdown_report(report(case("q", 0.75), gates=gates))
    assert "| **failed** `0.75 < 0.80`, passed `>= 0.10`" in told
    assert "and 3 more gates: 3 passed |" in told
    lone = markdown_report(
        report(case("q", 0.9), gates=["unscored:0", *(f"drop@s{at}:0.1" for at in range(8))], old=[])
    )
    assert "- and 4 more gates: 3 FAILED, 1 passed" in lone
