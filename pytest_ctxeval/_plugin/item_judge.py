"""The judge of one test: bound to its cassette, and keeping every result for the run."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest
from langchain_core.language_models import BaseChatModel

from pytest_ctxeval._core.data import Batch, ContextCase
from pytest_ctxeval._core.text import nearest, one_line
from pytest_ctxeval._core.verdict import Calls, CaseResult, Verdict
from pytest_ctxeval._judge.cassette.miss import keyless_error, miss_error
from pytest_ctxeval._judge.cassette.tape import Call, Tape
from pytest_ctxeval._judge.cassette.transport import install, routed
from pytest_ctxeval._judge.judge import Judge, JudgeModel
from pytest_ctxeval._judge.model import checked_model, model_from_name
from pytest_ctxeval._judge.placeholder import placeholder_keys
from pytest_ctxeval._judge.provider import NO_JUDGE
from pytest_ctxeval._metrics.context_awareness import CONTEXT_AWARENESS
from pytest_ctxeval._metrics.prompt import Metric
from pytest_ctxeval._plugin import collect
from pytest_ctxeval._plugin.options import Settings
from pytest_ctxeval._plugin.stash import BENCH, FINISHED, NODE_ID, POSITION, RESULTS, SETTINGS
from pytest_ctxeval.errors import CassetteError, ConfigError, CtxEvalError, JudgeUnreachableError

METRICS: Final = {metric.name: metric for metric in (CONTEXT_AWARENESS,)}


class Bench:
    """What the tests of one process share: the models that judge, and whether judging has been stopped."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stopped: str | None = None
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

    def close(self) -> None:
        """Take the patch of the transports away."""
        self._exits.close()


def bench_of(config: pytest.Config) -> Bench:
    """Give the bench of this process, made at the first use."""
    if BENCH not in config.stash:
        config.stash[BENCH] = Bench(config.stash[SETTINGS])
    return config.stash[BENCH]


class ItemJudge(Judge):
    """The judge of this test. Each (metric, case) is judged once, and its result is kept for the run."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._item: pytest.Item = request.node
        self._request = request
        self._bench = bench_of(request.config)
        settings = self._bench.settings
        super().__init__(
            self._model,
            tape=_tape(self._item, settings),
            samples=samples_of(self._item, settings),
            concurrency=settings.concurrency,
            timeout_s=settings.timeout_s,
        )
        self._lock = threading.Lock()
        self._verdicts: dict[tuple[str, str], tuple[Verdict, int]] = {}

    def assess(self, metric: Metric | str, case: ContextCase, *, min: float | None = None) -> Verdict:
        """Judge a case by a metric (or its name), and keep the result; `min` is the bar of an assertion, 0 to 1.

        Raises `ConfigError` where the case lacks what the metric needs, `JudgeError` where the judge fails and
        `CassetteError` where there is nothing to replay: the case is then kept as unscored.
        """
        __tracebackhide__ = True
        metric = _metric(metric)
        identity = (metric.name, repr(case))
        known = self._verdicts.get(identity)
        if known is not None:
            verdict, number = known
            if min is not None:
                self._results[number] = _with_bar(self._results[number], min)
            return verdict
        if self._bench.stopped:
            self._results.append(self._unscored(metric, case, min, self._bench.stopped))
            pytest.skip(f"judging was stopped: {self._bench.stopped}")
        try:
            verdict = super().assess(metric, case)
        except Exception as error:
            self._results.append(self._unscored(metric, case, min, one_line(str(error), 300) or type(error).__name__))
            if isinstance(error, JudgeUnreachableError) and error.refused:
                self._bench.stopped = one_line(str(error), 300)
            if isinstance(error, CtxEvalError):
                raise error.with_traceback(None) from None  # the way through the judge says nothing to the reader
            raise
        with self._lock:  # a test may judge in threads of its own
            self._verdicts[identity] = (verdict, len(self._results))
            self._results.append(self._scored(verdict, case, min))
        return verdict

    def case_of(self, batch: Batch, *, context: str) -> ContextCase:
        """Put a batch in the session of this test."""
        session = collect.blank_case(self._item).session_id
        return ContextCase.from_batch(batch, context=context, session_id=session)

    def close(self) -> None:
        """Save what was recorded. Raises `CassetteError` where it must not or cannot be written."""
        if self.tape is not None:
            self.tape.close(finished=self._item.stash.get(FINISHED, False))

    @property
    def _results(self) -> list[CaseResult]:
        return self._item.stash[RESULTS]

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
        )

    def _unscored(self, metric: Metric, case: ContextCase, min: float | None, why: str) -> CaseResult:
        return CaseResult(**self._about(case), metric=metric.name, score=None, unscored=why, min=min)

    def _about(self, case: ContextCase) -> dict[str, Any]:
        return {
            "node_id": self._item.stash[NODE_ID],
            "position": self._item.stash[POSITION],
            **{name: getattr(case, name) for name in _CARRIED},
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


class AssistantCassette:
    """`with ctxeval_cassette:` puts the assistant's own model calls on the cassette of the test."""

    def __init__(self, judge: ItemJudge) -> None:
        self._tape = judge.tape
        self._open: list[tuple[ExitStack, Call]] = []
        self.calls = Calls()

    def __enter__(self) -> None:
        """Record or replay what is asked over HTTP in the block."""
        __tracebackhide__ = True
        if self._tape is None:
            return
        install()
        with ExitStack() as stack:
            stack.enter_context(placeholder_keys())
            call = stack.enter_context(self._tape.call())
            self._open.append((stack.pop_all(), call))

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Keep what was recorded. Raises `CassetteMissError` where something was asked that is not recorded."""
        __tracebackhide__ = True
        if self._tape is None:
            return
        stack, call = self._open.pop()
        stack.close()
        if call.misses:
            raise miss_error(self._tape, call.misses[0]) from None
        if call.keyless:
            raise keyless_error(self._tape, "the assistant's model") from None
        if error is not None:
            return
        if not call.seen:
            raise CassetteError(
                "nothing was asked over HTTP inside 'with ctxeval_cassette:' that could be recorded or replayed; call "
                "the assistant inside the block, or use --ctxeval-record=off for one that runs in this process"
            )
        self.calls += self._tape.keep(call)


def samples_of(item: pytest.Item, settings: Settings) -> int:
    """How often each case of this test is judged: the nearest marker that says so, else the settings."""
    for marker in item.iter_markers("ctxeval"):
        if "samples" in marker.kwargs:
            return int(marker.kwargs["samples"])
    return settings.samples


def _metric(metric: Metric | str) -> Metric:
    if isinstance(metric, Metric):
        return metric
    if metric not in METRICS:
        raise ConfigError(f"{metric!r} is no metric; {nearest(metric, METRICS)}")
    return METRICS[metric]


def _with_bar(result: CaseResult, bar: float) -> CaseResult:
    """The higher bar counts where a case is asserted twice."""
    return replace(result, min=bar if result.min is None else max(result.min, bar))


def _tape(item: pytest.Item, settings: Settings) -> Tape | None:
    if settings.record == "off":
        return None
    node = item.stash[NODE_ID]
    path = settings.cassettes / cassette_path(node)
    shown = path.relative_to(item.config.rootpath) if path.is_relative_to(item.config.rootpath) else path
    return Tape(path, node=node, mode=settings.record, shown=shown.as_posix())


def cassette_path(node_id: str) -> Path:
    """Give each test a file of its own: readable, the same on every system, distinct whatever stands in the id."""
    file, _, test = node_id.partition("::")
    folders = [_slug(part) for part in file.removesuffix(".py").split("/") if part not in ("", ".")]
    digest = sha256(node_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return Path(*folders, f"{_slug(test)}-{digest}.yaml")


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9_.-]+", "-", text.lower()).strip("-.")
    return slug[:60].rstrip("-.") or "_"


def model_from_settings(settings: Settings) -> BaseChatModel:
    """Build the judge that the options name. Raises `ConfigError` that shows both ways where there is none."""
    if settings.judge is None:
        raise ConfigError(NO_JUDGE)
    return model_from_name(settings.judge)
