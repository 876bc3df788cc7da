"""The cases to look at, each in a fold of its own."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from pytest_ctxeval._core.verdict import CaseResult, spread_of
from pytest_ctxeval._report.bad_cases import BadCase, bad_cases, counted
from pytest_ctxeval._report.failure import spread_text
from pytest_ctxeval._report.markdown_text import Limit, html_code, quoted, within, words
from pytest_ctxeval._report.report import Report

_FOLDS: Final = Limit(10, 25_000)
_STATEMENTS: Final = 3


def folds(report: Report) -> str:
    """Give the first of them, and how many more there are."""
    bad = bad_cases(report)
    shown = within(_FOLDS, map(_fold, bad))
    more = [f"... and more: {counted(bad[len(shown) :])}"] if len(shown) < len(bad) else []
    return "\n\n".join([*shown, *more])


def _fold(case: BadCase) -> str:
    result = case.result
    metric = words(result.metric.replace("_", " "), html_code)
    title = f"<b>{escape(case.fault)}</b> {html_code(result.node_id)} {metric}"
    facts = [f"- {name}: {text}" for name, text in _facts(result, case.old)]
    return "\n".join([f"<details><summary>{title}</summary>", "", *facts, "", "</details>"])


def _facts(result: CaseResult, old: CaseResult | None) -> Iterator[tuple[str, str]]:
    yield "query", quoted(result.query)
    if result.metric != "contextual_relevancy":
        yield "assistant", quoted(result.assistant)
        if old is not None and old.assistant != result.assistant:
            yield "assistant before", quoted(old.assistant)
    bad = [each for each in result.statements if not each.relevant]
    for statement in bad[:_STATEMENTS]:
        yield f"not relevant in chunk {statement.chunk}", quoted(statement.statement or statement.reason or "")
    if len(bad) > _STATEMENTS:
        yield "not relevant", f"{len(bad) - _STATEMENTS} more"
    if result.score is None:
        yield "unscored", quoted(result.unscored or "")
    else:
        yield "reason", quoted(result.reason)
    spread = spread_of(result.samples)
    if spread is not None:
        yield "samples", f"{spread.n}, {spread_text(spread, result.min)}"
    if old is not None:
        yield "before", "unscored" if old.score is None else f"{old.score:.2f} {quoted(old.reason)}"
