from __future__ import annotations

import importlib.util
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reports import report, wordy
from support.suite import Suite

from pytest_ctxeval._core.text import harmless
from pytest_ctxeval._core.verdict import Sample, Statement
from pytest_ctxeval._report.html import html_report

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
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.seen = ""
        self.data: Any = None
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
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
        "Failed: 3 of 3 gate checks",
        "judge claude -> gpt (1 of 3 cases)",
        "5 verdicts, 3 below their bar, 1 unscored",
        "against main.json: 1 regressed, 1 missing",
        "context awareness",
        "3 of 4",
        "q1 fell below its bar",
        "gpt: 5 replayed, 0 recorded, 0 live",
        "Note: a note",
        "Unused recordings: one.yaml",
    ):
        assert told in page.seen, told
    assert page.seen.index("judge claude -> gpt") < page.seen.index("5 verdicts")
    cases = {each["qa_id"]: each for each in page.data["cases"]}
    assert list(cases) == ["q1", "q2", "q3", "q4", "gone", "q5"]
    assert cases["q1"]["status"] == "below bar"
    assert cases["q1"]["change"] == "regressed"
    assert cases["q1"]["old"]["score"] == 0.9
    assert cases["q3"]["undecided"]
    assert cases["q4"] == {**cases["q4"], "status": "unscored", "unscored": "the judge is gone"}
    assert cases["q5"]["statements"][1] == [2, "The sky is blue.", False, "no hours"]
    assert cases["gone"]["status"] == "missing"
    assert "score" not in cases["gone"]
    assert page.data["contexts"][cases["q1"]["context"]] == "Open 9 to 5."


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
    text = html_report(report(wordy(told or "q", score, reason=told, query=told, context=told, session_id=told or "s")))
    page = Page(text)
    assert text.count("<script") == 2
    assert text.count("</script") == 2
    assert page.data["cases"][0].get("query", "") == harmless(told)
    text.encode()


def test_an_empty_run_has_a_page() -> None:
    page = Page(html_report(report(gates=("context_awareness:0.8",))))
    assert "No case was judged." in page.seen
    assert "no case was judged for context_awareness" in page.seen
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


def test_the_pages_parts_are_in_the_package() -> None:
    folder = importlib.resources.files("pytest_ctxeval._report") / "templates"
    assert {each.name for each in folder.iterdir()} == {"report.html.j2", "report.css", "report.js"}
