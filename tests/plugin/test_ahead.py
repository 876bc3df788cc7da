"""Judging ahead: tests that name their metrics are recorded before they run, many at a time."""

import json
import os
import pty
import re
import signal
import subprocess
import threading
import time

import pytest
from support.llm_server import VERDICT, Fault, LLMServer
from support.suite import Suite, section

NAMED = "metrics=['context_awareness']"


def write(
    suite: Suite, count: int, *, marker: str = NAMED, body: str = "assert_context_awareness(context_case)"
) -> None:
    rows = [{"qa_id": f"q{each}", "query": f"When, {each}?", "assistant": f"At {each}."} for each in range(count)]
    dataset = {"session_id": "shop", "assistant_id": "bot", "context": "Open 9 to 5.", "conversation": rows}
    (suite.path / "cases.json").write_text(json.dumps(dataset), encoding="utf-8")
    suite.module(
        f"""
        import pytest
        from pytest_ctxeval import assert_context_awareness, context_awareness

        @pytest.mark.ctxeval(dataset="cases.json", {marker})
        def test_answers(context_case, request):
            {body}
        """
    )


def test_they_are_asked_side_by_side_after_the_first(recorded: Suite, server: LLMServer) -> None:
    together = threading.Barrier(4)

    def answer(prompt: str, _: object) -> str:
        if "When, 0?" not in prompt:
            together.wait(30)  # broken, and the server's error is raised, if fewer are in flight
        return VERDICT

    server.answer = answer
    write(recorded, 5)
    result = recorded.run("--ctxeval-concurrency=4", record="once")
    result.assert_outcomes(passed=5)
    assert "judge     m: 0 replayed, 5 recorded, 0 live, 190 tokens, record=once" in section(result)


def test_what_is_on_disk_is_the_same_as_one_at_a_time(recorded: Suite, server: LLMServer) -> None:
    server.answer = lambda prompt, _: '{"insight": "so", "score": 0.%s}' % (9 if "When, 3?" in prompt else 8)
    write(recorded, 6, marker="samples=3")
    told = section(recorded.run("--ctxeval-concurrency=1", record="once"))
    one_at_a_time = recorded.cassettes()
    assert len(one_at_a_time) == 6
    for path in recorded.path.rglob("*.yaml"):
        path.unlink()
    write(recorded, 6, marker=f"samples=3, {NAMED}")
    assert section(recorded.run(record="once")) == told
    assert recorded.cassettes() == one_at_a_time
    assert len(server.requests) == 36


@pytest.mark.parametrize("record", ["once", "new_episodes", "none"])
def test_what_is_recorded_is_not_asked_again(recorded: Suite, server: LLMServer, record: str) -> None:
    write(recorded, 3)
    recorded.run(record="once").assert_outcomes(passed=3)
    result = recorded.run(record=record)
    result.assert_outcomes(passed=3)
    assert "judge     m: 3 replayed" in section(result)
    assert len(server.requests) == 3


def test_all_are_recorded_anew(recorded: Suite, server: LLMServer) -> None:
    write(recorded, 3)
    recorded.run(record="once")
    server.reply = '{"insight": "else", "score": 0.95}'
    assert "3 recorded" in section(recorded.run(record="all"))
    assert len(server.requests) == 6
    assert all("else" in text for text in recorded.cassettes().values())


def kill_midway(suite: Suite, server: LLMServer, *, asked: int, saved: int, record: str, reply: str = VERDICT) -> None:
    """Kill a run that asks two questions at a time, once so many have come and so many cassettes hold the reply."""
    kill, dead = threading.Event(), threading.Event()

    def answer(*_: object) -> str:
        if len(server.requests) >= asked and not dead.is_set():
            kill.set()
            dead.wait(30)
        return reply

    server.answer = answer
    insight = json.loads(reply)["insight"]
    arguments = ("-q", f"--ctxeval-record={record}", "--ctxeval-concurrency=2")
    with suite.started(*arguments, output=subprocess.DEVNULL) as run:
        assert kill.wait(60)
        give_up = time.monotonic() + 30
        while sum(insight in text for text in suite.cassettes().values()) < saved and time.monotonic() < give_up:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    dead.set()


def test_a_run_that_is_killed_keeps_what_it_has(recorded: Suite, server: LLMServer) -> None:
    write(recorded, 12)
    kill_midway(recorded, server, asked=8, saved=6, record="once")
    kept = recorded.cassettes()
    asked = len(server.requests)
    assert 6 <= len(kept) < 12
    assert all("complete: false" in text for text in kept.values())
    recorded.run(record="once").assert_outcomes(passed=12)
    assert len(server.requests) == asked + 12 - len(kept)
    assert all("complete: true" in text for text in recorded.cassettes().values())


def test_a_run_that_records_all_anew_and_is_killed_keeps_what_it_has(recorded: Suite, server: LLMServer) -> None:
    write(recorded, 8)
    recorded.run(record="once").assert_outcomes(passed=8)
    reply = '{"insight": "recorded anew", "score": 0.95}'
    kill_midway(recorded, server, asked=8 + 6, saved=4, record="all", reply=reply)
    kept = recorded.cassettes()
    assert len(kept) == 8
    assert 4 <= sum("recorded anew" in text for text in kept.values()) < 8
    recorded.run(record="none").assert_outcomes(passed=8)


def test_one_that_finds_the_judge_busy_is_judged_in_its_own_turn(recorded: Suite, server: LLMServer) -> None:
    write(recorded, 6)
    server.fail_at(Fault(status=429, headers={"Retry-After": "0.1"}), {3})
    result = recorded.run(record="once")
    result.assert_outcomes(passed=6)
    assert len(server.requests) == 7
    assert len(recorded.cassettes()) == 6


def test_a_refused_key_is_told_once(recorded: Suite, server: LLMServer) -> None:
    server.fail_always(Fault(status=401))
    write(recorded, 6)
    result = recorded.run(record="once")
    result.assert_outcomes(failed=1, skipped=5)
    assert len(server.requests) == 1
    assert recorded.cassettes() == {}


def test_a_key_that_is_refused_half_way_stops_those_that_wait_for_their_turn(
    recorded: Suite, server: LLMServer
) -> None:
    write(recorded, 20)
    server.fail_at(Fault(status=401), range(4, 1000))
    result = recorded.run("--ctxeval-concurrency=2", record="once")
    result.assert_outcomes(passed=3, failed=1, skipped=16)
    assert len(server.requests) <= 6  # three answered, one or two refused ahead, one refused to the test itself
    assert len(recorded.cassettes()) == 3


def test_a_reply_that_cannot_be_read_is_asked_for_as_often_as_in_its_own_turn(
    recorded: Suite, server: LLMServer
) -> None:
    server.answer = lambda prompt, _: "no verdict" if "When, 2?" in prompt else VERDICT
    write(recorded, 4)
    result = recorded.run(record="once")
    result.assert_outcomes(passed=3, failed=1)
    assert "gave no verdict in 2 replies" in result.stdout.str()
    assert len(server.requests) == 5


def test_nothing_is_asked_for_tests_that_may_not_run_or_whose_case_is_not_complete(
    recorded: Suite, server: LLMServer
) -> None:
    write(recorded, 2)
    recorded.module(
        f"""
        import pytest
        from pytest_ctxeval import assert_context_awareness

        pytestmark = pytest.mark.ctxeval(context="Open 9 to 5.", query="When?", assistant="At 9.", {NAMED})

        def test_first(context_case):
            assert_context_awareness(context_case)

        @pytest.mark.skip
        def test_skipped(context_case):
            assert_context_awareness(context_case)

        @pytest.mark.xfail(run=False)
        def test_not_run(context_case):
            assert_context_awareness(context_case)

        @pytest.mark.ctxeval(assistant="")
        def test_without_answer(context_case):
            assert_context_awareness(context_case(assistant="At 9, I think."))

        def test_last(context_case):
            assert_context_awareness(context_case)
        """,
        name="test_others",
    )
    result = recorded.run(record="once")
    result.assert_outcomes(passed=5, skipped=1, xfailed=1)
    assert len(server.requests) == 5


def test_each_judge_is_asked_about_its_own_tests(recorded: Suite, server: LLMServer) -> None:
    conftest = (recorded.path / "conftest.py").read_text(encoding="utf-8")
    source = f"""
        import pytest
        from pytest_ctxeval import assert_context_awareness

        @pytest.mark.ctxeval(context="Open.", query="When?", {NAMED})
        @pytest.mark.parametrize("number", range(3))
        def test_it(context_case, number):
            assert_context_awareness(context_case(assistant=str(number)))

        @pytest.mark.ctxeval(context="Open.", query="When?", assistant="Now.", {NAMED})
        @pytest.mark.parametrize("number", range(3))
        def test_same(context_case, number):
            assert_context_awareness(context_case)
        """
    for folder in ("one", "two"):
        (recorded.path / folder).mkdir()
        (recorded.path / folder / "conftest.py").write_text(
            conftest.replace('"m"', f'"model-{folder}"'), encoding="utf-8"
        )
        recorded.module(source, name=f"{folder}/test_{folder}")
    recorded.run(record="once").assert_outcomes(passed=12)
    assert sorted(request.body["model"] for request in server.requests) == ["model-one"] * 6 + ["model-two"] * 6
    for text in recorded.cassettes().values():
        assert ("judge: model-one" in text) == ("test_one.py" in text)


def test_what_was_judged_for_nothing_is_told(recorded: Suite) -> None:
    recorded.pytester.makefile(".ini", pytest="[pytest]")
    write(recorded, 2, body="pass")
    result = recorded.run(record="once")
    result.stdout.fnmatch_lines(["*the test did not ask for it: by context_awareness*"])


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ("metrics=['context_awarenes']", "'context_awarenes' is no metric; did you mean 'context_awareness'"),
        ("metrics=[3]", "a int is no metric"),
        ("metrics=[context_awareness]", "a function is no metric"),
    ],
)
def test_a_wrong_name_is_told_before_anything_is_asked(
    recorded: Suite, server: LLMServer, marker: str, told: str
) -> None:
    write(recorded, 2, marker=marker)
    result = recorded.run(record="once")
    assert told in result.stdout.str()
    assert server.requests == []


def test_a_metric_that_was_made_is_named_as_well_as_its_name(recorded: Suite, server: LLMServer) -> None:
    recorded.module(
        """
        import pytest
        from pytest_ctxeval import assert_contextual_relevancy, contextual_relevancy

        STRICT = contextual_relevancy(strict_mode=True)

        @pytest.mark.ctxeval(query="When?", retrieval_context=["Open 9 to 5."], metrics=STRICT)
        @pytest.mark.parametrize("number", range(3))
        def test_it(context_case, number):
            assert_contextual_relevancy(context_case, metric=STRICT, min=0)
        """
    )
    server.reply = (
        '{"chunks": [{"chunk": 1, "statements": [{"statement": "Open 9 to 5.", "relevant": true, "reason": "so"}]}]}'
    )
    recorded.run(record="once").assert_outcomes(passed=3)
    assert len(server.requests) == 3


def test_workers_judge_their_own_tests(recorded: Suite, server: LLMServer) -> None:
    write(recorded, 6)
    result = recorded.run("-n", "2", record="once")
    result.assert_outcomes(passed=6)
    assert len(server.requests) == 6


def test_a_terminal_shows_how_far_it_is(recorded: Suite, server: LLMServer) -> None:
    write(recorded, 5)
    told = on_a_terminal(recorded, "--ctxeval-record=once")
    assert "judging ahead [....................] 0 of 5" in told
    assert "judging ahead [####################] 5 of 5" in told
    assert "\ntest_it.py ....." in told
    assert len(server.requests) == 5


def test_where_there_is_no_terminal_there_is_no_bar(recorded: Suite) -> None:
    write(recorded, 5)
    assert "judging ahead" not in recorded.run(record="once").stdout.str()


def on_a_terminal(suite: Suite, *arguments: str) -> str:
    ours, theirs = pty.openpty()
    with suite.started(*arguments, output=theirs, COLUMNS="80", TERM="xterm"):
        os.close(theirs)
        told = b""
        try:
            while chunk := os.read(ours, 4096):
                told += chunk
        except OSError:  # Linux says so at the end
            pass
        finally:
            os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", told.decode())
