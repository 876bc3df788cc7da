"""What is kept of a test, however it ends."""

import re
import signal
from collections.abc import Iterator

import pytest
import yaml
from support.llm_server import WRONG_KEY, LLMServer
from support.suite import Suite, section


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        yield running


@pytest.fixture
def recorded(suite: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite whose judge and assistant are a real client and the local server."""
    monkeypatch.setenv("JUDGE_URL", server.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "planted-0123456789")
    suite.pytester.makeconftest(
        """
        import os
        import pytest
        from langchain_openai import ChatOpenAI

        @pytest.fixture(scope="session")
        def judge_model():
            return ChatOpenAI(model="m", base_url=os.environ["JUDGE_URL"], temperature=0.0, max_retries=0)
        """
    )
    return suite


def held(suite: Suite) -> tuple[bool, int]:
    """Whether the only cassette is complete, and how many exchanges it holds."""
    (path,) = suite.path.rglob("*.yaml")
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found["ctxeval"]["complete"], len(found["interactions"])


BLOCK = """
    import pytest
    from conftest import ChatOpenAI
    from pytest_ctxeval import assert_context_awareness

    @pytest.mark.ctxeval(context="Open 9 to 5.", query="When?")
    def test_it(context_case, ctxeval_cassette, judge_model, judge):
        with ctxeval_cassette:
            answer = judge_model.invoke("hello").text
            {inside}
        {outside}
"""


@pytest.mark.parametrize(
    ("inside", "outside", "kept"),
    [
        ("assert answer == 'x'", "", 1),
        ("pytest.fail('no')", "", 1),
        ("", "assert judge.assess('context_awareness', context_case(assistant='x')).score > 1", 2),
        ("assert_context_awareness(context_case(assistant='x'), min=1.0)", "", 2),
    ],
    ids=["assert in the block", "fail in the block", "assert on a verdict", "verdict in the block"],
)
def test_an_assertion_that_fails_saves_what_was_asked_until_then(
    recorded: Suite, server: LLMServer, inside: str, outside: str, kept: int
) -> None:
    recorded.module(BLOCK.format(inside=inside, outside=outside))
    recorded.in_process(record="once").assert_outcomes(failed=1)
    assert held(recorded) == (False, kept)
    before = len(server.requests)
    recorded.in_process(record="all").assert_outcomes(failed=1)
    assert len(server.requests) == 2 * before
    assert held(recorded) == (False, kept)


def test_recording_all_anew_keeps_what_a_failed_assertion_did_not_come_to(recorded: Suite, server: LLMServer) -> None:
    source = BLOCK.format(
        inside="", outside="assert answer != 'bad'\n        assert_context_awareness(context_case(assistant='x'))"
    )
    recorded.module(source)
    recorded.in_process(record="once").assert_outcomes(passed=1)
    server.reply = "bad"
    recorded.in_process(record="all").assert_outcomes(failed=1)
    assert held(recorded) == (True, 2)


def test_what_stands_behind_a_failed_assertion_is_recorded_once_it_is_reached(
    recorded: Suite, server: LLMServer
) -> None:
    outside = "assert context_case.query == {!r}\n        assert_context_awareness(context_case(assistant='x'))"
    recorded.module(BLOCK.format(inside="", outside=outside.format("Never?")))
    recorded.in_process(record="once").assert_outcomes(failed=1)
    recorded.module(BLOCK.format(inside="", outside=outside.format("When?")))
    told = recorded.in_process(record="none")
    told.assert_outcomes(failed=1)
    assert "is incomplete, its test did not come to its end when it was recorded" in told.stdout.str()
    recorded.in_process(record="once").assert_outcomes(passed=1)
    assert held(recorded) == (True, 2)
    assert len(server.requests) == 2


PARTS = """
    import sys
    import unittest
    import pytest
    from pytest_ctxeval import assert_context_awareness

    @pytest.mark.ctxeval(context="Open 9 to 5.", query="When?")
    class TestIt(unittest.TestCase):
        def test_parts(self):
            from pytest_ctxeval import Batch
            for answer in ("a", "b"):
                with self.subTest(answer):
                    for part in (1, 2):
                        case = Batch(qa_id=f"{answer}{part}", query="When?", assistant=f"{answer}{part}")
                        assert_context_awareness(case, context="Open 9 to 5.")
"""


def test_a_subtest_that_failed_drops_nothing_of_its_test(recorded: Suite, server: LLMServer) -> None:
    recorded.module(PARTS)
    recorded.in_process(record="once")
    assert held(recorded) == (True, 4)
    server.reply = '{"insight": "no", "score": 0.1}'
    assert recorded.in_process(record="all").ret == 1
    assert held(recorded) == (True, 4)


def test_a_group_of_failed_assertions_is_a_failed_assertion(recorded: Suite, server: LLMServer) -> None:
    outside = "raise ExceptionGroup('both', [AssertionError('a'), ExceptionGroup('c', [AssertionError('b')])])"
    recorded.module(BLOCK.format(inside="", outside=outside))
    recorded.in_process(record="once").assert_outcomes(failed=1)
    assert held(recorded) == (False, 1)


def test_what_a_broken_test_recorded_anew_is_told_to_be_live(recorded: Suite, server: LLMServer) -> None:
    recorded.cases("yes")
    recorded.in_process(record="once").assert_outcomes(passed=1)
    (path,) = recorded.path.rglob("*.yaml")
    before = path.read_bytes()
    text = (recorded.path / "test_it.py").read_text(encoding="utf-8")
    (recorded.path / "test_it.py").write_text(f"{text}    raise RuntimeError\n", encoding="utf-8")
    server.reply = '{"insight": "other", "score": 0.95}'
    told = section(recorded.in_process(record="all"))
    assert "0 replayed, 0 recorded, 1 live" in told
    assert path.read_bytes() == before


def test_a_recording_that_must_not_be_written_is_one_message_and_was_live(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "planted-token-0123456789")
    recorded.cases("The token is planted-token-0123456789.")
    result = recorded.in_process(record="once")
    result.assert_outcomes(passed=1, errors=1)
    told = result.stdout.str()
    assert "the value of $SHOP_TOKEN stands there, so nothing is written" in told
    assert "planted-token" not in told
    assert "def write_recording" not in told
    assert "item_judge.close()" not in told
    assert "0 replayed, 0 recorded, 1 live" in section(result)
    assert not list(recorded.path.rglob("*.yaml"))


def test_a_folder_of_cassettes_that_is_a_file_is_told(recorded: Suite) -> None:
    recorded.cases("yes")
    (recorded.path / "cassettes").write_text("a file", encoding="utf-8")
    told = recorded.in_process(record="once").stdout.str()
    assert re.search(r"test_answers-shop-q1-\w+\.yaml: it cannot be read: cassettes is a file, and no folder", told)


def test_a_verdict_in_the_teardown_of_a_fixture_is_kept(recorded: Suite, server: LLMServer) -> None:
    recorded.module(
        """
        import pytest
        from pytest_ctxeval import assert_context_awareness, ContextCase

        @pytest.fixture
        def session(judge_model):
            yield
            case = ContextCase(qa_id="q", session_id="s", context="Open 9 to 5.", query="When?", assistant="x")
            assert_context_awareness(case)

        @pytest.mark.ctxeval
        def test_it(session):
            pass
        """
    )
    result = recorded.in_process(record="once")
    result.assert_outcomes(passed=1)
    assert "0 replayed, 1 recorded, 0 live" in section(result)
    assert held(recorded) == (True, 1)
    assert "1 replayed, 0 recorded, 0 live" in section(recorded.in_process(record="none"))


def test_a_case_that_is_asked_for_again_after_a_failure_has_one_result(suite: Suite) -> None:
    suite.module(
        """
        import pytest
        from pytest_ctxeval import JudgeReplyError, assert_context_awareness

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_it(context_case, judge):
            judge.attempts = 1
            case = context_case(assistant="SCORE=2/0.9")
            with pytest.raises(JudgeReplyError):
                assert_context_awareness(case)
            assert_context_awareness(case)
        """
    )
    assert "shop     context awareness  1  0.90" in section(suite.in_process())


def test_a_refused_key_fails_the_test_that_is_run_again(recorded: Suite, server: LLMServer) -> None:
    server.fail_always(WRONG_KEY)
    recorded.cases("yes", "no")
    result = recorded.run("--reruns", "1", "-p", "no:xdist", record="once")
    result.assert_outcomes(failed=1, skipped=1)
    assert len(server.requests) == 1
    assert result.ret == 1


def test_a_test_that_is_let_off_before_it_is_judged_is_unscored(suite: Suite) -> None:
    suite.module(
        """
        import pytest

        @pytest.mark.xfail
        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_it(context_case):
            raise RuntimeError("the bot is down")

        @pytest.mark.xfail(run=False)
        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_that_is_not_run(context_case):
            pass
        """
    )
    told = section(suite.in_process())
    assert "shop     context awareness  0/1  no score" in told
    assert "expected   -    test_it.py::test_it  not judged: RuntimeError: the bot is down" in told


def test_a_verdict_of_the_test_that_was_interrupted_is_told(suite: Suite) -> None:
    suite.module(
        """
        import os, signal, time
        import pytest
        from pytest_ctxeval import assert_context_awareness

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_it(context_case):
            assert_context_awareness(context_case(assistant="SCORE=0.9"))
            signal.signal(signal.SIGINT, signal.default_int_handler)  # of a process in the background it is ignored
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        """
    )
    result = suite.run("-p", "no:xdist")
    assert result.ret == signal.SIGINT
    assert "shop     context awareness  1  0.90" in section(result)


CRASH = """
    import os
    import pytest
    from pytest_ctxeval import Batch, Dataset, assert_context_awareness

    def dataset(name):
        batches = [Batch(qa_id=f"q{n}", query="When?", assistant="SCORE=0.9") for n in range(3)]
        return Dataset(session_id=name, assistant_id="bot", context="Open 9 to 5.", conversation=batches)

    @pytest.fixture
    def risky(request):
        if request.node.name in ("test_answers[b-q1]", "test_alone"):
            os._exit(1)

    @pytest.mark.ctxeval(dataset=[dataset("a"), dataset("b")])
    def test_answers(risky, context_case):
        assert_context_awareness(context_case)

    @pytest.mark.ctxeval(session_id="c", context="Open 9 to 5.", query="When?")
    def test_alone(risky, context_case):
        assert_context_awareness(context_case(assistant="SCORE=0.9"))
"""


def test_a_test_whose_worker_crashed_in_its_setup_is_known_by_its_session(suite: Suite) -> None:
    suite.module(CRASH)
    result = suite.run("-n", "2", "--ctxeval-report=run.json", "--ctxeval-gate=unscored:0")
    unscored = [case for case in suite.report()["cases"] if case["score"] is None]
    assert [(case["session_id"], case["qa_id"], case["node_id"], case["unscored"]) for case in unscored] == [
        ("b", "q1", "test_it.py::test_answers[b-q1]", "worker crashed"),
        ("c", "test_alone", "test_it.py::test_alone", "worker crashed"),
    ]
    assert "gate      unscored:0  FAILED  2 unscored, 0 allowed" in section(result)
    assert result.ret == 1


def test_a_test_that_a_hook_marks_after_collection_is_judged(suite: Suite) -> None:
    conftest = (suite.path / "conftest.py").read_text(encoding="utf-8")
    hook = """
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.ctxeval(context="Open 9 to 5."))
"""
    (suite.path / "conftest.py").write_text(conftest + hook, encoding="utf-8")
    suite.module(
        """
        from pytest_ctxeval import Batch, assert_context_awareness

        def test_it():
            case = Batch(qa_id="q", query="When?", assistant="SCORE=0.9")
            assert_context_awareness(case, context="Open 9 to 5.")
        """
    )
    result = suite.in_process("-k", "context")
    result.assert_outcomes(passed=1)
    assert "test_it.py  context awareness  1  0.90" in section(result)


def test_one_rerun_of_a_test_with_two_cases_is_one_rerun_and_its_calls_are_counted(suite: Suite) -> None:
    suite.module(
        """
        import pytest
        from pytest_ctxeval import assert_context_awareness

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_it(context_case):
            assert_context_awareness(context_case(qa_id="a", assistant="SCORE=0.9"))
            assert_context_awareness(context_case(qa_id="b", assistant="SCORE=0.1/0.9"))
        """
    )
    told = section(suite.run("--reruns", "1", "-p", "no:xdist"))
    assert "reruns    1: test_it.py::test_it" in told
    assert "0 replayed, 0 recorded, 4 live" in told


def test_a_suite_that_has_a_judge_model_of_its_own_sees_its_own_environment(suite: Suite) -> None:
    suite.module(
        """
        import os
        import pytest

        @pytest.fixture
        def judge_model():
            if not os.environ.get("OPENAI_API_KEY"):
                pytest.skip("no key")

        def test_it(judge_model):
            raise AssertionError(os.environ["OPENAI_API_KEY"])
        """
    )
    suite.in_process(record="none").assert_outcomes(skipped=1)


def test_a_placeholder_that_a_monkeypatch_puts_back_does_not_stay(recorded: Suite, server: LLMServer) -> None:
    recorded.module(
        """
        import os

        def test_a(ctxeval_cassette, judge_model, monkeypatch):
            with ctxeval_cassette:
                monkeypatch.setenv("GROQ_API_KEY", "mine")
                judge_model.invoke("hello")

        def test_b():
            assert "GROQ_API_KEY" not in os.environ
        """
    )
    recorded.in_process(record="once").assert_outcomes(passed=2)


def test_tests_that_no_worker_is_left_to_run_leave_the_run_broken_off(suite: Suite) -> None:
    suite.cases(*["SCORE=0.9"] * 4)
    suite.module("import os\ndef test_crash():\n    os._exit(1)\n", name="test_crash")
    result = suite.run(
        "-n", "1", "--max-worker-restart=0", "--ctxeval-gate=context_awareness:0.3", "--ctxeval-report=run.json",
        "test_crash.py", "test_it.py",
    )  # fmt: skip
    assert result.ret != 0
    assert suite.report()["broken_off"] is True
    assert "gate      context_awareness:0.3  not checked  the run was broken off" in section(result)
    assert suite.ctxeval_runs("gate", "run.json", "--gate=unscored:4").returncode == 1
