"""The section at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, get_args

from pytest_ctxeval._core.baseline import Change, Comparison, SessionChange
from pytest_ctxeval._core.gate import GateCheck
from pytest_ctxeval._core.summary import SessionSummary, Summary, lowest
from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import Calls, CaseResult, spread_of
from pytest_ctxeval._report.costs import calls_text, judging_text
from pytest_ctxeval._report.failure import spread_text
from pytest_ctxeval._report.report import Report

_ROWS: Final = 8  # of sessions
_CASES: Final = 3  # of lowest, of unscored cases


@dataclass(frozen=True, slots=True)
class Line:
    """A line and how it is to be marked, in the words of pytest's terminal writer."""

    text: str
    markup: dict[str, bool] = field(default_factory=dict)


def lines(report: Report, *, width: int, verbosity: int) -> list[Line]:
    """Give the lines below the section's title: at most about twenty, unless `verbosity` asks for every case."""
    found = [*_differs(report), *_table(report), *_changes(report, width, verbosity)]
    results = report.summary.results
    if verbosity > 0:
        found += [_case("case", result, width) for result in results]
    else:
        found += _worst(report, width) if verbosity == 0 else []
        found += _unscored(results, width)
        found += _undecided(report.summary, width, named=_named(report.summary) if verbosity == 0 else [])
    found += _reruns(results)
    found += [_lone_gate(check) for check in report.checks if check.session is None]
    found += [
        Line(f"{'note':<10}{one_line(note)}", {"yellow": True}) for note in [*_weights(report.summary), *report.notes]
    ]
    found += _unused(report)
    found += _calls(report)
    return found


def _table(report: Report) -> Iterator[Line]:
    sessions = report.summary.sessions
    if not sessions:
        return
    checks = {row: [check for check in report.checks if check.session == row] for row in sessions}
    shown = _shown(sessions, checks)
    changes = {_key(each): each for each in report.comparison.sessions} if report.comparison else {}
    interval = [f"{report.level:.0%} interval"] if report.level else []
    head = ["session", "metric", "n", "mean", *interval, *(["change"] if report.comparison else []), "gate"]
    rows = [
        [
            *_cells(row, interval=report.level is not None),
            *([change_text(changes[_key(row)])] if report.comparison else []),
            ", ".join(_gate(check) for check in checks[row]),
        ]
        for row in shown
    ]
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for row, summary in zip([head, *rows], [None, *shown], strict=True):
        cells = [
            cell.rjust(wide) if at in (2, 3) else cell.ljust(wide)
            for at, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ]
        failed = summary is not None and any(check.status == "failed" for check in checks[summary])
        yield Line("  ".join(cells).rstrip(), {"red": True} if failed else {"bold": True} if summary is None else {})
    left = [row for row in sessions if row not in shown]
    means = [row.mean for row in left if row.mean is not None]
    if left:
        span = f", means {min(means):.2f} to {max(means):.2f}" if means else ""
        yield Line(f"... and {len(left)} more{span}")


def _shown(sessions: Sequence[SessionSummary], checks: dict[SessionSummary, list[GateCheck]]) -> list[SessionSummary]:
    """All rows where they are few, else those that need looking at: failed, without a score, low."""
    if len(sessions) <= _ROWS:
        return list(sessions)

    def urgency(row: SessionSummary) -> tuple[bool, float]:
        failed = any(check.status == "failed" for check in checks[row])
        return (not failed, -1.0 if row.mean is None else row.mean)

    return sorted(sessions, key=urgency)[: _ROWS - 1]


def _key(row: SessionSummary | SessionChange) -> tuple[str, str, str | None]:
    return row.session_id, row.metric, row.prompt_version


def _cells(row: SessionSummary, *, interval: bool) -> list[str]:
    n = str(row.n) if not row.n_unscored else f"{row.n - row.n_unscored}/{row.n}"
    mean = "no score" if row.mean is None else f"{row.mean:.2f}"
    between = "" if row.low is None or row.high is None else f"{row.low:.2f} ... {row.high:.2f}"
    return [one_line(row.session_id, 40), row.measure, n, mean, *([between] if interval else [])]


def change_text(row: SessionChange) -> str:
    """Say how far a session's mean has moved against the baseline, with the interval of the paired differences."""
    if row.difference is None or row.low is None or row.high is None:
        return "new" if not any(case.old for case in row.cases) else "no pair"
    if row.n_pairs == len(row.having("same")):
        return "same"
    return f"{row.difference:+.2f}  {row.low:+.2f} ... {row.high:+.2f}"


def _differs(report: Report) -> Iterator[Line]:
    """What makes the baseline hard to compare: before any number."""
    told = report.comparison.differs if report.comparison else ()
    for label, text in zip(["baseline", *[""] * len(told)], told, strict=False):
        yield Line(f"{label:<10}{text}", {"yellow": True})


def _changes(report: Report, width: int, verbosity: int) -> Iterator[Line]:
    """How many cases have changed, and which of them for the worse."""
    if report.comparison is None:
        return
    regressed, missing = report.comparison.having("regressed"), report.comparison.having("missing")
    color = {"red": True} if regressed or missing else {}
    yield Line(f"{'baseline':<10}{one_line(report.baseline, 60)}: {changes_text(report.comparison)}", color)
    named = len(regressed) if verbosity > 0 else _CASES if verbosity == 0 else 0
    for change in regressed[:named]:
        start = f"{'regressed':<10}{change.text}  {one_line(change.result.node_id)}"
        told = one_line(change.result.unscored or change.result.reason, max(width - len(start) - 3, 30))
        yield Line(f"{start}  {told}".rstrip(), {"red": True})
    if len(regressed) > named > 0:
        yield Line(f"{'':<10}and {len(regressed) - named} more regressed", {"red": True})
    if missing and verbosity >= 0:
        names = ", ".join(one_line(f"{each.result.session_id}-{each.result.qa_id}", 60) for each in missing[:_CASES])
        more = f" and {len(missing) - _CASES} more" if len(missing) > _CASES else ""
        yield Line(f"{'missing':<10}{names}{more}", {"red": True})


def changes_text(comparison: Comparison) -> str:
    """Say how many cases have changed, and how: the worst first."""
    counts = [(len(comparison.having(change)), change) for change in get_args(Change)]
    return ", ".join(f"{n:,} {change}" for n, change in counts if n) or "no case"


def _gate(check: GateCheck) -> str:
    status = "FAILED" if check.status == "failed" else check.status
    return f"{status}  {check.text}"


def _lone_gate(check: GateCheck) -> Line:
    return Line(
        f"{'gate':<10}{one_line(check.gate.text)}  {_gate(check)}", {"red": True} if check.status == "failed" else {}
    )


def _worst(report: Report, width: int) -> Iterator[Line]:
    """The lowest of those below their bar, or else the lowest of all; but for those that are told to have regressed."""
    summary = report.summary
    below = [result for result in lowest(summary, len(summary.results)) if not result.passed]
    told = report.comparison.having("regressed")[:_CASES] if report.comparison else ()
    left = [result for result in _named(summary) if not any(change.new == result for change in told)]
    yield from (_case("lowest", result, width) for result in left)
    more = len(below) - len(told) - len(left)
    if below and more > 0:
        yield Line(f"{'':<10}and {more} more below their bar")


def _named(summary: Summary) -> list[CaseResult]:
    worst = lowest(summary, len(summary.results))
    return [result for result in worst if not result.passed][:_CASES] or list(worst[:1])


def _case(label: str, result: CaseResult, width: int) -> Line:
    score = " -  " if result.score is None else f"{result.score:.2f}"
    start = f"{label:<10}{score}  {one_line(result.node_id)}"
    spread = spread_of(result.samples)
    samples = f"{spread_text(spread, result.min)}, {spread.n} samples: " if spread else ""
    told = one_line(result.unscored or f"{samples}{result.reason}")
    room = max(width - len(start) - 3, 30)
    return Line(f"{start}  {one_line(told, room)}".rstrip(), {} if result.passed else {"yellow": True})


def _unscored(results: Sequence[CaseResult], width: int) -> Iterator[Line]:
    missing = [result for result in results if result.score is None]
    for result in missing[:_CASES]:
        start = f"{'unscored':<10}{one_line(result.node_id)}"
        yield Line(f"{start}  {one_line(result.unscored or '', max(width - len(start) - 3, 30))}", {"red": True})
    if len(missing) > _CASES:
        yield Line(f"{'':<10}and {len(missing) - _CASES} more, {len(missing)} in all", {"red": True})


def _undecided(summary: Summary, width: int, *, named: Sequence[CaseResult]) -> Iterator[Line]:
    """The cases that passed, and whose samples lie on both sides of their bar: another run might say otherwise."""
    both = [result for result in summary.results if result.passed and _is_undecided(result) and result not in named]
    yield from (_case("undecided", result, width) for result in both[:_CASES])
    if len(both) > _CASES:
        yield Line(f"{'':<10}and {len(both) - _CASES} more within the spread of their bar")


def _is_undecided(result: CaseResult) -> bool:
    spread = spread_of(result.samples)
    return spread is not None and result.min is not None and spread.holds(result.min)


def _reruns(results: Sequence[CaseResult]) -> Iterator[Line]:
    by_test = {result.node_id: result.reruns for result in results if result.reruns}
    if by_test:
        yield Line(f"{'reruns':<10}{sum(by_test.values())}: {one_line(next(iter(by_test)))}")


def _weights(summary: Summary) -> Iterator[str]:
    for row in summary.sessions:
        if row.note:
            yield f"{row.session_id}: {row.note}"


def _unused(report: Report) -> Iterator[Line]:
    color = "red" if report.unused_fails else "yellow"
    for label, text in zip(["unused", *[""] * len(report.unused)], report.unused, strict=False):
        yield Line(f"{label:<10}{text}", {color: True})


def _calls(report: Report) -> Iterator[Line]:
    if report.summary.results:
        yield Line(f"{'judge':<10}{judging_text(report)}")
    if report.run.assistant != Calls():
        yield Line(f"{'assistant':<10}{calls_text(report.run.assistant)}")
