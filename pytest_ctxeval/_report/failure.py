"""What a failed assertion says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_ctxeval._core.data import ContextCase
from pytest_ctxeval._core.numbers import below, figure
from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import Spread, Statement, Verdict, spread_of

_WIDTH: Final = 400  # of a query, an answer, a reason
_EXCERPT: Final = 200  # of a context, a chunk
_WORDS: Final = 200  # that an excerpt is chosen by
_STEP: Final = 40  # from one part to the next that is looked at
_CHUNKS: Final = 5  # that hold something irrelevant
_STATEMENTS: Final = 3  # of one chunk


def failure_text(verdict: Verdict, case: ContextCase, *, min: float, in_words: str) -> str:
    """Give the text of a `ScoreTooLow`: the numbers first, then what one needs to judge the judge."""
    title = verdict.metric.replace("_", " ")
    lines = [f"{below(verdict.score, min)} {title} of {one_line(repr(case.qa_id), 80)} ({in_words})", ""]
    lines += [f"{name:<10} {text}" for name, text in _facts(verdict, case, min)]
    return "\n".join([*lines, "", _judged_by(verdict)])


def spread_text(spread: Spread, bar: float | None) -> str:
    """Say how far the samples of a case lie apart, and whether its bar lies among them."""
    told = f"{spread.low:.2f} to {spread.high:.2f}"
    return f"within the spread of the bar {figure(bar)}, {told}" if bar is not None and spread.holds(bar) else told


def _judged_by(verdict: Verdict) -> str:
    if verdict.source == "none":
        return "judged without asking a model"
    where = f" from {verdict.cassette}" if verdict.source == "replayed" else ""
    return f"judged by {one_line(verdict.judge, 80)}, {verdict.source}{where}"


def _facts(verdict: Verdict, case: ContextCase, min: float) -> Iterator[tuple[str, str]]:
    yield "query", one_line(case.query, _WIDTH)
    if verdict.metric == "contextual_relevancy":
        yield from _chunks(verdict.statements, case.retrieval_context or [])
    else:
        yield "assistant", one_line(case.assistant, _WIDTH)
        if case.ground_truth_assistant:
            yield "truth", one_line(case.ground_truth_assistant, _WIDTH)
        yield "context", excerpt(case.context, near=f"{case.query} {case.assistant} {verdict.reason}")
    spread = spread_of(verdict.samples)
    if spread is not None:
        scores = " ".join(f"{sample.score:.2f}" for sample in verdict.samples)
        yield "samples", f"{scores} ({spread_text(spread, min)})"
    if not verdict.statements:  # else they are the reason
        yield "reason", one_line(verdict.reason, _WIDTH)


def _chunks(statements: Sequence[Statement], chunks: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The chunks that hold something irrelevant, with what and why; then the numbers of the others."""
    bad: dict[int, list[Statement]] = {}
    for statement in statements:
        if not statement.relevant:
            bad.setdefault(statement.chunk, []).append(statement)
    for number, found in [*bad.items()][:_CHUNKS]:
        told = " ".join(statement.statement for statement in found)
        yield f"chunk {number}", excerpt(chunks[number - 1], near=told) or "(blank)"
        yield from (("  not", _irrelevant(statement)) for statement in found[:_STATEMENTS])
        if len(found) > _STATEMENTS:
            yield "", f"and {len(found) - _STATEMENTS} more statements of it are not relevant"
    if len(bad) > _CHUNKS:
        yield "", f"and {len(bad) - _CHUNKS} more chunks hold statements that are not relevant"
    good = [str(number) for number in dict.fromkeys(each.chunk for each in statements) if number not in bad]
    if good:
        yield "relevant", one_line(f"all of {'chunk' if len(good) == 1 else 'chunks'} {', '.join(good)}", _WIDTH)


def _irrelevant(statement: Statement) -> str:
    reason = one_line(statement.reason or "", _WIDTH)
    if not statement.statement:
        return reason
    return one_line(statement.statement, _WIDTH) + (f" ({reason})" if reason else "")


def excerpt(text: str, *, near: str) -> str:
    """Give the part of a long text that has most words in common with `near`, on one line."""
    text = " ".join(text.split())
    if len(text) <= _EXCERPT + 40:
        return one_line(text)
    wanted = [word for word in re.findall(r"\w+", near.lower()) if len(word) > 3 or not word.isascii()]
    hits = {at: set[str]() for at in range(0, len(text) - _EXCERPT + _STEP, _STEP)}
    low = text.lower()
    for word in [*dict.fromkeys(wanted)][:_WORDS]:
        for at in _places(word, low):
            first = max(at + len(word) - _EXCERPT, 0)
            for start in range(-(-first // _STEP) * _STEP, at + 1, _STEP):
                hits.get(start, set()).add(word)
    most = max(map(len, hits.values()))
    best = [at for at, found in hits.items() if len(found) == most]
    start = best[len(best) // 2]
    end = start + _EXCERPT
    return f"{'... ' if start else ''}{one_line(text[start:end])}{' ...' if end < len(text) else ''}"


def _places(word: str, text: str) -> Iterator[int]:
    """Where a word stands, inside others too: not every language parts its words."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)
