"""A model provider on 127.0.0.1: it says what the test tells it to, and fails on demand.

    with LLMServer() as server:
        server.reply = '{"insight": "as stated", "score": 0.9}'
        server.fail(Fault(status=429), "drop")
        ...

It speaks OpenAI's chat completions (under any prefix; as Groq does under `/openai/v1`), Anthropic's messages and
Ollama's chat, streamed or not, with schemas and tools. As with the real ones, no two answers have the same ids, times
and cookies.
"""

import gzip
import importlib
import importlib.util
import json
import threading
import time
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Literal, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

VERDICT: Final = '{"insight": "it keeps to the context", "score": 0.9}'

Body = dict[str, Any]
FaultKind = Literal["status", "drop", "cut", "hang", "not json"]


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent; the names of headers are in lower case."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Body


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says.

    `finish_reason` is OpenAI's word for it ("stop", "length", "content_filter"); other protocols get their own.
    `usage` is (prompt, completion) tokens, `None` for an answer without. Where tools are asked for, the model calls one
    with `tool_arguments`, by default the text; with `calls_tool=False` it says the text instead, as small models do.
    """

    text: str = VERDICT
    finish_reason: str = "stop"
    usage: tuple[int, int] | None = (26, 12)
    reasoning: str | None = None
    tool_arguments: str | None = None
    calls_tool: bool = True


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request.

    "status": an error, by default in the provider's own words. "drop": the connection closes without an answer.
    "cut": it closes after half of the answer. "hang": nothing comes until the client leaves or the server stops.
    "not json": a page of HTML with status 200. `problem` picks the provider's words where the status is not enough.
    """

    kind: FaultKind = "status"
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | str | None = None
    problem: str = ""


WRONG_KEY: Final = Fault(status=401)
CONTEXT_TOO_LONG: Final = Fault(status=400, problem="context")
LLAMA_CPP_CONTEXT_TOO_LONG: Final = Fault(
    status=400,
    body={
        "error": {
            "code": 400,
            "message": "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 9412,
            "n_ctx": 8192,
        }
    },
)
NO_RESPONSE_FORMAT: Final = Fault(status=400, problem="response_format")
NO_TOOLS: Final = Fault(status=400, problem="tools")


class LLMServer:
    """The server; it runs inside `with`, and what `answer` raised in one of its threads is raised at the end.

    Everything may be set at any time, from any thread. `answer(prompt_text, body)` decides alone once it is set.
    """

    def __init__(self) -> None:
        self.answer: Callable[[str, Body], str | Reply] | None = None
        self.latency_s = 0.0
        self.encoding: str | None = None
        self.reject_response_format = False
        self.reject_tools = False
        self.stopping = threading.Event()
        self._errors: list[Exception] = []
        self._lock = threading.Lock()
        self._replies: deque[str | Reply] = deque([VERDICT])
        self._faults: deque[Fault] = deque()
        self._fault_for_ever: Fault | None = None
        self._fault_at: Callable[[int], Fault | None] = lambda number: None
        self._requests: list[Request] = []

    def __enter__(self) -> Self:
        self._http = _HTTPServer(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), name="LLMServer")
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.close()
        if self._errors and kind is None:
            raise self._errors[0]

    @property
    def url(self) -> str:
        """Where Groq's, Anthropic's and Ollama's clients find it."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def openai_url(self) -> str:
        """Where OpenAI's client finds it."""
        return f"{self.url}/v1"

    @property
    def requests(self) -> list[Request]:
        """What has been sent so far, in order."""
        with self._lock:
            return [*self._requests]

    @property
    def reply(self) -> str | Reply:
        """What the model says next; once set, it is all that it says."""
        return self._replies[0]

    @reply.setter
    def reply(self, reply: str | Reply) -> None:
        self.script([reply])

    def script(self, replies: Sequence[str | Reply]) -> None:
        """Say these in turn, then the last for ever."""
        with self._lock:
            self.answer, self._replies = None, deque(replies)

    def fail(self, *faults: Fault | FaultKind) -> None:
        """Let the next requests fail, each with one of these."""
        with self._lock:
            self._faults.extend(_fault(each) for each in faults)

    def fail_always(self, fault: Fault | FaultKind) -> None:
        """Let every request fail."""
        self._fault_for_ever = _fault(fault)

    def fail_at(self, fault: Fault | FaultKind, numbers: Container[int]) -> None:
        """Let the requests of these numbers fail; the first one is number 1."""
        found = _fault(fault)
        self._fault_at = lambda number: found if number in numbers else None

    def note_error(self, error: Exception) -> None:
        """Keep an error of a serving thread; the first is raised at the end."""
        self._errors.append(error)

    def receive(self, request: Request) -> tuple[int, Fault | None]:
        """Note a request; give its number, and what goes wrong with it."""
        with self._lock:
            self._requests.append(request)
            number = len(self._requests)
            if self._faults:
                return number, self._faults.popleft()
        return number, self._fault_at(number) or self._fault_for_ever

    def next_reply(self, prompt: str, body: Body) -> Reply:
        """What the model says to a prompt."""
        if self.answer is not None:
            reply = self.answer(prompt, body)
        else:
            with self._lock:
                reply = self._replies.popleft() if len(self._replies) > 1 else self._replies[0]
        return Reply(reply) if isinstance(reply, str) else reply


def _fault(fault: Fault | FaultKind) -> Fault:
    return fault if isinstance(fault, Fault) else Fault(fault)


# How an answer is compressed; only what this Python can do.
ENCODINGS: Final[dict[str, Callable[[bytes], bytes]]] = {"gzip": gzip.compress, "deflate": zlib.compress}
for _name, _module in (("br", "brotli"), ("zstd", "zstandard")):
    if importlib.util.find_spec(_module) is not None:
        ENCODINGS[_name] = importlib.import_module(_module).compress


class _HTTPServer(ThreadingHTTPServer):
    """Knows its open connections, so that closing it ends the threads that wait on them."""

    daemon_threads = False
    request_queue_size = 256

    def __init__(self, owner: LLMServer) -> None:
        self.owner = owner
        self._open: set[Any] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def close(self) -> None:
        for connection in [*self._open]:
            _shut(connection)
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves in the middle of an answer is no error; the handler tells of all others."""


def _shut(connection: Any) -> None:
    try:
        connection.shutdown(2)
    except OSError:  # its thread, or the client, was faster
        return


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for the client's delayed acknowledgement
    server: _HTTPServer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        try:
            self._respond()
        except ConnectionError:
            self.close_connection = True
        except Exception as error:
            self.server.owner.note_error(error)
            told = {"error": {"message": f"the test's own server failed: {error!r}"}}
            self._send(500, {"x-should-retry": "false", "Content-Type": "application/json"}, json.dumps(told))

    def _respond(self) -> None:
        owner = self.server.owner
        where = urlsplit(self.path)
        length = self.headers["content-length"]
        sent = b"" if length is None else self.rfile.read(int(length))
        if length is None or len(sent) < int(length):
            raise ConnectionAbortedError("the client left, or was killed, in the middle of its request")
        body = json.loads(sent)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(where.path, dict(parse_qsl(where.query)), headers, body)
        protocol = _protocol(request)
        stamp, fault = self._receive(request)
        owner.stopping.wait(owner.latency_s)
        if protocol is None:
            return self._send(404, stamp.headers(), json.dumps({"error": {"message": f"no such path: {where.path}"}}))
        if fault is None and owner.reject_response_format and protocol.schema(body) is not None:
            fault = NO_RESPONSE_FORMAT
        if fault is None and owner.reject_tools and body.get("tools"):
            fault = NO_TOOLS
        if fault is None or fault.kind == "cut":
            return self._answer(protocol, request, stamp, cut=fault is not None)
        return self._fail(protocol, request, stamp, fault)

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        stamp, _ = self._receive(Request(where.path, dict(parse_qsl(where.query)), headers, {}))
        self._send(404, stamp.headers(), json.dumps({"error": {"message": f"no such path: {where.path}"}}))

    def _receive(self, request: Request) -> tuple["_Stamp", Fault | None]:
        number, fault = self.server.owner.receive(request)
        return _Stamp(number), fault

    def _answer(self, protocol: "_Protocol", request: Request, stamp: "_Stamp", *, cut: bool) -> None:
        reply = self.server.owner.next_reply(protocol.prompt(request.body), request.body)
        tool = protocol.tool(request.body) if reply.calls_tool else None
        headers = stamp.headers() | protocol.headers(stamp)
        if protocol.is_streamed(request.body):
            headers["Content-Type"] = protocol.stream_type
            self._stream(headers, protocol.events(request.body, reply, tool, stamp), cut=cut)
        else:
            answer = protocol.answer(request.body, reply, tool, stamp)
            self._send(200, headers, json.dumps(answer, ensure_ascii=False), cut=cut)

    def _fail(self, protocol: "_Protocol", request: Request, stamp: "_Stamp", fault: Fault) -> None:
        headers = stamp.headers() | protocol.headers(stamp) | dict(fault.headers)
        if fault.kind == "status":
            body = protocol.error(fault, request, stamp) if fault.body is None else fault.body
            self._send(fault.status, headers, body if isinstance(body, str) else json.dumps(body))
        elif fault.kind == "not json":
            self._send(200, headers | {"Content-Type": "text/html"}, "<html>Sign in to the hotel's Wi-Fi</html>")
        else:
            self.close_connection = True
            if fault.kind == "hang":
                self.rfile.read(1)  # ends when the client leaves or the server stops

    def _send(self, status: int, headers: Mapping[str, str], text: str, *, cut: bool = False) -> None:
        data = text.encode()
        encoding = self.server.owner.encoding
        if encoding is not None:
            data = ENCODINGS[encoding](data)
            headers = {**headers, "Content-Encoding": encoding}
        self._start(status, {**headers, "Content-Length": str(len(data))})
        self.wfile.write(data[: len(data) // 2] if cut else data)
        self.close_connection |= cut

    def _stream(self, headers: Mapping[str, str], events: Iterator[str], *, cut: bool) -> None:
        chunks = [each.encode() for each in events]
        self._start(200, {**headers, "Transfer-Encoding": "chunked"})
        for chunk in chunks[: len(chunks) // 2] if cut else [*chunks, b""]:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.close_connection |= cut

    def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


class _Stamp:
    """What differs in each answer: ids, times, durations. Taken from the request's number, so that no two agree."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = uuid.uuid4().hex
        self.created = int(time.time()) + number
        self.created_at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{number:09d}Z"
        self.ms = 200 + number
        self.ns = self.ms * 1_000_000 + number

    def headers(self) -> dict[str, str]:
        """The headers that anyone's front door adds."""
        return {
            "Date": formatdate(self.created, usegmt=True),
            "Server": "cloudflare",
            "Content-Type": "application/json",
            "CF-RAY": f"{self.id[:16]}-AMS",
            "Set-Cookie": f"__cf_bm={self.id}.SECRETCOOKIE; path=/; HttpOnly; Secure",
            "X-Request-Id": f"req_{self.id}",
        }


class _Said(NamedTuple):
    """What a provider says of a problem."""

    type: str
    message: str
    code: str | None = None


class _Protocol:
    """What differs between the providers; this base is OpenAI's."""

    stream_type = "text/event-stream; charset=utf-8"
    reasoning = "reasoning_content"
    problems: dict[str, _Said] = {
        "401": _Said(
            "invalid_request_error",
            "Incorrect API key provided: {key}. You can find your API key at https://platform.openai.com/account/api-keys.",
            "invalid_api_key",
        ),
        "429": _Said(
            "requests",
            "Rate limit reached for gpt-4o-mini in organization org-SECRETORGID on requests per min (RPM): Limit 3, Used 3, "
            "Requested 1. Please try again in 20s.",
            "rate_limit_exceeded",
        ),
        "context": _Said(
            "invalid_request_error",
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9412 tokens. Please "
            "reduce the length of the messages.",
            "context_length_exceeded",
        ),
        "response_format": _Said(
            "invalid_request_error",
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
        ),
        "tools": _Said("invalid_request_error", "tools is not supported in this model."),
    }

    def headers(self, stamp: _Stamp) -> dict[str, str]:
        return {
            "openai-organization": "org-SECRETORGID",
            "openai-project": "proj_SECRETPROJECT",
            "openai-processing-ms": str(stamp.ms),
            "x-ratelimit-remaining-requests": str(10_000 - stamp.number),
            "x-ratelimit-reset-tokens": f"{stamp.ms}ms",
        }

    def prompt(self, body: Body) -> str:
        return "\n".join(_text(each["content"]) for each in body["messages"])

    def is_streamed(self, body: Body) -> bool:
        return bool(body.get("stream"))

    def schema(self, body: Body) -> object:
        """The form that the request asks the text to have."""
        return body.get("response_format")

    def tool(self, body: Body) -> str | None:
        """The tool to call: the one that is forced, else the first."""
        if not body.get("tools") or body.get("tool_choice") == "none":
            return None
        choice = body.get("tool_choice")
        return str((choice if isinstance(choice, dict) else body["tools"][0])["function"]["name"])

    def answer(self, body: Body, reply: Reply, tool: str | None, stamp: _Stamp) -> Body:
        message: Body = {"role": "assistant", "content": reply.text, "refusal": None}
        if tool is not None:
            message |= {"content": None, "tool_calls": [self._call(reply, tool, stamp)]}
        if reply.reasoning is not None:
            message[self.reasoning] = reply.reasoning
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._reason(reply, tool)}
        return self._head(body, stamp, "chat.completion") | {"choices": [choice]} | self._usage(reply, stamp)

    def events(self, body: Body, reply: Reply, tool: str | None, stamp: _Stamp) -> Iterator[str]:
        head = self._head(body, stamp, "chat.completion.chunk")
        deltas: list[Body] = [{"role": "assistant", "content": None if tool else ""}]
        deltas += [{self.reasoning: piece} for piece in _pieces(reply.reasoning or "")]
        if tool is None:
            deltas += [{"content": piece} for piece in _pieces(reply.text)]
        else:
            call = self._call(reply, tool, stamp)
            arguments = call["function"]["arguments"]
            deltas += [{"tool_calls": [{"index": 0} | call | {"function": {"name": tool, "arguments": ""}}]}]
            deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in _pieces(arguments)]
        for delta in deltas:
            yield _event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        last: Body = {"choices": [{"index": 0, "delta": {}, "finish_reason": self._reason(reply, tool)}]}
        yield _event(head | last | self._stream_end(reply, stamp))
        if (body.get("stream_options") or {}).get("include_usage"):
            yield _event(head | {"choices": []} | self._usage(reply, stamp))
        yield "data: [DONE]\n\n"

    def error(self, fault: Fault, request: Request, stamp: _Stamp) -> Body:
        said = self._said(fault, request)
        return {"error": {"message": said.message, "type": said.type, "param": None, "code": said.code}}

    def _said(self, fault: Fault, request: Request) -> _Said:
        said = self.problems.get(fault.problem or str(fault.status), _Said("server_error", "The server had an error."))
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        return said._replace(message=said.message.replace("{key}", key[:8] + "*" * len(key[8:-4]) + key[-4:]))

    def _head(self, body: Body, stamp: _Stamp, kind: str) -> Body:
        head = {"id": f"chatcmpl-{stamp.id}", "object": kind, "created": stamp.created, "model": body["model"]}
        return head | {"system_fingerprint": f"fp_{stamp.id[:10]}", "service_tier": "default"}

    def _call(self, reply: Reply, tool: str, stamp: _Stamp) -> Body:
        function = {"name": tool, "arguments": _arguments(reply)}
        return {"id": f"call_{stamp.id[:24]}", "type": "function", "function": function}

    def _reason(self, reply: Reply, tool: str | None) -> str:
        return "tool_calls" if tool is not None and reply.finish_reason == "stop" else reply.finish_reason

    def _usage(self, reply: Reply, stamp: _Stamp) -> Body:
        # llama.cpp's durations stand beside the usage
        timings = {"timings": {"prompt_ms": stamp.ms / 10, "predicted_ms": stamp.ms}}
        return timings if reply.usage is None else timings | {"usage": _openai_usage(reply.usage)}

    def _stream_end(self, reply: Reply, stamp: _Stamp) -> Body:
        return {}


class _Groq(_Protocol):
    """OpenAI's protocol with additions."""

    reasoning = "reasoning"
    problems = _Protocol.problems | {
        "401": _Said("invalid_request_error", "Invalid API Key", "invalid_api_key"),
        "429": _Said(
            "tokens",
            "Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_SECRETORGID` service tier "
            "`on_demand` on tokens per minute (TPM): Limit 12000, Used 11895, Requested 412. Please try again in 1.535s.",
            "rate_limit_exceeded",
        ),
        "context": _Said(
            "invalid_request_error",
            "Please reduce the length of the messages or completion.",
            "context_length_exceeded",
        ),
        "response_format": _Said(
            "invalid_request_error",
            "This model does not support response format `json_schema`. See supported models at "
            "https://console.groq.com/docs/structured-outputs#supported-models",
        ),
        "tools": _Said("invalid_request_error", "`tool calling` is not supported with this model"),
    }

    def headers(self, stamp: _Stamp) -> dict[str, str]:
        return {
            "x-groq-region": "fra",
            "x-ratelimit-remaining-tokens": str(12_000 - stamp.number),
            "x-ratelimit-reset-tokens": f"{stamp.ms}ms",
        }

    def _usage(self, reply: Reply, stamp: _Stamp) -> Body:
        groq: Body = {"x_groq": {"id": f"req_{stamp.id}"}}
        if reply.usage is None:
            return groq
        times = {"queue_time": stamp.ms / 10_000, "completion_time": stamp.ms / 1000, "total_time": stamp.ms / 900}
        return groq | {"usage": _openai_usage(reply.usage) | times}

    def _stream_end(self, reply: Reply, stamp: _Stamp) -> Body:
        usage = self._usage(reply, stamp)
        return {"x_groq": usage.pop("x_groq") | usage}


class _Anthropic(_Protocol):
    """Its own messages, in blocks."""

    reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    problems = {
        "401": _Said("authentication_error", "invalid x-api-key"),
        "429": _Said(
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 50 requests per minute "
            "(org: 1d9f5c0e-SECRETORGID, model: claude-sonnet-4-5).",
        ),
        "529": _Said("overloaded_error", "Overloaded"),
        "context": _Said("invalid_request_error", "prompt is too long: 209412 tokens > 200000 maximum"),
        "response_format": _Said("invalid_request_error", "output_config.format: Extra inputs are not permitted"),
        "tools": _Said("invalid_request_error", "tools: this model does not support tool use"),
    }

    def headers(self, stamp: _Stamp) -> dict[str, str]:
        return {
            "request-id": f"req_{stamp.id}",
            "anthropic-organization-id": "1d9f5c0e-SECRETORGID",
            "anthropic-ratelimit-requests-remaining": str(50_000 - stamp.number),
            "anthropic-ratelimit-requests-reset": stamp.created_at,
        }

    def prompt(self, body: Body) -> str:
        return "\n".join([_text(body.get("system", "")), super().prompt(body)]).lstrip("\n")

    def schema(self, body: Body) -> object:
        return (body.get("output_config") or {}).get("format") or body.get("output_format")

    def tool(self, body: Body) -> str | None:
        choice = body.get("tool_choice") or {}
        if not body.get("tools") or choice.get("type") == "none":
            return None
        return str(choice.get("name") or body["tools"][0]["name"])

    def answer(self, body: Body, reply: Reply, tool: str | None, stamp: _Stamp) -> Body:
        usage = {"usage": self._tokens(reply)} if reply.usage else {}
        content = [start | filled for start, filled, _ in self._blocks(reply, tool, stamp)]
        return self._message(body, stamp) | {"content": content, "stop_reason": self._reason(reply, tool)} | usage

    def events(self, body: Body, reply: Reply, tool: str | None, stamp: _Stamp) -> Iterator[str]:
        usage = self._tokens(reply)
        message = self._message(body, stamp) | {"usage": usage | {"output_tokens": 1}}
        yield _named_event("message_start", message=message)
        yield _named_event("ping")
        for index, (start, _, deltas) in enumerate(self._blocks(reply, tool, stamp)):
            yield _named_event("content_block_start", index=index, content_block=start)
            for delta in deltas:
                yield _named_event("content_block_delta", index=index, delta=delta)
            yield _named_event("content_block_stop", index=index)
        delta = {"stop_reason": self._reason(reply, tool), "stop_sequence": None}
        yield _named_event("message_delta", delta=delta, usage=usage)
        yield _named_event("message_stop")

    def error(self, fault: Fault, request: Request, stamp: _Stamp) -> Body:
        said = self._said(fault, request)
        error = {"type": "api_error" if said.type == "server_error" else said.type, "message": said.message}
        return {"type": "error", "error": error, "request_id": f"req_{stamp.id}"}

    def _message(self, body: Body, stamp: _Stamp) -> Body:
        head = {"id": f"msg_{stamp.id}", "type": "message", "role": "assistant", "model": body["model"]}
        return head | {"content": [], "stop_reason": None, "stop_sequence": None}

    def _blocks(self, reply: Reply, tool: str | None, stamp: _Stamp) -> Iterator[tuple[Body, Body, list[Body]]]:
        """Each block as it starts, what fills it, and the same in pieces."""
        if reply.reasoning is not None:
            start: Body = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(reply.reasoning)]
            deltas.append({"type": "signature_delta", "signature": stamp.id})
            yield start, {"thinking": reply.reasoning, "signature": stamp.id}, deltas
        if tool is not None:
            start = {"type": "tool_use", "id": f"toolu_{stamp.id[:24]}", "name": tool, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(_arguments(reply))]
            yield start, {"input": _object(_arguments(reply)) or {}}, deltas
        else:
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(reply.text)]
            yield {"type": "text", "text": ""}, {"text": reply.text}, deltas

    def _reason(self, reply: Reply, tool: str | None) -> str:
        if tool is not None and reply.finish_reason == "stop":
            return "tool_use"
        return self.reasons.get(reply.finish_reason, reply.finish_reason)

    def _tokens(self, reply: Reply) -> Body:
        return {} if reply.usage is None else {"input_tokens": reply.usage[0], "output_tokens": reply.usage[1]}


class _Ollama(_Protocol):
    """Its own chat, in lines of JSON."""

    stream_type = "application/x-ndjson"
    problems = {
        "401": _Said("", "unauthorized"),
        "429": _Said("", "you've reached your hourly usage limit, please upgrade to continue"),
        "500": _Said("", "llama runner process has terminated: exit status 2"),
        "503": _Said("", "server busy, please try again.  maximum pending requests exceeded"),
        "context": _Said("", "the input length exceeds the context length"),
        "response_format": _Said("", "invalid format: this model does not support a schema"),
        "tools": _Said("", "registry.ollama.ai/library/gemma:latest does not support tools"),
    }

    def headers(self, stamp: _Stamp) -> dict[str, str]:
        return {}

    def is_streamed(self, body: Body) -> bool:
        return bool(body.get("stream", True))

    def schema(self, body: Body) -> object:
        return body.get("format")

    def answer(self, body: Body, reply: Reply, tool: str | None, stamp: _Stamp) -> Body:
        return self._line(body, stamp, {"content": ""} | self._said_at_once(reply, tool)) | self._end(reply, stamp)

    def events(self, body: Body, reply: Reply, tool: str | None, stamp: _Stamp) -> Iterator[str]:
        messages: list[Body] = [{"content": "", "thinking": piece} for piece in _pieces(reply.reasoning or "")]
        whole = self._said_at_once(reply, tool)
        if "tool_calls" in whole:
            messages.append({"content": "", "tool_calls": whole["tool_calls"]})
        else:
            messages += [{"content": piece} for piece in _pieces(reply.text)]
        for message in messages:
            yield json.dumps(self._line(body, stamp, message) | {"done": False}) + "\n"
        yield json.dumps(self._line(body, stamp, {"content": ""}) | self._end(reply, stamp)) + "\n"

    def error(self, fault: Fault, request: Request, stamp: _Stamp) -> Body:
        return {"error": self._said(fault, request).message}

    def _said_at_once(self, reply: Reply, tool: str | None) -> Body:
        thinking: Body = {} if reply.reasoning is None else {"thinking": reply.reasoning}
        arguments = None if tool is None else _object(_arguments(reply))
        if arguments is None:  # Ollama reads calls out of the text; what it cannot read stays text
            return thinking | {"content": reply.text}
        return thinking | {"tool_calls": [{"function": {"name": tool, "arguments": arguments}}]}

    def _line(self, body: Body, stamp: _Stamp, message: Body) -> Body:
        return {"model": body["model"], "created_at": stamp.created_at, "message": {"role": "assistant"} | message}

    def _end(self, reply: Reply, stamp: _Stamp) -> Body:
        counts = {} if reply.usage is None else {"prompt_eval_count": reply.usage[0], "eval_count": reply.usage[1]}
        times = {"total_duration": stamp.ns, "load_duration": stamp.ns // 9}
        times |= {"prompt_eval_duration": stamp.ns // 5, "eval_duration": stamp.ns // 3}
        return {"done": True, "done_reason": reply.finish_reason} | times | counts


def _protocol(request: Request) -> _Protocol | None:
    if request.path.endswith("/openai/v1/chat/completions"):
        return _Groq()
    if request.path.endswith("/chat/completions"):
        return _Protocol()
    return {"/v1/messages": _Anthropic, "/api/chat": _Ollama}.get(request.path, lambda: None)()


def _openai_usage(usage: tuple[int, int]) -> Body:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


def _text(content: Any) -> str:
    """The text of a message, which may come in blocks."""
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content or [])


def _pieces(text: str) -> list[str]:
    return [text[at : at + 12] for at in range(0, len(text), 12)]


def _arguments(reply: Reply) -> str:
    return reply.text if reply.tool_arguments is None else reply.tool_arguments


def _object(text: str) -> Body | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _event(data: Body) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def _named_event(kind: str, **data: Any) -> str:
    return f"event: {kind}\n{_event({'type': kind} | data)}"
