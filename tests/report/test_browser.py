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
    "--disable-dev-shm-usage",
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
        self.page.evaluate("document.querySelectorAll('tr.case').forEach((row) => { row.dataset.old = 1; })")
        self.page.locator("#search").fill(text)
        self.page.wait_for_function("() => !document.querySelector('tr[data-old]')")

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
    assert page.column("case") == ["q2", "hours", "q10", "q3", "gone", "q1"]
    assert page.column("status") == [
        "✗ below bar, regressed", "✗ below bar, new", "✗ below bar, new, undecided", "✗ unscored, new", "✗ missing",
        "✓ passed, improved",
    ]  # fmt: skip
    assert page.column("change") == ["−0.20", "", "", "", "", "+0.05"]
    assert page.shown() == "1 to 6 of 6"
    assert page.page.locator("article.session").count() == 2
    assert page.page.title() == "Context evaluation failed: 3 of 5 cases below their bar, 1 unscored, 1 gate failed"


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
    statuses = page.page.locator("#status option").all_inner_texts()
    assert statuses == [
        "all", "to look at (5)", "regressed (1)", "below bar (3)", "unscored (1)", "missing (1)", "undecided (1)",
        "improved (1)", "new (3)", "passed (1)",
    ]  # fmt: skip
    page.page.locator("#status").select_option("to look at")
    assert page.shown() == "1 to 5 of 5, 6 in all"
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
    page.page.locator("#metric").select_option("")
    page.search("sky blue")  # in a statement
    assert page.column("case") == ["hours"]
    page.search("nothing is like this")
    assert page.shown() == "No case is like that, 6 in all."


def test_it_opens_a_case(opened: Any) -> None:
    page = opened(run())
    button = page.page.get_by_role("button", name="q2")
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    told = page.page.locator("td.detail").inner_text()
    for text in ("What of q2?", "We never\nclose.", "We close at 5.", "Open 9 to 5.", "0.70 < 0.80", "0.90, for the same reason",
                 "gpt, prompt 1, temperature 0, 100 tokens, replayed", "cassettes/test_it/q2.yaml", "tests/test_it.py::"):  # fmt: skip
        assert text in told
    button.click()
    assert page.page.locator("td.detail").count() == 0
    page.page.get_by_role("button", name="hours").click()
    told = page.page.locator("td.detail").inner_text()
    assert "2. blue" in told
    assert "✗ not relevant: The sky is blue.\nno hours" in told
    page.page.get_by_role("button", name="q10").press("Enter")  # with the keyboard alone
    told = page.page.locator("td.detail").last.inner_text()  # q10 stands below hours
    assert "2, from 0.60 to 0.90\n0.60  one says no\n0.90  one says yes" in told
    assert "within the spread of the bar" in told
    assert page.page.locator("td.detail").count() == 2
    page.page.get_by_role("button", name="gone").click()
    told = page.page.locator("td.detail").last.inner_text()
    assert "assistant before\n" in told
    assert "0.90: gone is as good as that" in told
    assert "score\n" not in told


def test_a_session_leads_to_its_cases(opened: Any) -> None:
    page = opened(run())
    page.page.locator("#status").select_option("missing")
    page.page.get_by_role("link", name="desk").press("Enter")
    assert page.column("case") == ["hours"]
    assert page.page.locator("#session").input_value() == "desk"
    assert page.page.locator("#metric").input_value() == "contextual relevancy"
    assert page.page.locator("#h-cases").evaluate("(each) => each.getBoundingClientRect().top < innerHeight")


def test_digits_are_those_of_the_terminal(opened: Any) -> None:
    scores = [0.125, 0.375, 0.625, 0.875, 0.005, 0.0]
    page = opened(report(*(wordy(f"q{at}", score, min=None) for at, score in enumerate(scores))))
    assert page.column("score") == [f"{score:.2f}" for score in scores]


def test_text_can_be_selected_and_the_keyboard_opens_all_the_same(opened: Any) -> None:
    page = opened(run())
    cell = page.page.locator("td.c-session").first
    cell.dblclick(position={"x": 20, "y": 15})
    assert page.page.evaluate("getSelection().toString()").strip() == "shop"
    before = page.page.locator("td.detail").count()
    page.page.get_by_role("button", name="q1", exact=True).press("Enter")
    assert page.page.locator("td.detail").count() == before + 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_it_fits_the_window_in_both_schemes(opened: Any, scheme: str, width: int) -> None:
    page = opened(run(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    for button in page.page.locator("tr.case button").all():
        button.click()
    assert page.page.evaluate("document.documentElement.scrollWidth") == width
    row = page.page.locator("tr.case").first.inner_text()
    for text in ("q2", "shop", "context awareness", "0.70", "−0.20", "✗ below bar, regressed"):
        assert text in row  # in columns, or below the name
    background = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 23, 26)") == (scheme == "dark")
    theme = page.page.locator("#theme")
    assert theme.inner_text() == {"light": "Dark", "dark": "Light"}[scheme]
    theme.click()
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") != background


def test_details_span_the_table_when_a_window_is_widened(opened: Any) -> None:
    page = opened(run(), viewport={"width": 400, "height": 800})
    page.page.get_by_role("button", name="q2").click()
    detail = page.page.locator("td.detail")
    assert detail.get_attribute("colspan") == "3"
    page.page.set_viewport_size({"width": 1200, "height": 800})
    page.page.wait_for_function("() => document.querySelector('td.detail').colSpan === 6")


def test_it_prints_in_ink_on_paper(opened: Any) -> None:
    page = opened(run(), color_scheme="dark")
    page.page.locator("#theme").click()
    page.page.locator("#theme").click()
    page.page.emulate_media(media="print")
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 251, 249)"
    assert page.page.locator("#controls").is_hidden()
    assert page.page.locator("article.session").first.is_visible()


def test_many_sessions_are_in_a_fold(opened: Any) -> None:
    page = opened(report(*(wordy("q", 0.9, session_id=f"s{at}") for at in range(25))))
    assert page.page.locator("article.session:visible").count() == 20
    page.page.get_by_text("5 more sessions").click()
    assert page.page.locator("article.session:visible").count() == 25


def test_what_is_put_into_the_page_loads_and_runs_nothing(opened: Any) -> None:
    page = opened(run())
    page.page.evaluate("""() => {
        document.body.insertAdjacentHTML("beforeend", "<img src='http://127.0.0.1:9/x' onerror='window.hit = 1'>");
        document.body.append(Object.assign(document.createElement("script"), {textContent: "window.hit = 1"}));
    }""")
    page.page.wait_for_timeout(200)
    assert page.page.evaluate("window.hit === undefined")
    assert len(page.complaints) >= 2
    assert all("Content Security Policy" in each for each in page.complaints)
    page.complaints.clear()
    del page.requests[1:]  # told of before it is blocked


def test_hostile_text_is_seen_as_text_and_runs_nothing(opened: Any) -> None:
    told = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    fields: dict[str, Any] = dict.fromkeys(
        ("reason", "query", "assistant", "context", "judge", "cassette", "session_id", "node_id"), told
    )
    page = opened(report(wordy(told, 0.1, **fields), old=[wordy(told, 0.9, **fields)], notes=[told]))
    page.page.locator("tr.case button").click()
    assert page.page.locator("td.detail").inner_text().count(told) == 8
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
    assert "A context that many cases share." in page.page.locator("td.detail").inner_text()
