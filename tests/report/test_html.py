from __future__ import annotations

import importlib.util
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reports import report, wordy
from support.suite import Suite

from pytest_ctxeval._core.selection import Selection
from pytest_ctxeval._core.text import harmless
from pytest_ctxeval._core.verdict import Calls, CaseResult, Sample, Statement
from pytest_ctxeval._report.html import html_report
from pytest_ctxeval._report.markdown import markdown_report
from pytest_ctxeval._report.report import Report

STEADY = settings(deadline=None, derandomize=True, database=None, max_examples=80)
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "]]> --> <!-- <title>",
    "a\x1b[31mred\x07\u202eback\u2028line\ud800",
    "{{ 7 * 7 }} {% raw %}",
    "\"'`&amp;",
    "javascript:alert(1)",
]


class Page(HTMLParser):
    """The elements of a page, what they are called with, and the text of those that are seen."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.seen = ""
        self.data: Any = None
        self._inside = ""
        self.feed(text)
        assert self.open == []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "input"):
            self.open.append(tag)
        self.attributes += attrs
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script" and self.data is None:
            self.data = json.loads(data)
        elif self._inside not in ("script", "style"):
            self.seen += data


def everything() -> Any:
    samples = (Sample(0.4, "one says no"), Sample(0.9, "one says yes"))
    statements = (Statement(1, "We open at 9.", True), Statement(2, "The sky is blue.", False, "no hours"))
    new = (
        wordy("q1", 0.7),
        wordy("q2", 0.95),
        wordy("q3", 0.65, samples=samples),
        wordy("q4", None),
        wordy("q5", 0.5, metric="contextual_relevancy", statements=statements, retrieval_context=["9 to 5", "blue"]),
    )
    old = (wordy("q1", 0.9), wordy("q2", 0.95), wordy("q3", 0.65, judge="claude"), wordy("gone", 0.9))
    return report(
        *new, old=old, gates=("context_awareness:0.9", "drop:0.05", "missing:0"), notes=["a note"], unused=["one.yaml"]
    )


def test_the_page_tells_all_of_a_run() -> None:
    page = Page(html_report(everything()))
    for told in (
        "Failed: 3 of 5 cases below their bar, 1 unscored, 3 gates failed",
        "judge claude -> gpt (1 of 3 cases)",
        "5 verdicts: 1 passed, 3 below their bar, 1 unscored",
        "3 gate checks: 3 failed",
        "against main.json: 1 regressed, 1 missing",
        "1 missing, 0 allowed",
        "context awareness",
        "3 of 4",
        "q1 fell below its bar",
        "3 scored, 1 unscored",
        "judge gpt: 5 replayed, 0 recorded, 0 live",
        "note: a note",
        "one.yaml",
    ):
        assert told in page.seen, told
    verdict, differs, numbers = map(page.seen.index, ("Failed: ", "judge claude -> gpt", "5 verdicts"))
    assert verdict < differs < numbers
    cases = {each["qa_id"]: each for each in page.data["cases"]}
    assert list(cases) == ["q1", "q2", "q3", "q4", "gone", "q5"]
    assert cases["q1"]["status"] == "below bar"
    assert cases["q1"]["change"] == "regressed"
    assert cases["q1"]["old"]["score"] == 0.9
    assert cases["q3"]["undecided"]
    assert cases["q3"]["spread"] == [0.4, 0.9]
    assert cases["q3"]["fault"] == "0.65 < 0.80"
    assert cases["q4"] == {**cases["q4"], "status": "unscored", "unscored": "the judge is gone"}
    assert cases["q5"]["statements"][1] == [2, "The sky is blue.", False, "no hours"]
    assert cases["gone"]["status"] == "missing"
    assert not {"score", "reason", "assistant"} & cases["gone"].keys()
    assert cases["gone"]["old"] == {
        "score": 0.9,
        "assistant": "The answer to gone.",
        "reason": "gone is as good as that",
    }
    assert cases["q2"]["old"] == {"score": 0.95}  # what has not changed stands there once
    assert page.data["contexts"][cases["q1"]["context"]] == "Open 9 to 5."


@pytest.mark.parametrize(
    ("told", "status", "verdict"),
    [
        (report(wordy("q", 0.9), gates=["context_awareness:0.8"]), "passed", "✓ Passed: 1 case, 1 gate"),
        (report(wordy("q", 0.1)), "failed", "✗ Failed: 1 of 1 case below its bar"),
        (report(wordy("q", 0.9), broken_off=True), "broken-off", "! Broken off: 1 case so far"),
        (report(wordy("q", 0.9), unused=["x"], unused_fails=True), "failed", "✗ Failed: unused recordings"),
        (report(), "nothing-judged", "! Judged no case"),
    ],
)
def test_the_verdict_is_that_of_the_other_reports(told: Report, status: str, verdict: str) -> None:
    page = Page(html_report(told))
    assert ("class", status) in page.attributes
    assert verdict in page.seen
    assert verdict[2:].lower() in markdown_report(told).lower()


def test_what_was_left_out_and_run_again_is_said() -> None:
    told = report(wordy("q", 0.9, reruns=2), partial="-k context", assistant=Calls(replayed=3))
    page = Page(html_report(told))
    assert "not all tests: -k context" in page.seen
    assert "assistant 3 replayed, 0 recorded, 0 live" in page.seen
    assert "2 reruns" in page.seen
    assert page.data["cases"][0]["reruns"] == 2


def test_a_session_that_is_gone_is_named() -> None:
    old = [wordy("q", 0.9), wordy("q", 0.9, session_id="desk"), wordy("r", 0.9, session_id="desk")]
    assert "desk, context awareness: 2 cases missing" in Page(html_report(report(wordy("q", 0.9), old=old))).seen
    selection = Selection(deselected=tuple(each.node_id for each in old))
    page = Page(html_report(report(wordy("q", 0.9), old=old, selection=selection)))
    assert "desk, context awareness: 2 cases left out" in page.seen
    assert page.data["cases"][1]["status"] == "left out"


def test_sessions_that_failed_come_first_and_of_many_most_are_in_a_fold() -> None:
    cases = [wordy("q", 0.1 if at == 24 else 0.9, session_id=f"s{at}") for at in range(25)]
    text = html_report(report(*cases, gates=["context_awareness:0.8"]))
    page = Page(text)
    assert page.tags.count("article") == 25
    assert text.index('data-session="s24"') < text.index('data-session="s0"')
    assert text.index('data-session="s18"') < text.index("<summary>5 more sessions</summary>") < text.index('"s19"')


@pytest.mark.parametrize(
    ("old", "told"),
    [
        ([wordy("q", 0.9)], "as before"),
        ([wordy("q", 0.8)], "+0.10 (\u2212"),
        ([wordy("q", None)], "no pair with the baseline"),
        ([wordy("q", 0.9, session_id="desk")], "new"),
    ],
)
def test_a_session_says_how_it_has_changed(old: list[CaseResult], told: str) -> None:
    text = html_report(report(wordy("q", 0.9), old=old))
    assert f'<span class="change">{told}' in text


def test_a_session_that_got_worse_is_marked_in_words_and_not_in_colour_alone() -> None:
    names = [f"q{at}" for at in range(9)]
    text = html_report(report(*(wordy(name, 0.5) for name in names), old=[wordy(name, 0.9) for name in names]))
    assert '<span class="change worse">\u22120.40' in text


def test_a_score_just_below_its_bar_shows_that_it_is() -> None:
    page = Page(html_report(report(wordy("q", 0.7996))))
    assert page.data["cases"][0]["fault"] == "0.7996 < 0.8000"


def test_what_json_cannot_say_is_left_out() -> None:
    page = Page(html_report(report(wordy("q", 0.9, temperature=math.inf, min=None))))
    assert "temperature" not in page.data["cases"][0]
    assert page.data["cases"][0]["status"] == "no bar"


def test_the_bars_of_gates_are_drawn() -> None:
    text = html_report(report(wordy("q", 0.9), gates=["context_awareness:0.8", "context_awareness.low:0.25"]))
    assert '<line class="bar" x1="320.0"' in text
    assert '<line class="bar low" x1="100.0"' in text
    assert "a dashed line a bar of a gate, a short one for the low end" in text
    assert "dashed" not in Page(html_report(report(wordy("q", 0.9)))).seen


def test_a_score_of_zero_is_a_score() -> None:
    page = Page(html_report(report(wordy("q", 0.0))))
    assert page.data["cases"][0]["score"] == 0.0


def test_the_same_run_gives_the_same_page_and_no_page_loads_anything() -> None:
    text = html_report(everything())
    assert text == html_report(everything())
    assert not re.search(r"https?:|url\(|@import|\bsrc=|<link", text)
    assert "default-src 'none'" in text


@pytest.mark.parametrize("told", HOSTILE)
def test_hostile_text_stays_in_its_place(told: str) -> None:
    plain = Page(html_report(report(wordy("q", 0.1), old=[wordy("q", 0.9)], notes=["x"])))
    fields: dict[str, Any] = dict.fromkeys(
        ("reason", "query", "assistant", "context", "judge", "cassette", "session_id", "node_id"), told
    )
    case = wordy(told, 0.1, **fields)
    page = Page(html_report(report(case, old=[wordy(told, 0.9, **fields)], notes=[told], baseline=told)))
    assert page.tags == plain.tags
    assert {name for name, _ in page.attributes} == {name for name, _ in plain.attributes}
    assert page.data["cases"][0]["reason"] == harmless(told)
    assert page.data["contexts"] == [harmless(told)]
    assert harmless(told) in page.seen


@STEADY
@given(st.text(st.characters(exclude_categories=()), max_size=60), st.none() | st.floats(0, 1))
def test_any_text_stays_in_its_place(told: str, score: float | None) -> None:
    names = ("reason", "query", "assistant", "cassette", "judge", "node_id", "session_id")
    fields: dict[str, Any] = dict.fromkeys(names, told)
    statement = Statement(1, told, False, told)
    case = wordy(told, score, context=told, retrieval_context=[told], statements=(statement,), **fields)
    text = html_report(report(case, old=[replace(case, score=0.9, reason=f"{told} was")], baseline=told, notes=[told]))
    page = Page(text)
    assert text.count("<script") == 2
    assert text.count("</script") == 2
    (data,) = page.data["cases"]
    assert [data.get(name, "") for name in names] == [harmless(told)] * len(names)
    assert data["statements"] == [[1, harmless(told), False, harmless(told)]]
    assert data["old"]["reason"] == harmless(f"{told} was")
    assert page.data["contexts"] == [harmless(told)]
    assert page.seen.rstrip().endswith(f"note: {harmless(told)}".rstrip())
    text.encode()


def test_an_empty_run_has_a_page() -> None:
    page = Page(html_report(report(gates=("context_awareness:0.8",))))
    assert "No case was judged." in page.seen
    assert "no case was judged for context_awareness" in page.seen
    assert "svg" not in page.tags
    assert page.data == {"cases": [], "contexts": []}


def test_what_is_not_kept_twice_is_a_context() -> None:
    text = html_report(report(*(wordy(f"q{at}", 0.9, context="the one context") for at in range(50))))
    assert text.count("the one context") == 1


def test_a_page_of_frequentist_means_has_no_interval() -> None:
    page = Page(html_report(report(wordy("q", 0.9), level=None)))
    assert "interval" not in page.seen


def test_the_option_writes_the_page(suite: Suite) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.1")
    result = suite.in_process("--ctxeval-report=run.html")
    assert result.ret == 1
    page = Page((suite.path / "run.html").read_text(encoding="utf-8"))
    assert [each["score"] for each in page.data["cases"]] == [0.9, 0.1]


def test_without_jinja2_the_run_says_what_to_install_before_anything_is_judged(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "pytest_ctxeval._plugin.options.find_spec", lambda name: None if name == "jinja2" else find(name)
    )
    suite.module("raise RuntimeError('collected')")
    result = suite.in_process("--ctxeval-report=run.html")
    assert result.ret == 4
    assert [line for line in result.errlines if line] == [
        "ERROR: --ctxeval-report: 'run.html' needs jinja2, which is not installed; pip install 'pytest-ctxeval[html]'"
    ]


def test_jinja2_is_imported_for_a_page_alone() -> None:
    code = "import sys, pytest_ctxeval._report.kinds; assert 'jinja2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_pages_parts_are_in_the_package() -> None:
    folder = importlib.resources.files("pytest_ctxeval._report") / "templates"
    assert {each.name for each in folder.iterdir()} == {"report.html.j2", "report.css", "report.js"}
