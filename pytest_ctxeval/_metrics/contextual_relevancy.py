"""Contextual relevancy: how much of what was retrieved for a query is about the query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pytest_ctxeval._core.checks import check_count, check_flag
from pytest_ctxeval._core.data import ContextCase
from pytest_ctxeval._core.verdict import Statement, Verdict
from pytest_ctxeval._metrics.prompt import (
    Clauses,
    Metric,
    Prompt,
    Scored,
    ask_for_json,
    check_filled,
    check_sendable,
)
from pytest_ctxeval._metrics.relevancy_prompt import (
    ContextualRelevancyTemplate,
    RelevancyReply,
    StatementReply,
    fault_of,
    json_schema,
    reply_form,
    same_statement,
)
from pytest_ctxeval._metrics.template import read_template, text_of
from pytest_ctxeval.errors import ConfigError

CHUNKS_PER_CALL: Final = 8
BLANK: Final = "the chunk is blank"
NO_STATEMENT: Final = "no statement was found in the chunk"


def contextual_relevancy(
    *,
    template: object = ContextualRelevancyTemplate,
    strict_mode: bool = False,
    include_reason: bool = True,
    chunks_per_call: int = CHUNKS_PER_CALL,
) -> Metric:
    """Make the metric, for `judge.assess` or `assert_contextual_relevancy(metric=...)`.

    `template` is a class or an object with the methods of `ContextualRelevancyTemplate`. With `strict_mode` the score
    is 1 only if every statement is relevant, else 0. One call to the judge takes up to `chunks_per_call` chunks.
    Raises `ConfigError` for anything else.
    """
    used, version = read_template(template, ContextualRelevancyTemplate, _probes())
    check_flag("strict_mode", strict_mode)
    check_flag("include_reason", include_reason)
    check_count("chunks_per_call", chunks_per_call)
    version += f"-by-{chunks_per_call}" if chunks_per_call != CHUNKS_PER_CALL else ""
    return Metric(
        name="contextual_relevancy",
        version=f"{version}-strict" if strict_mode else version,
        prompts=partial(_prompts, used, chunks_per_call),
        score=partial(_score, strict_mode, include_reason),
        in_words=_in_words,
        variant="" if include_reason else "no reason",
    )


def _prompts(
    template: ContextualRelevancyTemplate, size: int, case: ContextCase, clauses: Clauses | None
) -> tuple[Prompt, ...]:
    if case.retrieval_context is None:
        raise ConfigError(
            f"case {case.qa_id!r}: contextual relevancy needs retrieval_context=, and the case has none; give the "
            "retrieved chunks in the dataset, on the marker or with context_case(retrieval_context=[...])"
        )
    check_filled(case, "contextual relevancy", "query")
    check_sendable(case.query, f"case {case.qa_id!r}: the query")
    chunks = {number: text for number, text in enumerate(case.retrieval_context, 1) if text.strip()}
    for number, text in chunks.items():
        check_sendable(text, f"case {case.qa_id!r}: chunk {number}")
    numbers = [*chunks]
    groups = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    return tuple(_prompt(template, case, {number: chunks[number] for number in group}, clauses) for group in groups)


def _prompt(
    template: ContextualRelevancyTemplate, case: ContextCase, chunks: Mapping[int, str], clauses: Clauses | None
) -> Prompt:
    def check(reply: Any) -> str | None:
        return fault_of(reply, chunks.keys())

    where = f"case {case.qa_id!r}: "
    user = text_of(template, "user", where=where, query=case.query, chunks=dict(chunks), language=case.language)
    return Prompt(
        system=text_of(template, "system", where=where),
        user=f"{user}\n\n{ask_for_json(reply_form(chunks.keys()), clauses)}",
        schema=RelevancyReply,
        json_schema=json_schema(chunks.keys()),
        check=check,
    )


def _score(strict_mode: bool, include_reason: bool, case: ContextCase, replies: Sequence[RelevancyReply]) -> Scored:  # noqa: FBT001  # bound by name above
    statements = tuple(_statements(case.retrieval_context or [], replies))
    relevant = sum(statement.relevant for statement in statements)
    score = relevant / len(statements) if statements else 0.0
    if strict_mode:
        score = float(bool(statements) and relevant == len(statements))
    return Scored(score, _reason(statements) if include_reason else "", statements)


def _statements(chunks: Sequence[str], replies: Sequence[RelevancyReply]) -> Iterator[Statement]:
    """Every statement once per chunk, in the order of the chunks; a chunk without any is one irrelevant statement."""
    found = {each.chunk: each.statements for reply in replies for each in reply.chunks}
    for number in range(1, len(chunks) + 1):
        once: dict[str, StatementReply] = {}
        for each in found.get(number, []):
            once.setdefault(same_statement(each.statement), each)
        yield from (Statement(number, each.statement, each.relevant, each.reason) for each in once.values())
        if not once:
            why = NO_STATEMENT if chunks[number - 1].strip() else BLANK
            yield Statement(number, "", relevant=False, reason=why)


def _reason(statements: Sequence[Statement]) -> str:
    if not statements:
        return "nothing was retrieved"
    relevant = sum(each.relevant for each in statements)
    irrelevant = "; ".join(_told(each) for each in statements if not each.relevant)
    counted = f"{relevant} of {len(statements)} statements are relevant to the query"
    return f"{counted}; not relevant: {irrelevant}" if irrelevant else counted


def _told(statement: Statement) -> str:
    if not statement.statement:
        return f"chunk {statement.chunk} ({statement.reason})"
    return f"chunk {statement.chunk}, {statement.statement!r}" + (f" ({statement.reason})" if statement.reason else "")


def _in_words(verdict: Verdict) -> str:
    if not verdict.statements:
        return "nothing was retrieved"
    relevant = sum(each.relevant for each in verdict.statements)
    which = " in the lowest sample" if len(verdict.samples) > 1 else ""
    return f"{relevant} of {len(verdict.statements)} statements relevant{which}"


def _probes() -> list[dict[str, Any]]:
    """Give calls that a template is tried with: in two languages, of a few chunks and of many, short and long."""
    query = {"query": "When are you open?", "language": "english"}
    long = " ".join(f"Open from 9 to 5, says page {number}." for number in range(500))
    return [
        query | {"chunks": {1: "Open from 9 to 5.", 2: "Cake."}},
        query | {"chunks": {3: "Cake."}, "language": "spanish"},
        query | {"chunks": dict.fromkeys(range(1, 10), long)},
    ]


CONTEXTUAL_RELEVANCY: Final = contextual_relevancy()
