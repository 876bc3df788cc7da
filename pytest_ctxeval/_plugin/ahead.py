"""Record tests before they run, many at a time, where they say by which metrics they will be judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pytest

from pytest_ctxeval._judge.cassette.shelf import is_complete
from pytest_ctxeval._judge.judge import Judge
from pytest_ctxeval._judge.pace import Pace
from pytest_ctxeval._judge.threads import in_order
from pytest_ctxeval._plugin import collect
from pytest_ctxeval._plugin.cassettes import tape_of
from pytest_ctxeval._plugin.item_judge import Bench, Identity, bench_of, identity_of, metric_of, samples_of
from pytest_ctxeval._plugin.stash import AHEAD, JUDGE
from pytest_ctxeval.errors import CassetteError, ConfigError, JudgeError, JudgeReplyError, JudgeUnreachableError

if TYPE_CHECKING:
    from pytest_ctxeval._core.data import ContextCase
    from pytest_ctxeval._judge.cassette.tape import Tape
    from pytest_ctxeval._judge.form import JudgeModel
    from pytest_ctxeval._judge.judge import Judged
    from pytest_ctxeval._metrics.prompt import Metric


class Ahead(NamedTuple):
    """What a test finds when its turn comes: its cassette, and what came of judging its case, each once."""

    tape: Tape
    judged: dict[Identity, Judged]


def go_ahead(item: pytest.Item) -> None:
    """Record this test and those after it that share its judge, where their cases are complete.

    Called when the first of them begins, so that whatever the session has set up is there. What could not be judged
    for a reason that may not hold in the test itself is left to the test.
    """
    bench, shares = bench_of(item.config), _judge_fixture(item)
    if shares is None or shares in bench.ahead_of or bench.stopped:
        return
    bench.ahead_of.add(shares)
    jobs = [*_jobs(item, shares, bench)]
    if len(jobs) < 2:  # alone it is judged as well in its turn
        return
    try:
        model = item.stash[JUDGE].judge_model()
    except Exception:  # told by the test that asks for it
        return
    with _Bar(item, len(jobs)) as bar:
        _Pool(bench, model, len(jobs)).run(jobs, bar)


@dataclass(frozen=True, slots=True)
class _Job:
    """A test to be recorded."""

    item: pytest.Item
    tape: Tape
    case: ContextCase
    metrics: Sequence[Metric]

    def hand_over(self, judged: dict[Identity, Judged]) -> None:
        """Let the test find what came of it: the one that is running by its judge, the others when theirs is made."""
        if JUDGE in self.item.stash:
            self.item.stash[JUDGE].take(judged)
        else:
            self.item.stash[AHEAD] = Ahead(self.tape, judged)


def _jobs(first: pytest.Item, shares: object, bench: Bench) -> Iterator[_Job]:
    items = first.session.items
    for item in items[items.index(first) :]:
        case = _complete_case(item)
        if case is None or _judge_fixture(item) is not shares or _may_be_skipped(item):
            continue
        metrics = [metric for metric in map(metric_of, collect.metrics_of(item)) if _is_ready(metric, case)]
        tape = item.stash[JUDGE].tape if JUDGE in item.stash else tape_of(item, bench.settings, bench.neighbours)
        if metrics and tape is not None and not (bench.settings.record == "once" and is_complete(tape.path)):
            yield _Job(item, tape, case, metrics)


class _Pool:
    """Judges jobs, as many at a time as the settings say, at the pace that the judge sets."""

    def __init__(self, bench: Bench, model: JudgeModel, jobs: int) -> None:
        self._settings = bench.settings
        self._model = model
        width = bench.settings.concurrency
        self._each = max(1, width // jobs)  # calls at a time of one job
        self._pace = Pace(width, longest_s=bench.settings.timeout_s)

    def run(self, jobs: Sequence[_Job], bar: _Bar) -> None:
        """Judge the first one alone: what the judge does not take is then known to the others."""
        first, *others = jobs
        goes_on = self._judge(first)
        bar.show(1)
        if not goes_on:
            return
        # While calls are in flight, twice as many threads get others ready and save what has come.
        judged = in_order([partial(self._judge, job) for job in others], limit=2 * self._settings.concurrency)
        for done, _ in enumerate(judged, start=2):
            bar.show(done)

    def _judge(self, job: _Job) -> bool:
        """Judge one, and say whether that came to anything."""
        if self._pace.is_stopped:
            return False
        job.tape.pace = self._pace
        judge = Judge(
            lambda: self._model,
            tape=job.tape,
            samples=samples_of(job.item, self._settings),
            concurrency=self._each,
            timeout_s=self._settings.timeout_s,
        )
        judged = {identity_of(metric, job.case): judge.attempt(metric, job.case) for metric in job.metrics}
        job.tape.pace = None
        if any(isinstance(each.error, JudgeUnreachableError) and each.error.refused for each in judged.values()):
            self._pace.stop()
        holds = {one: each for one, each in judged.items() if _holds(each)}
        job.hand_over(holds)
        with suppress(CassetteError):  # told by the test as it ends; till then a run that breaks off keeps what it has
            job.tape.close("broken")
        return bool(holds)


def _holds(judged: Judged) -> bool:
    """Whether it would come out the same in the test's own turn."""
    error = judged.error
    if isinstance(error, JudgeUnreachableError):
        return not (error.busy or error.refused)
    return error is None or type(error) is JudgeError or isinstance(error, JudgeReplyError)


def _complete_case(item: pytest.Item) -> ContextCase | None:
    if not collect.metrics_of(item):
        return None
    try:
        return collect.case_of(item)
    except ConfigError:  # told by the test
        return None


def _is_ready(metric: Metric, case: ContextCase) -> bool:
    """Whether a case has all that a metric asks about."""
    try:
        return bool(metric.prompts(case, None))
    except ConfigError:
        return False


def _may_be_skipped(item: pytest.Item) -> bool:
    xfail = item.get_closest_marker("xfail")
    marked = any(item.get_closest_marker(name) for name in ("skip", "skipif"))
    return marked or (xfail is not None and not xfail.kwargs.get("run", True))


def _judge_fixture(item: pytest.Item) -> Any:
    """Give the definition of the `judge_model` that is one object for all tests that see it; None where it is not."""
    manager = getattr(item.session, "_fixturemanager", None)
    definitions = manager.getfixturedefs("judge_model", item) if manager is not None else None
    found = definitions[-1] if definitions else None
    return found if found is not None and found.scope == "session" and not found.params else None


class _Bar:
    """Shows how far it is, on a terminal; elsewhere nothing."""

    def __init__(self, item: pytest.Item, total: int) -> None:
        self._item, self._total = item, total
        self._exits = ExitStack()
        plugins = item.config.pluginmanager
        reporter = plugins.getplugin("terminalreporter")
        self._reporter: Any = reporter if getattr(reporter, "isatty", False) else None
        self._capture: Any = plugins.getplugin("capturemanager")

    def __enter__(self) -> Self:
        if self._reporter is not None:
            if self._capture is not None:
                self._exits.enter_context(self._capture.global_and_fixture_disabled())
            self._reporter.ensure_newline()
            self.show(0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._reporter is not None:
            self._reporter.pytest_runtest_logstart(self._item.nodeid, self._item.location)  # on a line of its own again
        self._exits.close()

    def show(self, done: int) -> None:
        """Tell that so many are done."""
        if self._reporter is not None:
            self._reporter.rewrite(bar_line(done, self._total), erase=True)
            self._reporter.flush()


def bar_line(done: int, total: int) -> str:
    """Give the line: at most 60 characters, so that it fits where a terminal is narrow."""
    filled = 20 * done // total
    return f"judging ahead [{'#' * filled}{'.' * (20 - filled)}] {done} of {total}"
