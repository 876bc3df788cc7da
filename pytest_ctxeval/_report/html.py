"""A run as one HTML file: nothing is loaded from anywhere, and the same run gives the same bytes."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

import jinja2
from markupsafe import Markup

from pytest_ctxeval._core.numbers import count
from pytest_ctxeval._core.text import harmless
from pytest_ctxeval._core.verdict import Calls
from pytest_ctxeval._report.costs import calls_text, judging_text
from pytest_ctxeval._report.html_cases import case_data
from pytest_ctxeval._report.html_scores import distributions
from pytest_ctxeval._report.html_sessions import check_rows, gone_sessions, session_rows
from pytest_ctxeval._report.outcome import outcome_of
from pytest_ctxeval._report.report import Report
from pytest_ctxeval._report.terminal import changes_text

SHOWN: Final = 20  # sessions; the others are in a fold


def html_report(report: Report) -> str:
    """Give the text of the page."""
    folder = files("pytest_ctxeval._report") / "templates"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    page = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    outcome, rows = outcome_of(report), session_rows(report)
    return page.from_string(
        (folder / "report.html.j2").read_text(encoding="utf-8")
    ).render(
        style=Markup(style),  # noqa: S704  # a file of ours
        script=Markup(script),  # noqa: S704  # likewise
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(_json(case_data(report))),  # noqa: S704  # nothing in it ends the element that it stands in
        status=outcome.status,
        verdict=outcome.text[0].upper() + outcome.text[1:],
        differs=[harmless(each) for each in (report.comparison.differs if report.comparison else ())],
        counts=list(_counts(report)),
        whole=check_rows(check for check in report.checks if check.session is None),
        sessions=rows[:SHOWN],
        more=rows[SHOWN:],
        kinds={check.gate.kind for check in report.checks if check.session} & {"mean", "low"},
        gone=gone_sessions(report),
        level=report.level,
        distributions=distributions(report),
        compared=report.comparison is not None,
        footer=[harmless(each) for each in _footer(report)],
        unused=[harmless(each) for each in report.unused],
    )


def _hash(text: str) -> str:
    return base64.b64encode(sha256(text.encode()).digest()).decode()


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _counts(report: Report) -> Iterator[str]:
    """What the verdict leaves out: every kind of verdict and gate, what has changed, what was not run."""
    results = report.summary.results
    below = sum(result.score is not None and result.failed for result in results)
    unscored = sum(result.score is None and result.failed for result in results)
    passed = sum(result.passed for result in results)
    kinds = {"passed": passed, "below their bar": below, "unscored": unscored}
    kinds["expected to fail"] = len(results) - passed - below - unscored
    yield f"{count(len(results), 'verdict')}{_each(kinds)}"
    if report.checks:
        statuses = Counter(check.status for check in report.checks)
        told = {status: statuses[status] for status in ("failed", "passed", "not checked")}
        yield f"{count(len(report.checks), 'gate check')}{_each(told)}"
    if report.comparison is not None:
        yield f"against {harmless(report.baseline) or 'the baseline'}: {changes_text(report.comparison)}"
    if report.run.partial:
        yield f"not all tests: {harmless(report.run.partial)}"


def _each(counts: dict[str, int]) -> str:
    told = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)
    return f": {told}" if told else ""


def _footer(report: Report) -> Iterator[str]:
    yield f"judge {judging_text(report)}"
    if report.run.assistant != Calls():
        yield f"assistant {calls_text(report.run.assistant)}"
    reruns = sum({result.node_id: result.reruns for result in report.summary.results}.values())
    if reruns:
        yield count(reruns, "rerun")
    yield from (f"note: {each}" for each in report.notes)
