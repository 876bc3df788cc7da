"""A run as Markdown, for the step summary of a CI and for comments on pull requests.

A comment on GitHub holds 65,536 characters: all that the limits allow and the few lines around it stay below that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pytest_ctxeval._core.baseline import SessionChange
from pytest_ctxeval._core.gate import GateCheck
from pytest_ctxeval._core.numbers import count
from pytest_ctxeval._core.summary import SessionSummary
from pytest_ctxeval._core.verdict import Calls, CaseResult, spread_of
from pytest_ctxeval._report.costs import calls_text, judging_text
from pytest_ctxeval._report.markdown_cases import folds
from pytest_ctxeval._report.markdown_text import LINE, TEXT, Limit, bullets, code, within, words
from pytest_ctxeval._report.outcome import outcome_of
from pytest_ctxeval._report.report import Report
from pytest_ctxeval._report.terminal import change_text, changes_text, more_gates

_DIFFERS: Final = Limit(10, 5_000)
_ROWS: Final = Limit(30, 18_000)
_FACTS: Final = Limit(15, 8_000)
_NAMED: Final = 5  # cases that are missing
_GATES: Final = 5  # of one session, and of none


def markdown_report(report: Report) -> str:
    """Give a run as Markdown: the verdict, what hampers a comparison, the sessions, then the cases to look at."""
    blocks = [
        f"### Context evaluation {outcome_of(report).text}",
        _differs(report),
        _table(report),
        bullets(_FACTS, list(_facts(report))),
        folds(report),
        *_calls(report),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _differs(report: Report) -> str:
    told = report.comparison.differs if report.comparison else ()
    return (
        f"Hard to compare with {code(report.baseline)}:\n\n{bullets(_DIFFERS, list(map(code, told)))}" if told else ""
    )


def _table(report: Report) -> str:
    failed = {check.session for check in report.checks if check.status == "failed"}
    sessions = sorted(report.summary.sessions, key=lambda row: row not in failed)
    if not sessions:
        return ""
    changes = {_key(row): row for row in report.comparison.sessions} if report.comparison else None
    head = ["session", "metric", "n", "mean"]
    head += [f"{report.level:.0%} interval"] if report.level is not None else []
    head += ["change"] if changes is not None else []
    ruler = ["---", "---", "---:", "---:", *["---"] * (len(head) - 3)]
    shown = within(_ROWS, (_line(_cells(row, report, changes)) for row in sessions))
    more = f"\n\n... and {count(len(sessions) - len(shown), 'more row')}" if len(shown) < len(sessions) else ""
    return "\n".join([_line([*head, "gate"]), _line(ruler), *shown]) + more


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(
    row: SessionSummary, report: Report, changes: Mapping[tuple[str, str, str | None], SessionChange] | None
) -> list[str]:
    cells = [
        code(row.session_id),
        words(row.measure, code),
        str(row.n) if not row.n_unscored else f"{row.n_scored}/{row.n}",
        "no score" if row.mean is None else f"{row.mean:.2f}",
    ]
    if report.level is not None:
        cells.append("" if row.low is None or row.high is None else f"{row.low:.2f} ... {row.high:.2f}")
    if changes is not None:
        cells.append(change_text(changes[_key(row)]).replace("  ", ", "))
    checks = _failed_first(check for check in report.checks if check.session == row)
    more = [more_gates(checks[_GATES:])] if len(checks) > _GATES else []
    return [*cells, ", ".join([*map(_gate, checks[:_GATES]), *more])]


def _key(row: SessionSummary | SessionChange) -> tuple[str, str, str | None]:
    return row.session_id, row.metric, row.prompt_version


def _failed_first(checks: Iterable[GateCheck]) -> list[GateCheck]:
    return sorted(checks, key=lambda check: check.status != "failed")


def _gate(check: GateCheck) -> str:
    return f"{'**failed**' if check.status == 'failed' else check.status} {code(check.text, LINE)}"


def _facts(report: Report) -> Iterator[str]:
    yield from _against_baseline(report)
    lone = _failed_first(check for check in report.checks if check.session is None)
    yield from (f"gate {code(check.gate.text)} {_gate(check)}" for check in lone[:_GATES])
    if len(lone) > _GATES:
        yield more_gates(lone[_GATES:])
    both = sum(result.passed and _is_undecided(result) for result in report.summary.results)
    if both:
        yield f"{count(both, 'case')} passed within the spread of {'its' if both == 1 else 'their'} bar"
    reruns = sum({result.node_id: result.reruns for result in report.summary.results}.values())
    if reruns:
        yield count(reruns, "rerun")
    if report.run.partial:
        yield f"not all tests: {code(report.run.partial, LINE)}"
    for row in report.summary.sessions:
        if row.note:
            yield f"note {code(f'{row.session_id}: {row.note}', LINE)}"
    yield from (f"note {code(note, TEXT)}" for note in report.notes)
    yield from (f"unused {code(text, TEXT)}" for text in report.unused)


def _against_baseline(report: Report) -> Iterator[str]:
    """What has changed, in numbers, the worst first; and which cases are gone."""
    if report.comparison is None:
        return
    yield f"against {code(report.baseline)}: {changes_text(report.comparison)}"
    missing = report.comparison.having("missing")
    if missing:
        named = [code(f"{each.result.session_id}-{each.result.qa_id}") for each in missing[:_NAMED]]
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        yield f"missing {', '.join(named)}{more}"


def _is_undecided(result: CaseResult) -> bool:
    spread = spread_of(result.samples)
    return spread is not None and result.min is not None and spread.holds(result.min)


def _calls(report: Report) -> Iterator[str]:
    if report.summary.results:
        yield f"judge {code(judging_text(report), TEXT)}"
    if report.run.assistant != Calls():
        yield f"assistant {code(calls_text(report.run.assistant))}"
