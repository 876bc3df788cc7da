"""Recording and replaying through pytest: files, modes, the assistant's own calls, a refused key."""

import re
from pathlib import Path

import pytest
import yaml
from support.llm_server import Fault, LLMServer
from support.suite import Suite, replaying, section

from pytest_ctxeval._plugin.cassettes import cassette_path


def test_a_suite_is_recorded_once_and_replayed_without_a_key(
    recorded: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.cases("yes", "no")
    first = recorded.run(record="once")
    first.assert_outcomes(passed=2)
    assert "judge     m: 0 replayed, 2 recorded, 0 live, 76 tokens, record=once" in section(first)
    assert sorted(path.name for path in recorded.path.rglob("*.yaml")) == sorted(
        cassette_path(f"test_it.py::test_answers[shop-q{number}]").name for number in (1, 2)
    )
    replaying(monkeypatch)
    for record in ("none", "once"):
        again = recorded.run(record=record)
        again.assert_outcomes(passed=2)
        assert f"judge     m: 2 replayed, 0 recorded, 0 live, 76 tokens, record={record}" in section(again)
    assert len(server.requests) == 2


def test_a_failing_assertion_still_saves_its_cassette(recorded: Suite, server: LLMServer) -> None:
    server.reply = '{"insight": "no", "score": 0.1}'
    recorded.cases("yes")
    recorded.run(record="once").assert_outcomes(failed=1)
    (path,) = recorded.path.rglob("*.yaml")
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["ctxeval"]["complete"] is False
    recorded.run(record="once").assert_outcomes(failed=1)
    assert len(server.requests) == 1


def test_a_failure_says_where_its_verdict_came_from(recorded: Suite, server: LLMServer) -> None:
    server.reply = '{"insight": "no", "score": 0.1}'
    recorded.cases("yes")
    assert "judged by m, recorded" in recorded.run(record="once").stdout.str()
    told = recorded.run(record="none").stdout.str()
    name = cassette_path("test_it.py::test_answers[shop-q1]").as_posix()
    assert f"judged by m, replayed from cassettes/{name}" in told


ASSISTED = """
    import pytest
    from pytest_ctxeval import assert_context_awareness

    @pytest.mark.ctxeval(context="Open 9 to 5.")
    def test_it(context_case, ctxeval_cassette, bot):
        with ctxeval_cassette:
            answer = bot("When are you open?")
        case = context_case(query="When are you open?", assistant=answer)
        assert_context_awareness(case)
"""


def test_the_assistants_own_calls_are_on_the_same_cassette(
    recorded: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = lambda prompt, _: '{"insight": "ok", "score": 0.9}' if "You judge" in prompt else "From 9 to 5."
    recorded.module(ASSISTED)
    told = section(recorded.run(record="once"))
    assert "judge     m: 0 replayed, 1 recorded" in told
    assert "assistant 0 replayed, 1 recorded, 0 live" in told
    (path,) = recorded.path.rglob("*.yaml")
    assert len(yaml.safe_load(path.read_text(encoding="utf-8"))["interactions"]) == 2
    replaying(monkeypatch)
    assert "assistant 1 replayed, 0 recorded, 0 live" in section(recorded.run(record="none"))


def test_an_assistant_may_ask_many_things_at_once(
    recorded: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = lambda prompt, _: f"answer to {prompt}"
    recorded.module(
        """
        import asyncio
        from conftest import model

        def test_it(ctxeval_cassette):
            asked = [f"question {n}" for n in range(8)]
            async def gathered():
                return await asyncio.gather(*(model().ainvoke(each) for each in asked))
            with ctxeval_cassette:
                answers = [each.text for each in asyncio.run(gathered())]
            assert answers == [f"answer to {each}" for each in asked]
            with ctxeval_cassette:
                assert [each.text for each in model().batch(asked)] == answers
            with ctxeval_cassette:
                streamed = "".join(part.text for part in model().stream("streamed"))
            assert streamed == "answer to streamed"
        """
    )
    recorded.run(record="once").assert_outcomes(passed=1)
    assert len(server.requests) == 9
    replaying(monkeypatch)
    recorded.run(record="none").assert_outcomes(passed=1)


def test_an_assistant_that_is_not_recorded_is_a_miss_and_no_client_error(recorded: Suite, server: LLMServer) -> None:
    recorded.module(ASSISTED)
    told = recorded.run(record="none").stdout.str()
    assert "pytest_ctxeval.CassetteMissError: no recording: there is no cassette cassettes/test_it/test_it-" in told
    assert "pytest test_it.py::test_it --ctxeval-record=once" in told
    assert "BadRequestError" not in told
    assert not server.requests


def test_a_block_in_which_nothing_is_asked_is_an_error(recorded: Suite) -> None:
    recorded.module("def test_it(ctxeval_cassette):\n    with ctxeval_cassette:\n        pass")
    assert "nothing was asked over HTTP inside 'with ctxeval_cassette:'" in recorded.run(record="once").stdout.str()
    recorded.run(record="off").assert_outcomes(passed=1)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_refused_key_stops_judging_with_one_message(recorded: Suite, server: LLMServer, workers: str) -> None:
    server.fail_always(Fault(status=401))
    recorded.cases(*["yes"] * 20)
    (recorded.path / "test_unrelated.py").write_text("def test_it(): pass", encoding="utf-8")
    result = recorded.run("-n", workers, record="once")
    processes = max(int(workers), 1)
    result.assert_outcomes(failed=processes, skipped=20 - processes, passed=1)
    assert (
        len(
            re.findall(
                r"(?m)^E +pytest_ctxeval.JudgeUnreachableError: the judge m refused the key \(HTTP 401\)",
                result.stdout.str(),
            )
        )
        == processes
    )
    assert len(server.requests) == processes
    assert "0/20  no score" in section(result)
    assert result.ret == 1
    assert "planted" not in result.stdout.str()


def test_a_refused_key_turns_the_run_red_though_every_test_is_let_off(recorded: Suite, server: LLMServer) -> None:
    server.fail_always(Fault(status=403))
    recorded.module(
        """
        import pytest
        from pytest_ctxeval import assert_context_awareness

        @pytest.mark.xfail
        @pytest.mark.parametrize("n", range(3))
        def test_it(context_case, n):
            assert_context_awareness(context_case(context="C", query="Q", assistant=f"A{n}"))
        """
    )
    assert recorded.run(record="once").ret == 1


def test_a_key_that_is_missing_for_a_recording_is_told_before_anything_goes_out(
    recorded: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("JUDGE_URL", "http://judge.example/v1")
    recorded.cases("yes")
    told = recorded.run(record="once").stdout.str()
    assert "and to record it the judge m needs a key; set OPENAI_API_KEY in the environment (to any value" in told
    assert "take another judge (the fixture judge_model, or --ctxeval-judge=PROVIDER:NAME)" in told


def test_a_key_in_a_prompt_is_told_by_its_place_and_the_verdict_still_counts(recorded: Suite) -> None:
    recorded.cases("the key is planted-0123456789")
    result = recorded.run(record="once")
    result.assert_outcomes(passed=1, errors=1)
    assert "the value of $OPENAI_API_KEY stands there, so nothing is written" in result.stdout.str()
    assert "context awareness  1  0.90" in section(result)
    assert not list(recorded.path.rglob("*.yaml"))


def test_an_interrupted_run_keeps_what_it_has_recorded(recorded: Suite, server: LLMServer) -> None:
    recorded.cases("one", "two", "three")
    (recorded.path / "conftest.py").write_text(
        (recorded.path / "conftest.py").read_text(encoding="utf-8")
        + "\ndef pytest_runtest_logreport(report):\n    if 'q2' in report.nodeid and report.when == 'call':\n        raise KeyboardInterrupt\n",
        encoding="utf-8",
    )
    assert recorded.run(record="once").ret == 2
    assert len(list(recorded.path.rglob("*.yaml"))) == 2
    assert len(server.requests) == 2


def test_forty_tests_in_four_processes_lose_no_recording(
    recorded: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.cases(*[f"answer {number}" for number in range(40)])
    first = section(recorded.run("-n", "4", record="once"))
    assert "0 replayed, 40 recorded, 0 live" in first
    assert len(list(recorded.path.rglob("*.yaml"))) == 40
    replaying(monkeypatch)
    assert "40 replayed, 0 recorded, 0 live" in section(recorded.run("-n", "0", record="none"))


IDS = [
    "a/b",
    "a:b",
    "a|b",
    "A",
    "a",
    "../../x",
    "/abs",
    "con",
    "NUL",
    "x" * 300,
    "😀" * 100,
    "",
    " ",
    "a\nb",
    "a\x00b",
    "..",
    "-",
    "ü",
    "u",
]


def test_every_id_gets_a_file_of_its_own_inside_the_folder() -> None:
    paths = [cassette_path(f"tests/test_it.py::test[{name}]") for name in IDS]
    assert len({str(path).lower() for path in paths}) == len(IDS)
    for path in paths:
        assert path.parent == Path("tests/test_it")
        assert len(path.name) < 90
        assert path.name.isascii()
    assert cassette_path("../other/test_it.py::test").parts[:-1] == ("_", "other", "test_it")


def test_ids_full_of_slashes_work_from_end_to_end(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.cases(
        *[{"qa_id": name, "assistant": f"answer {number}"} for number, name in enumerate(IDS) if name.strip()]
    )
    count = len([name for name in IDS if name.strip()])
    recorded.run(record="once").assert_outcomes(passed=count)
    assert len(list(recorded.path.rglob("*.yaml"))) == count
    replaying(monkeypatch)
    recorded.run(record="none").assert_outcomes(passed=count)
