"""The pieces that every prompt is made of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel

from pytest_ctxeval._core.data import ContextCase
from pytest_ctxeval._core.verdict import Statement, Verdict
from pytest_ctxeval.errors import ConfigError


class Clauses(NamedTuple):
    """What opens and closes the JSON in a judge's reply: asked for in the prompt, looked for in the reply."""

    bos: str = "```json"
    eos: str = "```"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to the judge, and what its answer must look like.

    `schema` validates the reply; `json_schema` is the same for the model's own structured output, written out
    so that it does not change with the version of a library. `check` may say what else is wrong with a reply.
    """

    system: str
    user: str
    schema: type[BaseModel]
    json_schema: Mapping[str, Any]
    check: Callable[[BaseModel], str | None] = lambda _: None


class Scored(NamedTuple):
    """A score (0 to 1), the reason for it, and the statements it was counted from, if any."""

    score: float
    reason: str
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure of a case: how to ask the judge for it, and how to score what the judge says.

    `prompts` raises `ConfigError` where the case lacks what the metric needs, and gives none where there is nothing to
    ask; `score` gets the validated replies in the order of the prompts. `version` changes whenever the prompt does, or
    what is made of the replies. `in_words` says in a few words what the score of a verdict means; `variant` tells apart
    metrics of one version that say something else than a score differently.
    """

    name: str
    version: str
    prompts: Callable[[ContextCase, Clauses | None], tuple[Prompt, ...]]
    score: Callable[[ContextCase, Sequence[Any]], Scored]
    in_words: Callable[[Verdict], str]
    variant: str = ""

    @property
    def title(self) -> str:
        """The name as it stands in a sentence."""
        return self.name.replace("_", " ")


def enclose(name: str, text: str) -> str:
    """Put `text` between boundary lines that it cannot contain: their token is a hash of the text itself."""
    token = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"<<<{name} {token}>>>\n{text}\n<<<end of {name} {token}>>>"


def check_filled(case: ContextCase, metric: str, *fields: str) -> None:
    """Raise `ConfigError` for a case that leaves blank what a metric needs."""
    for field in fields:
        if not getattr(case, field).strip():
            raise ConfigError(
                f"case {case.qa_id!r}: {metric} needs {field}=, and it is blank; "
                f"give it in the dataset, on the marker or with context_case({field}=...)"
            )


def check_sendable(text: str, what: str) -> None:
    """Raise `ConfigError` for text that no request can carry: half of a surrogate pair has no form in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{what} holds {text[error.start]!r} at position {error.start}, half of a surrogate pair, which cannot be "
            "sent"
        ) from None


def ask_for_json(example: str, clauses: Clauses | None) -> str:
    """Ask for one JSON object like `example`, between `clauses`, or bare where the model enforces a schema."""
    if clauses is None:
        return f"Reply with one JSON object and nothing else, in this form:\n{example}"
    return (
        "Reply with one JSON object and nothing else, opened and closed by exactly these marks:\n"
        f"{clauses.bos}\n{example}\n{clauses.eos}"
    )


def language_word(language: str) -> str:
    """Keep a language's name to one line, since it stands outside the boundaries."""
    return " ".join(language.split())[:40] or "english"
