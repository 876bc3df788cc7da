"""The judge of one test: bound to its cassette, and keeping every result for the run."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest
from langchain_core.language_models import BaseChatModel

from pytest_ctxeval._core.checks import is_share
from pytest_ctxeval._core.data import Batch, ContextCase
from pytest_ctxeval._core.text import nearest, one_line
from pytest_ctxeval._core.verdict import Calls, CaseResult, Cost, Verdict, cost_of
from pytest_ctxeval._judge.cassette.shelf import Neighbours
from pytest_ctxeval._judge.cassette.tape import Ending, Use
from pytest_ctxeval._judge.cassette.transport import routed
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._judge.judge import Judge, Judged
from pytest_ctxeval._judge.model import checked_model, model_from_name
from pytest_ctxeval._judge.provider import NO_JUDGE
from pytest_ctxeval._metrics.context_awareness import CONTEXT_AWARENESS
from pytest_ctxeval._metrics.contextual_relevancy import CONTEXTUAL_RELEVANCY
from pytest_ctxeval._metrics.prompt import Metric
from pytest_ctxeval._plugin import collect
from pytest_ctxeval._plugin.cassettes import tape_of
from pytest_ctxeval._plugin.options import Settings
from pytest_ctxeval._plugin.stash import (
    AHEAD,
    BENCH,
    ENDING,
    JUDGED,
    NODE_ID,
    PART_FAILED,
    POSITION,
    RESULTS,
    SENT,
    SETTINGS,
    USE,
)
from pytest_ctxeval.errors import CassetteError, ConfigError, CtxEvalError, CtxEvalWarning, JudgeUnreachableError

if TYPE_CHECKING:
    from pytest_ctxeval._plugin.ahead import Ahead

METRICS: Final = {metric.name: metric for metric in (CONTEXT_AWARENESS, CONTEXTUAL_RELEVANCY)}
_NAMES: Final = ", ".join(map(repr, METRICS))

Identity = tuple[object, ...]  # of a metric, as it was set up, and a case


_LENT: Final = (
    "replayed from the cassette of another test, which may have been renamed; 'ctxeval cassettes adopt' moves such "
    "recordings to the test that uses them"
)

_FOR_NOTHING: Final = (
    "the marker's metrics= had this test's case judged before the test ran, and the test did not ask for it: by"
)


class Bench:
    """What the tests of one process share: the models that judge, and whether judging has been stopped."""

    def __init__(self, config: pytest.Config) -> None:
        self.settings = settings = config.stash[SETTINGS]
        self.neighbours = Neighbours(settings.cassettes, config.rootpath, config.stash.get(JUDGED, ()))
        self.stopped = ""  # why, once the judge has refused the key
        self._stopped_by: pytest.Item | None = None
        self.ahead_of: set[object] = set()  # the fixtures of judges whose tests have been looked at ahead
        self.unasked: list[dict[Identity, Judged]] = []  # what was judged ahead, until its test asks for it
        self._models: dict[int | str, JudgeModel] = {}
        self._exits = ExitStack()
        if settings.record != "off":
            self._exits.enter_context(routed())

    def model(self, given: Any) -> JudgeModel:
        """Give the judging model for what a `judge_model` fixture gave, the same one each time."""
        key = given if isinstance(given, str) else id(given)
        if key not in self._models:
            self._models[key] = JudgeModel(checked_model(given), use_structured_output=self.settings.structured)
        return self._models[key]

    def lets_stand(self, judged: Judged) -> bool:
        """Whether what was judged ahead is the last word; that the key was refused is told by one test alone."""
        refused = isinstance(judged.error, JudgeUnreachableError) and judged.error.refused
        return judged.is_final and not (refused and self.stopped)

    def stop(self, why: str, item: pytest.Item) -> None:
        """Judge nothing more in this process."""
        self.stopped, self._stopped_by = why, item

    def refuse(self, item: pytest.Item) -> NoReturn:
        """End a test that was to be judged after the stop: it is skipped. One that is run again says why once more."""
        __tracebackhide__ = True
        if item is self._stopped_by:
            raise JudgeUnreachableError(self.stopped, refused=True)
        pytest.skip(f"judging was stopped: {self.stopped}")

    def close(self) -> None:
        """Take the patch of the transports away."""
        self._exits.close()


def bench_of(config: pytest.Config) -> Bench:
    """Give the bench of this process, made at the first use."""
    if BENCH not in config.stash:
        config.stash[BENCH] = Bench(config)
    return config.stash[BENCH]


class ItemJudge(Judge):
    """The judge of this test. Each (metric, case) is judged once, and its result is kept for the run."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._item: pytest.Item = request.node
        self._request = request
        self._bench = bench_of(request.config)
        settings = self._bench.settings
        ahead = self.look_ahead()
        super().__init__(
            self._model,
            tape=ahead.tape if ahead else tape_of(self._item, settings, self._bench.neighbours),
            samples=samples_of(self._item, settings),
            concurrency=settings.concurrency,
            timeout_s=settings.timeout_s,
        )
        self._results = self._item.stash[RESULTS]  # of this attempt, whatever threads it has left behind
        self._lock = threading.Lock()
        self._turns: dict[Identity, threading.Lock] = {}  # a test may judge in threads of its own
        self._verdicts: dict[Identity, Verdict] = {}
        self._places: dict[Identity, int] = {}  # of results, by metric and case

    def assess(self, metric: Metric | str, case: ContextCase, *, min: float | None = None) -> Verdict:
        """Judge a case by a metric (or its name), and keep the result; `min` is the bar of an assertion, 0 to 1.

        Raises `ConfigError` where the case lacks what the metric needs, `JudgeError` where the judge fails and
        `CassetteError` where there is nothing to replay: the case is then kept as unscored.
        """
        __tracebackhide__ = True
        metric = metric_of(metric)
        if not isinstance(case, ContextCase):
            raise ConfigError(
                f"judge.assess: a {type(case).__name__} is no case; give a ContextCase, for instance "
                "context_case(query=..., assistant=...)"
            )
        if min is not None and not is_share(min):
            raise ConfigError(f"judge.assess: min={min!r} is no bar; give a number from 0 to 1")
        identity = identity_of(metric, case)
        with self._turn(identity):
            return self._assessed(metric, case, identity, min)

    def _assessed(self, metric: Metric, case: ContextCase, identity: Identity, min: float | None) -> Verdict:
        __tracebackhide__ = True
        known = self._verdicts.get(identity)
        if known is not None:
            self._raise_bar(identity, min)
            return known
        judged = self._ahead.pop(identity, None)
        if judged is not None and not self._bench.lets_stand(judged):  # what it has cost counts all the same
            self._keep(identity, self._unscored(metric, case, min, _why(judged.error), judged.cost))
            judged = None
        if judged is None and self._bench.stopped:
            self._keep(identity, self._unscored(metric, case, min, self._bench.stopped))
            self._bench.refuse(self._item)
        judged = judged or self.attempt(metric, case)
        if judged.verdict is None:
            self._fail(identity, self._unscored(metric, case, min, _why(judged.error), judged.cost), judged.error)
        verdict = judged.unwrap()
        self._verdicts[identity] = verdict
        self._keep(identity, self._scored(verdict, case, min))
        if judged.judge is not None:
            judged.judge.tell()
        return verdict

    def look_ahead(self) -> Ahead | None:
        """Take what was judged before the test has asked for it, and give it with its cassette."""
        ahead = _ahead_of(self._item)
        self._ahead = ahead.judged if ahead else {}
        return ahead

    def has(self, metric: Metric, case: ContextCase) -> bool:
        """Whether a case was judged by a metric already."""
        return identity_of(metric, case) in self._verdicts

    def case_of(self, batch: Batch, *, context: str) -> ContextCase:
        """Put a batch in the session of this test, as its marker describes it."""
        session = collect.blank_case(self._item)
        named = {name: getattr(session, name) for name in ("session_id", "assistant_id", "language")}
        return ContextCase.from_batch(batch, context=context, **named)

    def close(self) -> None:
        """Save what was recorded. Raises `CassetteError` where it must not or cannot be written."""
        __tracebackhide__ = True
        kept = False
        try:
            kept = self.tape is None or self.tape.close(self._ending)
        except CassetteError as error:
            raise error.with_traceback(None) from None
        finally:
            if not kept:  # what was to be recorded has gone out and is nowhere: it was live
                self._results[:] = [_as_live(result) for result in self._results]
                self._item.stash[SENT] = -1
        if self._ahead and self._ending == "passed":
            named = ", ".join(sorted({str(identity[0]) for identity in self._ahead}))
            self._item.warn(CtxEvalWarning(f"{_FOR_NOTHING} {named}"))
        if self.tape is not None:
            self._tell_use(self.tape.use(self._ending))

    def _tell_use(self, use: Use) -> None:
        """Send on what the test made of its cassettes, where there is something to see to."""
        __tracebackhide__ = True
        if use != Use():
            self._item.stash[USE], self._item.stash[SENT] = use, -1
        if use.lent:
            self._item.warn(CtxEvalWarning(_LENT))

    @property
    def _ending(self) -> Ending:
        ending = self._item.stash.get(ENDING, None) or "broken"
        return "asserted" if ending == "passed" and self._item.stash.get(PART_FAILED, False) else ending

    def _keep(self, identity: Identity, result: CaseResult) -> None:
        """Keep a result. A case that is asked for again, once the judge has failed on it, has one still."""
        with self._lock:
            place = self._places.setdefault(identity, len(self._results))
            before = self._results[place : place + 1]
            if any(each.calls != Calls() for each in before):
                spent = sum(map(cost_of, before), cost_of(result))
                result = replace(result, calls=spent.calls, tokens=spent.tokens)
            self._results[place : place + 1] = [result]

    def _turn(self, identity: Identity) -> threading.Lock:
        with self._lock:
            return self._turns.setdefault(identity, threading.Lock())

    def _raise_bar(self, identity: Identity, bar: float | None) -> None:
        """Let the higher bar count where a case is asserted twice."""
        result = self._results[self._places[identity]]
        bars = [each for each in (result.min, bar) if each is not None]
        self._results[self._places[identity]] = replace(result, min=max(bars, default=None))

    def _fail(self, identity: Identity, result: CaseResult, error: Exception | None) -> NoReturn:
        __tracebackhide__ = True
        self._keep(identity, result)
        if isinstance(error, JudgeUnreachableError) and error.refused:
            self._bench.stop(one_line(str(error), 300), self._item)
        assert error is not None
        if isinstance(error, CtxEvalError):
            raise error.with_traceback(None) from None  # the way through the judge says nothing to the reader
        raise error

    def _model(self) -> JudgeModel:
        with self._lock:
            try:
                given = self._request.getfixturevalue("judge_model")
            except pytest.fail.Exception as error:
                raise ConfigError(
                    "judge_model could not be set up; where it has params, the test must name it among its arguments: "
                    f"{one_line(str(error), 200)}"
                ) from None
            return self._bench.model(given)

    def _scored(self, verdict: Verdict, case: ContextCase, min: float | None) -> CaseResult:
        return CaseResult(
            **self._about(case),
            metric=verdict.metric,
            score=verdict.score,
            reason=verdict.reason,
            min=min,
            samples=verdict.samples,
            statements=verdict.statements,
            judge=verdict.judge,
            prompt_version=verdict.prompt_version,
            source=verdict.source,
            calls=verdict.calls,
            tokens=verdict.tokens,
            cassette=verdict.cassette,
            temperature=verdict.temperature,
        )

    def _unscored(
        self, metric: Metric, case: ContextCase, min: float | None, why: str, cost: Cost | None = None
    ) -> CaseResult:
        about = {**self._about(case), "metric": metric.name, "prompt_version": metric.version}
        result = CaseResult(**about, score=None, unscored=why, min=min)
        return replace(result, calls=cost.calls, tokens=cost.tokens or None) if cost else result

    def _about(self, case: ContextCase) -> dict[str, Any]:
        return {
            "node_id": self._item.stash[NODE_ID],
            "position": self._item.stash[POSITION],
            "line": collect.line_of(self._item),
            **{name: getattr(case, name) for name in _CARRIED},
            "retrieval_context": None if case.retrieval_context is None else [*case.retrieval_context],
        }


_CARRIED: Final = (
    "session_id",
    "assistant_id",
    "qa_id",
    "weight",
    "query",
    "assistant",
    "context",
    "ground_truth_assistant",
    "language",
)


def _ahead_of(item: pytest.Item) -> Ahead | None:
    """Give what was judged before the test asks for it: to this attempt alone."""
    if AHEAD not in item.stash:
        return None
    ahead = item.stash[AHEAD]
    del item.stash[AHEAD]
    return ahead.take()


def samples_of(item: pytest.Item, settings: Settings) -> int:
    """How often each case of this test is judged: the nearest marker that says so, else the settings."""
    for marker in item.iter_markers("ctxeval"):
        if "samples" in marker.kwargs:
            return int(marker.kwargs["samples"])
    return settings.samples


def identity_of(metric: Metric, case: ContextCase) -> Identity:
    """Give what a verdict is known by: two templates may share all but the text for this very case."""
    try:
        asked = tuple((prompt.system, prompt.user) for prompt in metric.prompts(case, None))
    except ConfigError:  # told when it is to be judged
        asked = ()
    return (metric.name, metric.version, metric.variant, repr(dict(case)), asked)


def metric_of(metric: Metric | str) -> Metric:
    __tracebackhide__ = True
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        what = f"{metric.__name__} is a function; call it" if callable(metric) and hasattr(metric, "__name__") else ""
        told = what or f"a {type(metric).__name__} is no metric"
        raise ConfigError(f"judge.assess: {told}; give contextual_relevancy(...), for instance, or one of {_NAMES}")
    if metric not in METRICS:
        raise ConfigError(f"{metric!r} is no metric; {nearest(metric, METRICS)}")
    return METRICS[metric]


def _why(error: Exception | None) -> str:
    return one_line(str(error), 300) or type(error).__name__


def _as_live(result: CaseResult) -> CaseResult:
    calls = result.calls
    if not calls.recorded:
        return result
    return replace(result, source="live", calls=Calls(replayed=calls.replayed, live=calls.live + calls.recorded))


def model_from_settings(settings: Settings) -> BaseChatModel:
    """Build the judge that the options name. Raises `ConfigError` that shows both ways where there is none."""
    if settings.judge is None:
        raise ConfigError(NO_JUDGE)
    return model_from_name(settings.judge)
