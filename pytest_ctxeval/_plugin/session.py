"""What the hooks do for a whole run, in the process that prints."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_ctxeval._core.baseline import Comparison, compare
from pytest_ctxeval._core.gate import GateCheck, check_gates
from pytest_ctxeval._core.run import Run
from pytest_ctxeval._core.statistics import BayesianMode, statistical_mode
from pytest_ctxeval._core.summary import Summary, summarise
from pytest_ctxeval._core.text import shown_path
from pytest_ctxeval._core.verdict import Calls, Cost
from pytest_ctxeval._plugin.ledger import ledger_of
from pytest_ctxeval._plugin.options import place_of
from pytest_ctxeval._plugin.selected import selection_of
from pytest_ctxeval._plugin.stash import BASELINE, BENCH, SETTINGS
from pytest_ctxeval._plugin.unused import find_unused, selects_tests, told
from pytest_ctxeval._report.costs import calls_text
from pytest_ctxeval._report.report import Report
from pytest_ctxeval._report.terminal import Line, lines
from pytest_ctxeval.errors import ConfigError


def read_baseline(config: pytest.Config) -> None:
    """Read the stored run that this one is to be compared with, before anything is judged. Raises `ConfigError`."""
    from pytest_ctxeval._plugin.files import read_run

    path = config.stash[SETTINGS].baseline
    if path is None:
        return
    try:
        config.stash[BASELINE] = read_run(path)[0]
    except ConfigError as error:
        raise ConfigError(f"{place_of(config, 'baseline')}: {error}") from None


def finish_run(session: pytest.Session) -> None:
    """Sum the run up and check its gates; a failed one, and a judge that refused the key, turn the run red."""
    config = session.config
    ledger, settings = ledger_of(config), config.stash[SETTINGS]
    ledger.forget_texts()
    ledger.summary = summarise(ledger.results, statistical_mode(settings.stat))
    ledger.comparison = _comparison(session, ledger.summary)
    ledger.checks = check_gates(settings.gates, ledger.summary, ledger.comparison)
    if settings.unused != "ignore":
        ledger.unused = find_unused(session)
    unused_fail = bool(ledger.unused) and settings.unused == "fail"
    if ledger.stopped or unused_fail or any(check.status == "failed" for check in ledger.checks):
        session.testsfailed += 1


def write_reports(config: pytest.Config) -> None:
    """Write the files that were asked for. One that cannot be written is told in the section: it fails nothing."""
    for path in config.stash[SETTINGS].reports:
        from pytest_ctxeval._plugin.files import write_report

        try:
            write_report(path, report_of(config))
        except OSError as error:
            ledger_of(config).notes.append(
                f"the report {shown_path(path)} could not be written: {error.strerror or error}"
            )
    if config.stash[SETTINGS].github:
        from pytest_ctxeval._plugin.github import append_summary

        try:
            append_summary(report_of(config))
        except OSError as error:
            ledger_of(config).notes.append(f"the step summary could not be written: {error.strerror or error}")


def section_lines(config: pytest.Config, *, width: int, verbosity: int) -> list[Line]:
    """Give the section at the end; no line where the plugin was neither used nor asked for anything."""
    report = report_of(config)
    if not (report.run.results or report.notes or report.unused or config.stash[SETTINGS].gates):
        return []
    found = lines(report, width=width, verbosity=verbosity)
    if config.stash[SETTINGS].github:
        from pytest_ctxeval._plugin.github import workflow_commands

        found += map(Line, workflow_commands(report, config.rootpath))
    return found


def report_of(config: pytest.Config) -> Report:
    """Give what there is to tell; of a run that was broken off, what there is, with its gates not checked."""
    ledger, settings = ledger_of(config), config.stash[SETTINGS]
    broken_off = ledger.broken_off or ledger.summary is None
    if ledger.summary is None:
        ledger.broken_off = True
        ledger.summary = summarise(ledger.results, statistical_mode(settings.stat))
        why = "nothing was run" if config.option.collectonly else "the run was broken off"
        ledger.checks = tuple(GateCheck(gate, None, "not checked", why) for gate in settings.gates)
    mode = statistical_mode(settings.stat)
    return Report(
        run=Run(
            results=ledger.summary.results,
            record=settings.record,
            stat=settings.stat,
            assistant=ledger.assistant,
            spent=ledger.spent,
            partial=ledger.left_out,
            selection=selection_of(config),
            broken_off=broken_off,
        ),
        summary=ledger.summary,
        checks=ledger.checks,
        level=mode.ci_level if isinstance(mode, BayesianMode) else None,
        comparison=ledger.comparison,
        baseline=settings.baseline.name if settings.baseline else "",
        notes=[*ledger.notes, *_unasked(config)],
        unused=told(ledger.unused, config.rootpath),
        unused_fails=settings.unused == "fail",
    )


def _unasked(config: pytest.Config) -> Iterator[str]:
    """What was paid for ahead, for tests that were then not run, or did not ask."""
    judged = [each for known in config.stash[BENCH].unasked for each in known.values()] if BENCH in config.stash else []
    cost = sum((each.cost for each in judged), Cost())
    if cost.calls != Calls():
        tokens = "" if cost.tokens is None else f", {cost.tokens:,} tokens"
        yield f"judged ahead and not asked for by its test: {len(judged)} ({calls_text(cost.calls)}{tokens})"


def _comparison(session: pytest.Session, summary: Summary) -> Comparison | None:
    config = session.config
    ledger_of(config).left_out = "tests were left out" if selects_tests(config) else None
    if BASELINE not in config.stash:
        return None
    return compare(config.stash[BASELINE], Run(summary.results, selection=selection_of(config)))
