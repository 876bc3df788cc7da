"""Every labelled answer is judged and none is asserted: `benchmarks/judge_quality.py` compares verdicts and labels."""

from pathlib import Path
from typing import Any

import pytest

from pytest_ctxeval import ContextCase

HERE = Path(__file__).parent


@pytest.mark.ctxeval(dataset="awareness.jsonl")
def test_awareness(context_case: ContextCase, judge: Any) -> None:
    judge.assess("context_awareness", context_case)


@pytest.mark.ctxeval(dataset="relevancy.jsonl")
def test_relevancy(context_case: ContextCase, judge: Any) -> None:
    judge.assess("contextual_relevancy", context_case)
