"""The section at the end of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, get_args

from pytest_ctxeval._core.baseline import Change, Comparison, SessionChange
from pytest_ctxeval._core.gate import GateCheck, Status
from pytest_ctxeval._core.numbers import places_of
from pytest_ctxeval._core.summary import SessionSummary, Summary, lowest
from pytest_ctxeval._core.text import columns, one_line
from pytest_ctxeval._core.verdict import Calls, CaseResult, spread_of
from pytest_ctxeval._report.costs import calls_text, judging_text
from pytest_ctxeval._report.failure import spread_text
from pytest_ctxeval._report.report import Report

_ROWS: Final = 8  # of sessions
_CASES: Final = 3  # of lowest, of unscored cases
_CHECKS: Final = 2  # of gates of one session
_LONE: Final = 4  # gates that belong to no row
_NOTES: Final = 3  # of weights that were set aside
_ID: Final = 160  # characters of a test's id


_Key = tuple[str, str, str | None]  # of a row: session, metric, version


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
        found += _expected(report, width) if verbosity == 0 else []
        found += _unscored(results, width)
        found += _undecided(report.summary, width, named=_named(report.summary) if verbosity == 0 else [])
    found += _reruns(results)
    found += _lone_gates([check for check in report.checks if check.session is None])
    found += [Line(f"{'note':<10}{one_line(note)}", {"yellow": True}) for note in [*_notes(report)]]
    found += _unused(report)
    found += _calls(report)
    return found


def _table(report: Report) -> Iterator[Line]:
    sessions = report.summary.sessions
    if not sessions:
        return
    checks = _by_row(report.checks)
    shown = _shown(sessions, checks)
    changes = {_key(each): each for each in report.comparison.sessions} if report.comparison else {}
    interval = [f"{report.level:.0%} interval"] if report.level else []
    head = ["session", "metric", "n", "mean", *interval, *(["change"] if report.comparison else []), "gate"]
    rows = [
        [
            *_cells(row, interval=report.level is not None),
            *([change_text(changes[_key(row)])] if report.comparison else []),
            _gates(checks[_key(row)]),
        ]
        for row in shown
    ]
    widths = [max(columns(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for row, summary in zip([head, *rows], [None, *shown], strict=True):
        cells = [
            " " * (wide - columns(cell)) + cell if at in (2, 3) else cell + " " * (wide - columns(cell))
            for at, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ]
        failed = summary is not None and _has_failed(checks[_key(summary)])
        yield Line("  ".join(cells).rstrip(), {"red": True} if failed else {"bold": True} if summary is None else {})
    keys = set(map(_key, shown))
    left = [row for row in sessions if _key(row) not in keys]
    if left:
        means = [row.mean for row in left if row.mean is not None]
        n_failed = sum(_has_failed(checks[_key(row)]) for row in left)
        told = f", {n_failed} FAILED" if n_failed else ""
        span = f", means {min(means):.2f} to {max(means):.2f}" if means else ""
        yield Line(f"... and {len(left)} more{told}{span}", {"red": True} if n_failed else {})


def _by_row(checks: Iterable[GateCheck]) -> Mapping[_Key, list[GateCheck]]:
    found = defaultdict[_Key, list[GateCheck]](list)
    for check in checks:
        if check.session is not None:
            found[_key(check.session)].append(check)
    return found


def _has_failed(checks: Iterable[GateCheck]) -> bool:
    return any(check.status == "failed" for check in checks)


def _shown(sessions: Sequence[SessionSummary], checks: Mapping[_Key, list[GateCheck]]) -> list[SessionSummary]:
    """All rows where they are few, else those that need looking at: failed, without a score, low."""
    if len(sessions) <= _ROWS:
        return list(sessions)

    def urgency(row: SessionSummary) -> tuple[bool, float]:
        return (not _has_failed(checks[_key(row)]), -1.0 if row.mean is None else row.mean)

    return sorted(sessions, key=urgency)[: _ROWS - 1]


def _key(row: SessionSummary | SessionChange) -> _Key:
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
    digits = places_of(row.difference)
    return "  ".join((f"{row.difference:+.{digits}f}", f"{row.low:+.{digits}f} ... {row.high:+.{digits}f}"))


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
        start = f"{'regressed':<10}{change.text}  {one_line(change.result.node_id, _ID)}"
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


def _gates(checks: Sequence[GateCheck]) -> str:
    """What came of the gates of one session: of many, those that failed first."""
    first = sorted(checks, key=lambda check: check.status != "failed")
    shown = checks if len(checks) <= _CHECKS else first[:_CHECKS]
    more = [more_gates(first[_CHECKS:])] if len(checks) > _CHECKS else []
    return ", ".join([*map(_gate, shown), *more])


def _lone_gates(checks: Sequence[GateCheck]) -> Iterator[Line]:
    """What came of gates that belong to no row: of many, those that failed first."""
    first = sorted(checks, key=lambda check: check.status != "failed")
    for check in checks if len(checks) <= _LONE else first[: _LONE - 1]:
        color = {"red": True} if check.status == "failed" else {}
        yield Line(f"{'gate':<10}{one_line(check.gate.text, _ID)}  {_gate(check)}", color)
    if len(checks) > _LONE:
        left = first[_LONE - 1 :]
        yield Line(f"{'':<10}{more_gates(left)}", {"red": True} if _has_failed(left) else {})


def more_gates(checks: Sequence[GateCheck]) -> str:
    """Count gates, as "and 5 more gates: 2 FAILED, 3 passed"."""
    statuses = Counter(check.status for check in checks)
    names: dict[Status, str] = {"failed": "FAILED", "passed": "passed", "not checked": "not checked"}
    told = ", ".join(f"{statuses[status]} {name}" for status, name in names.items() if statuses[status])
    return f"and {len(checks)} more {'gate' if len(checks) == 1 else 'gates'}: {told}"


def _worst(report: Report, width: int) -> Iterator[Line]:
    """The lowest of those below their bar, or else the lowest of all; but for those that are told to have regressed."""
    regressed = [id(change.new) for change in report.comparison.having("regressed")] if report.comparison else []
    left = [result for result in _named(report.summary) if id(result) not in regressed[:_CASES]]
    yield from (_case("lowest", result, width) for result in left)
    told = {*regressed, *map(id, left)}
    more = sum(
        result.score is not None and result.failed and id(result) not in told for result in report.summary.results
    )
    if more:
        yield Line(f"{'':<10}and {more} more below {'its' if more == 1 else 'their'} bar", {"yellow": True})


def _named(summary: Summary) -> list[CaseResult]:
    worst = lowest(summary, len(summary.results))
    return [result for result in worst if result.failed][:_CASES] or [each for each in worst if not each.expected][:1]


def _case(label: str, result: CaseResult, width: int) -> Line:
    score = " -  " if result.score is None else f"{result.score:.2f}"
    start = f"{label:<10}{score}  {one_line(result.node_id, _ID)}"
    spread = spread_of(result.samples)
    samples = f"{spread_text(spread, result.min)}, {spread.n} samples: " if spread else ""
    told = one_line(result.unscored or f"{samples}{result.reason}")
    room = max(width - len(start) - 3, 30)
    return Line(f"{start}  {one_line(told, room)}".rstrip(), {"yellow": True} if result.failed else {})


def _expected(report: Report, width: int) -> Iterator[Line]:
    """The cases that did not pass, as their tests expected."""
    found = [result for result in report.summary.results if result.expected]
    yield from (_case("expected", result, width) for result in found[:_CASES])
    if len(found) > _CASES:
        yield Line(f"{'':<10}and {len(found) - _CASES} more that did not pass, as their tests expected")


def _unscored(results: Sequence[CaseResult], width: int) -> Iterator[Line]:
    missing = [result for result in results if result.score is None and result.failed]
    for result in missing[:_CASES]:
        start = f"{'unscored':<10}{one_line(result.node_id, _ID)}"
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
        yield Line(f"{'reruns':<10}{sum(by_test.values())}: {one_line(next(iter(by_test)), _ID)}")


def _notes(report: Report) -> Iterator[str]:
    """What is to be known of the run beside its results; of weights that were set aside the first."""
    weights = [f"{one_line(row.session_id, 40)}: {row.note}" for row in report.summary.sessions if row.note]
    yield from weights[:_NOTES]
    if len(weights) > _NOTES:
        yield f"and {len(weights) - _NOTES} more sessions whose weights were set aside"
    yield from report.notes


def _unused(report: Report) -> Iterator[Line]:
    color = "red" if report.unused_fails else "yellow"
    for label, text in zip(["unused", *[""] * len(report.unused)], report.unused, strict=False):
        yield Line(f"{label:<10}{text}", {color: True})


def _calls(report: Report) -> Iterator[Line]:
    if report.summary.results:
        yield Line(f"{'judge':<10}{judging_text(report)}")
    if report.run.assistant != Calls():
        yield Line(f"{'assistant':<10}{calls_text(report.run.assistant)}")
