"""The tests' own model provider, seen through the real clients."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from http.client import HTTPConnection
from importlib.metadata import version
from operator import add
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from support.clients import CLIENTS, FAKE_KEY, chat_anthropic, chat_groq, chat_ollama, chat_openai
from support.llm_server import (
    CONTEXT_TOO_LONG,
    ENCODINGS,
    LLAMA_CPP_CONTEXT_TOO_LONG,
    NO_RESPONSE_FORMAT,
    VERDICT,
    WRONG_KEY,
    Fault,
    FaultKind,
    LLMServer,
    Reply,
    Request,
)

pytestmark = pytest.mark.skipif(
    tuple(map(int, version("langchain-openai").split(".")[:2])) < (1, 7),
    reason="what these clients send and raise is that of the current ones",
)

SCHEMA = {
    "title": "verdict",
    "description": "A verdict.",
    "type": "object",
    "properties": {"insight": {"type": "string"}, "score": {"type": "number"}},
    "required": ["insight", "score"],
    "additionalProperties": False,
}
AT_ONCE = {"retry-after-ms": "1"}
PATHS = ["/v1/chat/completions", "/openai/v1/chat/completions", "/v1/messages", "/api/chat"]

# What each client makes of a fault: openai, groq, anthropic, ollama.
FAULTS: list[tuple[str, Fault | FaultKind, str, str, str, str]] = [
    ("401", WRONG_KEY, "OpenAIAuthenticationError", "AuthenticationError", "AnthropicAuthenticationError", "ResponseError"),
    ("429", Fault(status=429), "OpenAIRateLimitError", "RateLimitError", "AnthropicRateLimitError", "ResponseError"),
    ("500", Fault(), "OpenAIAPIError", "InternalServerError", "AnthropicAPIError", "ResponseError"),
    ("529", Fault(status=529), "OpenAIAPIError", "InternalServerError", "AnthropicOverloadedError", "ResponseError"),
    ("context", CONTEXT_TOO_LONG, "OpenAIInvalidRequestError", "BadRequestError", "AnthropicContextOverflowError", "ResponseError"),
    ("drop", "drop", "OpenAIConnectionError", "APIConnectionError", "AnthropicConnectionError", "RemoteProtocolError"),
    ("cut", "cut", "OpenAIConnectionError", "APIConnectionError", "AnthropicConnectionError", "RemoteProtocolError"),
    ("hang", "hang", "OpenAITimeoutError", "APITimeoutError", "AnthropicTimeoutError", "ReadTimeout"),
    ("not json", "not json", "ValueError", "AttributeError", "AttributeError", "JSONDecodeError"),
]  # fmt: skip

every_client = pytest.mark.parametrize("client", CLIENTS)
every_method = pytest.mark.parametrize("method", ["json_schema", "function_calling"])


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as server:
        yield server


@pytest.fixture
def model(server: LLMServer, client: str) -> BaseChatModel:
    return CLIENTS[client](server)


def structured(model: BaseChatModel, method: str) -> Any:
    return model.with_structured_output(SCHEMA, method=method, include_raw=True)


def post(server: LLMServer, path: str, **body: Any) -> tuple[int, dict[str, str], str]:
    """Ask without a client; give the status, the headers and the text."""
    connection = HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=10)
    try:
        connection.request("POST", path, json.dumps({"model": "m", "stream": False, "messages": [], **body}))
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


# What is said


@every_client
def test_a_client_gets_the_text(model: BaseChatModel) -> None:
    assert model.invoke("Is it so?").content == VERDICT


@every_client
def test_a_client_gets_the_text_in_pieces(model: BaseChatModel) -> None:
    pieces = [str(each.content) for each in model.stream("Is it so?")]
    assert len([piece for piece in pieces if piece]) > 2
    assert "".join(pieces) == VERDICT


@every_client
@every_method
def test_a_client_gets_structured_output(model: BaseChatModel, method: str) -> None:
    got = structured(model, method).invoke("Is it so?")
    assert (got["parsed"], got["parsing_error"]) == (json.loads(VERDICT), None)


@every_client
@every_method
def test_a_client_gets_structured_output_in_pieces(model: BaseChatModel, method: str) -> None:
    *_, last = model.with_structured_output(SCHEMA, method=method).stream("Is it so?")
    assert last == json.loads(VERDICT)


@every_client
def test_a_schema_puts_the_answer_in_the_text_and_a_tool_in_the_call(model: BaseChatModel) -> None:
    assert structured(model, "json_schema").invoke("Is it so?")["raw"].content == VERDICT
    [call] = structured(model, "function_calling").invoke("Is it so?")["raw"].tool_calls
    assert (call["name"], call["args"]) == ("verdict", json.loads(VERDICT))


@pytest.mark.parametrize(
    ("client", "method", "asked"),
    [
        ("openai", "json_schema", "response_format"),
        ("openai", "function_calling", "tool_choice"),
        ("groq", "json_schema", "response_format"),
        ("groq", "function_calling", "tool_choice"),
        ("anthropic", "json_schema", "output_config"),
        ("anthropic", "function_calling", "tool_choice"),
        ("ollama", "json_schema", "format"),
        ("ollama", "function_calling", "tools"),
    ],
)
def test_each_client_asks_for_structure_in_its_own_way(
    server: LLMServer, model: BaseChatModel, method: str, asked: str
) -> None:
    structured(model, method).invoke("Is it so?")
    assert server.requests[0].body[asked]


@every_client
@every_method
def test_a_reply_that_is_no_json_comes_as_it_is(server: LLMServer, model: BaseChatModel, method: str) -> None:
    server.reply = Reply("Nine of ten.", calls_tool=False)
    got = structured(model, method).invoke("Is it so?")
    assert (got["parsed"], got["raw"].content) == (None, "Nine of ten.")


@pytest.mark.parametrize("build", [chat_openai, chat_groq])
def test_arguments_that_are_no_json_make_an_invalid_call(server: LLMServer, build: Any) -> None:
    server.reply = Reply(tool_arguments='{"score": oops')
    raw = structured(build(server), "function_calling").invoke("Is it so?")["raw"]
    assert (raw.tool_calls, raw.invalid_tool_calls[0]["args"]) == ([], '{"score": oops')


def test_anthropic_reads_no_arguments_out_of_what_is_no_json(server: LLMServer) -> None:
    server.reply = Reply("Nine of ten.")
    [call] = structured(chat_anthropic(server), "function_calling").invoke("Is it so?")["raw"].tool_calls
    assert call["args"] == {}


def test_ollama_leaves_a_call_that_it_cannot_read_in_the_text(server: LLMServer) -> None:
    server.reply = Reply("Nine of ten.")
    raw = structured(chat_ollama(server), "function_calling").invoke("Is it so?")["raw"]
    assert (raw.tool_calls, raw.content) == ([], "Nine of ten.")


def test_replies_come_in_turn_and_the_last_for_ever(server: LLMServer) -> None:
    server.script(["one", "two"])
    model = chat_openai(server)
    assert [model.invoke("Say").content for _ in range(3)] == ["one", "two", "two"]


def test_a_reply_that_is_set_ends_the_script(server: LLMServer) -> None:
    server.script(["one", "two"])
    server.reply = "three"
    model = chat_openai(server)
    assert [server.reply, *(model.invoke("Say").content for _ in range(2))] == ["three", "three", "three"]


@every_client
def test_an_answer_sees_the_whole_prompt(server: LLMServer, model: BaseChatModel) -> None:
    server.answer = lambda prompt, body: f"{body['messages'][-1]['role']}: {prompt}"
    asked = [
        SystemMessage("Be strict."),
        HumanMessage([{"type": "text", "text": "Is it"}, {"type": "text", "text": "so?"}]),
    ]
    assert "".join(str(model.invoke(asked).content).split()) == "user:Bestrict.Isitso?"


def test_what_an_answer_raises_is_raised_at_the_end() -> None:
    def refuse(prompt: str, body: dict[str, Any]) -> str:
        raise LookupError(prompt)

    server = LLMServer()
    server.answer = refuse

    def use() -> None:
        with server:
            with pytest.raises(Exception, match="Is it so"):
                chat_openai(server, max_retries=2).invoke("Is it so?")

    with pytest.raises(LookupError, match="Is it so"):
        use()
    assert len(server.requests) == 1


@every_client
def test_text_of_any_kind_arrives(server: LLMServer, model: BaseChatModel) -> None:
    server.reply = text = 'naïve ✓ 😀 "quoted"\r\n\t\u2028 مرحبا {"a": "\\n"}'
    assert model.invoke("Say").content == text
    assert "".join(str(each.content) for each in model.stream("Say")) == text


# What stands beside the text


@pytest.mark.parametrize(
    ("client", "key", "stop", "length", "tool"),
    [
        ("openai", "finish_reason", "stop", "length", "tool_calls"),
        ("groq", "finish_reason", "stop", "length", "tool_calls"),
        ("anthropic", "stop_reason", "end_turn", "max_tokens", "tool_use"),
        ("ollama", "done_reason", "stop", "length", "stop"),
    ],
)
def test_each_protocol_has_its_words_for_the_end(
    server: LLMServer, model: BaseChatModel, key: str, stop: str, length: str, tool: str
) -> None:
    server.script([VERDICT, Reply(finish_reason="length"), VERDICT])
    ends = [model.invoke("Is it so?").response_metadata[key] for _ in range(2)]
    ends.append(structured(model, "function_calling").invoke("Is it so?")["raw"].response_metadata[key])
    assert ends == [stop, length, tool]


@every_client
def test_tokens_are_counted(server: LLMServer, model: BaseChatModel) -> None:
    server.reply = Reply(usage=(100, 7))
    usage = model.invoke("Is it so?").usage_metadata
    assert usage is not None
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (100, 7, 107)


def test_openai_counts_the_tokens_of_a_stream_where_it_is_asked_to(server: LLMServer) -> None:
    usage = reduce(add, chat_openai(server, stream_usage=True).stream("Is it so?")).usage_metadata
    assert usage is not None
    assert usage["total_tokens"] == 38


@pytest.mark.parametrize(("client", "tokens"), [("openai", None), ("groq", None), ("ollama", None), ("anthropic", 0)])
def test_tokens_may_be_unknown(server: LLMServer, model: BaseChatModel, tokens: int | None) -> None:
    server.reply = Reply(usage=None)
    usage = model.invoke("Is it so?").usage_metadata
    assert (usage and usage["total_tokens"]) == tokens  # Anthropic's client makes zeros of it


@pytest.mark.parametrize(
    ("client", "settings"),
    [("groq", {}), ("ollama", {"reasoning": True}), ("anthropic", {"thinking": {"type": "adaptive"}})],
)
def test_thinking_stands_apart_from_the_text(server: LLMServer, client: str, settings: dict[str, Any]) -> None:
    server.reply = Reply(reasoning="Let me see. It is so.")
    model = CLIENTS[client](server, **settings)
    for got in (model.invoke("Is it so?"), reduce(add, model.stream("Is it so?"))):
        thought = [block["reasoning"] for block in got.content_blocks if block["type"] == "reasoning"]
        assert (got.text, thought) == (VERDICT, ["Let me see. It is so."])


@pytest.mark.parametrize("build", [chat_openai, chat_ollama])
def test_thinking_is_sent_though_the_client_drops_it(server: LLMServer, build: Any) -> None:
    server.reply = Reply(reasoning="Let me see.")
    got = build(server).invoke("Is it so?")
    assert (got.content, "Let me see." in repr(got)) == (VERDICT, False)
    assert "Let me see." in post(server, server.requests[0].path)[2]


@pytest.mark.parametrize("path", PATHS)
def test_no_two_answers_have_the_same_ids_and_times(server: LLMServer, path: str) -> None:
    (_, headers, text), (_, other_headers, other_text) = post(server, path), post(server, path)
    same = {name for name, value in headers.items() if other_headers[name] == value}
    assert not same & {"Date", "Set-Cookie", "CF-RAY", "X-Request-Id"}
    answer, other = json.loads(text), json.loads(other_text)
    volatile = {"id", "created", "system_fingerprint", "created_at", "total_duration", "x_groq", "timings"}
    assert not {name for name in volatile & answer.keys() if answer[name] == other[name]}
    assert volatile & answer.keys()


@pytest.mark.parametrize("path", PATHS[:3])
def test_headers_tell_who_pays(server: LLMServer, path: str) -> None:
    server.fail(Fault(status=429))
    _, headers, text = post(server, path)
    assert "SECRETORGID" in repr(headers) + text
    assert "SECRETCOOKIE" in headers["Set-Cookie"]


@every_client
def test_answers_may_be_compressed_as_the_client_accepts(server: LLMServer, model: BaseChatModel) -> None:
    model.invoke("Is it so?")
    accepted = server.requests[0].headers["accept-encoding"].split(", ")
    for encoding in ENCODINGS.keys() & accepted:
        server.encoding = encoding
        assert structured(model, "json_schema").invoke("Is it so?")["parsed"] == json.loads(VERDICT)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_compressed_answer_says_so(server: LLMServer, encoding: str) -> None:
    server.encoding = encoding
    connection = HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=10)
    connection.request("POST", "/api/chat", json.dumps({"model": "m", "stream": False, "messages": []}))
    with connection.getresponse() as response:
        assert response.headers["content-encoding"] == encoding
        assert VERDICT.encode() not in response.read()
    connection.close()


# What goes wrong


@pytest.mark.parametrize(
    ("client", "fault", "error"),
    [
        pytest.param(client, fault, error, id=f"{client}-{name}")
        for name, fault, *errors in FAULTS
        for client, error in zip(CLIENTS, errors, strict=True)
    ],
)
def test_each_fault_is_seen_through_each_client(
    server: LLMServer, client: str, fault: Fault | FaultKind, error: str
) -> None:
    server.fail(fault)
    with pytest.raises(Exception) as raised:
        CLIENTS[client](server, timeout_s=0.3 if fault == "hang" else 10.0).invoke("Is it so?")
    assert type(raised.value).__name__ == error
    assert getattr(raised.value, "status_code", None) == (fault.status if isinstance(fault, Fault) else None)
    assert FAKE_KEY not in str(raised.value)


@every_client
@pytest.mark.parametrize("fault", ["drop", "cut"])
def test_a_stream_may_break(server: LLMServer, model: BaseChatModel, fault: FaultKind) -> None:
    server.fail(fault)
    with pytest.raises(Exception, match=r"(?i)connection|disconnected|peer closed"):
        list(model.stream("Is it so?"))


def test_the_wrong_key_is_half_shown_as_the_provider_does(server: LLMServer) -> None:
    server.fail(WRONG_KEY)
    with pytest.raises(Exception, match=r"Incorrect API key provided: sk-fakef\*+wxyz\."):
        chat_openai(server).invoke("Is it so?")


def test_a_prompt_is_too_long_in_the_words_of_llama_cpp(server: LLMServer) -> None:
    server.fail(LLAMA_CPP_CONTEXT_TOO_LONG)
    with pytest.raises(Exception, match="exceeds the available context size") as raised:
        chat_openai(server).invoke("Is it so?")
    body: Any = raised.value.body  # type: ignore[attr-defined]
    assert (body["type"], body["n_prompt_tokens"], body["n_ctx"]) == ("exceed_context_size_error", 9412, 8192)


@pytest.mark.parametrize("body", ["<html>Bad gateway</html>", {"error": {"message": "no such model"}}])
def test_a_fault_may_have_its_own_body_and_headers(server: LLMServer, body: Any) -> None:
    server.fail(Fault(status=502, body=body, headers={"retry-after": "30"}))
    status, headers, text = post(server, "/v1/chat/completions")
    assert (status, headers["retry-after"], text) == (502, "30", body if isinstance(body, str) else json.dumps(body))


@pytest.mark.parametrize("build", [chat_openai, chat_groq, chat_anthropic])
def test_faults_come_one_a_request_and_then_all_is_well(server: LLMServer, build: Any) -> None:
    server.fail(Fault(status=429, headers=AT_ONCE), Fault(status=500, headers=AT_ONCE))
    assert build(server, max_retries=2).invoke("Is it so?").content == VERDICT
    assert len(server.requests) == 3


def test_a_fault_may_stay(server: LLMServer) -> None:
    server.fail_always(Fault(status=500, headers=AT_ONCE))
    with pytest.raises(Exception, match="500"):
        chat_openai(server, max_retries=5).invoke("Is it so?")
    assert len(server.requests) == 6


@every_client
@pytest.mark.parametrize(
    ("method", "other", "reject"),
    [
        ("json_schema", "function_calling", "reject_response_format"),
        ("function_calling", "json_schema", "reject_tools"),
    ],
)
@pytest.mark.filterwarnings("ignore:This model does not support OpenAI's structured output:UserWarning")
def test_a_server_may_refuse_one_kind_of_structured_output(
    server: LLMServer, model: BaseChatModel, method: str, other: str, reject: str
) -> None:
    setattr(server, reject, True)
    with pytest.raises(Exception, match=r"support|permitted") as raised:
        structured(model, method).invoke("Is it so?")
    assert raised.value.status_code == 400  # type: ignore[attr-defined]
    assert model.invoke("Is it so?").content == VERDICT
    assert structured(model, other).invoke("Is it so?")["parsed"] == json.loads(VERDICT)


def test_openai_s_client_warns_of_a_refused_response_format(server: LLMServer) -> None:
    server.fail(NO_RESPONSE_FORMAT)
    with pytest.warns(UserWarning, match="structured output"), pytest.raises(Exception, match="not supported"):
        structured(chat_openai(server), "json_schema").invoke("Is it so?")


# How it is run


@pytest.mark.parametrize(("client", "path"), [*zip(CLIENTS, PATHS, strict=True)])
def test_requests_are_kept_in_order(server: LLMServer, model: BaseChatModel, path: str) -> None:
    model.invoke("first")
    model.invoke("second")
    first, second = server.requests
    assert (first.path, first.query) == (path, {})
    assert FAKE_KEY in first.headers.get("authorization", "") + first.headers.get("x-api-key", "")
    assert ["first" in str(first.body["messages"]), "second" in str(second.body["messages"])] == [True, True]


def test_a_query_is_kept(server: LLMServer) -> None:
    post(server, "/azure/chat/completions?api-version=2024-10-21")
    assert server.requests == [
        Request(
            "/azure/chat/completions",
            {"api-version": "2024-10-21"},
            server.requests[0].headers,
            server.requests[0].body,
        )
    ]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_path_is_not_found_and_is_kept(server: LLMServer, method: str) -> None:
    connection = HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=10)
    connection.request(method, "/v1/embeddings", "{}")
    status = connection.getresponse().status
    connection.close()
    assert (status, [each.path for each in server.requests]) == (404, ["/v1/embeddings"])


def test_latency_is_waited_for(server: LLMServer) -> None:
    server.latency_s = 0.2
    start = time.perf_counter()
    post(server, "/api/chat")
    assert time.perf_counter() - start >= 0.2


def test_many_threads_get_each_its_own_answer(server: LLMServer) -> None:
    server.answer = lambda prompt, _: f"you said {prompt}"
    server.latency_s = 0.01
    model = chat_openai(server)

    def ask(number: int) -> AIMessage:
        return model.invoke(f"number {number}")

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(ask, range(128)))
    assert [each.content for each in answers] == [f"you said number {number}" for number in range(128)]
    assert len({each.response_metadata["id"] for each in answers}) == len(server.requests) == 128


async def test_an_event_loop_gets_its_answers_too(server: LLMServer) -> None:
    model = chat_groq(server)
    assert (await model.ainvoke("Is it so?")).content == VERDICT
    await model.async_client._client.close()  # type: ignore[attr-defined]


def test_at_the_end_nothing_is_left() -> None:
    before = threading.active_count()
    with LLMServer() as server:
        port = int(server.url.rpartition(":")[2])
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        post(server, "/api/chat")
    assert threading.active_count() == before
    for each in idle:
        assert each.recv(1) == b""
        each.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.mark.parametrize("slow", ["hang", "latency"])
def test_the_end_does_not_wait_for_who_waits(slow: str) -> None:
    start = time.perf_counter()
    with ThreadPoolExecutor(1) as pool:
        with LLMServer() as server:
            server.latency_s = 60.0 if slow == "latency" else 0.0
            server.fail_always("hang")
            waiting = pool.submit(chat_ollama(server, timeout_s=60.0).invoke, "Is it so?")
            while not server.requests:
                time.sleep(0.01)
        with pytest.raises(Exception, match="disconnected"):
            waiting.result(timeout=10)
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize("build", [*CLIENTS.values()])
def test_a_client_may_leave_while_the_server_hangs(server: LLMServer, build: Any) -> None:
    server.fail("hang")
    with pytest.raises(Exception, match=r"(?i)timed out"):
        build(server, timeout_s=0.2).invoke("Is it so?")
    assert build(server).invoke("Is it so?").content == VERDICT


@pytest.mark.parametrize("sent", [b"", b"content-length: 20\r\n\r\n", b'content-length: 20\r\n\r\n{"model"'])
def test_a_client_that_is_killed_while_it_asks_is_no_error(sent: bytes) -> None:
    with LLMServer() as other, socket.create_connection(("127.0.0.1", int(other.url.rpartition(":")[2]))) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\n" + sent)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert other.requests == []
