"""A metric that asks more than once, or not at all, on a cassette."""

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clients import CLIENTS
from support.llm_server import LLAMA_CPP_CONTEXT_TOO_LONG, NO_RESPONSE_FORMAT, Fault, LLMServer, Reply
from support.scripted import relevancy_reply

from pytest_ctxeval import (
    CONTEXTUAL_RELEVANCY,
    CassetteMissError,
    ContextCase,
    CtxEvalWarning,
    JudgeReplyError,
    JudgeUnreachableError,
    Verdict,
)
from pytest_ctxeval._judge.cassette.tape import Ending, RecordMode, Tape
from pytest_ctxeval._judge.cassette.transport import routed
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._judge.judge import Judge

CHUNKS = [
    f"chunk {number} is fine" if number % 4 else f"NOT chunk {number} BECAUSE it is odd" for number in range(1, 21)
]
CASE = ContextCase(qa_id="q", session_id="s", query="Which are fine?", retrieval_context=CHUNKS)


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        running.answer = lambda prompt, _: relevancy_reply(prompt)
        yield running


@pytest.fixture(autouse=True)
def _patched() -> Iterator[None]:
    with routed():
        yield


def assess(
    path: Path,
    model: Any,
    case: ContextCase = CASE,
    *,
    mode: RecordMode = "once",
    structured: bool = False,
    **settings: Any,
) -> Verdict:
    tape = Tape(path, node="test_a.py::test_b", mode=mode, shown="cassettes/a.yaml")
    judge = Judge(lambda: JudgeModel(model, use_structured_output=structured), tape=tape, **settings)
    ending: Ending = "broken"
    try:
        verdict = judge.assess(CONTEXTUAL_RELEVANCY, case)
        ending = "passed"
        return verdict
    finally:
        tape.close(ending)


def recorded(path: Path) -> int:
    return len(yaml.safe_load(path.read_text(encoding="utf-8"))["interactions"])


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("structured", [True, False])
def test_every_client_records_all_calls_and_replays_the_same_verdict(
    server: LLMServer, tmp_path: Path, client: str, structured: bool
) -> None:
    path, model = tmp_path / "a.yaml", CLIENTS[client](server)
    first = assess(path, model, structured=structured)
    assert (first.score, first.calls.recorded, recorded(path)) == (0.75, 3, 3)
    again = assess(path, model, structured=structured, mode="none")
    assert (again.score, again.statements, again.calls.replayed) == (first.score, first.statements, 3)
    assert len(server.requests) == 3


def test_the_schema_of_the_request_fixes_the_number_of_chunks(server: LLMServer, tmp_path: Path) -> None:
    assess(tmp_path / "a.yaml", CLIENTS["openai"](server), structured=True)
    schemas = [request.body["response_format"]["json_schema"]["schema"] for request in server.requests]
    bounds = sorted(
        (each["properties"]["chunks"]["minItems"], each["properties"]["chunks"]["maxItems"]) for each in schemas
    )
    assert bounds == [(4, 4), (8, 8), (8, 8)]


def test_a_model_without_structured_output_is_asked_in_text(server: LLMServer, tmp_path: Path) -> None:
    server.fail(NO_RESPONSE_FORMAT, Fault(status=400, problem="tools"))
    case = CASE(retrieval_context=CHUNKS[:4])
    with warnings.catch_warnings(record=True) as warned:  # langchain-openai has a warning of its own for the same
        warnings.simplefilter("always")
        assert assess(tmp_path / "a.yaml", CLIENTS["openai"](server), case, structured=True).score == 0.75
    ours = [re.sub(r" \([^;]*\)", "", str(each.message)) for each in warned if each.category is CtxEvalWarning]
    assert ours == ["the judge gpt-4o-mini does not take json_schema; nor function_calling; asked for text instead"]


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("failing", [1, 9, 17])
def test_one_call_that_fails_leaves_the_others_recorded_and_is_alone_asked_again(
    server: LLMServer, tmp_path: Path, concurrency: int, failing: int
) -> None:
    path, model = tmp_path / "a.yaml", CLIENTS["openai"](server)

    def answer(prompt: str, _: Any) -> str | Reply:
        return Reply("?", finish_reason="length") if f"<<<chunk {failing} " in prompt else relevancy_reply(prompt)

    server.answer = answer
    with pytest.raises(JudgeReplyError):
        assess(path, model, concurrency=concurrency)
    assert (len(server.requests), recorded(path)) == (3, 2)
    server.answer = lambda prompt, _: relevancy_reply(prompt)
    verdict = assess(path, model, concurrency=concurrency)
    assert (verdict.score, verdict.calls.replayed, verdict.calls.recorded) == (0.75, 2, 1)
    assert (len(server.requests), recorded(path)) == (4, 3)


def test_a_server_that_fails_once_leaves_the_case_without_a_score(server: LLMServer, tmp_path: Path) -> None:
    server.fail(Fault(status=500))
    with pytest.raises(JudgeUnreachableError, match="answered with HTTP 500"):
        assess(tmp_path / "a.yaml", CLIENTS["openai"](server))
    assert recorded(tmp_path / "a.yaml") == 2


def test_chunks_that_are_too_long_for_the_judge_are_told_as_that(server: LLMServer, tmp_path: Path) -> None:
    server.fail_always(LLAMA_CPP_CONTEXT_TOO_LONG)
    with pytest.raises(JudgeUnreachableError) as refused:
        assess(tmp_path / "a.yaml", CLIENTS["openai"](server))
    told = "the prompt is too long for the judge gpt-4o-mini (9,412 > 8,192 tokens): "
    assert str(refused.value).startswith(told)
    assert len(server.requests) == 3  # one for each group of chunks, and none again


def test_a_reply_that_leaves_a_chunk_out_is_asked_again_and_both_are_recorded(
    server: LLMServer, tmp_path: Path
) -> None:
    case, path = CASE(retrieval_context=CHUNKS[:4]), tmp_path / "a.yaml"
    server.script([json.dumps({"chunks": []}), relevancy_reply(_prompt(case))])
    assert assess(path, CLIENTS["openai"](server), case).score == 0.75
    assert recorded(path) == 2
    assert assess(path, CLIENTS["openai"](server), case, mode="none").calls.replayed == 2
    told = server.requests[1].body["messages"][-1]["content"]
    assert re.match(r"That reply could not be read: chunk 1 is missing\. Reply again", told)


def _prompt(case: ContextCase) -> str:
    return CONTEXTUAL_RELEVANCY.prompts(case, None)[0].user


def test_a_changed_chunk_is_a_miss_that_is_told(server: LLMServer, tmp_path: Path) -> None:
    path, model = tmp_path / "a.yaml", CLIENTS["openai"](server)
    assess(path, model)
    with pytest.raises(CassetteMissError):
        assess(path, model, CASE(retrieval_context=[*CHUNKS[:-1], "another"]), mode="none")
    assert len(server.requests) == 3


@pytest.mark.parametrize("chunks", [[], [" "]])
@pytest.mark.parametrize("mode", ["none", "once", "all"])
def test_where_there_is_nothing_to_ask_there_is_no_cassette(
    tmp_path: Path, mode: RecordMode, chunks: list[str]
) -> None:
    verdict = assess(tmp_path / "a.yaml", None, CASE(retrieval_context=chunks), mode=mode)
    assert (verdict.score, verdict.source, verdict.cassette) == (0.0, "none", None)
    assert not (tmp_path / "a.yaml").exists()
