"""Whose request is whose: servers of one host, redirects, other services, other tools, threads without the context."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import httpx
import httpx2
import pytest
import requests
from support.bench import CASE, KEY, NOWHERE, Bench, chat
from support.llm_server import LLMServer
from support.plain_server import PlainServer

from pytest_ctxeval import CassetteError, CassetteMissError
from pytest_ctxeval._core.verdict import Calls
from pytest_ctxeval._judge.cassette.tape import RecordMode, Tape
from pytest_ctxeval._judge.cassette.transport import routed
from pytest_ctxeval._plugin.assistant import AssistantCassette


def tape(path: Path, mode: RecordMode) -> Tape:
    return Tape(path / "a.yaml", node="test_a.py::test_b", mode=mode, shown="a.yaml")


def get(url: str) -> str:
    with httpx.Client(follow_redirects=True, trust_env=False) as client:
        return client.get(url).text


def test_two_servers_of_one_host_give_each_their_own_answer(tmp_path: Path) -> None:
    with (
        PlainServer(lambda _: (200, {}, "one")) as first,
        PlainServer(lambda _: (200, {}, "two")) as second,
    ):
        for mode in ("once", "none"):
            held = tape(tmp_path, mode)
            with AssistantCassette(held):
                assert [get(first.url), get(second.url), get(first.url)] == ["one", "two", "one"]
            held.close("passed")
        assert (len(first.requests), len(second.requests)) == (1, 1)


def test_a_server_that_has_another_port_today_is_the_one_that_was_recorded(tmp_path: Path) -> None:
    with PlainServer(lambda _: (200, {}, "one")) as server:
        held = tape(tmp_path, "once")
        with AssistantCassette(held):
            get(server.url)
        held.close("passed")
    with AssistantCassette(tape(tmp_path, "none")):
        assert get("http://127.0.0.1:9/") == "one"


def test_which_of_two_servers_is_meant_is_never_guessed(tmp_path: Path) -> None:
    with PlainServer(lambda _: (200, {}, "one")) as first, PlainServer(lambda _: (200, {}, "two")) as second:
        held = tape(tmp_path, "once")
        with AssistantCassette(held):
            get(first.url), get(second.url)
        held.close("passed")
    with pytest.raises(CassetteMissError), AssistantCassette(tape(tmp_path, "none")):
        get("http://127.0.0.1:9/")


def test_a_redirect_is_recorded_and_replayed(tmp_path: Path) -> None:
    def answer(path: str) -> tuple[int, dict[str, str], str]:
        return (
            (302, {"location": "/there?key=AIzaSyD-s3cret5e5f6&a=1"}, "")
            if path == "/here"
            else (200, {}, f"at {path}")
        )

    with PlainServer(answer) as server:
        for mode in ("once", "none"):
            held = tape(tmp_path, mode)
            with AssistantCassette(held):
                assert get(f"{server.url}/here").startswith("at /there?")
            held.close("passed")
        assert len(server.requests) == 2
    assert "s3cret5e5f6" not in (tmp_path / "a.yaml").read_text(encoding="utf-8").replace(
        "at /there?key=AIzaSyD-s3cret5e5f6", ""
    )


def _with_requests(url: str) -> str:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url).text


@pytest.mark.parametrize("ask", [get, _with_requests], ids=["httpx", "requests"])
def test_a_redirect_to_an_address_that_is_not_ascii_is_replayed(tmp_path: Path, ask: Callable[[str], str]) -> None:
    there = "/z\N{LATIN SMALL LETTER U WITH DIAERESIS}rich"
    sent = there.encode().decode("latin-1")  # so that these bytes are sent

    def answer(path: str) -> tuple[int, dict[str, str], str]:
        return (302, {"location": sent}, "") if path == "/here" else (200, {}, f"at {path}")

    with PlainServer(answer) as server:
        seen = []
        for mode in ("once", "none"):
            held = tape(tmp_path, mode)
            with AssistantCassette(held):
                seen.append(ask(f"{server.url}/here"))
            held.close("passed")
        assert seen == [f"at {quote(there)}"] * 2
        assert len(server.requests) == 2


def test_what_another_service_says_is_kept_to_the_letter(tmp_path: Path) -> None:
    document = {
        "type": "message",
        "role": "user",
        "content": "hi",
        "id": "doc-17",
        "created": 1_700_000_000,
        "title": "Returns",
        "hits": [{"id": "a", "created_at": "x"}],
    }
    with PlainServer(lambda _: (200, {"content-type": "application/json"}, json.dumps(document))) as server:
        seen = []
        for mode in ("once", "none"):
            held = tape(tmp_path, mode)
            with AssistantCassette(held):
                seen.append(json.loads(get(server.url)))
            held.close("passed")
    assert seen == [document, document]


def test_a_thread_without_the_context_is_held_back_while_an_assistant_is_replayed(
    server: LLMServer, tmp_path: Path
) -> None:
    def ask() -> None:
        chat(server).invoke("from a thread")

    held = tape(tmp_path, "once")
    with AssistantCassette(held):
        chat(server).invoke("routed")
    held.close("passed")
    refused: list[Exception] = []

    def beside() -> None:
        try:
            ask()
        except Exception as error:
            refused.append(error)

    def replayed() -> None:
        with AssistantCassette(tape(tmp_path, "none")):
            chat(server).invoke("routed")
            thread = threading.Thread(target=beside)
            thread.start()
            thread.join()

    with pytest.raises(CassetteMissError) as missed:
        replayed()
    assert str(missed.value) == (
        f"{server.openai_url}/chat/completions was asked for beside 'with ctxeval_cassette:', from a thread that does "
        "not know of the block, and nothing may go out while an assistant is replayed; start such calls with "
        "asyncio.to_thread or contextvars.copy_context().run, and record the test again"
    )
    assert len(refused) == 1
    assert len(server.requests) == 1
    ask()  # outside of the block it is nobody's business
    assert len(server.requests) == 2


async def test_tasks_may_each_open_the_block(server: LLMServer, tmp_path: Path) -> None:
    server.answer = lambda prompt, _: f"answer to {prompt}"
    for mode in ("once", "none"):
        held = tape(tmp_path, mode)
        block = AssistantCassette(held)

        async def asked(number: int, block: AssistantCassette = block) -> str:
            with block:
                await asyncio.sleep(0.01 * (8 - number))
                answer = await chat(server).ainvoke(f"question {number}")
            return str(answer.text)

        answers = await asyncio.gather(*(asked(number) for number in range(8)))
        assert answers == [f"answer to question {number}" for number in range(8)]
        held.close("passed")
        assert block.calls.recorded + block.calls.replayed == 8
    assert len(server.requests) == 8


def test_blocks_of_any_length_may_overlap_while_they_are_replayed(server: LLMServer, tmp_path: Path) -> None:
    server.answer = lambda prompt, _: f"answer to {prompt}"

    def everything(block: AssistantCassette) -> list[list[str]]:
        def one(number: int) -> list[str]:
            with block:
                return [chat(server).invoke(f"{number} {turn}").text for turn in range(1 + number % 3)]

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(one, range(12)))

    answers = []
    for mode in ("once", "none"):
        held = tape(tmp_path, mode)
        answers.append(everything(AssistantCassette(held)))
        held.close("passed")
    assert answers[0] == answers[1]
    assert chat(server).invoke("plain").text == "answer to plain"  # nothing is held back any more


def test_a_block_inside_a_block_is_one_conversation(server: LLMServer, tmp_path: Path) -> None:
    for mode in ("once", "none"):
        held = tape(tmp_path, mode)
        block = AssistantCassette(held)
        with block, block:
            chat(server).invoke("hello")
        held.close("passed")
    assert len(server.requests) == 1


def test_what_an_error_that_was_expected_left_behind_is_kept(server: LLMServer, tmp_path: Path) -> None:
    def wrong() -> None:
        chat(server).invoke("hello")
        raise RuntimeError

    for mode in ("once", "none"):
        held = tape(tmp_path, mode)
        with pytest.raises(RuntimeError), AssistantCassette(held):
            wrong()
        held.close("passed")
    assert len(server.requests) == 1


def test_what_an_error_that_broke_the_test_left_behind_is_not_kept(server: LLMServer, tmp_path: Path) -> None:
    def wrong() -> None:
        chat(server).invoke("hello")
        raise RuntimeError

    held = tape(tmp_path, "once")
    with pytest.raises(RuntimeError), AssistantCassette(held):
        wrong()
    held.close("broken")
    assert not (tmp_path / "a.yaml").exists()


def test_many_threads_may_record_on_one_cassette(tmp_path: Path) -> None:
    said = {"object": "chat.completion", "model": "m", "choices": []}
    with PlainServer(
        lambda path: (200, {"content-type": "application/json"}, json.dumps({"id": path, **said}))
    ) as service:
        held = tape(tmp_path, "once")
        block = AssistantCassette(held)

        def one(number: int) -> None:
            with block:
                for turn in range(20):
                    get(f"{service.url}/{number}/{turn}")

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(one, range(16)))
        finally:
            sys.setswitchinterval(interval)
        assert block.calls == Calls(recorded=320)


def test_an_application_in_this_process_is_asked_itself(server: LLMServer, tmp_path: Path) -> None:
    """Only what its model said over the network is recorded."""

    def application(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, text=f"{chat(server).invoke('hello').text} at {request.url.path}")

    for mode in ("once", "none"):
        held = tape(tmp_path, mode)
        with AssistantCassette(held), httpx2.Client(transport=httpx2.MockTransport(application)) as client:
            assert client.get("http://app/x").text.endswith(" at /x")
        held.close("passed")
    assert len(server.requests) == 1


@pytest.mark.parametrize("content", [b"plain text", b"\xff\x00 bytes"], ids=["text", "bytes"])
def test_an_upload_is_found_again_though_its_boundary_is_made_up_each_time(tmp_path: Path, content: bytes) -> None:
    def upload(url: str) -> str:
        with httpx.Client(trust_env=False) as client:
            return client.post(url, files={"document": ("a.txt", content)}, data={"purpose": "search"}).text

    with PlainServer(lambda _: (200, {}, "taken")) as server:
        held = tape(tmp_path, "once")
        with AssistantCassette(held):
            upload(server.url)
        held.close("passed")
        written = held.path.read_bytes()
        anew = tape(tmp_path, "all")
        with AssistantCassette(anew):
            upload(server.url)
        anew.close("passed")
        assert held.path.read_bytes() == written
    with AssistantCassette(tape(tmp_path, "none")):
        assert upload("http://127.0.0.1:9/") == "taken"


def test_the_secrets_of_a_form_are_not_kept_and_do_not_count(tmp_path: Path) -> None:
    def log_in(url: str, secret: str, client_id: str = "shop") -> str:
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret, "scope": "a b"}
        with httpx.Client(trust_env=False) as client:
            return client.post(url, data=form).text

    with PlainServer(lambda _: (200, {}, "welcome")) as server:
        held = tape(tmp_path, "once")
        with AssistantCassette(held):
            log_in(server.url, "planted-in-a-form")
        held.close("passed")
    assert "planted-in-a-form" not in held.path.read_text(encoding="utf-8")
    assert "grant_type=client_credentials&client_id=shop&scope=a+b" in held.path.read_text(encoding="utf-8")
    with AssistantCassette(tape(tmp_path, "none")):
        assert log_in("http://127.0.0.1:9/", "another") == "welcome"
    with pytest.raises(CassetteMissError), AssistantCassette(tape(tmp_path, "none")):
        log_in("http://127.0.0.1:9/", "another", client_id="bank")


def test_no_patch_is_left_behind_by_a_users_vcr_between_ours(server: LLMServer, bench: Bench, tmp_path: Path) -> None:
    import vcr

    theirs = tmp_path / "theirs.yaml"
    bench.assess(chat(server))
    with vcr.use_cassette(str(theirs)), routed():
        bench.assess(chat(server), mode="none")
    bench.assess(chat(server), mode="none")
    before = httpx2.HTTPTransport.handle_request
    chat(server).invoke("plain")
    assert httpx2.HTTPTransport.handle_request is before
    assert before.__wrapped__.__module__.startswith("httpx2")  # type: ignore[attr-defined]  # by functools.wraps
    assert not hasattr(before.__wrapped__, "__wrapped__")  # type: ignore[attr-defined]  # ours, and beneath it httpx2's own
    assert not theirs.exists()
    assert len(server.requests) == 2


def test_an_answer_that_another_tool_makes_up_is_no_verdict(bench: Bench) -> None:
    import respx
    from langchain_groq import ChatGroq

    judge = ChatGroq(model="m", api_key=KEY, base_url="http://127.0.0.1:9", temperature=0.0, max_retries=0)  # type: ignore[arg-type]
    said = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": '{"insight": "mock", "score": 1.0}'},
            }
        ],
    }
    with respx.mock(assert_all_called=False) as router:
        router.post(url__regex=".*").respond(200, json=said)
        with pytest.raises(CassetteError, match=r"another tool \(respx, for instance\) answered in the place of"):
            bench.assess(judge)
    assert not bench.path.exists()


def test_requests_that_the_other_tool_lets_pass_are_recorded(server: LLMServer, bench: Bench) -> None:
    import respx
    from langchain_groq import ChatGroq

    judge = ChatGroq(model="m", api_key=KEY, base_url=server.url, temperature=0.0, max_retries=0)  # type: ignore[arg-type]
    with respx.mock(assert_all_called=False) as router:
        router.route(host="127.0.0.1").pass_through()
        bench.assess(judge)
    assert bench.assess(judge, CASE, mode="none")[0].source == "replayed"
    assert len(server.requests) == 1


def test_replaying_is_the_same_with_and_without_the_other_tool(server: LLMServer, bench: Bench) -> None:
    import respx

    bench.assess(chat(server))
    with respx.mock:
        assert bench.assess(chat(NOWHERE), mode="none")[0].score == 0.9
