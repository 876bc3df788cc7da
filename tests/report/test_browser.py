"""The HTML report in a real browser: Chromium, without a window. Skipped where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.reports import report, wordy

from pytest_ctxeval._core.verdict import Sample, Statement
from pytest_ctxeval._report.html import html_report

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


class Opened:
    """A report in a window, and all that it asked for or complained of."""

    def __init__(self, browser: Any, folder: Path, told: Any, **window: Any) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        file = folder / "run.html"
        file.write_text(html_report(told), encoding="utf-8")
        self.page = browser.new_page(**window)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(file.as_uri())
        self.address = file.as_uri()

    def column(self, name: str) -> list[str]:
        found: list[str] = self.page.locator(f"td.c-{name}").all_inner_texts()
        return found

    def shown(self) -> str:
        return str(self.page.locator("#shown").inner_text())

    def search(self, text: str) -> None:
        before = self.shown()
        self.page.locator("#search").fill(text)
        self.page.wait_for_function("(before) => document.getElementById('shown').textContent !== before", arg=before)

    def close(self) -> None:
        self.page.close()
        assert self.complaints == []
        assert self.requests == [self.address]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages: list[Opened] = []

    def open_report(told: Any, **window: Any) -> Opened:
        pages.append(Opened(browser, tmp_path, told, **window))
        return pages[-1]

    yield open_report
    for each in pages:
        each.close()


def run() -> Any:
    samples = (Sample(0.6, "one says no"), Sample(0.9, "one says yes"))
    statements = (Statement(1, "We open at 9.", True), Statement(2, "The sky is blue.", False, "no hours"))
    new = [
        wordy("q1", 0.95),
        wordy("q2", 0.7, assistant="We never\nclose."),
        wordy("q10", 0.75, samples=samples),
        wordy("q3", None),
        wordy("hours", 0.5, metric="contextual_relevancy", session_id="desk", statements=statements,
               retrieval_context=["9 to 5", "blue"], min=0.7),
    ]  # fmt: skip
    old = [wordy("q1", 0.9), wordy("q2", 0.9, assistant="We close at 5."), wordy("gone", 0.9)]
    return report(*new, old=old, gates=("context_awareness:0.9",))


def test_it_renders_worst_first_and_asks_for_nothing(opened: Any) -> None:
    page = opened(run())
    assert page.column("case") == ["q2", "q10", "q3", "gone", "hours", "q1"]
    assert page.column("status") == [
        "✗ below bar, regressed", "✗ below bar, new", "✗ unscored, new", "✗ missing", "✗ below bar, new", "✓ passed, improved",
    ]  # fmt: skip
    assert page.column("change") == ["−0.20", "", "", "", "", "+0.05"]
    assert page.shown() == "1 to 6 of 6"
    assert page.page.locator("article.session").count() == 2
    assert page.page.title() == "Context evaluation: Failed: 1 of 1 gate check"


def test_it_sorts(opened: Any) -> None:
    page = opened(run())
    page.page.get_by_role("button", name="Case", exact=True).click()
    assert page.column("case") == ["gone", "hours", "q1", "q2", "q3", "q10"]
    page.page.get_by_role("button", name="Score").click()
    assert page.column("score") == ["0.50", "0.70", "0.75", "0.95", "", ""]
    page.page.get_by_role("button", name="Score").click()
    assert page.column("score") == ["0.95", "0.75", "0.70", "0.50", "", ""]
    assert page.page.locator("th[aria-sort=descending]").inner_text() == "Score"


def test_it_filters_and_searches(opened: Any) -> None:
    page = opened(run())
    page.page.locator("#status").select_option("regressed")
    assert page.column("case") == ["q2"]
    page.page.locator("#status").select_option("undecided")
    assert page.column("case") == ["q10"]
    page.page.locator("#status").select_option("")
    page.page.locator("#session").select_option("desk")
    assert page.column("case") == ["hours"]
    page.page.locator("#session").select_option("")
    page.page.locator("#metric").select_option("context awareness")
    assert page.shown() == "1 to 5 of 5, 6 in all"
    page.search("NEVER close")
    assert page.column("case") == ["q2"]
    page.search("nothing is like this")
    assert page.shown() == "No case is like that, 6 in all."


def test_it_opens_a_case(opened: Any) -> None:
    page = opened(run())
    button = page.page.get_by_role("button", name="q2")
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    told = page.page.locator("tr.detail").inner_text()
    for text in ("What of q2?", "We never\nclose.", "We close at 5.", "Open 9 to 5.", "0.70, bar 0.80", "0.90: q2 is as good",
                 "gpt, prompt 1, temperature 0, 100 tokens, replayed", "cassettes/test_it/q2.yaml", "tests/test_it.py::"):  # fmt: skip
        assert text in told
    button.click()
    assert page.page.locator("tr.detail").count() == 0
    page.page.get_by_role("button", name="hours").click()
    told = page.page.locator("tr.detail").inner_text()
    assert "2. blue" in told
    assert "✗ not relevant: The sky is blue. (no hours)" in told
    page.page.get_by_role("button", name="q10").press("Enter")  # with the keyboard alone
    assert "0.90  one says yes" in page.page.locator("tr.detail").first.inner_text()  # q10 stands above hours
    assert page.page.locator("tr.detail").count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_it_fits_the_window_in_both_schemes(opened: Any, scheme: str, width: int) -> None:
    page = opened(run(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    for button in page.page.locator("tr.case button").all():
        button.click()
    assert page.page.evaluate("document.documentElement.scrollWidth") == width
    background = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 23, 26)") == (scheme == "dark")
    theme = page.page.locator("#theme")
    assert theme.inner_text() == {"light": "Dark", "dark": "Light"}[scheme]
    theme.click()
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") != background


def test_hostile_text_is_seen_as_text_and_runs_nothing(opened: Any) -> None:
    told = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    fields: dict[str, Any] = dict.fromkeys(
        ("reason", "query", "assistant", "context", "judge", "cassette", "session_id", "node_id"), told
    )
    page = opened(report(wordy(told, 0.1, **fields), old=[wordy(told, 0.9, **fields)], notes=[told]))
    page.page.locator("tr.case button").click()
    assert page.page.locator("tr.detail").inner_text().count(told) == 8  # of before, the reason
    assert page.page.locator("img").count() == 0


def test_without_javascript_the_sessions_are_there(browser: Any, tmp_path: Path) -> None:
    window = browser.new_context(java_script_enabled=False)
    file = tmp_path / "run.html"
    file.write_text(html_report(run()), encoding="utf-8")
    page = window.new_page()
    page.goto(file.as_uri())
    assert page.locator("article.session").count() == 2
    assert page.locator("#cases").is_hidden()
    window.close()


def test_ten_thousand_cases_are_no_more_in_the_page_than_a_hundred(opened: Any) -> None:
    one = wordy("q", 0.9, context="A context that many cases share. " * 50)
    cases = [replace(one, qa_id=f"q{at}", session_id=f"s{at % 100}", score=at % 101 / 100) for at in range(10_000)]
    page = opened(report(*cases))
    assert page.shown() == "1 to 100 of 10,000"
    assert page.page.locator("tr.case").count() == 100
    page.page.get_by_role("button", name="Score").click()
    assert page.column("score")[:2] == ["0.00", "0.00"]
    page.page.get_by_role("button", name="Next").click()
    assert page.shown() == "101 to 200 of 10,000"
    page.search("q9999")
    assert page.column("case") == ["q9999"]
    page.page.locator("tr.case button").click()
    assert "A context that many cases share." in page.page.locator("tr.detail").inner_text()
