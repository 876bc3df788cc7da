"""What becomes of cassettes that older clients recorded (CASES D14); of the files, see data/older_clients/README.md."""

from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from packaging.version import Version
from support.llm_server import LLMServer
from support.older_clients import (
    ANSWER,
    CASE,
    DATA,
    ERAS,
    METRIC,
    MODELS,
    SCHEMA,
    STYLES,
    assess,
    chat_model,
    path_of,
    tape_of,
)

from pytest_ctxeval import CassetteMissError
from pytest_ctxeval._judge.cassette.file import Recording, read_recording
from pytest_ctxeval._judge.cassette.miss import miss_error

RECORDED_WITH = {
    "0.3": {"openai": "0.3.30", "groq": "0.3.7", "anthropic": "0.3.19", "ollama": "0.3.6"},
    "1.0": {"openai": "1.0.2", "groq": "1.0.0", "anthropic": "1.0.1", "ollama": "1.0.0"},
}

REPLAYS = ""
# langchain-anthropic asked for 1024 tokens where the user had said nothing, and asks for what the model can give since 1.0.
MORE_TOKENS = "max_tokens: 1024 -> 4096"

OUTCOMES = {
    "0.3/openai-text": REPLAYS,
    "0.3/openai-json_schema": REPLAYS,
    "0.3/openai-tool": REPLAYS,
    "0.3/groq-text": REPLAYS,
    "0.3/groq-json_schema": REPLAYS,  # as the tool's call that it is; langchain-groq 1.0 and later ask for the schema first
    "0.3/groq-tool": REPLAYS,
    "0.3/anthropic-text": MORE_TOKENS,
    "0.3/anthropic-json_schema": MORE_TOKENS,  # against the tool's call, nearer than the schema that is asked for first
    "0.3/anthropic-tool": MORE_TOKENS,
    "0.3/ollama-text": REPLAYS,
    "0.3/ollama-json_schema": REPLAYS,
    "0.3/ollama-tool": REPLAYS,
    "1.0/openai-text": REPLAYS,
    "1.0/openai-json_schema": REPLAYS,
    "1.0/openai-tool": REPLAYS,
    "1.0/groq-text": REPLAYS,
    "1.0/groq-json_schema": REPLAYS,
    "1.0/groq-tool": REPLAYS,
    "1.0/anthropic-text": REPLAYS,
    "1.0/anthropic-json_schema": REPLAYS,  # as the tool's call that it is; today's asks for an output_config first
    "1.0/anthropic-tool": REPLAYS,
    "1.0/ollama-text": REPLAYS,
    "1.0/ollama-json_schema": REPLAYS,
    "1.0/ollama-tool": REPLAYS,
}
ROWS = [
    pytest.param(era, client, style, id=f"{era}-{client}-{style}")
    for era in ERAS
    for client in MODELS
    for style in STYLES
]


def test_every_file_has_a_row() -> None:
    files = [path.relative_to(DATA).with_suffix("").as_posix() for path in DATA.rglob("*.yaml")]
    assert sorted(files) == sorted(OUTCOMES)
    assert len(ROWS) == len(OUTCOMES)


@pytest.mark.parametrize(("era", "client", "style"), ROWS)
def test_its_head_names_the_client_that_wrote_it(era: str, client: str, style: str) -> None:
    held = recording(path_of(era, client, style))
    assert held.client == f"langchain-{client} {RECORDED_WITH[era][client]}"
    assert held.judge == MODELS[client]
    assert held.node == f"tests/judge/test_older_clients.py::test_an_older_recording[{era}-{client}-{style}]"


@pytest.mark.parametrize(("era", "client", "style"), ROWS)
def test_an_older_recording(server: LLMServer, era: str, client: str, style: str) -> None:
    """It replays, or is stale and says in whole what has changed; either way nothing goes out."""
    path, changed = path_of(era, client, style), OUTCOMES[f"{era}/{client}-{style}"]
    model = chat_model(client, server)
    if changed:
        with pytest.raises(CassetteMissError) as missed:
            assess(model, path, style=style, mode="none")
        assert str(missed.value) == stale(path, recording(path), f"langchain-{client}", changed)
    else:
        verdict = assess(model, path, style=style, mode="none")
        assert (verdict.source, verdict.calls.replayed, verdict.tokens) == ("replayed", 1, 38)
        assert f'{{"insight": "{verdict.reason}", "score": {verdict.score}}}' == ANSWER
    assert not server.requests


@pytest.mark.parametrize("style", STYLES)
def test_what_has_grown_a_default_replays_where_the_old_one_is_set(server: LLMServer, style: str) -> None:
    model = chat_model("anthropic", server, max_tokens=1024)
    assert assess(model, path_of("0.3", "anthropic", style), style=style, mode="none").source == "replayed"
    assert not server.requests


def test_a_changed_prompt_is_told_against_the_form_that_is_recorded(server: LLMServer) -> None:
    """The schema that is asked for first has the same prompt as the tool that is recorded, and is not told of."""
    path = path_of("1.0", "anthropic", "tool")
    with pytest.raises(CassetteMissError) as missed:
        assess(
            chat_model("anthropic", server),
            path,
            style="tool",
            mode="none",
            case=CASE.model_copy(update={"assistant": "All day."}),
        )
    assert str(missed.value) == (
        "stale: the cassette older_clients/1.0/anthropic-tool.yaml holds no answer to this request; against the nearest "
        "recorded one\n\n"
        "    messages[0].content:\n"
        "      -Answer: From 9 to 5.\n"
        "      +Answer: All day.\n\n"
        "record this one test with\n\n"
        "    pytest 'tests/judge/test_older_clients.py::test_an_older_recording[1.0-anthropic-tool]' --ctxeval-record=all"
    )


@pytest.mark.skipif(
    Version(metadata.version("langchain-anthropic")) < Version("1.7"), reason="its json_schema was a tool, or a beta"
)
def test_an_assistants_tool_that_has_become_a_schema_is_told_in_three_lines(server: LLMServer) -> None:
    """An assistant asks in one form alone, so what an older client sent as a tool's call cannot replay."""
    tape = tape_of(path_of("1.0", "anthropic", "json_schema"), "none")
    model = chat_model("anthropic", server).with_structured_output(SCHEMA, method="json_schema")
    (prompt,) = METRIC.prompts(CASE, None)
    with tape.call() as call, suppress(Exception):
        model.invoke([SystemMessage(prompt.system), HumanMessage(prompt.user)])
    assert str(miss_error(tape, call.misses)).split("\n\n")[1] == (
        "    the prompt is the same, the request is not\n"
        "    output_config: nothing -> {'format': {'type': 'json_schema', 'schema': {'type': 'object', 'description'...\n"
        "    tool_choice: {'type': 'tool', 'name': 'context_awareness'} -> nothing\n"
        "    tools: [{'name': 'context_awareness', 'input_schema': {'type': 'object', 'properties... -> nothing"
    )
    assert not server.requests


def recording(path: Path) -> Recording:
    found = read_recording(path, shown=path.name)
    assert found is not None
    return found


def stale(path: Path, held: Recording, package: str, changed: str) -> str:
    return (
        f"stale: the cassette older_clients/{path.parent.name}/{path.name} holds no answer to this request; against the "
        "nearest recorded one\n\n"
        f"    the prompt is the same, the request is not ({held.client} -> {metadata.version(package)})\n"
        f"    {changed}\n\n"
        "record this one test with\n\n"
        f"    pytest '{held.node}' --ctxeval-record=all"
    )
