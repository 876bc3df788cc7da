"""What `ctxeval compare`, `gate` and `combine` do: stored runs in, the section and reports out. Nothing is judged."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_ctxeval._core.baseline import compare
from pytest_ctxeval._core.combine import combine
from pytest_ctxeval._core.gate import Gate, GateCheck, check_gates, check_needs, parse_gate
from pytest_ctxeval._core.run import Run
from pytest_ctxeval._core.statistics import BayesianMode, statistical_mode
from pytest_ctxeval._core.summary import Summary, summarise
from pytest_ctxeval._plugin.files import read_run, write_report
from pytest_ctxeval._plugin.options import METRICS, report_path
from pytest_ctxeval._report.outcome import outcome_of
from pytest_ctxeval._report.report import Report
from pytest_ctxeval._report.terminal import Line, lines
from pytest_ctxeval.errors import ConfigError

_COLORS = {"bold": "1", "red": "31", "green": "32", "yellow": "33"}


class Asked(NamedTuple):
    """What is to be made of a stored run."""

    gates: Sequence[str] = ()
    baseline: Path | None = None
    reports: Sequence[str] = ()
    verbosity: int = 0


class Told(NamedTuple):
    """The exit code, and what is to be printed."""

    code: int
    text: str


def compare_runs(old: Path, new: Path, asked: Asked) -> Told:
    """Tell what has changed from one stored run to another."""
    run, summary = read_run(new)
    return _tell(run, summary, asked._replace(baseline=old))


def gate_run(path: Path, asked: Asked) -> Told:
    """Gate a stored run."""
    if not asked.gates:
        raise ConfigError("nothing to check; give a bar, for example --gate=context_awareness:0.8")
    return _tell(*read_run(path), asked)


def combine_runs(paths: Sequence[Path], asked: Asked) -> Told:
    """Join stored runs, and tell and gate the whole."""
    if len(set(paths)) < len(paths):
        raise ConfigError(f"{next(path for path in paths if paths.count(path) > 1)} is given twice")
    run = combine({str(path): read_run(path)[0] for path in paths})
    return _tell(run, summarise(run.results, statistical_mode(run.stat)), asked)


def _tell(run: Run, summary: Summary, asked: Asked) -> Told:
    """Write the reports, and give the section, with 1 where a gate has failed. Raises `ConfigError` before that."""
    gates = [_gate(text) for text in asked.gates]
    _check(gates, run, asked)
    reports = [report_path(text) for text in asked.reports]
    comparison = compare(read_run(asked.baseline)[0], run) if asked.baseline else None
    mode = statistical_mode(run.stat)
    report = Report(
        run=run,
        summary=summary,
        checks=_broken_off(gates) if run.broken_off else check_gates(gates, summary, comparison),
        level=mode.ci_level if isinstance(mode, BayesianMode) else None,
        comparison=comparison,
        baseline=asked.baseline.name if asked.baseline else "",
        notes=["the run was broken off: this is not all of it"] if run.broken_off else [],
    )
    for path in reports:
        try:
            write_report(path, report)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from None
    return Told(1 if report.failed else 0, _text(report, asked.verbosity))


def _gate(text: str) -> Gate:
    try:
        return parse_gate(text, metrics=METRICS, required=True)
    except ConfigError as error:
        raise ConfigError(f"--gate: {error}") from None


def _check(gates: Sequence[Gate], run: Run, asked: Asked) -> None:
    try:
        check_needs(
            gates, intervals=run.stat != "frequentist", baseline=asked.baseline is not None, option="--baseline"
        )
    except ConfigError as error:
        raise ConfigError(f"--gate: {error}") from None


def _broken_off(gates: Sequence[Gate]) -> tuple[GateCheck, ...]:
    return tuple(GateCheck(gate, None, "failed", "not checked, since the run was broken off") for gate in gates)


def _text(report: Report, verbosity: int) -> str:
    colored = sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    found = lines(report, width=shutil.get_terminal_size((120, 24)).columns, verbosity=verbosity)
    return "\n".join(_colored(line) if colored else line.text for line in found or [Line(outcome_of(report).text)])


def _colored(line: Line) -> str:
    codes = [_COLORS[name] for name, on in line.markup.items() if on and name in _COLORS]
    return f"\x1b[{';'.join(codes)}m{line.text}\x1b[0m" if codes else line.text
