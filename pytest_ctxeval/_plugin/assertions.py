"""The assertion helpers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_ctxeval._plugin.stash import JUDGE, RUNNING
from pytest_ctxeval.errors import ConfigError, ScoreTooLow

if TYPE_CHECKING:
    from pytest_ctxeval._core.data import Batch
    from pytest_ctxeval._core.verdict import Verdict
    from pytest_ctxeval._metrics.prompt import Metric
    from pytest_ctxeval._plugin.item_judge import ItemJudge


def assert_context_awareness(case: Batch, *, min: float = 0.8, context: str | None = None) -> Verdict:
    """Assert that the answer of a case keeps to its context: score >= `min`, both 0 to 1.

    `case` is a `ContextCase`, or a `Batch` with `context=`. Returns the verdict. Raises `ScoreTooLow` below the bar,
    `ConfigError` where the case lacks a context, a query or an answer, and `JudgeError` or `CassetteError` where there
    is no verdict: the case is then unscored.
    """
    __tracebackhide__ = True
    from pytest_ctxeval._metrics.context_awareness import CONTEXT_AWARENESS

    return _assert_score(CONTEXT_AWARENESS, case, min=min, context=context)


def _assert_score(metric: Metric, batch: Any, *, min: float, context: str | None) -> Verdict:
    __tracebackhide__ = True
    from pytest_ctxeval._core.data import Batch, ContextCase
    from pytest_ctxeval._core.verdict import reaches
    from pytest_ctxeval._judge.cassette.secrets import redacted
    from pytest_ctxeval._metrics.context_awareness import band
    from pytest_ctxeval._report.failure import failure_text

    helper = f"assert_{metric.name}"
    given: object = min
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1:
        raise ConfigError(f"{helper}: min={min!r} is no bar; give a number from 0 to 1")
    judge = _judge_of_test(helper)
    if not isinstance(batch, Batch):
        raise ConfigError(
            f"{helper}: a {type(batch).__name__} is no case; give a ContextCase, or a Batch with context="
        )
    if isinstance(batch, ContextCase):
        case = batch if context is None else batch(context=context)
    elif context is None:
        raise ConfigError(f"{helper}: a Batch has no context of its own; give it with context=")
    else:
        case = judge.case_of(batch, context=context)
    verdict = judge.assess(metric, case, min=min)
    if not reaches(verdict.score, min):
        text = redacted(failure_text(verdict, case, min=min, band=band(verdict.score)))
        raise ScoreTooLow(text, verdict=verdict, min=min)
    return verdict


def _judge_of_test(helper: str) -> ItemJudge:
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
