"""Reports made by hand, of the cases that a test names."""

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


def case(qa_id: str, score: float | None, **fields: Any) -> CaseResult:
    """A case of the session `shop`, judged against a bar of 0.8; `fields` as in `CaseResult`."""
    given = {
        "node_id": f"test_shop.py::test_answers[shop-{qa_id}]",
        "position": 0,
        "session_id": "shop",
        "assistant_id": "bot",
        "metric": "context_awareness",
        "reason": "because" if score is not None else "",
        "unscored": None if score is not None else "the judge could not be reached",
        "min": 0.8,
        "query": "When?",
        "assistant": "9 to 5.",
        "context": "Open 9 to 5.",
        "samples": (Sample(score, "because"),) if score is not None else (),
        "judge": "gpt-4o-mini" if score is not None else None,
        "prompt_version": "1",
        "calls": Calls(replayed=1),
        "tokens": 70,
        "line": 7,
    }
    return CaseResult(qa_id=qa_id, score=score, **{**given, **fields})


def wordy(qa_id: str, score: float | None, **fields: Any) -> CaseResult:
    """Such a case, with texts that tell it from another."""
    reason = f"{qa_id} is as good as that"
    given: dict[str, Any] = {
        "node_id": f"tests/test_it.py::test_answers[shop-{qa_id}]",
        "reason": reason,
        "unscored": "the judge is gone" if score is None else None,
        "samples": () if score is None else (Sample(score, reason),),
        "query": f"What of {qa_id}?",
        "assistant": f"The answer to {qa_id}.",
        "judge": "gpt",
        "temperature": 0.0,
        "source": "replayed",
        "tokens": 100,
        "cassette": f"cassettes/test_it/{qa_id}.yaml",
    }
    return case(qa_id, score, **{**given, **fields})


def report(
    *cases: CaseResult, gates: Sequence[str] = (), old: Sequence[CaseResult] | None = None, **fields: Any
) -> Report:
    """A report of these cases, in this order, compared with the old ones where there are any.

    `fields` are as in `Report` and `Run`.
    """
    mode = BayesianMode()
    summary = summarise([replace(each, position=at) for at, each in enumerate(cases)], mode)
    of_run = {name: fields.pop(name) for name in list(fields) if name in Run.__dataclass_fields__}
    run = Run(results=summary.results, **of_run)
    comparison = None if old is None else compare(Run(summarise(old, mode).results), run)
    checks = check_gates([parse_gate(gate, metrics=METRICS, required=True) for gate in gates], summary, comparison)
    given = {"baseline": "main.json" if old is not None else "", "comparison": comparison, **fields}
    return Report(run=run, summary=summary, checks=checks, **given)
