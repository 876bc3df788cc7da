"""What is kept of an exchange: nothing private, nothing that changes for nothing, all of it readable."""

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ctxeval._judge.cassette.ids import settled
from pytest_ctxeval._judge.cassette.key import canonical, request_key, without_secrets
from pytest_ctxeval._judge.cassette.secrets import _SHAPES, find_secret, may_hold_secrets, redact
from pytest_ctxeval._judge.cassette.trim import Interaction, trim

URI = "https://api.example.com/v1/chat/completions"


def trimmed(
    answer: bytes | dict[str, object] = b"{}",
    *,
    body: bytes = b'{"model": "m"}',
    headers: dict[str, list[str]] | None = None,
    uri: str = URI,
    status: int = 200,
) -> Interaction:
    return trim(
        method="post",
        uri=uri,
        body=body,
        content_type="application/json",
        status=status,
        reason="OK",
        headers=headers or {"Content-Type": ["application/json"]},
        answer=answer if isinstance(answer, bytes) else json.dumps(answer).encode(),
        sample=0,
    )


SECRET_HEADERS = (
    "Authorization", "x-api-key", "api-key", "x-goog-api-key", "OpenAI-Organization", "Set-Cookie", "openai-project",
    "x-request-id", "cf-ray", "date", "x-ratelimit-remaining-requests",
)  # fmt: skip


@pytest.mark.parametrize("change", [str, str.lower, str.upper, str.title])
def test_only_named_headers_are_kept(change: type[str]) -> None:
    headers = {change(name): ["secret"] for name in SECRET_HEADERS}
    made = trimmed(headers={**headers, change("Content-Type"): ["application/json"], change("Retry-After"): ["1"]})
    assert made.headers == {"content-type": ["application/json"], "retry-after": ["1"]}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://h/p?key=AIzaSyD-a1B2c3d4e5f6&model=m", "https://h/p?model=m"),
        ("https://h/p?key=Rome&model=m", "https://h/p?key=Rome&model=m"),
        ("https://h/p?model=m&API_KEY=abc", "https://h/p?model=m"),
        ("https://h/p?access_token=abc", "https://h/p"),
        ("https://user:pass@h:8080/p?api-version=1", "https://h:8080/p?api-version=1"),
        ("https://h/p?monkey=1&keyboard=2", "https://h/p?monkey=1&keyboard=2"),
        ("https://h/p#frag", "https://h/p"),
    ],
)
def test_secrets_leave_the_address(given: str, kept: str) -> None:
    assert without_secrets(given) == kept
    assert trimmed(uri=given).uri == kept


@pytest.mark.parametrize(
    "compress",
    [
        pytest.param(("gzip", gzip.compress), id="gzip"),
        pytest.param(("deflate", zlib.compress), id="deflate"),
        pytest.param(("deflate", lambda data: zlib.compress(data)[2:-4]), id="raw deflate"),
        pytest.param(("gzip, deflate", lambda data: zlib.compress(gzip.compress(data))), id="two"),
        pytest.param(("identity", bytes), id="identity"),
    ],
)
def test_a_compressed_answer_is_kept_as_text(compress) -> None:  # type: ignore[no-untyped-def]
    name, function = compress
    made = trimmed(
        function('{"said": "naïve"}'.encode()),
        headers={"content-encoding": [name], "content-type": ["application/json"]},
    )
    assert made.answer == '{"said": "naïve"}'
    assert made.headers == {"content-type": ["application/json"]}


def test_zstandard_and_brotli_are_kept_as_text() -> None:
    zstd = zstandard.ZstdCompressor().compress(b"plain")
    assert trimmed(zstd, headers={"content-encoding": ["zstd"]}).answer == "plain"
    assert trimmed(brotli.compress(b"plain"), headers={"content-encoding": ["br"]}).answer == "plain"


def test_what_cannot_be_decompressed_is_kept_as_it_is() -> None:
    made = trimmed(b"\x00\x01", headers={"content-encoding": ["xpress"]})
    assert made.answer == b"\x00\x01"
    assert made.headers == {"content-encoding": ["xpress"]}


def test_an_answer_in_latin_1_is_kept_as_text_and_said_to_be_utf_8() -> None:
    made = trimmed("né".encode("latin-1"), headers={"content-type": ["text/plain; charset=ISO-8859-1"]})
    assert made.answer == "né"
    assert made.headers == {"content-type": ["text/plain; charset=utf-8"]}


def test_an_answer_that_is_no_text_stays_bytes() -> None:
    assert trimmed(b"\xff\xfe\x00", headers={"content-type": ["application/octet-stream"]}).answer == b"\xff\xfe\x00"


OPENAI = {
    "id": "chatcmpl-abc", "created": 1_700_000_000, "system_fingerprint": "fp_1", "model": "m",
    "choices": [{"message": {"content": '{"id": "stays", "created": 5}', "tool_calls": [
        {"id": "call_xyz", "function": {"name": "f", "arguments": '{"id": "stays"}'}}]}}],
    "usage": {"total_tokens": 7, "queue_time": 0.01, "total_time": 0.5},
}  # fmt: skip


def test_what_changes_from_call_to_call_is_fixed_and_the_content_is_not() -> None:
    found = json.loads(settled([trimmed(OPENAI)])[0].answer)
    assert found["created"] == 0
    assert found["system_fingerprint"] == "fixed"
    assert found["usage"] == {"total_tokens": 7, "queue_time": 0, "total_time": 0}
    assert found["choices"][0]["message"]["content"] == '{"id": "stays", "created": 5}'
    assert found["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"id": "stays"}'
    assert found["id"].startswith("chatcmpl-")
    assert found["id"] != "chatcmpl-abc"


def test_the_same_answer_at_another_time_is_kept_as_the_same() -> None:
    later = json.loads(json.dumps(OPENAI).replace("chatcmpl-abc", "chatcmpl-def").replace("call_xyz", "call_uvw"))
    later = {**later, "created": 1_800_000_000, "system_fingerprint": "fp_2"}
    assert settled([trimmed(later)]) == settled([trimmed(OPENAI)])


def test_ids_in_streams_are_fixed_too() -> None:
    def stream(name: str, when: int) -> bytes:
        event = json.dumps(
            {
                "id": name,
                "object": "chat.completion.chunk",
                "created": when,
                "choices": [{"delta": {"content": "né\u2028"}}],
            },
            ensure_ascii=False,
        )
        return f"data: {event}\n\ndata: {event}\n\ndata: [DONE]\n\n".encode()

    headers = {"content-type": ["text/event-stream"]}
    made = (trimmed(stream(*given), headers=headers) for given in (("chatcmpl-a", 1), ("chatcmpl-b", 2)))
    one, two = (settled([each])[0].answer for each in made)
    assert one == two
    assert isinstance(one, str)
    assert one.count("data: ") == 3
    assert "né\u2028" in one


def test_lines_of_json_are_fixed_line_by_line() -> None:
    lines = (
        b'{"model": "m", "created_at": "2026-11-30T10:00:00Z", "done": false, "total_duration": 12}\n'
        b'{"model": "m", "done": true, "load_duration": 3}\n'
    )
    assert trimmed(lines, headers={"content-type": ["application/x-ndjson"]}).answer == (
        '{"model": "m", "created_at": "1970-01-01T00:00:00Z", "done": false, "total_duration": 0}\n'
        '{"model": "m", "done": true, "load_duration": 0}\n'
    )


def sent_back(second: str, *, uri: str = URI) -> tuple[str, str, str]:
    """The id of a tool's call in the first answer, what was asked next, and its address, as they are kept."""
    first, then = settled([trimmed(OPENAI), trimmed(body=second.encode(), uri=uri)])
    assert isinstance(first.answer, str)
    assert isinstance(then.body, str)
    return json.loads(first.answer)["choices"][0]["message"]["tool_calls"][0]["id"], then.body, then.uri


def test_an_id_that_comes_back_as_an_id_in_a_later_request_is_the_fixed_one() -> None:
    fixed, body, _ = sent_back('{"messages": [{"role": "tool", "tool_call_id": "call_xyz", "content": "42"}]}')
    assert fixed.startswith("call_")
    assert fixed != "call_xyz"
    assert json.loads(body)["messages"][0]["tool_call_id"] == fixed


@pytest.mark.parametrize(
    ("body", "uri"),
    [
        ("{}", f"{URI}/call_xyz/items"),
        ("{}", f"{URI}?after=call_xyz"),
        ('{"container": "call_xyz"}', URI),
        ('{"messages": [{"role": "tool", "tool_call_id": "call_xyz", "content": "of call_xyz"}]}', URI),
        ('{"messages": [{"role": "tool", "tool_call_id": "call_xyz", "name": "call_xyz"}]}', URI),
        ("id=call_xyz", URI),
    ],
)
def test_an_id_on_which_something_hangs_is_left_alone(body: str, uri: str) -> None:
    kept, asked, address = sent_back(body, uri=uri)
    assert kept == "call_xyz"
    assert "call_xyz" in asked + address


def test_an_id_that_was_sent_before_it_came_back_is_left_alone() -> None:
    first, then = settled([trimmed(body=b'{"prompt": {"id": "call_xyz"}}'), trimmed(OPENAI)])
    assert isinstance(first.body, str)
    assert "call_xyz" in first.body
    assert isinstance(then.answer, str)
    assert "call_xyz" in then.answer


def test_what_is_settled_stays_as_it_is() -> None:
    made = settled([trimmed(OPENAI), trimmed(body=b'{"tool_call_id": "call_xyz"}')])
    assert settled(made) == made


@pytest.mark.parametrize(
    "answer",
    [
        '{"status":"shipped","price":10.50}',
        '{"big": 1e3, "list": [1,2]}',
        '[{"id": "a"},\n {"id": "b"}]',
        '{"id":"survey-77","model":"Golf","created":2019,"choices":[{"id":"red"}]}',
        '{"row": 1}\n{"row": 2}\n',
    ],
)
def test_what_another_server_than_a_chats_says_is_kept_to_the_letter(answer: str) -> None:
    assert trimmed(answer.encode()).answer == answer
    assert settled([trimmed(answer.encode())])[0].answer == answer


@pytest.mark.parametrize(
    "body", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e400}', '{"a": "\\ud800"}', "{broken", "plain"]
)
def test_what_json_would_lose_is_kept_as_it_was_sent(body: str) -> None:
    assert trimmed(body.encode()).answer == body
    assert trimmed(body=body.encode()).body == body


def key(body: str, *, uri: str = URI, sample: int = 0) -> str:
    return request_key("POST", uri, body, sample)


def test_the_key_does_not_depend_on_the_order_or_layout_of_json() -> None:
    assert key('{"a": 1, "b": [1, 2]}') == key('{\n "b": [1,2],\n "a": 1}')
    assert key('{"temperature": 0.0}') == key('{"temperature": 0}')
    assert canonical('{"b": "é", "a": 0.5}') == '{"a":0.5,"b":"\\u00e9"}'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e6, 1e6) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def respelt(value: Any, draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """Write JSON in another way that means the same: the keys in any order, whole numbers with or without a point."""
    if isinstance(value, dict):
        names = draw(st.permutations(list(value)))
        return "{" + ", ".join(f"{json.dumps(name)}: {respelt(value[name], draw)}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(respelt(item, draw) for item in value) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value):
        return draw(st.sampled_from([f"{int(value)}", f"{int(value)}.0", f"{int(value)}e0"]))  # type: ignore[no-any-return]
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@given(JSON, st.data())
def test_the_key_is_the_same_for_every_way_to_write_the_same_json(value: Any, data: st.DataObject) -> None:
    body = respelt(value, data.draw)
    assert key(body) == key(json.dumps(value))


def typed(value: Any) -> Any:
    """Tell true from 1, which Python takes for the same."""
    if isinstance(value, dict):
        return {name: typed(item) for name, item in value.items()}
    return [typed(item) for item in value] if isinstance(value, list) else (isinstance(value, bool), value)


@given(JSON, JSON)
def test_the_key_is_another_for_json_that_means_something_else(one: Any, other: Any) -> None:
    assert (key(json.dumps(one)) == key(json.dumps(other))) is (typed(one) == typed(other))


def test_the_key_does_not_depend_on_a_port_a_scheme_or_a_secret() -> None:
    assert key("{}", uri="http://127.0.0.1:1/v1?api_key=a") == key("{}", uri="https://127.0.0.1:2/v1?api_key=b")


@pytest.mark.parametrize(
    "other",
    [
        key('{"a": 2}'),
        key('{"a": 1}', sample=1),
        key('{"a": 1}', uri="https://other.example.com/v1/chat/completions"),
        key('{"a": 1}', uri=f"{URI}/more"),
        key('{"a": 1}', uri=f"{URI}?model=m"),
        key('{"a": [1]}'),
        key('{"a": "1"}'),
        request_key("GET", URI, '{"a": 1}', 0),
    ],
)
def test_the_key_depends_on_all_that_decides_the_answer(other: str) -> None:
    assert key('{"a": 1}') != other


PLANTED = 'a "quoted" key/with=odd&signs'


@pytest.mark.parametrize("name", ["MY_KEY", "SOME_TOKEN", "A_SECRET", "DB_PASSWORD", "my_key", "OPENAI_APIKEY"])
@pytest.mark.parametrize(
    "text", [f"it is {PLANTED}.", json.dumps({"k": PLANTED}), "?k=a%20%22quoted%22%20key%2Fwith%3Dodd%26signs"]
)
def test_a_secret_of_the_environment_is_found_in_every_form(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, PLANTED)
    assert find_secret(f"first line\n{text}") == (f"the value of ${name}", 2)
    assert "quoted" not in redact(text)


@pytest.mark.parametrize("name", ["KEYBOARD", "TOKENS", "HOME"])
def test_other_variables_are_no_secrets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, PLANTED)
    assert find_secret(PLANTED) is None


def test_a_short_value_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "ollama")
    assert find_secret("I run it with ollama.") is None


@pytest.mark.parametrize(
    "shape",
    ["sk-" + "a1" * 15, "sk-ant-api03-" + "a1" * 20, "sk-proj-" + "A_-1" * 10, "gsk_" + "a1" * 20, "AIza" + "a1" * 18, "ghp_" + "a1" * 18, "hf_" + "aB" * 17, "AKIA" + "A1" * 8, "Bearer " + "a1" * 12],
)  # fmt: skip
def test_what_is_shaped_like_a_key_is_found_and_hidden(shape: str) -> None:
    assert find_secret(f"x {shape} y") == ("something shaped like a key", 1)
    assert redact(f"x {shape} y") == "x [hidden] y"


def test_a_key_that_the_provider_has_half_hidden_is_hidden_whole() -> None:
    assert redact("Incorrect API key provided: sk-proj-abc***********xyz.") == "Incorrect API key provided: [hidden]."


def test_ordinary_text_holds_no_secret() -> None:
    assert find_secret("The task-list is sk-ipped; risk-free disk-space; a bearer of news.") is None


def test_hiding_takes_no_longer_for_one_long_word_than_for_many_short_ones() -> None:
    """Its parts are bounded, so that a text of 100,000 characters is no work; were they not, this would run for minutes."""
    for text in ("a" * 100_000, "中" * 100_000, "sk-" * 30_000, "*" * 100_000, "eyJ" * 30_000):
        redact(text)


@pytest.mark.parametrize("text", ["***Open until 5***", "key_points... follow", "**bold**", "- ***a*** -"])
def test_markdown_is_not_taken_for_a_hidden_key(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("name", ["accessToken", "clientSecret", "subscriptionKey", "authToken"])
def test_a_secret_parameter_is_known_in_camel_case(name: str) -> None:
    assert without_secrets(f"https://a/b?{name}=abc&x=1") == "https://a/b?x=1"


@settings(deadline=None, derandomize=True, database=None)
@given(st.from_regex(_SHAPES, fullmatch=True))
def test_what_is_shaped_like_a_key_is_looked_for_in_the_json_that_holds_it(shape: str) -> None:
    assert may_hold_secrets(json.dumps({"reason": f"first line\n{shape}\tand more"}))


def test_what_is_looked_for_in_json_is_every_form_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", 'gr\u00fcn "und" gut')
    assert may_hold_secrets(json.dumps({"reason": 'it is gr\u00fcn "und" gut'}))
    assert not may_hold_secrets(json.dumps({"reason": "it is another"}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("?q=a", "?q=a&page_token=abc"),
        ("?q=a&pageToken=CAUQAA", "?q=a&pageToken=CAoQAA"),
        ("?next_token=" + "a1" * 20, "?next_token=" + "b2" * 20),
        ("?continuation-token=a", "?continuation-token=b"),
        ("?sort_key=price", "?sort_key=name"),
        ("?max_tokens=10", "?max_tokens=99"),
        ("?key=Paris", "?key=Rome"),
        ("?point=A&point=B", "?point=B&point=A"),
        ("?q=caf%E9", "?q=caf%E8"),
    ],
)
def test_what_says_which_answer_is_wanted_counts(one: str, other: str) -> None:
    assert key("", uri=URI + one) != key("", uri=URI + other)
    assert key(one[1:]) != key(other[1:])


def test_the_order_of_different_parameters_does_not_count() -> None:
    assert key("", uri=URI + "?a=1&b=2") == key("", uri=URI + "?b=2&a=1")


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "apiKey", "API-KEY", "apikey", "x-api-key", "access_token", "accessToken", "accesstoken", "client_secret",
        "password", "user[password]", "password_confirmation", "pwd", "passphrase", "appid", "sig", "hmac", "X-Amz-Signature",
        "X-Amz-Security-Token", "X-Amz-Credential", "subscription-key", "auth", "id_token", "refresh_token",
    ],
)  # fmt: skip
def test_a_secret_parameter_neither_counts_nor_is_kept(name: str) -> None:
    plain, secret = f"{URI}?q=a", f"{URI}?q=a&{name}=hunter2"
    assert key("", uri=plain) == key("", uri=secret)
    assert "hunter2" not in without_secrets(secret)
    assert key("q=a") == key(urlencode({"q": "a", name: "hunter2"}))
    upload = f'--0123456789\r\nContent-Disposition: form-data; name="{name}"\r\n\r\nhunter2\r\n--0123456789--\r\n'
    assert "hunter2" not in str(trimmed(body=upload.encode()).body)


@pytest.mark.parametrize("value", ["AIzaSyD-a1B2c3d4e5f6", "ctxeval-placeholder-not-a-key"])
def test_a_bare_key_that_looks_like_one_is_secret(value: str) -> None:
    assert key("", uri=f"{URI}?key={value}") == key("", uri=URI)
