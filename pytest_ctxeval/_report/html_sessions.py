"""The sessions of a run, as its page shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_ctxeval._core.baseline import SessionChange
from pytest_ctxeval._core.gate import GateCheck, Status
from pytest_ctxeval._core.numbers import count, places_of
from pytest_ctxeval._core.summary import SessionSummary
from pytest_ctxeval._core.text import harmless
from pytest_ctxeval._report.report import Report


class CheckRow(NamedTuple):
    """What came of a gate."""

    status: Status
    gate: str
    text: str


class BarMark(NamedTuple):
    """Where the bar of a gate stands: for the mean, or for the low end of the interval."""

    at: float
    is_low: bool
    gate: str


class SessionRow(NamedTuple):
    """A session by a metric. `measure` names the metric with its version, `metric` as the cases do."""

    session: str
    measure: str
    metric: str
    n: str
    mean: float | None
    low: float | None
    high: float | None
    label: str
    change: str
    is_worse: bool
    bars: Sequence[BarMark]
    checks: Sequence[CheckRow]
    note: str

    @property
    def failed(self) -> bool:
        """Whether a gate has failed."""
        return any(check.status == "failed" for check in self.checks)


def session_rows(report: Report) -> list[SessionRow]:
    """Give the sessions in the order of the run, but first those with a failed gate."""
    checks = defaultdict[tuple[str, str, str | None], list[GateCheck]](list)
    for check in report.checks:
        if check.session is not None:
            checks[_key(check.session)].append(check)
    changes = {_key(row): row for row in report.comparison.sessions} if report.comparison else {}
    rows = [_row(row, checks[_key(row)], changes.get(_key(row))) for row in report.summary.sessions]
    return sorted(rows, key=lambda row: not row.failed)


def gone_sessions(report: Report) -> list[str]:
    """Name the sessions of the baseline that the run has not, and what became of their cases."""
    here = {_key(row) for row in report.summary.sessions}
    gone = [row for row in (report.comparison.sessions if report.comparison else ()) if _key(row) not in here]
    return [harmless(f"{row.session_id}, {row.metric.replace('_', ' ')}: {_became(row)}") for row in gone]


def check_rows(checks: Iterable[GateCheck]) -> list[CheckRow]:
    """Give what came of gates, first of those that failed."""
    rows = [CheckRow(check.status, harmless(check.gate.text), harmless(check.text)) for check in checks]
    return sorted(rows, key=lambda row: row.status != "failed")


def _key(row: SessionSummary | SessionChange) -> tuple[str, str, str | None]:
    return row.session_id, row.metric, row.prompt_version


def _row(row: SessionSummary, checks: Sequence[GateCheck], change: SessionChange | None) -> SessionRow:
    bars = [check.gate for check in checks if check.gate.kind in ("mean", "low")]
    return SessionRow(
        session=harmless(row.session_id),
        measure=harmless(row.measure),
        metric=harmless(row.metric.replace("_", " ")),
        n=f"{row.n:,}" if not row.n_unscored else f"{row.n_scored:,} of {row.n:,}",
        mean=row.mean,
        low=row.low,
        high=row.high,
        label=_label(row),
        change=_change(change) if change else "",
        is_worse=change is not None and change.high is not None and change.high < 0,
        bars=sorted({BarMark(gate.bar, gate.kind == "low", harmless(gate.text)) for gate in bars}),
        checks=check_rows(checks),
        note=harmless(row.note or ""),
    )


def _label(row: SessionSummary) -> str:
    if row.mean is None:
        return "no score"
    between = "" if row.low is None or row.high is None else f", interval {row.low:.2f} to {row.high:.2f}"
    return f"mean {row.mean:.2f}{between}"


def _change(row: SessionChange) -> str:
    if row.difference is None or row.low is None or row.high is None:
        return "no pair with the baseline" if any(case.old for case in row.cases) else "new"
    if row.n_pairs == len(row.having("same")):
        return "as before"
    digits = places_of(row.difference)
    told = f"{row.difference:+.{digits}f} ({row.low:+.{digits}f} to {row.high:+.{digits}f})"
    return told.replace("-", "\u2212")


def _became(row: SessionChange) -> str:
    missing, left_out = len(row.having("missing")), len(row.having("left out"))
    told = [f"{count(missing, 'case')} missing"] if missing else []
    return ", ".join([*told, *([f"{count(left_out, 'case')} left out"] if left_out else [])])
