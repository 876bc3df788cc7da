"""The models: what they take, what they refuse, and what they say about it."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from pytest_ctxeval import (
    Batch,
    ConfigError,
    ContextCase,
    ContextInteraction,
    ContextMetric,
    Dataset,
    ModelTestCase,
)
from pytest_ctxeval._core.data import build

BATCH = {"qa_id": "q1", "query": "When?"}
SESSION = {"session_id": "s", "assistant_id": "bot", "context": "Closed on Sundays."}
METRIC = {
    "session_id": "s", "assistant_id": "bot", "n_interactions": 1, "context_awareness": 0.5, "interactions": [],
}  # fmt: skip
SMALLEST: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (Batch, BATCH),
    (Dataset, {**SESSION, "conversation": []}),
    (ContextCase, {"qa_id": "q1", "session_id": "s"}),
    (ContextInteraction, {"qa_id": "q1", "context_awareness": 0.5}),
    (ContextMetric, METRIC),
    (ModelTestCase, {"input": "?", "actual_output": "!", "retrieval_context": []}),
]
each_model = pytest.mark.parametrize(("model", "fields"), SMALLEST, ids=[model.__name__ for model, _ in SMALLEST])


def refusal(model: type[BaseModel], **fields: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        build(model, fields, where="here")
    return str(caught.value)


@each_model
def test_a_model_needs_no_more_than_its_required_fields(model: type[BaseModel], fields: dict[str, Any]) -> None:
    model.model_validate(fields)
    for name in fields:
        assert f"here: field {name!r} is missing" in refusal(
            model, **{key: fields[key] for key in fields if key != name}
        )


@each_model
def test_a_model_does_not_change(model: type[BaseModel], fields: dict[str, Any]) -> None:
    made = model.model_validate(fields)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(made, next(iter(fields)), "other")


@each_model
def test_a_model_refuses_a_field_that_it_does_not_know(model: type[BaseModel], fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        model.model_validate({**fields, "unknown_to_all": 1})


@each_model
def test_an_unknown_field_is_told_with_the_nearest_known_one(model: type[BaseModel], fields: dict[str, Any]) -> None:
    near = next(iter(fields))
    assert refusal(model, **fields, **{near + "x": 1}) == f"here: unknown field '{near}x'; did you mean '{near}'?"


def test_a_field_like_no_other_is_told_with_all_that_are_known() -> None:
    assert refusal(ContextInteraction, qa_id="q", context_awareness=None, zzz=1) == (
        "here: unknown field 'zzz'; known are qa_id, context_awareness, insight"
    )


def test_what_a_batch_leaves_out_is_empty() -> None:
    assert Batch(qa_id="q1", query="When?").model_dump() == {
        "qa_id": "q1", "query": "When?", "assistant": "", "ground_truth_assistant": None, "observation": None,
        "retrieval_context": None, "weight": None, "logprobs": {}, "agentic": {}, "ground_truth_agentic": {},
        "metadata": {},
    }  # fmt: skip


def test_what_a_dataset_and_a_case_leave_out() -> None:
    assert Dataset(**SESSION, conversation=[]).language == "english"
    case = ContextCase(qa_id="q1", session_id="s")
    assert (case.query, case.assistant_id, case.context, case.language) == ("", "assistant", "", "english")


def test_batches_do_not_share_what_they_leave_out() -> None:
    one, other = Batch(qa_id="a", query=""), Batch(qa_id="b", query="")
    one.metadata["seen"] = True
    assert other.metadata == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("assistant", ""), ("query", " "), ("ground_truth_assistant", ""), ("observation", None),
        ("retrieval_context", []), ("retrieval_context", [""]), ("retrieval_context", ["\n"]), ("retrieval_context", None),
        ("weight", 0), ("weight", 1), ("weight", 0.25), ("weight", 1e300), ("metadata", {"any": [object]}),
    ],
)  # fmt: skip
def test_a_batch_takes(field: str, value: Any) -> None:
    assert getattr(Batch(**{**BATCH, field: value}), field) == value


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("qa_id", "", "field 'qa_id': string should have at least 1 character, not ''"),
        ("qa_id", 1, "field 'qa_id': input should be a valid string, not 1; quote it"),
        ("query", None, "field 'query': input should be a valid string, not None"),
        ("assistant", None, "field 'assistant': input should be a valid string, not None"),
        ("ground_truth_assistant", 1.5, "field 'ground_truth_assistant': input should be a valid string, not 1.5; quote it"),
        ("observation", False, "field 'observation': input should be a valid string, not False; quote it"),
        ("retrieval_context", "chunk", "field 'retrieval_context': input should be a valid list, not 'chunk'"),
        ("retrieval_context", [1], "field 'retrieval_context.0': input should be a valid string, not 1; quote it"),
        ("retrieval_context", ["a", None], "field 'retrieval_context.1': input should be a valid string, not None"),
        ("weight", -0.1, "field 'weight': input should be greater than or equal to 0, not -0.1"),
        ("weight", float("nan"), "field 'weight': input should be a finite number, not nan"),
        ("weight", float("inf"), "field 'weight': input should be a finite number, not inf"),
        ("weight", True, "field 'weight': input should be a valid number, not True"),
        ("weight", "1", "field 'weight': input should be a valid number, not '1'"),
        ("metadata", None, "field 'metadata': input should be a valid dictionary, not None"),
        ("metadata", {1: 2}, "field 'metadata.1.[key]': input should be a valid string, not 1; quote it"),
        ("logprobs", [], "field 'logprobs': input should be a valid dictionary, not []"),
        ("agentic", "x" * 99, f"field 'agentic': input should be a valid dictionary, not '{'x' * 56}..."),
        ("ground_truth_agentic", 1, "field 'ground_truth_agentic': input should be a valid dictionary, not 1"),
    ],
)  # fmt: skip
def test_a_batch_refuses(field: str, value: Any, told: str) -> None:
    assert refusal(Batch, **{**BATCH, field: value}) == f"here: {told}"


@pytest.mark.parametrize("field", ["session_id", "assistant_id", "context", "language"])
def test_a_session_is_described_in_text(field: str) -> None:
    told = f"here: field {field!r}: input should be a valid string, not None"
    assert refusal(Dataset, **{**SESSION, "conversation": [], field: None}) == told
    assert refusal(ContextCase, **{**BATCH, **SESSION, field: None}) == told


def test_a_session_has_a_name() -> None:
    assert refusal(Dataset, **{**SESSION, "session_id": "", "conversation": []}) == (
        "here: field 'session_id': string should have at least 1 character, not ''"
    )


def test_a_wrong_batch_is_told_with_its_place_in_the_conversation() -> None:
    assert refusal(Dataset, **SESSION, conversation=[BATCH, {"qa_id": "q2", "qury": "x"}]) == (
        "here: field 'conversation.1.query' is missing\n"
        "here: unknown field 'conversation.1.qury'; did you mean 'query'?"
    )


def test_a_dataset_gives_one_case_per_batch_in_order() -> None:
    batches = [Batch(qa_id="b", query="1", weight=0.5, metadata={"x": 1}), Batch(qa_id="a", query="2")]
    session = {**SESSION, "language": "german"}
    dataset = Dataset.model_validate({**session, "conversation": batches})
    assert dataset.cases() == [ContextCase.model_validate({**session, **dict(batch)}) for batch in batches]


def test_calling_a_case_gives_a_copy_with_the_fields_filled_in() -> None:
    case = ContextCase(qa_id="q1", session_id="s", context="c", metadata={"x": 1})
    filled = case(assistant="On Monday.", weight=0.5)
    assert filled == ContextCase(
        qa_id="q1", session_id="s", context="c", metadata={"x": 1}, assistant="On Monday.", weight=0.5
    )
    assert (case.assistant, case.weight) == ("", None)
    assert case() == case


def test_calling_a_case_checks_what_is_given() -> None:
    case = ContextCase(qa_id="q1", session_id="s")
    with pytest.raises(ConfigError) as caught:
        case(asistant="x", retrieval_context="chunk")
    assert str(caught.value) == (
        "case 'q1': field 'retrieval_context': input should be a valid list, not 'chunk'\n"
        "case 'q1': unknown field 'asistant'; did you mean 'assistant'?"
    )


def test_a_subclass_of_a_case_stays_one_when_called() -> None:
    class OwnCase(ContextCase):
        ticket: str = ""

    assert OwnCase(qa_id="q1", session_id="s")(ticket="T-1") == OwnCase(qa_id="q1", session_id="s", ticket="T-1")


def test_a_batch_can_be_put_in_a_session_of_its_own() -> None:
    batch = Batch(qa_id="q1", query="When?", assistant="Monday.")
    assert ContextCase.from_batch(batch, context="c") == ContextCase(
        qa_id="q1", query="When?", assistant="Monday.", context="c", session_id="session"
    )
    assert ContextCase.from_batch(batch, context="c", session_id="s", language="german").language == "german"


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_score_lies_between_0_and_1(score: float) -> None:
    with pytest.raises(ValidationError):
        ContextInteraction(qa_id="q1", context_awareness=score)
    for field in ("context_awareness", "context_awareness_ci_low", "context_awareness_ci_high"):
        with pytest.raises(ValidationError):
            ContextMetric.model_validate({**METRIC, field: score})


def test_an_unscored_case_and_session_have_no_score() -> None:
    assert ContextInteraction(qa_id="q1", context_awareness=None).context_awareness is None
    metric = ContextMetric.model_validate({**METRIC, "context_awareness": None, "n_unscored": 1})
    assert (metric.context_awareness, metric.context_awareness_ci_low, metric.context_awareness_ci_high) == (None,) * 3


def test_the_bounds_of_a_metric_are_none_and_its_unscored_zero_where_not_given() -> None:
    metric = ContextMetric.model_validate(METRIC)
    assert (metric.context_awareness_ci_low, metric.context_awareness_ci_high, metric.n_unscored) == (None, None, 0)


def test_what_a_model_test_case_leaves_out_is_none() -> None:
    case = ModelTestCase(input="?", actual_output="!", retrieval_context=["a"])
    assert (case.expected_output, case.context, case.name, case.additional_metadata) == (None,) * 4


def test_a_model_test_case_refuses_text_for_a_list() -> None:
    assert refusal(ModelTestCase, input="?", actual_output="!", retrieval_context="a", context="b") == (
        "here: field 'retrieval_context': input should be a valid list, not 'a'\n"
        "here: field 'context': input should be a valid list, not 'b'"
    )
