"""Bars for whole sessions, which turn a run red though every test passed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_ctxeval._core.numbers import below, figure
from pytest_ctxeval._core.text import nearest
from pytest_ctxeval._core.verdict import reaches
from pytest_ctxeval.errors import ConfigError

if TYPE_CHECKING:  # a gate in the ini file is read in every run, and numpy only where something was judged
    from pytest_ctxeval._core.summary import SessionSummary, Summary

Status = Literal["passed", "failed", "not checked"]

UNSCORED = "unscored"
DROP = "drop"


@dataclass(frozen=True, slots=True)
class Gate:
    """One bar: for the mean of a metric (0 to 1), for its low end, or for the number of unscored cases.

    `metric` is None where unscored cases are counted; `session_id` is None where every session is meant. A
    `required` gate fails where it finds nothing to check.
    """

    text: str
    metric: str | None
    bar: float
    low: bool = False
    session_id: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class GateCheck:
    """What came of a gate in one session; `session` is None where it looked at none, or at the whole run."""

    gate: Gate
    session: SessionSummary | None
    status: Status
    text: str


def parse_gate(text: str, *, metrics: Collection[str], required: bool) -> Gate:
    """Read `METRIC:0.8`, `METRIC.low:0.6`, `METRIC@SESSION:0.9`, `METRIC.low@SESSION:0.9` or `unscored:0`.

    The bar stands behind the last `:` and the session behind the first `@`, so a session id may hold both.
    Raises `ConfigError` with the nearest known metric and an example.
    """
    text = text.strip()
    target, colon, bar = text.rpartition(":")
    example = f"for example {next(iter(metrics), 'METRIC')}:0.8"
    if not colon:
        raise ConfigError(f"{text!r} has no bar; write METRIC:BAR, {example}")
    name, at, session_id = target.partition("@")
    name = name.strip()
    if at and not session_id.strip():
        raise ConfigError(f"{text!r} names no session behind the '@'; {example.replace(':', '@SESSION:')}")
    if name == DROP:
        raise ConfigError(f"{text!r} needs a baseline, and there are no baselines yet; use a bar, {example}")
    if name == UNSCORED:
        if at:
            raise ConfigError(f"{text!r}: unscored cases are counted over all sessions; use unscored:{bar}")
        return Gate(text, None, _count(text, bar), required=required)
    metric = name.removesuffix(".low")
    if metric not in metrics:
        wanted = f"write METRIC:BAR, {example}; {nearest(metric, [*metrics, UNSCORED])}"
        raise ConfigError(f"{text!r}: {metric!r} is no metric; {wanted}")
    share = _share(text, bar, example)
    return Gate(text, metric, share, name != metric, session_id if at else None, required)


def check_needs(gates: Iterable[Gate], *, intervals: bool) -> None:
    """Raise `ConfigError` for a gate on a low end where the statistics give no interval."""
    for gate in gates:
        if gate.low and not intervals:
            raise ConfigError(
                f"{gate.text!r} needs an interval, and the frequentist mode gives none; "
                f"use the bayesian mode or the gate {gate.text.replace('.low', '', 1)!r}"
            )


def check_gates(gates: Iterable[Gate], summary: Summary) -> tuple[GateCheck, ...]:
    """Check each gate in each session that it means, in the order of the gates.

    A mean over some of the cases does not stand for all: a session with unscored cases fails its gates,
    unless a gate `unscored:N` says how many are allowed.
    """
    gates = tuple(gates)
    unscored_allowed = any(gate.metric is None for gate in gates)
    return tuple(check for gate in gates for check in _checks(gate, summary, unscored_allowed=unscored_allowed))


def _checks(gate: Gate, summary: Summary, *, unscored_allowed: bool) -> Iterator[GateCheck]:
    rows = [row for row in summary.sessions if gate.metric in (None, row.metric)]
    rows = [row for row in rows if gate.session_id in (None, row.session_id)]
    if not rows:
        yield GateCheck(gate, None, "failed" if gate.required else "not checked", _nothing_text(gate))
    elif gate.metric is None:
        unscored = sum(row.n_unscored for row in rows)
        status: Status = "passed" if unscored <= gate.bar else "failed"
        yield GateCheck(gate, None, status, f"{unscored} unscored, {gate.bar} allowed")
    else:
        for row in rows:
            faults = "; ".join(_faults(gate, row, unscored_allowed=unscored_allowed))
            passed = f"{_label(gate)}>= {figure(gate.bar)}"
            yield GateCheck(gate, row, "failed" if faults else "passed", faults or passed)


def _faults(gate: Gate, row: SessionSummary, *, unscored_allowed: bool) -> Iterator[str]:
    value = row.low if gate.low else row.mean
    if row.mean is None:
        yield "no score"
    elif value is None:
        yield "no interval"
    elif not reaches(value, gate.bar):
        yield _label(gate) + below(value, gate.bar)
    if row.n_unscored and (row.mean is None or not unscored_allowed):
        yield f"{row.n_unscored} of {row.n} unscored"


def _nothing_text(gate: Gate) -> str:
    judged = "no case was judged" if gate.metric is None else f"no case was judged for {gate.metric}"
    return judged if gate.session_id is None else f"{judged} in session {gate.session_id!r}"


def _label(gate: Gate) -> str:
    return "low " if gate.low else ""


def _share(text: str, bar: str, example: str) -> float:
    try:
        share = float(bar)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise ConfigError(f"{text!r}: the bar {bar.strip()!r} is not a number from 0 to 1; {example}")
    return share


def _count(text: str, bar: str) -> int:
    bar = bar.strip()
    if not (bar.isascii() and bar.isdecimal() and len(bar) <= 9):
        raise ConfigError(f"{text!r}: {bar!r} is not a number of cases; use an integer from 0, as unscored:0")
    return int(bar)
