"""A run as one HTML file: nothing is loaded from anywhere, and the same run gives the same bytes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final, NamedTuple

import jinja2
from markupsafe import Markup

from pytest_ctxeval._core.baseline import CaseChange, SessionChange
from pytest_ctxeval._core.summary import SessionSummary
from pytest_ctxeval._core.text import harmless
from pytest_ctxeval._core.verdict import CaseResult, reaches, spread_of
from pytest_ctxeval._report.costs import judging_text
from pytest_ctxeval._report.report import Report
from pytest_ctxeval._report.terminal import changes_text

BINS: Final = 10
_KEPT: Final = (
    "node_id", "session_id", "qa_id", "metric", "score", "reason", "unscored", "min", "query", "assistant",
    "retrieval_context", "ground_truth_assistant", "judge", "prompt_version", "temperature", "source", "tokens",
    "cassette", "reruns",
)  # fmt: skip


class Bar(NamedTuple):
    """One bin of a distribution: from `low`, how many reached their bar, how many did not, how many of the baseline."""

    low: float
    passed: int
    below: int
    old: int


def html_report(report: Report) -> str:
    """Give the text of the page."""
    folder = files("pytest_ctxeval._report") / "templates"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    page = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    return page.from_string((folder / "report.html.j2").read_text(encoding="utf-8")).render(
        style=Markup(style),  # noqa: S704  # a file of ours
        script=Markup(script),  # noqa: S704  # likewise
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(_json(_data(report))),  # noqa: S704  # nothing in it ends the element that it stands in
        verdict=_verdict(report),
        failed=report.failed,
        counts=_counts(report),
        differs=[harmless(each) for each in (report.comparison.differs if report.comparison else ())],
        baseline=_baseline(report),
        sessions=list(_sessions(report)),
        lone=[check for check in report.checks if check.session is None],
        level=report.level,
        distributions=list(_distributions(report)),
        costs=judging_text(report),
        notes=[harmless(each) for each in report.notes],
        unused=[harmless(each) for each in report.unused],
        harmless=harmless,
    )


def _hash(text: str) -> str:
    return base64.b64encode(sha256(text.encode()).digest()).decode()


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _verdict(report: Report) -> str:
    if report.run.broken_off:
        return "Broken off: not all was judged"
    failed = sum(check.status == "failed" for check in report.checks)
    checked = sum(check.status != "not checked" for check in report.checks)
    if failed:
        return f"Failed: {failed} of {_checks(checked)}"
    return f"Passed: {_checks(checked)}" if checked else "No gate was checked"


def _checks(n: int) -> str:
    return "1 gate check" if n == 1 else f"{n} gate checks"


def _counts(report: Report) -> str:
    results = report.summary.results
    below = sum(result.score is not None and not result.passed for result in results)
    unscored = sum(result.score is None for result in results)
    told = [f"{len(results):,} {'verdict' if len(results) == 1 else 'verdicts'}"]
    told += [f"{below:,} below {'its' if below == 1 else 'their'} bar"] if below else []
    told += [f"{unscored:,} unscored"] if unscored else []
    return ", ".join(told)


def _baseline(report: Report) -> str:
    if report.comparison is None:
        return ""
    return f"against {harmless(report.baseline) or 'the baseline'}: {changes_text(report.comparison)}"


def _sessions(report: Report) -> Iterator[dict[str, Any]]:
    changes = _by_row(report)
    for row in report.summary.sessions:
        checks = [check for check in report.checks if check.session == row]
        change = changes.get((row.session_id, row.metric, row.prompt_version))
        yield {
            "session": harmless(row.session_id),
            "metric": harmless(row.measure),
            "n": f"{row.n:,}" if not row.n_unscored else f"{row.n_scored:,} of {row.n:,}",
            "mean": row.mean,
            "low": row.low,
            "high": row.high,
            "note": harmless(row.note or ""),
            "bars": sorted({check.gate.bar for check in checks if check.gate.kind in ("mean", "low")}),
            "checks": checks,
            "failed": any(check.status == "failed" for check in checks),
            "change": _change(change) if change else "",
            "worse": change is not None and change.high is not None and change.high < 0,
            "label": _label(row),
        }


def _by_row(report: Report) -> Mapping[tuple[str, str, str | None], SessionChange]:
    sessions = report.comparison.sessions if report.comparison else ()
    return {(each.session_id, each.metric, each.prompt_version): each for each in sessions}


def _change(row: SessionChange) -> str:
    if row.difference is None or row.low is None or row.high is None:
        return "nothing to compare with"
    if row.n_pairs == len(row.having("same")):
        return "as before"
    return f"{row.difference:+.2f} ({row.low:+.2f} to {row.high:+.2f})".replace("-", "\u2212")


def _label(row: SessionSummary) -> str:
    if row.mean is None:
        return "no score"
    between = "" if row.low is None or row.high is None else f", interval {row.low:.2f} to {row.high:.2f}"
    return f"mean {row.mean:.2f}{between}"


def _distributions(report: Report) -> Iterator[dict[str, Any]]:
    """How the scores of each metric lie, in ten steps; the last one holds 1."""
    changes = [case for row in (report.comparison.sessions if report.comparison else ()) for case in row.cases]
    for metric in dict.fromkeys(result.metric for result in report.summary.results):
        bins = [[0, 0, 0] for _ in range(BINS)]
        for result in report.summary.results:
            if result.metric == metric and result.score is not None:
                bins[_bin(result.score)][0 if result.passed else 1] += 1
        for case in changes:
            if case.old is not None and case.old.metric == metric and case.old.score is not None:
                bins[_bin(case.old.score)][2] += 1
        bars = [Bar(at / BINS, *counts) for at, counts in enumerate(bins)]
        most = max(max(bar.passed + bar.below, bar.old) for bar in bars)
        if most:
            yield {"metric": harmless(metric.replace("_", " ")), "bars": bars, "most": most}


def _bin(score: float) -> int:
    return min(int(score * BINS + 1e-9), BINS - 1)


def _data(report: Report) -> dict[str, Any]:
    """What the table of cases is made of. Contexts stand there once: many cases share one."""
    contexts: dict[str, int] = {}
    cases = [_case(result, change, contexts) for result, change in _cases(report)]
    return {"cases": cases, "contexts": list(contexts)}


def _cases(report: Report) -> Iterator[tuple[CaseResult, CaseChange | None]]:
    """Every result of the run, and those of the baseline that are gone, each with what became of it."""
    if report.comparison is None:
        yield from ((result, None) for result in report.summary.results)
        return
    changes = [case for row in report.comparison.sessions for case in row.cases]
    yield from ((case.result, case) for case in changes)


def _case(result: CaseResult, change: CaseChange | None, contexts: dict[str, int]) -> dict[str, Any]:
    is_gone = change is not None and change.new is None
    case = {name: _clean(getattr(result, name)) for name in _KEPT}
    case["context"] = contexts.setdefault(harmless(result.context), len(contexts))
    case["samples"] = [[each.score, harmless(each.reason)] for each in result.samples]
    spread = spread_of(result.samples)
    case["undecided"] = bool(spread and result.min is not None and spread.holds(result.min))
    case["statements"] = [
        [each.chunk, harmless(each.statement), each.relevant, harmless(each.reason or "")] for each in result.statements
    ]
    case["status"] = change.change if change is not None and is_gone else _status(result)
    if is_gone:
        case["score"] = None  # it has none today
    if change is not None:
        case["change"] = change.change
        case["difference"] = change.difference
        if change.old is not None:
            old = change.old
            case["old"] = {name: _clean(getattr(old, name)) for name in ("score", "assistant", "reason", "unscored")}
    return {
        name: value
        for name, value in case.items()
        if value is not None and value is not False and value not in ("", [])
    }


def _status(result: CaseResult) -> str:
    if result.score is None:
        return "unscored"
    if result.min is None:
        return "no bar"
    return "passed" if reaches(result.score, result.min) else "below bar"


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return harmless(value)
    return [_clean(each) for each in value] if isinstance(value, Sequence) else value
