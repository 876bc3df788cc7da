"""What users hand in: cases, datasets, and the results of the seeds' front door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NoReturn, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pytest_ctxeval._core.text import nearest
from pytest_ctxeval.errors import ConfigError

Weight = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
M = TypeVar("M", bound=BaseModel)
NonEmpty = Annotated[str, Field(min_length=1)]


def _in_an_order(given: object) -> object:
    """Refuse what has no order: chunks are known by their numbers."""
    if isinstance(given, (set, frozenset)):
        raise ValueError("a set has no order; give a list")  # noqa: TRY004  # pydantic's way to tell
    return given


Chunks = Annotated[list[Annotated[str, Field(strict=True)]], BeforeValidator(_in_an_order)]


class Frozen(BaseModel):
    """A value: it does not change, and a field it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Batch(Frozen):
    """One question, the answer under test, and what the judge may know about them."""

    qa_id: NonEmpty
    query: str
    assistant: str = ""
    ground_truth_assistant: str | None = None
    observation: str | None = None
    retrieval_context: Chunks | None = None
    weight: Weight | None = None
    logprobs: dict[str, Any] = {}
    agentic: dict[str, Any] = {}
    ground_truth_agentic: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


class Dataset(Frozen):
    """One session: the context that the assistant was given, and the conversation it led."""

    session_id: NonEmpty
    assistant_id: str
    context: str
    language: str = "english"
    conversation: list[Batch]

    def cases(self) -> list[ContextCase]:
        """One case per batch, in the order of the conversation."""
        session = {name: getattr(self, name) for name in SESSION_FIELDS}
        return [ContextCase(**{**_batch_fields(batch), **session}) for batch in self.conversation]


class ContextCase(Batch):
    """A `Batch` plus its session: what a test handles.

    Calling it returns a copy with the given fields filled in, checked again:
    `context_case(assistant=bot(context_case.query))`.
    """

    query: str = ""
    session_id: NonEmpty
    assistant_id: str = "assistant"
    context: str = ""
    language: str = "english"

    @classmethod
    def from_batch(cls, batch: Batch, *, context: str, session_id: str = "session", **session: Any) -> Self:
        """Put a batch in a session, as the assertion helpers do with `context=`. Raises `ConfigError`."""
        fields = {**_batch_fields(batch), "context": context, "session_id": session_id, **session}
        return build(cls, fields, where=f"case {batch.qa_id!r}")

    def __repr__(self) -> str:
        """Name the case. pytest prints the arguments of a failed test, and our own text below says more of it."""
        return f"{type(self).__name__}(session_id={self.session_id!r}, qa_id={self.qa_id!r}, ...)"

    def __call__(self, **fields: Any) -> Self:
        """Give a copy with `fields` in place of what stood there.

        Raises `ConfigError` for an unknown field or a wrong value.
        """
        return build(type(self), {**dict(self), **fields}, where=f"case {self.qa_id!r}")


class ContextInteraction(Frozen):
    """The score of one case (0 to 1, None where it is unscored) and the judge's reason."""

    qa_id: str
    context_awareness: Score | None
    insight: str = ""


class ContextMetric(Frozen):
    """A session's weighted mean (0 to 1, None where no case that counts was scored) and its cases.

    The two bounds are None in frequentist mode.
    """

    session_id: str
    assistant_id: str
    n_interactions: int
    context_awareness: Score | None
    context_awareness_ci_low: Score | None = None
    context_awareness_ci_high: Score | None = None
    interactions: list[ContextInteraction]
    n_unscored: int = 0


class ModelTestCase(Frozen):
    """A query, an answer and the chunks that were retrieved for it."""

    input: str
    actual_output: str
    retrieval_context: Chunks
    expected_output: str | None = None
    context: list[str] | None = None
    name: str | None = None
    additional_metadata: dict[str, Any] | None = None


SESSION_FIELDS = ("session_id", "assistant_id", "context", "language")


def _batch_fields(batch: Batch) -> dict[str, Any]:
    return {name: getattr(batch, name) for name in Batch.model_fields}


def build(model: type[M], fields: Mapping[str, Any], *, where: str) -> M:
    """Validate `fields` as `model`, or raise a `ConfigError` that starts with `where` and names each field."""
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        raise_config_error(error, model, where=where)


def raise_config_error(error: ValidationError, model: type[BaseModel], *, where: str) -> NoReturn:
    """Turn pydantic's error into one line per wrong field, with the nearest known name for an unknown one."""
    lines = [_told(problem, model) for problem in error.errors(include_url=False)]
    raise ConfigError("\n".join(f"{where}: {line}" for line in lines)) from None


def _told(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    path = ".".join(str(part) for part in problem["loc"])
    name = str(problem["loc"][-1]) if problem["loc"] else ""
    if problem["type"] == "extra_forbidden":
        return f"unknown field {path!r}; {nearest(name, _fields_at(model, problem['loc']))}"
    if problem["type"] == "missing":
        return f"field {path!r} is missing"
    given = repr(problem["input"])
    cure = "; quote it" if problem["type"] == "string_type" and isinstance(problem["input"], int | float) else ""
    return f"field {path!r}: {problem['msg'].lower()}, not {given if len(given) <= 60 else given[:57] + '...'}{cure}"


def _fields_at(model: type[BaseModel], loc: tuple[Any, ...]) -> Iterable[str]:
    return (Batch if "conversation" in loc[:-1] else model).model_fields
