"""Record and replay with a real client against a server on this machine (CASES D)."""

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import httpx2
import pytest
import requests
import yaml
from support.bench import CASE, KEY, NOWHERE, Bench, chat, told
from support.llm_server import Fault, LLMServer, Reply
from support.plain_server import PlainServer

from pytest_ctxeval import (
    CassetteError,
    CassetteMissError,
    CassetteReadError,
    ConfigError,
    ContextCase,
    JudgeReplyError,
    JudgeUnreachableError,
)
from pytest_ctxeval._judge.cassette.file import Recording, write_recording
from pytest_ctxeval._judge.cassette.tape import RecordMode, Tape
from pytest_ctxeval._judge.cassette.transport import routed
from pytest_ctxeval._judge.cassette.trim import trim
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._judge.judge import Judge
from pytest_ctxeval._metrics.context_awareness import CONTEXT_AWARENESS


def test_a_verdict_is_recorded_and_replayed_with_no_server(server: LLMServer, bench: Bench) -> None:
    (first,) = bench.assess(chat(server))
    (again,) = bench.assess(chat(NOWHERE), mode="none")
    assert (first.score, first.reason, first.source) == (0.9, "agrees", "recorded")
    assert (again.score, again.reason, again.source) == (0.9, "agrees", "replayed")
    assert first.tokens == again.tokens
    assert len(server.requests) == 1


def test_replaying_opens_no_socket(server: LLMServer, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.assess(chat(server))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.create_connection", refuse)
    assert bench.assess(chat(server), mode="none")[0].source == "replayed"


def test_a_whole_cassette_is_never_added_to_in_once(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server))
    with pytest.raises(CassetteMissError):
        bench.assess(chat(server), CASE(assistant="All day."))
    assert len(server.requests) == 1
    assert len(bench.interactions) == 1


def test_new_episodes_are_added(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server))
    first, second = bench.assess(chat(server), CASE, CASE(assistant="All day."), mode="new_episodes")
    assert (first.source, second.source) == ("replayed", "recorded")
    assert len(bench.interactions) == 2


def test_all_records_anew_and_drops_what_is_not_used(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server), CASE, CASE(assistant="All day."))
    server.reply = '{"insight": "new", "score": 0.3}'
    assert bench.assess(chat(server), mode="all")[0].score == 0.3
    assert len(bench.interactions) == 1
    assert bench.assess(chat(server), mode="none")[0].reason == "new"


def test_all_keeps_the_old_file_until_everything_is_in(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server), CASE, CASE(assistant="All day."))
    before = bench.path.read_bytes()
    bench.assess(chat(server), mode="all", ending="broken")
    assert bench.path.read_bytes() == before


def test_off_neither_reads_nor_writes(server: LLMServer, bench: Bench) -> None:
    bench.path.parent.mkdir()
    bench.path.write_text("damaged")
    assert bench.assess(chat(server), mode="off")[0].source == "live"
    assert bench.path.read_text() == "damaged"


def test_an_interrupted_recording_goes_on_where_it_stopped(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server), ending="broken")
    with pytest.raises(CassetteMissError) as missed:
        bench.assess(chat(NOWHERE), CASE(assistant="All day."), mode="none")
    assert str(missed.value) == (
        "not recorded yet: the cassette cassettes/a.yaml is incomplete, its test did not come to its end when it was recorded\n\n"
        "record this one test with\n\n    pytest 'test_a.py::test_b[x y]' --ctxeval-record=once"
    )
    first, second = bench.assess(chat(server), CASE, CASE(assistant="All day."))
    assert (first.source, second.source) == ("replayed", "recorded")
    assert yaml.safe_load(bench.path.read_text())["ctxeval"]["complete"] is True


def test_an_interrupted_recording_that_was_whole_is_completed_without_a_call(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server), ending="broken")
    bench.assess(chat(NOWHERE))
    assert yaml.safe_load(bench.path.read_text())["ctxeval"]["complete"] is True


def test_no_cassette_fails_at_once_and_names_the_command(bench: Bench) -> None:
    with pytest.raises(CassetteMissError) as missed:
        bench.assess(chat(NOWHERE, max_retries=3), mode="none")
    assert str(missed.value) == (
        "no recording: there is no cassette cassettes/a.yaml\n\n"
        "record this one test with\n\n    pytest 'test_a.py::test_b[x y]' --ctxeval-record=once"
    )
    assert not bench.path.parent.exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (CASE(context="Open 9 to 6."), ["messages[1].content:", "-Open 9 to 5.", "+Open 9 to 6."]),
        (CASE(assistant="From 9 to 6."), ["-From 9 to 5.", "+From 9 to 6."]),
        (CASE(query="Until when?"), ["-When?", "+Until when?"]),
    ],
)
def test_a_changed_prompt_is_a_miss_that_says_what_changed(
    server: LLMServer, bench: Bench, change: ContextCase, told: list[str]
) -> None:
    bench.assess(chat(server))
    with pytest.raises(CassetteMissError) as missed:
        bench.assess(chat(server), change, mode="none")
    message = str(missed.value)
    assert message.startswith("stale: the cassette cassettes/a.yaml holds no answer to this request")
    for part in told:
        assert part in message
    assert message.endswith("pytest 'test_a.py::test_b[x y]' --ctxeval-record=all")
    assert "<<<" not in message


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": "other"}, "model: 'm' -> 'other'"),
        ({"temperature": 0.5}, "temperature: 0.0 -> 0.5"),
        ({"seed": 3}, "seed: nothing -> 3"),
        ({"base_url": "http://localhost:9/v1"}, "hostname: 127.0.0.1 -> localhost"),
    ],
)
def test_a_changed_setting_is_a_miss_that_says_which(
    server: LLMServer, bench: Bench, settings: dict[str, Any], told: str
) -> None:
    bench.assess(chat(server))
    with pytest.raises(CassetteMissError) as missed:
        bench.assess(chat(server, **settings), mode="none")
    assert told in str(missed.value)
    assert ("the prompt is the same, the request is not" in str(missed.value)) is ("base_url" not in settings)


def test_two_cases_replayed_in_swapped_order_get_each_their_own_verdict(server: LLMServer, bench: Bench) -> None:
    server.answer = lambda prompt, _: '{"insight": "x", "score": %s}' % ("0.1" if "All day." in prompt else "0.9")
    wrong = CASE(assistant="All day.")
    assert [verdict.score for verdict in bench.assess(chat(server), CASE, wrong)] == [0.9, 0.1]
    assert [verdict.score for verdict in bench.assess(chat(NOWHERE), wrong, CASE, mode="none")] == [0.1, 0.9]


def test_another_order_of_keys_and_other_headers_are_a_hit(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server))
    text = bench.path.read_text()
    swapped = text.replace('"model": "m",\n        ', "", 1).replace(
        '"temperature": 0.0\n', '"temperature": 0,\n        "model": "m"\n', 1
    )
    assert swapped != text
    bench.path.write_text(swapped)
    assert bench.assess(chat(NOWHERE, default_headers={"User-Agent": "other/9"}), mode="none")[0].score == 0.9


def test_the_same_answer_recorded_again_changes_no_byte_and_writes_nothing(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server))
    before = bench.path.read_bytes(), bench.path.stat().st_mtime_ns, bench.path.stat().st_ino
    bench.assess(chat(server), mode="all")
    assert (bench.path.read_bytes(), bench.path.stat().st_mtime_ns, bench.path.stat().st_ino) == before
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "faults",
    [
        [Fault(status=429, headers={"retry-after": "0"}), Fault(status=429, headers={"retry-after": "0"})],
        [Fault(status=500)],
        [Fault("drop")],
        [Fault("cut")],
    ],
    ids=["429 429", "500", "drop", "cut"],
)
def test_only_the_good_exchange_is_kept(server: LLMServer, bench: Bench, faults: list[Fault]) -> None:
    server.fail(*faults)
    assert bench.assess(chat(server, max_retries=2))[0].score == 0.9
    assert [each["response"]["status"]["code"] for each in bench.interactions] == [200]
    (again,) = bench.assess(chat(NOWHERE, max_retries=2), mode="none")
    assert again.calls.replayed == 1


def test_nothing_private_reaches_the_disk(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server, organization="org-SECRETORGID", default_query={"key": KEY, "api-version": "1"}))
    text = bench.path.read_text()
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    for secret in (KEY, "SECRETORGID", "authorization", "cookie", "__cf_bm", "req_"):
        assert secret not in text.lower()
        assert secret not in text
    assert "api-version=1" in text
    assert [each["request"]["headers"] for each in bench.interactions] == [{"content-type": ["application/json"]}]
    assert (
        bench.assess(chat(NOWHERE, default_query={"key": "another-k3y-of-somebody", "api-version": "1"}), mode="none")[
            0
        ].score
        == 0.9
    )


def test_a_key_in_a_prompt_refuses_the_write(server: LLMServer, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", KEY)
    with pytest.raises(CassetteError) as refused:
        bench.assess(chat(server), CASE(context=f"The key is {KEY}."))
    assert re.match(
        r"cassettes/a.yaml: interaction 1, request, line \d+: the value of \$MY_API_KEY stands there",
        str(refused.value),
    )
    assert KEY not in str(refused.value)
    assert not bench.path.exists()


@pytest.mark.parametrize("key", ["wJalrXUtnFEMI/K7MDENG+bPxRfiCY", "correct horse+battery staple"])
def test_a_key_in_any_spelling_of_an_address_refuses_the_write(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", key)
    asked: dict[str, Callable[[str], object]] = {
        "httpx": lambda url: httpx.get(url, params={"q": key}),
        "requests": lambda url: requests.get(url, params={"q": key}, timeout=10),
        "by hand": lambda url: httpx.get(f"{url}?q={quote(key, safe='/')}"),
        "a form": lambda url: httpx.post(url, data={"q": key}),
        "a redirect": lambda url: httpx.get(f"{url}/redirect"),
    }
    answers = {"/redirect": (302, {"location": f"/final?q={quote(key)}"}, "")}
    with PlainServer(lambda path: answers.get(path, (200, {}, "fine"))) as server:
        for name, ask in asked.items():
            held = Tape(tmp_path / f"{name}.yaml", node="n", mode="once", shown="a.yaml")
            with held.call() as call:
                ask(server.url)
            held.keep(call)
            with pytest.raises(CassetteError, match=r"the value of \$MY_SECRET stands there, so nothing is written"):
                held.close("passed")
            assert not held.path.exists(), name


def test_a_reason_phrase_that_is_not_ascii_is_left_out(tmp_path: Path) -> None:
    made = trim(
        method="GET",
        uri="http://h/",
        body=b"",
        content_type="",
        status=200,
        reason="Über",
        headers={},
        answer=b"a",
        sample=0,
    )
    write_recording(tmp_path / "a.yaml", Recording("n", "j", "c", complete=True, interactions=(made,)), shown="a.yaml")
    assert made.reason == ""


def test_compressed_answers_are_readable_on_disk(server: LLMServer, bench: Bench) -> None:
    server.encoding = "gzip"
    bench.assess(chat(server))
    assert '"content": "{\\"insight\\": \\"agrees\\", \\"score\\": 0.9}"' in bench.path.read_text()
    assert bench.assess(chat(NOWHERE), mode="none")[0].score == 0.9


def test_a_damaged_cassette_is_not_overwritten(server: LLMServer, bench: Bench) -> None:
    bench.path.parent.mkdir()
    bench.path.write_text("version: 1\ninteractions: null\n")
    for mode in ("none", "once", "new_episodes", "all"):
        with pytest.raises(CassetteReadError):
            bench.assess(chat(server), mode=mode)
    assert bench.path.read_text() == "version: 1\ninteractions: null\n"
    assert not server.requests


def test_an_unreadable_reply_is_asked_for_once_more_and_both_are_recorded(server: LLMServer, bench: Bench) -> None:
    server.script(
        [Reply("8 of 10, I would say", usage=(5, 2)), Reply('{"insight": "fine", "score": 0.8}', usage=(5, 2))]
    )
    assert bench.assess(chat(server))[0].score == 0.8
    asked = server.requests[1].body["messages"]
    assert asked[2]["content"] == "8 of 10, I would say"
    assert asked[3]["content"] == (
        "That reply could not be read: it holds no JSON object. Reply again, with the JSON object alone, in the form asked for."
    )
    (again,) = bench.assess(chat(NOWHERE), mode="none")
    assert (again.score, again.calls.replayed) == (0.8, 2)
    assert again.tokens == 14


@pytest.mark.parametrize(
    "reply",
    ["on a scale of 0 to 1 I give it 0.9", "", " ", '{"insight": "x", "score": 8}', '{"insight": "x", "score": "0.8"}'],
)
def test_a_reply_that_stays_unreadable_is_an_error_that_keeps_it(server: LLMServer, bench: Bench, reply: str) -> None:
    server.reply = reply
    with pytest.raises(JudgeReplyError) as refused:
        bench.assess(chat(server))
    assert refused.value.raw == reply
    assert str(refused.value).startswith("the judge m gave no verdict in 2 replies; of the last one, ")
    assert str(refused.value).endswith(reply.strip() or "(nothing)" if reply != " " else reply)
    assert len(server.requests) == 2
    assert not bench.path.exists()


def test_a_reply_that_was_cut_says_so_and_names_the_setting(server: LLMServer, bench: Bench) -> None:
    server.reply = Reply('{"insight": "it goes on and', finish_reason="length")
    with pytest.raises(JudgeReplyError) as refused:
        bench.assess(chat(server))
    assert str(refused.value) == (
        "the reply of the judge m was cut because it ran out of tokens; raise max_tokens of the judge's model"
    )
    with pytest.raises(JudgeReplyError, match="was cut because it ran out of tokens; raise max_tokens"):
        bench.assess(chat(server), structured=True)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_says_so_without_the_key(server: LLMServer, bench: Bench, status: int) -> None:
    server.fail_always(
        Fault(status=status, body={"error": {"message": f"Incorrect API key provided: {KEY[:8]}********cdef."}})
    )
    with pytest.raises(JudgeUnreachableError) as refused:
        bench.assess(chat(server))
    assert refused.value.refused
    assert f"the judge m refused the key (HTTP {status}), so judging stops here" in str(refused.value)
    assert KEY[:8] not in str(refused.value) or KEY not in str(refused.value)


def test_a_prompt_that_is_too_long_says_so_with_the_lengths(server: LLMServer, bench: Bench) -> None:
    message = "request (9123 tokens) exceeds the available context size (8192 tokens), try increasing it"
    server.fail_always(
        Fault(
            status=400,
            body={
                "error": {
                    "message": message,
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 9123,
                    "n_ctx": 8192,
                }
            },
        )
    )
    with pytest.raises(JudgeUnreachableError) as refused:
        bench.assess(chat(server, max_retries=3))
    assert str(refused.value).startswith("the prompt is too long for the judge m (9,123 > 8,192 tokens)")
    assert len(server.requests) == 1


def test_a_server_that_is_down_says_so(bench: Bench) -> None:
    with pytest.raises(
        JudgeUnreachableError,
        match=r"the judge m at 127\.0\.0\.1:9 could not be reached, given up after \d+\.\d s: Connection error",
    ):
        bench.assess(chat(NOWHERE))


def test_of_an_address_that_is_down_no_more_than_host_and_port_is_said(bench: Bench) -> None:
    with pytest.raises(JudgeUnreachableError) as down:
        bench.assess(chat("http://anna:planted@127.0.0.1:9/v1?session=planted"))
    assert "the judge m at 127.0.0.1:9 could not be reached" in str(down.value)
    assert "planted" not in str(down.value)
    assert "anna" not in str(down.value)


def test_a_server_error_says_so(server: LLMServer, bench: Bench) -> None:
    server.fail_always(Fault(status=503))
    with pytest.raises(JudgeUnreachableError, match=r"the judge m answered with HTTP 503 after \d+\.\d s"):
        bench.assess(chat(server))


def test_a_judge_that_does_not_answer_in_time_says_so(server: LLMServer, bench: Bench) -> None:
    server.latency_s = 1.0
    with pytest.raises(JudgeUnreachableError, match=r"the judge m did not answer within 0\.\d s"):
        bench.assess(chat(server), timeout_s=0.1)


def test_a_client_that_gives_up_first_says_whom_it_has_asked(server: LLMServer, bench: Bench) -> None:
    server.latency_s = 1.0
    with pytest.raises(JudgeUnreachableError, match=r"the judge m at 127\.0\.0\.1:\d+ did not answer within 0\.\d s"):
        bench.assess(chat(server, timeout=0.1))


def test_structured_output_is_recorded_and_replayed(server: LLMServer, bench: Bench) -> None:
    assert bench.assess(chat(server), structured=True)[0].score == 0.9
    assert server.requests[0].body["response_format"]["type"] == "json_schema"
    assert bench.assess(chat(NOWHERE), structured=True, mode="none")[0].source == "replayed"


def test_structured_output_falls_back_step_by_step_and_says_so_once(server: LLMServer, bench: Bench) -> None:
    server.reject_response_format = True
    with told() as warned:
        bench.assess(chat(server), CASE, CASE(assistant="All day."), structured=True)
    assert [re.sub(r" \(.*\)", "", each) for each in warned] == [
        "the judge m does not take json_schema; asked for function_calling instead"
    ]
    assert ["tools" in request.body for request in server.requests] == [False, True, True]
    first, second = bench.assess(chat(NOWHERE), CASE, CASE(assistant="All day."), structured=True, mode="none")
    assert (first.score, second.source) == (0.9, "replayed")


def test_structured_output_falls_back_to_text(server: LLMServer, bench: Bench) -> None:
    server.reject_response_format = server.reject_tools = True
    with told() as warned:
        assert bench.assess(chat(server), structured=True)[0].score == 0.9
    assert [re.sub(r" \([^;]*\)", "", each) for each in warned] == [
        "the judge m does not take json_schema; nor function_calling; asked for text instead"
    ]
    assert [each["response"]["status"]["code"] for each in bench.interactions] == [200]
    assert bench.assess(chat(NOWHERE), structured=True, mode="new_episodes")[0].source == "replayed"


def test_a_tool_call_recorded_again_changes_no_byte(server: LLMServer, bench: Bench) -> None:
    server.reject_response_format = True
    with told():
        bench.assess(chat(server), structured=True)
    before = bench.path.read_bytes()
    with told():
        bench.assess(chat(server), structured=True, mode="all")
    assert bench.path.read_bytes() == before


def test_samples_are_recorded_each_on_its_own(server: LLMServer, bench: Bench) -> None:
    server.script(
        ['{"insight": "a", "score": 0.6}', '{"insight": "b", "score": 0.9}', '{"insight": "c", "score": 0.6}']
    )
    (first,) = bench.assess(chat(server), samples=3, concurrency=1)
    assert first.score == pytest.approx(0.7)
    (again,) = bench.assess(chat(NOWHERE), samples=3, concurrency=8, mode="none")
    assert [sample.score for sample in again.samples] == [sample.score for sample in first.samples] == [0.6, 0.9, 0.6]


def test_many_threads_record_each_answer_under_its_own_prompt(server: LLMServer, bench: Bench) -> None:
    server.answer = lambda prompt, _: '{"insight": "x", "score": 0.' + re.findall(r"number (\d+)", prompt)[0] + "}"
    cases = [CASE(assistant=f"number {number:02}") for number in range(64)]
    expected = [float(f"0.{number:02}") for number in range(64)]

    def all_at_once(server: LLMServer | str, mode: RecordMode) -> list[float]:
        tape = Tape(bench.path, node="n", mode=mode, shown="a.yaml")
        judging = JudgeModel(chat(server))
        judge = Judge(lambda: judging, tape=tape)
        scores: dict[int, float] = {}
        places = threading.Semaphore(32)

        def one(number: int) -> None:
            with places:
                scores[number] = judge.assess(CONTEXT_AWARENESS, cases[number]).score

        threads = [threading.Thread(target=one, args=(number,)) for number in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tape.close("passed")
        return [scores[number] for number in range(64)]

    assert all_at_once(server, "once") == expected
    assert len(bench.interactions) == 64
    assert all_at_once(NOWHERE, "none") == expected


class Silent(httpx2.BaseTransport):
    """A transport that no stub of vcrpy knows: a model in this process, as far as a cassette can see."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        message = {"role": "assistant", "content": '{"insight": "x", "score": 0.5}'}
        return httpx2.Response(
            200,
            json={
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            },
        )


@pytest.mark.parametrize("mode", ["none", "once", "new_episodes", "all"])
def test_a_judge_that_cannot_be_recorded_is_an_error_at_its_first_call(bench: Bench, mode: RecordMode) -> None:
    model = chat(NOWHERE, http_client=httpx2.Client(transport=Silent()))
    with pytest.raises(CassetteError) as refused:
        bench.assess(model, mode=mode)
    assert str(refused.value) == (
        "the judge m (ChatOpenAI) answered without any request over HTTP that could be recorded or replayed; a model that "
        "runs in this process or talks gRPC is used with --ctxeval-record=off"
    )
    assert bench.assess(model, mode="off")[0].score == 0.5


def test_a_missing_key_is_told_before_anything_goes_out(server: LLMServer, bench: Bench) -> None:
    from pytest_ctxeval._judge.placeholder import placeholder_keys

    with placeholder_keys():
        model = chat("http://judge.example/v1", api_key=None)
    with pytest.raises(ConfigError) as refused:
        bench.assess(model)
    assert str(refused.value) == (
        "test_a.py::test_b[x y]: this request is not recorded, and to record it the judge m needs a key; set "
        "OPENAI_API_KEY in the environment (to any value, where the server asks for none), take another judge (the "
        "fixture judge_model, or --ctxeval-judge=PROVIDER:NAME), or replay alone with --ctxeval-record=none"
    )
    assert not server.requests
    assert "OPENAI_API_KEY" not in os.environ


def test_a_server_on_this_machine_may_need_no_key(server: LLMServer, bench: Bench) -> None:
    from pytest_ctxeval._judge.placeholder import placeholder_keys

    with placeholder_keys():
        model = chat(server, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    assert bench.assess(model)[0].source == "recorded"


def test_a_request_with_a_placeholder_never_leaves_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_ctxeval._judge.placeholder import placeholder_keys

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.create_connection", refuse)
    with placeholder_keys():
        model = chat("http://judge.example/v1", api_key=None)
    with pytest.raises(Exception, match="pytest-ctxeval has held this request back: it carries no key"):
        model.invoke("beside every block")


@pytest.mark.parametrize("given", [None, "", "  "])
def test_the_placeholder_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    from pytest_ctxeval._judge.placeholder import placeholder_keys

    if given is not None:
        monkeypatch.setenv("GROQ_API_KEY", given)
    with placeholder_keys():
        assert os.environ["GROQ_API_KEY"]
    assert os.environ.get("GROQ_API_KEY") == given


def test_traffic_that_is_not_ours_is_left_alone(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server))
    assert chat(server).invoke("hello").content
    assert len(server.requests) == 2


def test_the_patch_is_taken_away_by_the_last_one_out(server: LLMServer) -> None:
    inside = httpx2.HTTPTransport.handle_request
    with routed():
        assert httpx2.HTTPTransport.handle_request is inside
    assert httpx2.HTTPTransport.handle_request is inside
    assert hasattr(inside, "__wrapped__")


def test_after_a_failed_save_nothing_goes_live(
    server: LLMServer, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.mkstemp", _no_space)
    with pytest.raises(CassetteError, match="No space left on device"):
        bench.assess(chat(server))
    with pytest.raises(CassetteMissError):
        bench.assess(chat(server), mode="none")
    assert len(server.requests) == 1


def _no_space(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_users_own_vcr_around_our_judge_keeps_its_own_and_we_keep_ours(
    server: LLMServer, bench: Bench, tmp_path: Path
) -> None:
    import vcr

    theirs = tmp_path / "theirs.yaml"
    with vcr.use_cassette(str(theirs)):
        chat(server).invoke("mine")
        bench.assess(chat(server))
    recorded = yaml.safe_load(theirs.read_text())["interactions"]
    assert len(recorded) == 1
    assert "mine" in recorded[0]["request"]["body"]
    assert len(bench.interactions) == 1
    chat(server).invoke("after")
    assert len(server.requests) == 3
