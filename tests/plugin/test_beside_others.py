"""Beside other tools that look at traffic: theirs stays theirs, and ours stays ours (CASES D13)."""

import json
import re
from collections.abc import Iterator

import pytest
import yaml
from support.llm_server import LLMServer
from support.plain_server import PlainServer
from support.suite import Suite, replaying, section

ORDERS = pytest.mark.parametrize("order", ["before us", "after us"])


def installed(suite: Suite, order: str) -> list[str]:
    """Load pytest-recording before our plugin, or after it."""
    if order == "before us":
        suite.ini(addopts="-p pytest_recording.plugin")
        return []
    return ["-p", "pytest_recording.plugin"]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlainServer]:
    """Some other service, which the code under test asks."""
    with PlainServer(lambda path: (200, {"content-type": "text/plain"}, f"the weather at {path}")) as running:
        monkeypatch.setenv("SERVICE_URL", running.url)
        yield running


MIXED = """
    import os
    import httpx
    import pytest
    from pytest_ctxeval import assert_context_awareness

    @pytest.mark.vcr
    @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
    def test_it(context_case):
        before = httpx.get(os.environ["SERVICE_URL"] + "/before").text
        assert_context_awareness(context_case(assistant=before))
        assert httpx.get(os.environ["SERVICE_URL"] + "/after").text == "the weather at /after"

    def test_of_others():
        assert httpx.get(os.environ["SERVICE_URL"] + "/plain").text == "the weather at /plain"
"""


@ORDERS
def test_a_users_recordings_and_ours_are_each_whole_and_apart(
    recorded: Suite, server: LLMServer, service: PlainServer, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    loaded = installed(recorded, order)
    recorded.module(MIXED)
    recorded.run(*loaded, "--record-mode=once", record="once").assert_outcomes(passed=2)
    (ours,) = (path for path in recorded.path.rglob("*.yaml") if "ctxeval:" in path.read_text(encoding="utf-8"))
    (theirs,) = (path for path in recorded.path.rglob("*.yaml") if path != ours)
    asked = [yaml.safe_load(path.read_text(encoding="utf-8"))["interactions"] for path in (ours, theirs)]
    assert [each["request"]["uri"].rpartition("/")[2] for each in asked[0]] == ["completions"]
    assert [each["request"]["uri"].rpartition("/")[2] for each in asked[1]] == ["before", "after"]
    replaying(monkeypatch)
    again = recorded.run(*loaded, "--record-mode=none", record="none")
    again.assert_outcomes(passed=2)
    assert "1 replayed, 0 recorded, 0 live" in section(again)
    assert service.requests == ["/before", "/after", "/plain", "/plain"]
    assert len(server.requests) == 1


@ORDERS
def test_a_blocked_network_stops_no_replay(recorded: Suite, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    recorded.cases("yes")
    recorded.run(record="once").assert_outcomes(passed=1)
    replaying(monkeypatch)
    result = recorded.run(*installed(recorded, order), "--block-network", record="none")
    result.assert_outcomes(passed=1)
    assert "1 replayed, 0 recorded, 0 live" in section(result)


@ORDERS
def test_a_blocked_network_is_told_where_something_would_be_recorded(recorded: Suite, order: str) -> None:
    recorded.cases("yes")
    result = recorded.run(*installed(recorded, order), "--block-network", record="once")
    result.assert_outcomes(failed=1)
    assert re.search(
        r"the judge m (failed with RuntimeError: Network is disabled|at \S+ could not be reached)", result.stdout.str()
    )
    assert not list(recorded.path.rglob("*.yaml"))


@pytest.mark.parametrize("record", ["once", "none"])
def test_a_trace_is_sent_where_its_user_sends_it_and_is_on_no_cassette(
    recorded: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch, record: str
) -> None:
    pytest.importorskip("langchain_core", minversion="1.1", reason="older ones do not get on with today's langsmith")
    recorded.module(
        """
        import pytest
        from langchain_core.tracers.langchain import wait_for_all_tracers
        from pytest_ctxeval import assert_context_awareness

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_it(context_case, ctxeval_cassette, bot):
            with ctxeval_cassette:
                answer = bot("When?")
                wait_for_all_tracers()
            assert_context_awareness(context_case(assistant=answer))
            wait_for_all_tracers()
        """
    )
    server.answer = lambda prompt, _: '{"insight": "ok", "score": 0.9}' if "You judge" in prompt else "From 9 to 5."
    recorded.run(record="once").assert_outcomes(passed=1)
    before = {path: path.read_bytes() for path in recorded.path.rglob("*.yaml")}
    with PlainServer(lambda _: (202, {"content-type": "application/json"}, json.dumps({}))) as tracer:
        monkeypatch.setenv("LANGSMITH_TRACING", "true")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", tracer.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "planted-trace-0123456789")
        result = recorded.run(record=record)
    result.assert_outcomes(passed=1)
    assert "judge     m: 1 replayed, 0 recorded, 0 live" in section(result)
    assert "assistant 1 replayed, 0 recorded, 0 live" in section(result)
    assert any("/runs" in path for path in tracer.requests)
    assert {path: path.read_bytes() for path in recorded.path.rglob("*.yaml")} == before


def test_what_a_thread_of_an_earlier_test_asks_is_on_no_other_cassette(
    recorded: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that a test leaves running knows of that test's block; it must not reach the cassette of the next."""
    recorded.module(
        """
        import contextvars, threading
        import pytest
        from conftest import model
        from pytest_ctxeval import assert_context_awareness

        released, asked, threads = threading.Event(), [], []

        def leak():
            released.wait(30)
            try:
                asked.append(model().invoke("leaked").text)
            except Exception as error:
                asked.append(type(error).__name__)

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_first(context_case, ctxeval_cassette, bot):
            with ctxeval_cassette:
                answer = bot("first")
                threads.append(threading.Thread(target=contextvars.copy_context().run, args=(leak,)))
                threads[0].start()

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_second(context_case, ctxeval_cassette, bot):
            with ctxeval_cassette:
                released.set()
                threads[0].join()
                answer = bot("second")
        """
    )
    server.answer = lambda prompt, _: f"answer to {prompt}"
    recorded.run(record="once").assert_outcomes(passed=2)
    first, second = sorted(recorded.path.rglob("*.yaml"))
    assert "answer to second" in second.read_text(encoding="utf-8")
    assert "leaked" not in second.read_text(encoding="utf-8") + first.read_text(encoding="utf-8")
    asked = len(server.requests)
    monkeypatch.delenv("OPENAI_API_KEY")
    recorded.run(record="none").assert_outcomes(passed=2)
    assert len(server.requests) == asked
