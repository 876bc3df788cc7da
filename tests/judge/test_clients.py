"""Every client in every style: recorded, then replayed with no key and no socket, and no secret in the file."""

import array
import contextvars
import gc
import inspect
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import requests
import urllib3
import vcr
import yaml
from langchain_core.language_models import BaseChatModel
from support.bench import CASE, Bench
from support.clients import CLIENTS
from support.llm_server import Fault, LLMServer
from support.plain_models import AiohttpModel, RequestsModel, Urllib3Model
from support.plain_server import PlainServer

from pytest_ctxeval import CassetteMissError, JudgeError
from pytest_ctxeval._core.verdict import Calls
from pytest_ctxeval._judge.cassette.routing import is_trace
from pytest_ctxeval._judge.cassette.tape import REPLAYING, RecordMode, Tape
from pytest_ctxeval._judge.cassette.transport import install, routed
from pytest_ctxeval._judge.placeholder import placeholder_keys
from pytest_ctxeval._plugin.assistant import AssistantCassette

PLANTED = "planted-key-" + "9876543210" * 2
VARIABLES = ("OPENAI_API_KEY", "GROQ_API_KEY", "ANTHROPIC_API_KEY")
CASE_OF_ANOTHER = CASE(assistant="Never.")
PLAIN = {"requests": RequestsModel, "urllib3": Urllib3Model, "aiohttp": AiohttpModel}


class Server(NamedTuple):
    """Where a server is, or was."""

    url: str
    openai_url: str


def client(name: str, server: Server) -> BaseChatModel:
    """The client, with its key from the environment, as people have it."""
    if name in PLAIN:
        return PLAIN[name](url=server.url)
    return CLIENTS[name](server, api_key=None)


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, PLANTED)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Take the keys away, and let no socket connect."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a socket was to be opened")

    def go() -> None:
        for name in VARIABLES:
            monkeypatch.delenv(name)
        for method in ("connect", "connect_ex"):
            monkeypatch.setattr(socket.socket, method, refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)

    return go


STYLES = {
    "text": (False, False, False),
    "json_schema": (True, False, False),
    "tool call": (True, True, False),
    "text, after both were refused": (True, True, True),
}
JUDGES = [(name, style) for name in CLIENTS for style in STYLES] + [(name, "text") for name in PLAIN]


@pytest.mark.filterwarnings("ignore::pytest_ctxeval.CtxEvalWarning", "ignore:Cannot use method=")
@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize(("name", "style"), JUDGES, ids=[f"{name}: {style}" for name, style in JUDGES])
def test_a_judge(name: str, style: str, bench: Bench, offline: Callable[[], None]) -> None:
    structured, no_schema, no_tools = STYLES[style]
    with LLMServer() as running:
        running.reject_response_format, running.reject_tools = no_schema, no_tools
        server = Server(running.url, running.openai_url)
        (live,) = bench.assess(client(name, server), structured=structured)
        asked = running.requests[-1]
    assert PLANTED in str(asked.headers) or name == "ollama"  # which has none to give
    assert (live.score, live.calls.recorded, live.source) == (0.9, 1, "recorded")
    assert PLANTED not in bench.path.read_text(encoding="utf-8")
    offline()
    with placeholder_keys():
        model = client(name, server)
    (again,) = bench.assess(model, mode="none", structured=structured)
    assert (again.score, again.reason, again.calls) == (live.score, live.reason, Calls(replayed=1))
    with pytest.raises(CassetteMissError):
        bench.assess(model, CASE_OF_ANOTHER, mode="none", structured=structured)


async def invoke(model: BaseChatModel) -> list[str]:
    return [model.invoke("one").text]


async def ainvoke(model: BaseChatModel) -> list[str]:
    return [(await model.ainvoke("one")).text]


async def batch(model: BaseChatModel) -> list[str]:
    return [each.text for each in model.batch(["one", "two", "three"])]


async def abatch(model: BaseChatModel) -> list[str]:
    return [each.text for each in await model.abatch(["one", "two", "three"])]


async def stream(model: BaseChatModel) -> list[str]:
    return ["".join(part.text for part in model.stream("one"))]


async def astream(model: BaseChatModel) -> list[str]:
    return ["".join([part.text async for part in model.astream("one")])]


ASSISTANTS = [
    (name, style)
    for name in (*CLIENTS, *PLAIN)
    for style in (invoke, ainvoke, batch, abatch, stream, astream)
    if name != "aiohttp" or style in (ainvoke, abatch, astream)  # its sync calls cannot run beside a running loop
]


async def shut(model: BaseChatModel) -> None:
    """Close the async half of a client, which would else be closed by chance, in the midst of another test."""
    for path in (
        "root_async_client.close",
        "async_client._client.close",
        "_async_client.close",
        "_async_client._client.aclose",
    ):
        found: Any = model
        for name in path.split("."):
            found = getattr(found, name, None)
        if inspect.iscoroutinefunction(found):
            await found()


# The clients leave the sockets of their async halves to the garbage collection.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize(("name", "style"), ASSISTANTS, ids=[f"{name}: {style.__name__}" for name, style in ASSISTANTS])
async def test_an_assistant(name: str, style: Any, tmp_path: Path, offline: Callable[[], None]) -> None:
    with LLMServer() as running:
        running.answer = lambda prompt, _: f"the answer, and a long one, to {prompt}: ✓"
        server = Server(running.url, running.openai_url)
        held = tape(tmp_path, "once")
        recorded = AssistantCassette(held)
        with recorded:
            live = await style(asked := client(name, server))
        held.close("passed")
        count = len(running.requests)
    assert [said.startswith("the answer, and a long one, to ") for said in live] == [True] * count
    assert (recorded.calls, PLANTED in held.path.read_text(encoding="utf-8")) == (Calls(recorded=count), False)
    offline()
    replayed = AssistantCassette(tape(tmp_path, "none"))
    with replayed:
        again = await style(asked_again := client(name, server))
    assert again == live
    assert replayed.calls == Calls(replayed=count)
    for model in (asked, asked_again):
        await shut(model)
    gc.collect()


# What lies beneath: pools, retries, streams that break, other people's cassettes.


def tape(folder: Path, mode: RecordMode) -> Tape:
    return Tape(folder / "a.yaml", node="test_a.py::test_b", mode=mode, shown="a.yaml")


def with_requests(url: str) -> str:
    return requests.get(url, timeout=10).text


def with_urllib3(url: str) -> str:
    return urllib3.request("GET", url, timeout=10).data.decode()


WAYS = pytest.mark.parametrize("get", [with_requests, with_urllib3])


@WAYS
def test_a_request_outside_of_our_calls_goes_where_it_always_went(get: Callable[[str], str]) -> None:
    with PlainServer(lambda _: (200, {}, "plain")) as server:
        assert get(server.url) == "plain"


@WAYS
def test_a_thread_without_the_context_is_held_back_while_an_assistant_is_replayed(
    get: Callable[[str], str], tmp_path: Path
) -> None:
    with PlainServer(lambda _: (200, {}, "live")) as server:
        held = tape(tmp_path, "once")
        with AssistantCassette(held):
            get(server.url)
        held.close("passed")
        said: list[str] = []

        def strayed() -> None:
            with AssistantCassette(tape(tmp_path, "none")):
                get(server.url)
                thread = threading.Thread(target=lambda: said.append(get(server.url)))
                thread.start()
                thread.join()

        with pytest.raises(CassetteMissError, match="from a thread that does not know of the block"):
            strayed()
        assert "held this request back" in said[0]
        assert len(server.requests) == 1
    assert REPLAYING == []


@pytest.mark.usefixtures("keyed")
def test_a_compressed_answer_of_a_model_is_readable_on_disk(tmp_path: Path) -> None:
    for encoding in ("gzip", "br", "deflate"):  # zstd is beyond urllib3 on some Pythons
        for name in PLAIN:
            folder = tmp_path / encoding / name
            with LLMServer() as server:
                server.encoding = encoding
                server.answer = lambda prompt, _: f"to {prompt}"
                held = tape(folder, "once")
                with AssistantCassette(held):
                    assert client(name, Server(server.url, server.openai_url)).invoke("one").text == "to one"
                held.close("passed")
            assert "to one" in held.path.read_text(encoding="utf-8")
            with AssistantCassette(tape(folder, "none")):
                assert client(name, Server(server.url, server.openai_url)).invoke("one").text == "to one"


@pytest.mark.usefixtures("keyed")
def test_a_retry_of_the_pool_is_one_exchange_and_replays_without_a_wait(bench: Bench) -> None:
    with LLMServer() as server:
        server.fail(Fault(status=503, headers={"retry-after": "0"}))
        where = Server(server.url, server.openai_url)
        (live,) = bench.assess(client("urllib3", where))
        assert len(server.requests) == 2
    assert (live.calls, [each["response"]["status"]["code"] for each in bench.interactions]) == (
        Calls(recorded=1),
        [200],
    )
    assert bench.assess(client("urllib3", where), mode="none")[0].calls == Calls(replayed=1)


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("fault", [Fault("cut"), Fault("drop"), Fault(status=500)], ids=lambda fault: fault.kind)
def test_an_answer_that_breaks_off_is_not_kept(name: str, fault: Fault, bench: Bench) -> None:
    with LLMServer() as server:
        server.fail_always(fault)
        with pytest.raises(JudgeError):
            bench.assess(client(name, Server(server.url, server.openai_url)))
    assert not bench.path.exists()


def test_a_pool_of_before_and_after_the_patch_works_as_ever(tmp_path: Path) -> None:
    pool = urllib3.PoolManager()
    with PlainServer(lambda path: (200, {}, path)) as server:

        def asked(path: str) -> str:
            return pool.request("GET", f"{server.url}{path}").data.decode()

        assert asked("/before") == "/before"
        held = tape(tmp_path, "once")
        with routed(), held.call() as call:
            install()
            assert asked("/during") == "/during"
        assert [each.uri.rpartition("/")[2] for each in call.recorded] == ["during"]
        assert asked("/after") == "/after"
        assert server.requests == ["/before", "/during", "/after"]
    pool.clear()


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("name", PLAIN)
def test_many_threads_record_each_answer_under_its_own_question(name: str, tmp_path: Path) -> None:
    questions = [f"question {number}" for number in range(32)]
    with LLMServer() as server:
        server.answer = lambda prompt, _: f"answer to {prompt}"
        where = Server(server.url, server.openai_url)
        for mode in ("once", "none"):
            held = tape(tmp_path, mode)
            block = AssistantCassette(held)
            with block:
                model = client(name, where)
                jobs = [(contextvars.copy_context(), question) for question in questions]
                with ThreadPoolExecutor(16) as threads:
                    said = list(threads.map(lambda job: job[0].run(model.invoke, job[1]).text, jobs))  # noqa: B023
            assert said == [f"answer to {question}" for question in questions]
            held.close("passed")
            assert block.calls == (Calls(recorded=32) if mode == "once" else Calls(replayed=32))
        assert len(server.requests) == 32


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("where", ["around", "inside"])
def test_a_users_own_cassette_and_ours_keep_each_their_own(name: str, where: str, bench: Bench, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.yaml"
    with LLMServer() as server, PlainServer(lambda path: (200, {}, path)) as service:
        model = client(name, Server(server.url, server.openai_url))
        if where == "around":
            with vcr.use_cassette(str(theirs)):
                assert with_requests(f"{service.url}/theirs") == "/theirs"
                (verdict,) = bench.assess(model)
                assert with_urllib3(f"{service.url}/theirs/too") == "/theirs/too"
        else:
            held = tape(tmp_path, "once")
            with AssistantCassette(held):
                with vcr.use_cassette(str(theirs)):
                    pass
                assert with_requests(f"{service.url}/ours") == "/ours"
            (verdict,) = bench.assess(model)
    assert verdict.calls == Calls(recorded=1)
    assert [each["request"]["uri"].rpartition("/")[2] for each in bench.interactions] == ["completions"]
    if where == "around":
        kept = yaml.safe_load(theirs.read_text(encoding="utf-8"))["interactions"]
        assert [each["request"]["uri"].rpartition("/")[2] for each in kept] == ["theirs", "too"]


def asked_of(tmp_path: Path, do: Callable[[], Any], mode: RecordMode = "once") -> tuple[Any, str]:
    """What comes of something that is done in a block, and the cassette."""
    held = tape(tmp_path, mode)
    with AssistantCassette(held):
        found = do()
    held.close("passed")
    return found, held.path.read_text(encoding="utf-8") if held.path.exists() else ""


def test_a_session_keeps_its_cookies_while_it_is_recorded(tmp_path: Path) -> None:
    def log_in(url: str) -> str:
        with requests.Session() as session:
            session.get(f"{url}/login", timeout=10)
            return str(session.cookies.get("sid"))

    with PlainServer(lambda _: (200, {"Set-Cookie": "sid=42"}, "hello")) as server:
        sid, text = asked_of(tmp_path, lambda: log_in(server.url))
    assert (sid, "sid=42" in text) == ("42", False)


def test_a_head_of_a_compressed_page_is_recorded(tmp_path: Path) -> None:
    with PlainServer(lambda _: (200, {"content-encoding": "br", "content-length": "9"}, "")) as server:
        status, _ = asked_of(tmp_path, lambda: requests.head(server.url, timeout=10).status_code)
        assert status == 200
    for url in (server.url, f"{server.url}/never"):

        def again(url: str = url) -> int:
            return requests.head(url, timeout=10).status_code

        if url == server.url:
            assert asked_of(tmp_path, again, "none")[0] == 200
        else:
            with pytest.raises(CassetteMissError):
                asked_of(tmp_path, again, "none")


def test_a_body_of_any_buffer_is_sent_as_it_is(tmp_path: Path) -> None:
    with PlainServer(lambda _: (200, {}, "taken")) as server:
        _, text = asked_of(
            tmp_path,
            lambda: urllib3.request("POST", server.url, body=array.array("B", b"abc"), timeout=10).data,  # type: ignore[arg-type]
        )
    assert "body: abc" in text


def test_the_address_of_a_tracer_is_its_own_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9/traces")
    for url, is_one in {
        "http://127.0.0.1:9/traces": True,
        "http://127.0.0.1:9/traces/runs": True,
        "http://127.0.0.1:9/tracesand": False,
        "http://127.0.0.1:99/traces": False,
        "https://api.smith.langchain.com/runs": True,
        "https://smith.langchain.com.example/runs": False,
    }.items():
        assert is_trace(url) is is_one, url
    with pytest.raises(CassetteMissError):
        asked_of(tmp_path, lambda: requests.get("http://127.0.0.1:9/tracesand", timeout=10), "none")


async def test_plain_traffic_of_aiohttp_is_as_it_ever_was() -> None:
    with PlainServer(lambda _: (200, {}, "plain")) as server:
        async with aiohttp.ClientSession() as session:
            async with session.get(server.url, headers=[("X-A", "1"), ("X-A", "2")]) as answer:
                assert await answer.text() == "plain"
            with pytest.raises(aiohttp.ClientError):
                await session.get("http://[::1")


@pytest.mark.parametrize("kind", ["json", "form", "multipart", "payload", "file", "generator", "bytes"])
async def test_aiohttp_sends_any_body_as_it_was_given(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}', encoding="utf-8")

    async def parts() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    def multipart() -> aiohttp.FormData:
        form = aiohttp.FormData()
        form.add_field("a", b"1", filename="a.txt")
        return form

    makers: dict[str, Callable[[], dict[str, Any]]] = {
        "json": lambda: {"json": {"a": 1}},
        "form": lambda: {"data": {"a": "1"}},
        "multipart": lambda: {"data": multipart()},
        "payload": lambda: {"data": aiohttp.JsonPayload({"a": 1})},
        "file": lambda: {"data": (tmp_path / "a.json").open("rb")},
        "generator": lambda: {"data": parts(), "headers": {"content-length": "7"}},
        "bytes": lambda: {"data": b"raw"},
    }

    async def post(url: str) -> str:
        given = makers[kind]()
        async with aiohttp.ClientSession() as session, session.post(url, **given) as answer:
            text = await answer.text()
        if kind == "file":
            given["data"].close()
        return text

    with PlainServer(lambda _: (200, {}, "taken")) as server:
        held = tape(tmp_path, "once")
        with AssistantCassette(held):
            assert await post(server.url) == "taken"
        held.close("passed")
    with AssistantCassette(tape(tmp_path, "none")):
        assert await post(server.url) == "taken"


@pytest.fixture(autouse=True)
def _no_pool_is_left() -> Iterator[None]:
    yield
    if Urllib3Model.pools is not None:
        Urllib3Model.pools.clear()
