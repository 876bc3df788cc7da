"""Bars for whole sessions, which turn a run red though every test passed."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pytest_ctxeval._core.numbers import above, below, count, figure
from pytest_ctxeval._core.text import nearest, one_line
from pytest_ctxeval._core.verdict import reaches
from pytest_ctxeval.errors import ConfigError

if TYPE_CHECKING:  # a gate in the ini file is read in every run, and numpy only where something was judged
    from pytest_ctxeval._core.baseline import CaseChange, Comparison, SessionChange
    from pytest_ctxeval._core.summary import SessionSummary, Summary

Status = Literal["passed", "failed", "not checked"]
Kind = Literal["mean", "low", "drop", "unscored", "missing"]

_COUNTS: Final[tuple[Kind, ...]] = ("unscored", "missing")
_NEED_BASELINE: Final[tuple[Kind, ...]] = ("drop", "missing")
_NAMED: Final = 3
# A bar, something between, and the beginning of another gate.
_SEVERAL: Final = r":[\d. ]+[;,|&\s]\s*(?:context_awareness|contextual_relevancy|unscored|missing|drop)[.@:]"


@dataclass(frozen=True, slots=True)
class Gate:
    """One bar: for the mean of a metric or its low end, for its drop below a baseline, or for a number of cases.

    `bar` is 0 to 1, but for the kinds that count cases which are unscored or missing.

    `metric` is None where every metric is meant, `session_id` where every session is. A `required` gate fails where it
    finds nothing to check.
    """

    text: str
    kind: Kind
    bar: float
    metric: str | None = None
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
    """Read `METRIC:0.8`, `METRIC.low:0.6`, `drop:0.05`, `METRIC.drop:0.05`, `unscored:0` or `missing:0`.

    All but the last two take a session, as `METRIC@SESSION:0.9`. The bar stands behind the last `:` and the session
    behind the first `@`, so a session id may hold both. Raises `ConfigError` with the nearest known metric and an
    example.
    """
    text = text.strip()
    target, colon, bar = text.rpartition(":")
    example = f"for example {next(iter(metrics), 'METRIC')}:0.8"
    if re.search(_SEVERAL, text):
        raise ConfigError(
            f"{text!r} is more than one gate; give each by itself: an option, a line of the ini file or, "
            "between spaces, a word of the variable"
        )
    if _is_number(bar) and not target.strip():
        raise ConfigError(f"{text!r} names no metric; write METRIC:BAR, {example}")
    if not colon:
        quotes = ", and put the whole in quotes where the session holds a space" if "@" in text else ""
        raise ConfigError(f"{text!r} has no bar; write METRIC:BAR, {example}{quotes}")
    name, at, session_id = target.partition("@")
    name = name.strip()
    if at and not session_id.strip():
        raise ConfigError(f"{text!r} names no session behind the '@'; {example.replace(':', '@SESSION:')}")
    session = session_id if at else None
    for kind in _COUNTS:
        if name == kind:
            if at:
                raise ConfigError(f"{text!r}: {kind} cases are counted over all sessions; use {kind}:{bar}")
            return Gate(text, kind, _count(text, bar, kind), required=required)
    if name == "drop":
        return Gate(text, "drop", _share(text, bar, "for example drop:0.05"), None, session, required)
    metric, _, ending = name.partition(".")
    if metric not in metrics or ending not in ("", "low", "drop"):
        wanted = f"write METRIC:BAR, {example}; {_nearest(metric, ending, metrics)}"
        raise ConfigError(f"{text!r}: {name!r} is no metric; {wanted}")
    kinds: dict[str, Kind] = {"": "mean", "low": "low", "drop": "drop"}
    return Gate(text, kinds[ending], _share(text, bar, example), metric, session, required)


def check_needs(
    gates: Iterable[Gate], *, intervals: bool, baseline: bool = True, option: str = "--ctxeval-baseline"
) -> None:
    """Raise `ConfigError` for a gate on a low end where the statistics give no interval.

    Likewise for a required one on what has changed, where there is no baseline; `option` is what takes it.
    """
    for gate in gates:
        if gate.kind == "low" and not intervals:
            raise ConfigError(
                f"{gate.text!r} needs an interval, and the frequentist mode gives none; "
                f"use the bayesian mode or the gate {gate.text.replace('.low', '', 1)!r}"
            )
        if gate.kind in _NEED_BASELINE and gate.required and not baseline:
            raise ConfigError(f"{gate.text!r} needs a stored run to compare with; name it with {option}=FILE")


def check_gates(gates: Iterable[Gate], summary: Summary, comparison: Comparison | None = None) -> tuple[GateCheck, ...]:
    """Check each gate in each session that it means, in the order of the gates.

    A mean over some of the cases does not stand for all: a session with unscored cases fails its gates,
    unless a gate `unscored:N` says how many are allowed. So does one that misses cases of the baseline, and
    `missing:N` says how many may.
    """
    gates = tuple(gates)
    told = frozenset(gate.kind for gate in gates)
    return tuple(check for gate in gates for check in _checks(gate, summary, comparison, told))


def _checks(gate: Gate, summary: Summary, comparison: Comparison | None, told: Collection[Kind]) -> Iterator[GateCheck]:
    if gate.kind in _NEED_BASELINE:
        yield from _against_baseline(gate, summary, comparison, told)
        return
    rows = [row for row in summary.sessions if _means(gate, row)]
    if not rows:
        yield _nothing(gate, _nothing_text(gate, [row.session_id for row in summary.sessions]))
    elif gate.kind == "unscored":
        unscored = sum(row.n_unscored for row in rows)
        status: Status = "passed" if unscored <= gate.bar else "failed"
        yield GateCheck(gate, None, status, f"{unscored} unscored, {gate.bar} allowed")
    else:
        for row in rows:
            faults = "; ".join(_faults(gate, row, unscored_allowed="unscored" in told))
            passed = f"{_label(gate)}>= {figure(gate.bar)}"
            yield GateCheck(gate, row, "failed" if faults else "passed", faults or passed)


def _means(gate: Gate, row: SessionSummary | SessionChange) -> bool:
    return gate.metric in (None, row.metric) and gate.session_id in (None, row.session_id)


def _nothing(gate: Gate, text: str) -> GateCheck:
    return GateCheck(gate, None, "failed" if gate.required else "not checked", text)


def _faults(gate: Gate, row: SessionSummary, *, unscored_allowed: bool) -> Iterator[str]:
    value = row.low if gate.kind == "low" else row.mean
    if row.mean is None:
        yield "no score"
    elif value is None:
        yield "no interval"
    elif not reaches(value, gate.bar):
        yield _label(gate) + below(value, gate.bar)
    if row.n_unscored and (row.mean is None or not unscored_allowed):
        yield f"{row.n_unscored} of {row.n} unscored"


def _against_baseline(
    gate: Gate, summary: Summary, comparison: Comparison | None, told: Collection[Kind]
) -> Iterator[GateCheck]:
    if comparison is None:
        yield _nothing(gate, "there is no baseline")
        return
    known = [row for row in comparison.sessions if _means(gate, row) and any(case.old for case in row.cases)]
    rows = [row for row in known if any(case.old and case.change != "left out" for case in row.cases)]
    if not known:
        sessions = [row.session_id for row in comparison.sessions]
        yield _nothing(gate, _nothing_text(gate, sessions).replace("no case was judged", "the baseline has no case"))
    elif not rows:
        yield _nothing(gate, "no case was judged that the baseline has")
    elif gate.kind == "missing":
        missing = len(comparison.having("missing"))
        status: Status = "passed" if missing <= gate.bar else "failed"
        yield GateCheck(gate, None, status, f"{missing} missing, {gate.bar} allowed")
        return
    of = {(row.session_id, row.metric, row.prompt_version): row for row in summary.sessions}
    for row in rows:
        faults = "; ".join(_regressions(gate, row, told))
        session = of.get((row.session_id, row.metric, row.prompt_version))
        text = faults or _held(gate, row)
        if session is None:
            text = f"{one_line(row.session_id, 40)}, {row.metric.replace('_', ' ')}: {text}"
        held = row.n_pairs or row.having("missing")  # as many may be as a gate of its own allows
        yield (
            GateCheck(gate, session, "failed" if faults else "passed", text) if faults or held else _nothing(gate, text)
        )


def _regressions(gate: Gate, row: SessionChange, told: Collection[Kind]) -> Iterator[str]:
    """Why a session has regressed: by its mean, by a case that fell, or by one that is gone."""
    fall = -(row.difference or 0.0)
    if fall > 0 and not reaches(gate.bar, fall) and row.high is not None and row.high < 0:
        yield f"fell by {above(fall, gate.bar)}"
    fell = [case for case in row.cases if case.fell]
    if fell:
        yield f"{_named(fell)} fell below {'its' if len(fell) == 1 else 'their'} bar"
    unscored = [case for case in row.having("regressed") if case.new is not None and case.new.score is None]
    if unscored and "unscored" not in told:
        yield f"{_named(unscored)} unscored, not so before"
    missing = row.having("missing")
    if missing and "missing" not in told:
        yield f"{_named(missing)} missing"


def _held(gate: Gate, row: SessionChange) -> str:
    fall = -(row.difference or 0.0)
    if row.difference is None:
        return "no case has a score in both runs"
    if not reaches(gate.bar, fall):
        return f"fell by {above(fall, gate.bar)}, within the noise of {count(row.n_pairs, 'case')}"
    return f"drop <= {figure(gate.bar)}"


def _named(cases: Sequence[CaseChange]) -> str:
    names = ", ".join(one_line(case.result.qa_id, 40) for case in cases[:_NAMED])
    return names + (f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else "")


def _nothing_text(gate: Gate, sessions: Iterable[str]) -> str:
    judged = "no case was judged" if gate.metric is None else f"no case was judged for {gate.metric}"
    if gate.session_id is None:
        return judged
    known = sorted({one_line(session, 40) for session in sessions})
    text = f"{judged} in session {gate.session_id!r}"
    if not known or one_line(gate.session_id, 40) in known:
        return text
    close = nearest(gate.session_id, known)
    if not close.startswith("known"):
        return f"{text}; {close}"
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return f"{text}; there are {', '.join(known[:_NAMED])}{more}"


def _label(gate: Gate) -> str:
    return "low " if gate.kind == "low" else ""


def _nearest(metric: str, ending: str, metrics: Collection[str]) -> str:
    if metric in metrics:
        return nearest(f"{metric}.{ending}", [f"{metric}.low", f"{metric}.drop"])
    return nearest(metric, [*metrics, *_COUNTS, "drop"])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _share(text: str, bar: str, example: str) -> float:
    try:
        share = float(bar)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise ConfigError(f"{text!r}: the bar {bar.strip()!r} is not a number from 0 to 1; {example}")
    return share


def _count(text: str, bar: str, kind: str) -> int:
    bar = bar.strip()
    if not (bar.isascii() and bar.isdecimal() and len(bar) <= 9):
        raise ConfigError(f"{text!r}: {bar!r} is not a number of cases; use an integer from 0, as {kind}:0")
    return int(bar)
