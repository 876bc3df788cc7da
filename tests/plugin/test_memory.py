"""What a run holds of tests that are over: there may be ten thousand of them."""

import pytest
from support.llm_server import LLMServer
from support.suite import Suite, replaying


def test_the_judge_and_the_recordings_of_a_test_that_is_over_are_let_go(
    recorded: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.cases("From 9 to 5.", "Always.", "Never.")
    recorded.module(
        """
        import gc, weakref
        import pytest
        from pytest_ctxeval import assert_context_awareness

        before = []

        @pytest.mark.ctxeval(dataset="test_it.json")
        def test_answers(context_case, judge, ctxeval_cassette):
            gc.collect()
            assert [each() for each in before] == [None] * len(before)
            before[:] = map(weakref.ref, (judge, judge.tape, ctxeval_cassette))
            assert_context_awareness(context_case)
        """
    )
    server.answer = lambda *_: '{"insight": "ok", "score": 0.9}'
    recorded.run(record="once").assert_outcomes(passed=3)
    replaying(monkeypatch)
    recorded.run("--reruns", "1", "-p", "no:xdist", record="none").assert_outcomes(passed=3)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_the_reports_that_pytest_keeps_hold_no_answer(suite: Suite, processes: str) -> None:
    suite.cases("SCORE=0.9", "SCORE=1.0")
    with (suite.path / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(
            "\nkept = []\n"
            "def pytest_runtest_logreport(report):\n"
            "    kept.append(report)\n"
            "def pytest_unconfigure():\n"
            "    print(sum('SCORE=' in str(vars(report)) for report in kept), 'of', len(kept), 'hold an answer')\n"
        )
    result = suite.run("-n", processes, "-s")
    result.assert_outcomes(passed=2)
    result.stdout.re_match_lines([r"0 of \d+ hold an answer"])


def test_a_thread_that_judges_after_its_test_is_over_has_its_verdict(suite: Suite) -> None:
    suite.module(
        """
        import threading
        import pytest

        pytestmark = pytest.mark.ctxeval(context="Open 9 to 5.", query="When?", assistant="SCORE=0.9")
        released, scores, threads = threading.Event(), [], []

        def test_first(context_case, judge):
            def late():
                released.wait(30)
                scores.append(judge.assess("context_awareness", context_case(query="Until when?")).score)

            judge.assess("context_awareness", context_case)
            threads.append(threading.Thread(target=late))
            threads[0].start()

        def test_second():
            released.set()
            threads[0].join()
            assert scores == [0.9]
        """
    )
    suite.run().assert_outcomes(passed=2)


def test_the_context_of_a_session_is_held_once_for_all_its_cases(suite: Suite) -> None:
    """Looks into the ledger: what is held in memory shows nowhere else."""
    suite.cases("SCORE=0.9", "SCORE=1.0", "SCORE=0.8")
    with (suite.path / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(
            "\nfrom pytest_ctxeval._plugin.stash import LEDGER\n"
            "def pytest_unconfigure(config):\n"
            "    contexts = [result.context for result in config.stash[LEDGER].results]\n"
            "    print(contexts, 'of', len({*map(id, contexts)}))\n"
        )
    suite.run("-s").stdout.re_match_lines([r"\['Open 9 to 5\.', 'Open 9 to 5\.', 'Open 9 to 5\.'\] of 1"])
