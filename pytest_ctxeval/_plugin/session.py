"""What the hooks do for a whole run, in the process that prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ctxeval._core.gate import GateCheck, check_gates
from pytest_ctxeval._core.statistics import BayesianMode, FrequentistMode, StatisticalMode
from pytest_ctxeval._core.summary import summarise
from pytest_ctxeval._plugin.ledger import ledger_of
from pytest_ctxeval._plugin.options import Settings
from pytest_ctxeval._plugin.stash import SETTINGS
from pytest_ctxeval._plugin.unused import find_unused, told
from pytest_ctxeval._report.run_json import run_json
from pytest_ctxeval._report.terminal import Line, Section, lines

if TYPE_CHECKING:
    from pytest_ctxeval._core.summary import Summary


def finish_run(session: pytest.Session) -> None:
    """Sum the run up and check its gates; a failed one, and a judge that refused the key, turn the run red."""
    config = session.config
    ledger, settings = ledger_of(config), config.stash[SETTINGS]
    ledger.summary = summarise(ledger.results, statistical_mode(settings))
    ledger.checks = check_gates(settings.gates, ledger.summary)
    if settings.unused != "ignore":
        ledger.unused = find_unused(session)
    unused_fail = bool(ledger.unused) and settings.unused == "fail"
    if ledger.stopped or unused_fail or any(check.status == "failed" for check in ledger.checks):
        session.testsfailed += 1


def write_reports(config: pytest.Config) -> None:
    """Write the files that were asked for. One that cannot be written is told in the section: it fails nothing."""
    ledger, settings = ledger_of(config), config.stash[SETTINGS]
    for path in settings.reports:
        text = run_json(_summary(config), ledger.checks, record=settings.record, stat=settings.stat)
        try:
            _write(path, text)
        except OSError as error:
            ledger.notes.append(f"the report {path.name} could not be written: {error.strerror}")


def section_lines(config: pytest.Config, *, width: int, verbosity: int) -> list[Line]:
    """Give the section at the end; no line where the plugin was neither used nor asked for anything."""
    ledger, settings = ledger_of(config), config.stash[SETTINGS]
    summary = _summary(config)
    if not summary.results and not settings.gates:
        return []
    mode = statistical_mode(settings)
    level = mode.ci_level if isinstance(mode, BayesianMode) else None
    section = Section(
        summary=summary,
        checks=ledger.checks,
        record=settings.record,
        assistant=ledger.assistant,
        spent=ledger.spent,
        level=level,
        notes=ledger.notes,
        unused=told(ledger.unused, config.rootpath),
        unused_fails=settings.unused == "fail",
    )
    return lines(section, width=width, verbosity=verbosity)


def statistical_mode(settings: Settings) -> StatisticalMode:
    """Give the statistics that the settings ask for."""
    return FrequentistMode() if settings.stat == "frequentist" else BayesianMode()


def _summary(config: pytest.Config) -> Summary:
    """The summary; of a run that was broken off, what there is, with its gates not checked."""
    ledger, settings = ledger_of(config), config.stash[SETTINGS]
    if ledger.summary is None:
        ledger.summary = summarise(ledger.results, statistical_mode(settings))
        why = "nothing was run" if config.option.collectonly else "the run was broken off"
        ledger.checks = tuple(GateCheck(gate, None, "not checked", why) for gate in settings.gates)
    return ledger.summary


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
