"""Runs that nobody has run, for what is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_ctxeval._core.baseline import compare
from pytest_ctxeval._core.gate import check_gates, parse_gate
from pytest_ctxeval._core.run import Run
from pytest_ctxeval._core.statistics import BayesianMode
from pytest_ctxeval._core.summary import summarise
from pytest_ctxeval._core.verdict import Calls, CaseResult, Sample
from pytest_ctxeval._report.report import Report

METRICS = ("context_awareness", "contextual_relevancy")


def result(name: str, score: float | None, **fields: Any) -> CaseResult:
    """One case, judged with the reason that it was so."""
    about: dict[str, Any] = {
        "node_id": f"tests/test_it.py::test_answers[shop-{name}]",
        "session_id": "shop",
        "assistant_id": "bot",
        "metric": "context_awareness",
        "reason": f"{name} is as good as that",
        "min": 0.8,
        "query": f"What of {name}?",
        "assistant": f"The answer to {name}.",
        "context": "Open 9 to 5.",
        "judge": "gpt",
        "prompt_version": "1",
        "temperature": 0.0,
        "source": "replayed",
        "calls": Calls(replayed=1),
        "tokens": 100,
        "cassette": f"cassettes/test_it/{name}.yaml",
        "unscored": "the judge is gone" if score is None else None,
        "samples": () if score is None else (Sample(score, f"{name} is as good as that"),),
    }
    return CaseResult(qa_id=name, position=0, score=score, **{**about, **fields})


def report(
    *results: CaseResult, old: Sequence[CaseResult] | None = None, gates: Sequence[str] = (), **fields: Any
) -> Report:
    """What is told of these cases, in this order, against those of `old` where that is given."""
    summary = summarise([replace(each, position=at) for at, each in enumerate(results)], BayesianMode())
    comparison = None if old is None else compare(summarise(old, BayesianMode()), summary)
    parsed = [parse_gate(text, metrics=METRICS, required=True) for text in gates]
    given: dict[str, Any] = {"baseline": "main.json" if old is not None else "", **fields}
    return Report(
        Run(summary.results), summary, check_gates(parsed, summary, comparison), comparison=comparison, **given
    )
