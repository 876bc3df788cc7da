"""Contextual relevancy of one test case, without pytest."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from langchain_core.language_models import BaseChatModel

from pytest_ctxeval._core.checks import check_flag, check_seconds, is_share
from pytest_ctxeval._core.data import ContextCase, ModelTestCase
from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import Statement, Verdict, reaches
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._judge.judge import Judge
from pytest_ctxeval._judge.model import checked_model
from pytest_ctxeval._judge.provider import parse_judge
from pytest_ctxeval._metrics.contextual_relevancy import contextual_relevancy
from pytest_ctxeval._metrics.relevancy_prompt import ContextualRelevancyTemplate
from pytest_ctxeval.errors import ConfigError

_LOG: Final = logging.getLogger("pytest_ctxeval")
_DEFAULT_MODEL: Final = "gpt-4o"


class ContextualRelevancyMetric:
    """How much of what was retrieved for a query is about the query.

    `model` is a LangChain chat model, a "provider:name", or the name of one of OpenAI's, by default gpt-4o; it is built
    at the first call. In `strict_mode` the score is 1 if every statement is relevant, else 0; the threshold stands.
    Without `async_mode` the calls for many chunks run one after the other. `verbose_mode` tells each verdict to the
    logger "pytest_ctxeval" at level INFO, else it is DEBUG. `evaluation_template` is a class or an object with the
    methods of `ContextualRelevancyTemplate`; a call is given up after `timeout_s` seconds. Raises `ConfigError` for a
    wrong argument. It holds the outcome of one test case, the last: those that are judged side by side each take a
    metric of their own, or what `measure` returns.
    """

    score: float | None
    reason: str | None
    success: bool
    verdicts: tuple[Statement, ...]

    def __init__(  # noqa: PLR0917  # in the order in which agensight takes them
        self,
        threshold: float = 0.5,
        model: BaseChatModel | str | None = None,
        include_reason: bool = True,  # noqa: FBT001, FBT002  # likewise
        strict_mode: bool = False,  # noqa: FBT001, FBT002
        async_mode: bool = True,  # noqa: FBT001, FBT002
        verbose_mode: bool = False,  # noqa: FBT001, FBT002
        evaluation_template: object = ContextualRelevancyTemplate,
        *,
        timeout_s: float = 120.0,
    ) -> None:
        if not is_share(threshold):
            raise ConfigError(f"threshold={threshold!r} is not a number from 0 to 1")
        check_flag("async_mode", async_mode)
        check_flag("verbose_mode", verbose_mode)
        check_seconds("timeout_s", timeout_s)
        self.threshold = threshold
        self._include_reason = include_reason
        self._level = logging.INFO if verbose_mode else logging.DEBUG
        self._metric = contextual_relevancy(
            template=evaluation_template, strict_mode=strict_mode, include_reason=include_reason
        )
        self._given = _checked(model)
        self._model: JudgeModel | None = None
        self._judge = Judge(self._judge_model, concurrency=8 if async_mode else 1, timeout_s=timeout_s)
        self._start()

    def measure(self, test_case: ModelTestCase) -> float:
        """Judge a test case and give its score, 0 to 1; nothing of an earlier one is left.

        Raises `ConfigError` where it lacks a query, `JudgeError` where the judge fails: then there is no score.
        """
        self._start()
        return self._kept(self._judge.assess(self._metric, _case(test_case)))

    async def a_measure(self, test_case: ModelTestCase) -> float:
        """`measure` in a thread, for who is in an event loop. One that is given up leaves no outcome."""
        self._start()
        return self._kept(await asyncio.to_thread(self._judge.assess, self._metric, _case(test_case)))

    def _kept(self, verdict: Verdict) -> float:
        self.score = verdict.score
        self.reason = verdict.reason if self._include_reason else None
        self.verdicts = verdict.statements
        self.success = reaches(verdict.score, self.threshold)
        for each in verdict.statements:
            word = "relevant" if each.relevant else "not relevant"
            told = one_line(f"{each.statement} {each.reason or ''}", 300)
            _LOG.log(self._level, "chunk %d: %s: %s", each.chunk, word, told)
        _LOG.log(self._level, "contextual relevancy: %.2f, threshold %.2f", verdict.score, self.threshold)
        return verdict.score

    def is_successful(self) -> bool:
        """Whether the last test case reached the threshold."""
        return self.success

    def _start(self) -> None:
        self.score, self.reason, self.success, self.verdicts = None, None, False, ()

    def _judge_model(self) -> JudgeModel:
        if self._model is None:
            self._model = JudgeModel(checked_model(self._given))
        return self._model


def _checked(model: object) -> BaseChatModel | str:
    if model is None or isinstance(model, str):
        name = _DEFAULT_MODEL if model is None else model
        name = name if ":" in name else f"openai:{name}"
        parse_judge(name)
        return name
    return checked_model(model, where="model= is")


def _case(given: object) -> ContextCase:
    if not isinstance(given, ModelTestCase):
        raise ConfigError(f"a {type(given).__name__} is no test case; give a ModelTestCase")
    name = given.name or "test case"
    if not given.input.strip():
        raise ConfigError(f"{name!r}: contextual relevancy needs input=, and it is blank")
    return ContextCase(
        qa_id=name,
        session_id="test cases",
        query=given.input,
        assistant=given.actual_output,
        retrieval_context=given.retrieval_context,
    )
