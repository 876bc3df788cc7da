"""What a failed assertion says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pytest_ctxeval._core.data import ContextCase
from pytest_ctxeval._core.numbers import below
from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import Verdict

_WIDTH: Final = 400  # of a query, an answer, a reason
_EXCERPT: Final = 200  # of a context


def failure_text(verdict: Verdict, case: ContextCase, *, min: float, band: str) -> str:
    """Give the text of a `ScoreTooLow`: the numbers first, then what one needs to judge the judge."""
    title = verdict.metric.replace("_", " ")
    lines = [f"{below(verdict.score, min)} {title} of {case.qa_id!r} ({band})", ""]
    lines += [f"{name:<10} {text}" for name, text in _facts(verdict, case)]
    where = f", {verdict.source} from {verdict.cassette}" if verdict.source == "replayed" else f", {verdict.source}"
    return "\n".join([*lines, "", f"judged by {one_line(verdict.judge, 80)}{where}"])


def _facts(verdict: Verdict, case: ContextCase) -> Iterator[tuple[str, str]]:
    yield "query", one_line(case.query, _WIDTH)
    yield "assistant", one_line(case.assistant, _WIDTH)
    if case.ground_truth_assistant:
        yield "truth", one_line(case.ground_truth_assistant, _WIDTH)
    yield "context", excerpt(case.context, near=f"{case.query} {case.assistant} {verdict.reason}")
    if len(verdict.samples) > 1:
        yield "samples", " ".join(f"{sample.score:.2f}" for sample in verdict.samples)
    yield "reason", one_line(verdict.reason, _WIDTH)


def excerpt(text: str, *, near: str) -> str:
    """Give the part of a long text that has most words in common with `near`, on one line."""
    text = " ".join(text.split())
    if len(text) <= _EXCERPT + 40:
        return one_line(text)
    words = {word for word in re.findall(r"\w+", near.lower()) if len(word) > 3 or not word.isascii()}
    low = text.lower()
    hits = {
        at: sum(word in low[at : at + _EXCERPT] for word in words) for at in range(0, len(text) - _EXCERPT + 40, 40)
    }
    best = [at for at, found in hits.items() if found == max(hits.values())]
    start = best[len(best) // 2]
    end = start + _EXCERPT
    return f"{'... ' if start else ''}{one_line(text[start:end])}{' ...' if end < len(text) else ''}"
