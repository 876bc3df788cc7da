"""The metrics without pytest, where code written for fair-forge, gaussia and agensight looks for them.

Names are loaded at their first use, as those of the package are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ctxeval._core.data import ModelTestCase
    from pytest_ctxeval.metrics.context import Context
    from pytest_ctxeval.metrics.contextual_relevancy import ContextualRelevancyMetric

__all__ = ["Context", "ContextualRelevancyMetric", "ModelTestCase"]

_HOME_OF = {
    "Context": "pytest_ctxeval.metrics.context",
    "ContextualRelevancyMetric": "pytest_ctxeval.metrics.contextual_relevancy",
    "ModelTestCase": "pytest_ctxeval._core.data",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
