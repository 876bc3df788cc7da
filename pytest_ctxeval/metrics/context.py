"""Context awareness of whole datasets, without pytest."""

from __future__ import annotations

import difflib
import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from pytest_ctxeval._core.checks import check_count, check_flag, check_seconds
from pytest_ctxeval._core.data import ContextCase, ContextInteraction, ContextMetric, Dataset
from pytest_ctxeval._core.statistics import FrequentistMode, StatisticalMode
from pytest_ctxeval._core.summary import SessionSummary, check_mode, summarise
from pytest_ctxeval._core.text import nearest, one_line
from pytest_ctxeval._core.verdict import CaseResult
from pytest_ctxeval._datasets.load import stream
from pytest_ctxeval._datasets.retriever import Retriever
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._judge.judge import Judge
from pytest_ctxeval._judge.model import checked_model
from pytest_ctxeval._judge.threads import in_order
from pytest_ctxeval._metrics.context_awareness import ContextAwarenessTemplate, context_awareness
from pytest_ctxeval._metrics.prompt import Clauses, Metric
from pytest_ctxeval.errors import ConfigError, CtxEvalError, CtxEvalWarning, JudgeUnreachableError

_LOG: Final = logging.getLogger("pytest_ctxeval")
_FREQUENTIST: Final = FrequentistMode()
_STANDARD: Final = Clauses()


class Context:
    """How closely an assistant's answers follow its context, session by session."""

    @classmethod
    def run(
        cls,
        retriever: type[Retriever] | Retriever,
        *,
        model: BaseChatModel | str,
        statistical_mode: StatisticalMode = _FREQUENTIST,
        use_structured_output: bool = False,
        bos_json_clause: str = _STANDARD.bos,
        eos_json_clause: str = _STANDARD.eos,
        verbose: bool = False,
        concurrency: int = 8,
        evaluation_template: object = ContextAwarenessTemplate,
        timeout_s: float = 120.0,
        **retriever_arguments: Any,
    ) -> list[ContextMetric]:
        """Judge every case of a retriever's datasets and give one `ContextMetric` per session, in their order.

        `model` is a LangChain chat model or a "provider:name"; at most `concurrency` of its calls are waited for at a
        time, each for `timeout_s` seconds.
        Datasets are read as they are needed and dropped once judged. `verbose` tells each verdict to the logger
        "pytest_ctxeval" at level INFO, else it is DEBUG. Further arguments build the retriever.

        A case that gets no verdict is counted in `n_unscored`, has no score, and its insight says why. Raises
        `TypeError` for an argument that nobody takes and `ConfigError` for a wrong one, both before the first call;
        `ConfigError` where the retriever fails, and `JudgeUnreachableError` where the judge refuses the key.
        """
        _check_retriever(retriever, retriever_arguments)
        check_mode(statistical_mode)
        check_flag("use_structured_output", use_structured_output)
        check_flag("verbose", verbose)
        check_count("concurrency", concurrency)
        check_seconds("timeout_s", timeout_s)
        judge_model = JudgeModel(checked_model(model, where="model= is"), use_structured_output=use_structured_output)
        clauses = _clauses(bos_json_clause, eos_json_clause)
        judge = Judge(lambda: judge_model, clauses=clauses, timeout_s=timeout_s)
        run = _Run(judge, context_awareness(template=evaluation_template), logging.INFO if verbose else logging.DEBUG)
        results = in_order(run.jobs(retriever, retriever_arguments), limit=concurrency)
        summary = summarise(results, statistical_mode)
        for row in summary.sessions:
            if row.note:
                warnings.warn(CtxEvalWarning(f"session {row.session_id!r}: {row.note}"), stacklevel=2)
        return run.metrics(summary.sessions, summary.results)


class _Run:
    """The cases of one run, as they come, and what is told of them."""

    def __init__(self, judge: Judge, metric: Metric, level: int) -> None:
        self._judge = judge
        self._metric = metric
        self._level = level
        self._refused: JudgeUnreachableError | None = None
        self._assistants: dict[str, str] = {}  # by session, those without a case included

    def jobs(self, retriever: object, arguments: Mapping[str, Any]) -> Iterator[Callable[[], CaseResult]]:
        """Give each case as a call that judges it."""
        position = 0
        for dataset in stream(retriever, arguments):
            self._assistants.setdefault(dataset.session_id, dataset.assistant_id)
            for case in _cases(dataset):
                yield partial(self._judged, case, position)
                position += 1

    def metrics(self, rows: tuple[SessionSummary, ...], results: tuple[CaseResult, ...]) -> list[ContextMetric]:
        """Give what came of each session, in order of first appearance."""
        by_session: dict[str, list[ContextInteraction]] = {session_id: [] for session_id in self._assistants}
        for result in results:
            by_session[result.session_id].append(
                ContextInteraction(
                    qa_id=result.qa_id, context_awareness=result.score, insight=result.unscored or result.reason
                )
            )
        known = {row.session_id: row for row in rows}
        return [
            _session_metric(session_id, self._assistants[session_id], known.get(session_id), interactions)
            for session_id, interactions in by_session.items()
        ]

    def _judged(self, case: ContextCase, position: int) -> CaseResult:
        """Judge a case; of it only what the session needs is kept."""
        if self._refused is not None:
            raise self._refused
        about = {name: getattr(case, name) for name in ("session_id", "assistant_id", "qa_id", "weight")}
        result = partial(CaseResult, node_id="", position=position, metric=self._metric.name, **about)
        where = one_line(f"{case.session_id} {case.qa_id}", 80)
        try:
            verdict = self._judge.assess(self._metric, case)
        except Exception as error:
            if isinstance(error, JudgeUnreachableError) and error.refused:
                self._refused = error
                raise
            why = one_line(str(error) if isinstance(error, CtxEvalError) else f"{type(error).__name__}: {error}", 300)
            _LOG.log(self._level, "%s: unscored: %s", where, why)
            return result(score=None, unscored=why)
        _LOG.log(self._level, "%s: %.2f %s", where, verdict.score, one_line(verdict.reason, 300))
        return result(score=verdict.score, reason=verdict.reason)


def _cases(dataset: Dataset) -> list[ContextCase]:
    try:
        return dataset.cases()
    except (ValueError, AttributeError) as error:  # of a value that was changed behind the back of its model
        told = "; ".join(str(error).splitlines()[:3])
        raise ConfigError(f"session {dataset.session_id!r}: its cases cannot be made: {told}") from error


def _session_metric(
    session_id: str, assistant_id: str, row: SessionSummary | None, interactions: list[ContextInteraction]
) -> ContextMetric:
    return ContextMetric(
        session_id=session_id,
        assistant_id=assistant_id,
        n_interactions=len(interactions),
        context_awareness=row.mean if row else None,
        context_awareness_ci_low=row.low if row else None,
        context_awareness_ci_high=row.high if row else None,
        interactions=interactions,
        n_unscored=row.n_unscored if row else 0,
    )


def _clauses(bos: str, eos: str) -> Clauses:
    for name, given in (("bos_json_clause", bos), ("eos_json_clause", eos)):
        text: object = given
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"{name}={given!r} is no mark; give the text that stands around the JSON of a reply")
    return Clauses(bos, eos)


def _check_retriever(retriever: Any, arguments: Mapping[str, Any]) -> None:
    if not callable(getattr(retriever, "load_dataset", None)):
        kind = f"the class {retriever.__name__}" if isinstance(retriever, type) else f"a {type(retriever).__name__}"
        raise ConfigError(f"Context.run: {kind} is no retriever; give a subclass of Retriever")
    taken = _parameters(retriever) if isinstance(retriever, type) else ()
    names = {each.name for each in taken if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    own = [each.name for each in inspect.signature(Context.run).parameters.values() if each.kind is each.KEYWORD_ONLY]
    takes_all = any(each.kind is each.VAR_KEYWORD for each in taken)
    for name in arguments:
        if name not in names and not (takes_all and not difflib.get_close_matches(name, own, n=1, cutoff=0.85)):
            raise TypeError(
                f"Context.run() got an unexpected keyword argument {name!r}, which the retriever does not take either; "
                f"{nearest(name, [*own, *sorted(names)])}"
            )


def _parameters(retriever: type) -> tuple[inspect.Parameter, ...]:
    try:
        return tuple(inspect.signature(retriever).parameters.values())
    except ValueError:  # of a built-in type beneath
        return ()
