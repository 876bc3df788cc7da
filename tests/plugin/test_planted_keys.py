"""A key planted wherever one can stand (CASES D10): on no disk, in no terminal, in no report.

Where it cannot be left out, since a replay would need it, the write is refused and the place is named.
"""

import json

import pytest
from support.llm_server import Fault, LLMServer
from support.suite import Suite

KEY = "Planted-in-9876543210-Places"
NAMES = (
    "Authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "Proxy-Authorization",
    "Cookie",
    "X-Amz-Security-Token",
)
CASINGS = (str, str.lower, str.upper, str.title)
SAID = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": '{"insight": "ok", "score": 0.9}'},
        }
    ],
}


@pytest.fixture
def planted(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite whose client takes settings from the environment; the planted key is no variable but where a test says so."""
    recorded.pytester.makeconftest(
        """
        import json, os
        import pytest
        from langchain_openai import ChatOpenAI

        @pytest.fixture(scope="session")
        def judge_model():
            settings = json.loads(os.environ["SETTINGS"])
            return ChatOpenAI(**{"model": "m", "base_url": os.environ["JUDGE_URL"], "max_retries": 0, **settings})
        """
    )
    monkeypatch.setenv("SETTINGS", "{}")
    recorded.cases("From 9 to 5.")
    return recorded


def everything(suite: Suite, *arguments: str) -> tuple[str, str]:
    """Run it, and give what it printed, and all that it has written."""
    result = suite.in_process(
        "--ctxeval-report=run.json", "--junitxml=junit.xml", "-v", "--showlocals", *arguments, record="once"
    )
    written = "".join(
        path.read_text(encoding="utf-8")
        for path in suite.path.rglob("*")
        if path.suffix in (".yaml", ".json", ".xml", ".tmp") and path.name != "test_it.json"
    )
    return result.stdout.str() + result.stderr.str(), written


@pytest.mark.parametrize(
    "name",
    [
        *dict.fromkeys(casing(name) for name in NAMES for casing in CASINGS),
        "OpenAI-Organization",
    ],  # sent in this form alone
)
def test_in_a_header_of_the_request(
    planted: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("SETTINGS", json.dumps({"default_headers": {name: KEY}}))
    told, written = everything(planted)
    assert server.requests[0].headers[name.lower()] == KEY
    assert "1 recorded" in told
    assert KEY not in told + written
    assert name.lower() not in written.lower()


@pytest.mark.parametrize("casing", CASINGS, ids=["as it is", "lower", "upper", "title"])
@pytest.mark.parametrize("name", ["key", "api_key", "apiKey", "access_token", "X-Amz-Signature", "sig", "hmac"])
def test_in_the_query(
    planted: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch, name: str, casing: type[str]
) -> None:
    monkeypatch.setenv("SETTINGS", json.dumps({"default_query": {casing(name): KEY, "api-version": "7"}}))
    told, written = everything(planted)
    assert server.requests[0].query[casing(name)] == KEY
    assert "1 recorded" in told
    assert KEY not in told + written
    assert "api-version=7" in written


@pytest.mark.parametrize(
    "name", ["Set-Cookie", "x-api-key", "Authorization", "openai-organization", "Location", "x-request-id"]
)
def test_in_a_header_of_the_answer(planted: Suite, server: LLMServer, name: str) -> None:
    server.fail(Fault(status=200, headers={name: f"session={KEY}"}, body=SAID))
    told, written = everything(planted)
    assert "1 recorded" in told
    assert KEY not in told + written


@pytest.mark.parametrize(
    ("place", "where"), [("prompt", "request, line "), ("answer", "answer, line "), ("address", "address, line 1")]
)
def test_where_a_replay_would_need_it_the_write_is_refused(
    planted: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch, place: str, where: str
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", KEY)
    if place == "prompt":
        planted.cases(f"The key is {KEY}.")
    elif place == "answer":
        server.reply = json.dumps({"insight": f"it says {KEY}", "score": 0.9})
    else:
        monkeypatch.setenv("JUDGE_URL", f"{server.openai_url}/{KEY}/v1")
    told, written = everything(planted)
    assert f"interaction 1, {where}" in told
    assert "the value of $SHOP_TOKEN stands there, so nothing is written; take it out, and record again" in told
    assert "1 live" in told
    assert KEY not in told + written
    assert not list(planted.path.rglob("*.yaml"))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_in_the_text_of_an_error(
    planted: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.fail_always(Fault(status=status, headers={"x-key": KEY}, body={"error": {"message": f"no such key: {KEY}"}}))
    told, written = everything(planted)
    assert "[hidden]" in told
    assert KEY not in told + written
    assert not list(planted.path.rglob("*.yaml"))


@pytest.mark.parametrize("reply", ["{KEY}", '{{"insight": "{KEY}"}}'])
def test_in_a_reply_that_cannot_be_read(
    planted: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", KEY)
    server.reply = reply.format(KEY=KEY)
    told, written = everything(planted)
    assert "[hidden]" in told
    assert KEY not in told + written


def test_a_key_that_begins_another_key_hides_no_part_of_it(
    planted: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", KEY)
    monkeypatch.setenv("B_TOKEN", f"{KEY}-and-more")
    server.reply = json.dumps({"insight": f"{KEY}-and-more", "score": 0.1})
    told, written = everything(planted)
    assert "reason     [hidden]\n" in told
    assert "-and-more" not in told + written


def test_in_what_changed_since_the_recording(planted: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.cases("The code is 1.")
    everything(planted)
    monkeypatch.setenv("SHOP_TOKEN", KEY)
    planted.cases(f"The code is {KEY}.")
    told, written = everything(planted)
    assert "stale: the cassette" in told
    assert KEY not in told + written


def test_in_the_settings_of_a_model_that_changed(planted: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    everything(planted)
    monkeypatch.setenv("SHOP_TOKEN", KEY)
    monkeypatch.setenv("SETTINGS", json.dumps({"model_kwargs": {"user": KEY}}))
    told, written = everything(planted)
    assert "user: nothing -> '[hidden]'" in told
    assert KEY not in told + written
