"""The assertion helpers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxeval._plugin.stash import JUDGE, RUNNING
from pytest_ctxeval.errors import ConfigError, ScoreTooLow

if TYPE_CHECKING:
    from pytest_ctxeval._core.data import Batch, ContextCase
    from pytest_ctxeval._core.verdict import Verdict
    from pytest_ctxeval._metrics.prompt import Metric
    from pytest_ctxeval._plugin.item_judge import ItemJudge


def assert_context_awareness(
    case: Batch, *, min: float = 0.8, context: str | None = None, metric: Metric | None = None
) -> Verdict:
    """Assert that the answer of a case keeps to its context: score >= `min`, both 0 to 1.

    `case` is a `ContextCase`, or a `Batch` with `context=`; `metric` is one made by `context_awareness(...)`. Returns
    the verdict. Raises `ScoreTooLow` below the bar, `ConfigError` where the case lacks a context, a query or an answer,
    and `JudgeError` or `CassetteError` where there is no verdict: the case is then unscored.
    """
    __tracebackhide__ = True
    from pytest_ctxeval._metrics.context_awareness import CONTEXT_AWARENESS

    return _assert_score(CONTEXT_AWARENESS, metric, case, min=min, context=context)


def assert_contextual_relevancy(case: Batch, *, min: float = 0.5, metric: Metric | None = None) -> Verdict:
    """Assert that what was retrieved for a query is about it: score >= `min`, both 0 to 1.

    `case` is a `ContextCase` or a `Batch`, with its `retrieval_context`; `metric` is one made by
    `contextual_relevancy(...)`. Returns the verdict, with its statements. Raises as `assert_context_awareness` does;
    an answer and a context are not needed.
    """
    __tracebackhide__ = True
    from pytest_ctxeval._metrics.contextual_relevancy import CONTEXTUAL_RELEVANCY

    return _assert_score(CONTEXTUAL_RELEVANCY, metric, case, min=min)


def _assert_score(
    standard: Metric, metric: Metric | None, given: object, *, min: float, context: str | None = None
) -> Verdict:
    __tracebackhide__ = True
    from pytest_ctxeval._core.checks import is_share
    from pytest_ctxeval._core.verdict import reaches
    from pytest_ctxeval._judge.cassette.secrets import redacted
    from pytest_ctxeval._report.failure import failure_text

    helper = f"assert_{standard.name}"
    if not is_share(min):
        raise ConfigError(f"{helper}: min={min!r} is no bar; give a number from 0 to 1")
    metric = standard if metric is None else metric
    if getattr(metric, "name", None) != standard.name:
        raise ConfigError(f"{helper}: metric= is none of {standard.title}; make it with {standard.name}(...)")
    judge = _judge_of_test(helper)
    case = _case(helper, judge, given, context, needs_context=standard.name == "context_awareness")
    verdict = judge.assess(metric, case, min=min)
    if not reaches(verdict.score, min):
        told = failure_text(verdict, case, min=min, in_words=metric.in_words(verdict))
        raise ScoreTooLow(redacted(told), verdict=verdict, min=min)
    return verdict


def _case(helper: str, judge: ItemJudge, given: object, context: str | None, *, needs_context: bool) -> ContextCase:
    __tracebackhide__ = True
    from pytest_ctxeval._core.data import Batch, ContextCase

    if isinstance(given, ContextCase):
        return given if context is None else given(context=context)
    if not isinstance(given, Batch):
        wanted = "a Batch with context=" if needs_context else "a Batch"
        raise ConfigError(f"{helper}: a {type(given).__name__} is no case; give a ContextCase, or {wanted}")
    if context is None and needs_context:
        raise ConfigError(f"{helper}: a Batch has no context of its own; give it with context=")
    return judge.case_of(given, context=context or "")


def _judge_of_test(helper: str) -> ItemJudge:
    __tracebackhide__ = True
    if not RUNNING:
        raise ConfigError(
            f"{helper} was called outside of a test that uses the plugin; take the fixture context_case or judge, or "
            "mark the test with @pytest.mark.ctxeval"
        )
    judge = RUNNING[-1].stash.get(JUDGE, None)
    if judge is None:
        raise ConfigError(
            f"{helper} was called before the fixtures of its test were set up; take the fixture judge in yours"
        )
    return judge
