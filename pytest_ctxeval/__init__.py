"""Does the assistant still follow its context? A pytest plugin that asks a language model once and replays it for ever.

Public names are loaded at their first use, so that importing the package costs nothing. Nothing in here is asserted:
PYTEST_DONT_REWRITE, since `ctxeval` has imported this before it starts pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ctxeval._core.data import Batch, ContextCase, ContextInteraction, ContextMetric, Dataset, ModelTestCase
    from pytest_ctxeval._core.statistics import BayesianMode, FrequentistMode
    from pytest_ctxeval._core.verdict import Statement, Verdict
    from pytest_ctxeval._datasets.retriever import Retriever
    from pytest_ctxeval._judge.judge import Judge
    from pytest_ctxeval._metrics.context_awareness import (
        CONTEXT_AWARENESS,
        ContextAwarenessTemplate,
        context_awareness,
    )
    from pytest_ctxeval._metrics.contextual_relevancy import CONTEXTUAL_RELEVANCY, contextual_relevancy
    from pytest_ctxeval._metrics.prompt import Metric, enclose
    from pytest_ctxeval._metrics.relevancy_prompt import ContextualRelevancyTemplate
    from pytest_ctxeval._plugin.assertions import assert_context_awareness, assert_contextual_relevancy
    from pytest_ctxeval.errors import (
        CassetteError,
        CassetteMissError,
        CassetteReadError,
        ConfigError,
        CtxEvalError,
        CtxEvalWarning,
        JudgeError,
        JudgeReplyError,
        JudgeUnreachableError,
        ScoreTooLow,
    )

__all__ = [
    "CONTEXTUAL_RELEVANCY",
    "CONTEXT_AWARENESS",
    "Batch",
    "BayesianMode",
    "CassetteError",
    "CassetteMissError",
    "CassetteReadError",
    "ConfigError",
    "ContextAwarenessTemplate",
    "ContextCase",
    "ContextInteraction",
    "ContextMetric",
    "ContextualRelevancyTemplate",
    "CtxEvalError",
    "CtxEvalWarning",
    "Dataset",
    "FrequentistMode",
    "Judge",
    "JudgeError",
    "JudgeReplyError",
    "JudgeUnreachableError",
    "Metric",
    "ModelTestCase",
    "Retriever",
    "ScoreTooLow",
    "Statement",
    "Verdict",
    "assert_context_awareness",
    "assert_contextual_relevancy",
    "context_awareness",
    "contextual_relevancy",
    "enclose",
]

_HOMES = {
    "_core.data": ("Batch", "ContextCase", "ContextInteraction", "ContextMetric", "Dataset", "ModelTestCase"),
    "_core.statistics": ("BayesianMode", "FrequentistMode"),
    "_core.verdict": ("Statement", "Verdict"),
    "_datasets.retriever": ("Retriever",),
    "_judge.judge": ("Judge",),
    "_metrics.context_awareness": ("CONTEXT_AWARENESS", "ContextAwarenessTemplate", "context_awareness"),
    "_metrics.contextual_relevancy": ("CONTEXTUAL_RELEVANCY", "contextual_relevancy"),
    "_metrics.prompt": ("Metric", "enclose"),
    "_metrics.relevancy_prompt": ("ContextualRelevancyTemplate",),
    "_plugin.assertions": ("assert_context_awareness", "assert_contextual_relevancy"),
    "errors": (
        "CassetteError", "CassetteMissError", "CassetteReadError", "ConfigError", "CtxEvalError", "CtxEvalWarning",
        "JudgeError", "JudgeReplyError", "JudgeUnreachableError", "ScoreTooLow",
    ),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
