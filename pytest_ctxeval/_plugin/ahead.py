"""Record tests before they run, many at a time, where they say by which metrics they will be judged."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._judge.cassette.shelf import is_complete
from pytest_ctxeval._judge.judge import Judge
from pytest_ctxeval._judge.pace import Pace
from pytest_ctxeval._judge.threads import as_they_end
from pytest_ctxeval._plugin.bar import Bar
from pytest_ctxeval._plugin.cassettes import tape_of
from pytest_ctxeval._plugin.foreseen import foreseen, shared_judge
from pytest_ctxeval._plugin.item_judge import Bench, Identity, bench_of, identity_of
from pytest_ctxeval._plugin.ledger import ledger_of
from pytest_ctxeval._plugin.stash import AHEAD, JUDGE
from pytest_ctxeval.errors import CassetteError, JudgeUnreachableError

if TYPE_CHECKING:
    from pytest_ctxeval._core.data import ContextCase
    from pytest_ctxeval._judge.cassette.tape import Tape
    from pytest_ctxeval._judge.form import JudgeModel
    from pytest_ctxeval._judge.judge import Judged
    from pytest_ctxeval._metrics.prompt import Metric
    from pytest_ctxeval._plugin.options import Settings

_PATIENCE: Final = 2  # tests in a row that come to nothing, beyond those that were asked about side by side


def go_ahead(item: pytest.Item) -> None:
    """Record this test and those after it that share its judge, where their cases are complete.

    Called when the first of them begins, so that whatever the session has set up is there. What could not be judged
    for a reason that may not hold in the test itself is left to the test.
    """
    bench, shares = bench_of(item.config), shared_judge(item)
    if shares is None or shares in bench.ahead_of or bench.stopped:
        return
    bench.ahead_of.add(shares)
    jobs = [*_jobs(item, bench)]
    if len(jobs) < 2:  # alone it is judged as well in its turn
        return
    try:
        model = item.stash[JUDGE].judge_model()
    except Exception:  # told by the test that asks for it
        return
    pool = _Pool(bench.settings, model, len(jobs))
    try:
        with Bar(item, len(jobs)) as bar:
            for done in pool.run(jobs):
                bar.show(done)
    finally:  # what is there counts, however this ended
        item.stash[JUDGE].look_ahead()
    if pool.given_up:
        ledger_of(item.config).notes.append(pool.given_up)


class Ahead:
    """What comes of judging a test's case before the test runs, if it comes before the test."""

    def __init__(self, tape: Tape, bench: Bench) -> None:
        self.tape = tape
        self.judged: dict[Identity, Judged] = {}  # which it has not asked for yet
        self._bench = bench
        self._lock = threading.Lock()
        self._is_there = self._is_over = False

    def put(self, judged: dict[Identity, Judged]) -> bool:
        """Save what has come, and say whether the cassette took it; after the test has begun it is too late for that.

        Until the test has ended its cassette is one of a run that was broken off.
        """
        with self._lock:
            if self._is_over:
                return True
            self._is_there, self.judged = True, judged
            self._bench.unasked.append(judged)
            try:  # recorded anew is all that the metrics ask for, so it may take the place of what was there
                self.tape.close("asserted" if self.tape.mode == "all" else "broken")
            except CassetteError:  # told by the test as it ends
                return False
            return True

    def take(self) -> Ahead | None:
        """Begin the test: give what has come; what has not is not waited for."""
        with self._lock:
            self._is_over = True
            return self if self._is_there else None


class _Job(NamedTuple):
    """A test to be recorded."""

    item: pytest.Item
    ahead: Ahead
    case: ContextCase
    metrics: Sequence[Metric]
    samples: int


def _jobs(first: pytest.Item, bench: Bench) -> Iterator[_Job]:
    taken = set()
    for item, case, metrics, samples in foreseen(first, bench.settings):
        known = item.stash[JUDGE] if item is first else None
        tape = known.tape if known else tape_of(item, bench.settings, bench.neighbours)
        left = [metric for metric in metrics if known is None or not known.has(metric, case)]
        if tape is None or not left or tape.path in taken:
            continue
        taken.add(tape.path)
        if bench.settings.record != "once" or not is_complete(tape.path):
            yield _Job(item, Ahead(tape, bench), case, left, samples)


class _Outcome(NamedTuple):
    """What came of a job: whether the judge was asked and has had its say, and else what stood in the way."""

    told: bool = False
    problem: str = ""


class _Pool:
    """Judges jobs, as many at a time as the settings say, at the pace that the judge sets."""

    def __init__(self, settings: Settings, model: JudgeModel, jobs: int) -> None:
        self._settings = settings
        self._model = model
        self._jobs = jobs
        self._each = max(1, settings.concurrency // jobs)  # calls at a time of one job
        self._pace = Pace(settings.concurrency, longest_s=settings.timeout_s)
        self._is_refused = False
        self._in_vain = 0  # jobs in a row
        self.given_up = ""

    def run(self, jobs: Sequence[_Job]) -> Iterator[int]:
        """Judge them, and tell after each how many are done.

        The first ones go alone, until the judge has answered: what it does not take is then known to the others.
        """
        for job in jobs:
            job.item.stash[AHEAD] = job.ahead
        waiting = iter(jobs)
        done = 0
        for done, job in enumerate(waiting, start=1):
            outcome = self._judge(job)
            yield done
            self._note(outcome, done, patience=_PATIENCE)
            if outcome.told or self._pace.stopped:
                break
        if self._pace.stopped or done == self._jobs:
            return
        # While calls are in flight, twice as many threads get others ready and save what has come.
        width = self._settings.concurrency
        outcomes = as_they_end((partial(self._judge, job) for job in waiting), limit=2 * width)
        for outcome in outcomes:
            done += 1
            yield done
            self._note(outcome, done, patience=width + _PATIENCE)

    def _note(self, outcome: _Outcome, done: int, *, patience: int) -> None:
        """Give up where the judge has asked for a long pause, or one after the other comes to nothing."""
        self._in_vain = 0 if outcome.told else self._in_vain + bool(outcome.problem)
        if self._in_vain >= patience:
            self._pace.stop(outcome.problem)
        if self._pace.stopped and not self._is_refused and not self.given_up:
            why = one_line(self._pace.stopped, 200)
            self.given_up = f"judging ahead was given up after {done} of {self._jobs} tests: {why}"

    def _judge(self, job: _Job) -> _Outcome:
        if self._pace.stopped:
            return _Outcome()
        tape = job.ahead.tape
        tape.pace = self._pace
        judge = Judge(
            lambda: self._model,
            tape=tape,
            samples=job.samples,
            concurrency=self._each,
            timeout_s=self._settings.timeout_s,
        )
        judged = {identity_of(metric, job.case): judge.attempt(metric, job.case) for metric in job.metrics}
        tape.pace = None
        if not job.ahead.put(judged):
            return _Outcome(problem=f"{tape.shown} cannot be written")
        errors = [each.error for each in judged.values() if isinstance(each.error, JudgeUnreachableError)]
        if any(error.refused for error in errors):
            self._is_refused = True
            self._pace.stop("the judge has refused another call")
        problem = next((str(error) for error in errors if error.transient), "")
        return _Outcome(not problem and any(each.cost.calls.recorded for each in judged.values()), problem)
