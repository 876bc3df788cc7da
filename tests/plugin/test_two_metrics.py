"""Several metrics, settings, threads and bars in one test: each verdict counts once, in its place, and none is lost."""

import json
import re

import pytest
from support.suite import Suite, section

BOTH = """
    import pytest
    from pytest_ctxeval import assert_context_awareness, assert_contextual_relevancy

    CASES = [("good", 0.9, "About hours."), ("bad", {bad}, "NOT About cake."), ("other", 0.9, "About hours.")]

    @pytest.mark.parametrize(("name", "score", "chunk"), CASES)
    @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
    def test_both(context_case, name, score, chunk):
        case = context_case(qa_id=name, assistant=f"SCORE={{score}}", retrieval_context=[chunk])
        assert_context_awareness(case)
        assert_contextual_relevancy(case, min=0.7)
"""


@pytest.mark.parametrize(
    ("bad", "awareness"), [("0.1", "3  0.63"), ("'x'", "2/3  0.90")], ids=["too low", "no verdict"]
)
def test_a_metric_that_a_test_did_not_come_to_is_unscored_and_fails_its_gate(
    suite: Suite, bad: str, awareness: str
) -> None:
    suite.module(BOTH.format(bad=bad))
    result = suite.in_process("--ctxeval-gate=contextual_relevancy:0.7", "--ctxeval-gate=unscored:0")
    result.assert_outcomes(passed=2, failed=1)
    told = section(result)
    assert re.search(rf"context awareness +{awareness}", told)
    assert "contextual relevancy  2/3  1.00" in told
    assert "unscored  test_it.py::test_both[bad-" in told
    assert "not judged: " in told
    assert "unscored:0  FAILED" in told


def test_two_settings_of_a_metric_are_two_measures(suite: Suite) -> None:
    rows = [(0.8, ["a", "b"]), (0.1, ["a", "NOT b"]), (0.1, ["a", "NOT b"])]
    batches = [
        {"qa_id": f"q{number}", "query": "When?", "weight": weight, "retrieval_context": chunks}
        for number, (weight, chunks) in enumerate(rows)
    ]
    dataset = {"session_id": "shop", "assistant_id": "bot", "context": "", "conversation": batches}
    (suite.path / "test_it.json").write_text(json.dumps(dataset), encoding="utf-8")
    suite.module(
        """
        import pytest
        from pytest_ctxeval import assert_contextual_relevancy, contextual_relevancy

        STRICT = contextual_relevancy(strict_mode=True)

        @pytest.mark.ctxeval(dataset="test_it.json")
        def test_it(context_case):
            assert_contextual_relevancy(context_case, min=0.5)
            assert_contextual_relevancy(context_case, min=0.0, metric=STRICT)
        """
    )
    result = suite.in_process("--ctxeval-report=run.json")
    result.assert_outcomes(passed=3)
    told = section(result)
    assert "shop     contextual relevancy           3  0.90" in told
    assert "shop     contextual relevancy 1-strict  3  0.80" in told
    assert "note" not in told
    assert [row["prompt_version"] for row in suite.report()["sessions"]] == ["1", "1-strict"]


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_a_metric_with_and_one_without_reasons_give_each_what_it_says(suite: Suite, order: tuple[bool, bool]) -> None:
    suite.module(
        f"""
        import pytest
        from pytest_ctxeval import contextual_relevancy

        @pytest.mark.ctxeval(context="", query="When?", retrieval_context=["Hours.", "NOT Cake."])
        def test_it(context_case, judge):
            for include_reason in {order}:
                verdict = judge.assess(contextual_relevancy(include_reason=include_reason), context_case)
                assert bool(verdict.reason) is include_reason
        """
    )
    suite.in_process().assert_outcomes(passed=1)


def test_two_templates_that_differ_for_this_case_alone_are_each_asked(suite: Suite) -> None:
    suite.module(
        """
        import pytest
        from pytest_ctxeval import ContextAwarenessTemplate, context_awareness

        def made(score):
            class Own(ContextAwarenessTemplate):
                def user(self, *, query, **values):
                    return f"SCORE={score}" if "refund" in query else "SCORE=0.5"
            return context_awareness(template=Own)

        @pytest.mark.ctxeval(context="C", query="A refund?", assistant="A")
        def test_it(context_case, judge):
            assert [judge.assess(made(score), context_case).score for score in (0.9, 0.1)] == [0.9, 0.1]
        """
    )
    suite.in_process().assert_outcomes(passed=1)


def test_threads_that_assert_the_same_case_judge_it_once_and_the_higher_bar_counts(suite: Suite) -> None:
    suite.module(
        """
        import threading
        import pytest
        from pytest_ctxeval import ScoreTooLow, assert_context_awareness

        @pytest.mark.ctxeval(session_id="shop", context="C", query="Q", assistant="SCORE=0.5/0.9/0.1")
        def test_it(context_case):
            ready, scores = threading.Barrier(8), []
            def check(bar):
                ready.wait()
                try:
                    scores.append(assert_context_awareness(context_case, min=bar).score)
                except ScoreTooLow as low:
                    scores.append(low.verdict.score)
            threads = [threading.Thread(target=check, args=(number / 10,)) for number in range(8)]
            [each.start() for each in threads]
            [each.join() for each in threads]
            assert scores == [0.5] * 8
        """
    )
    result = suite.in_process("--ctxeval-report=run.json")
    result.assert_outcomes(passed=1)
    (case,) = suite.report()["cases"]
    assert (case["score"], case["min"], case["calls"]["live"]) == (0.5, 0.7, 1)


@pytest.mark.parametrize("bar", ["'0.5'", "float('nan')", "7", "-1", "True"])
def test_a_bar_for_assess_that_is_none_is_refused(suite: Suite, bar: str) -> None:
    suite.module(
        f"""
        import pytest

        @pytest.mark.ctxeval(context="C", query="Q", assistant="SCORE=0.5")
        def test_it(context_case, judge):
            judge.assess("context_awareness", context_case, min={bar})
        """
    )
    result = suite.in_process()
    result.assert_outcomes(failed=1)
    assert f"judge.assess: min={eval(bar)!r} is no bar; give a number from 0 to 1" in result.stdout.str()  # noqa: S307


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        ("contextual_relevancy", "contextual_relevancy is a function; call it; give contextual_relevancy(...)"),
        ("None", "a NoneType is no metric; give contextual_relevancy(...)"),
        ("[]", "a list is no metric; give contextual_relevancy(...)"),
    ],
)
def test_what_is_no_metric_is_told(suite: Suite, metric: str, told: str) -> None:
    suite.module(
        f"""
        import pytest
        from pytest_ctxeval import contextual_relevancy

        @pytest.mark.ctxeval(context="C", query="Q", assistant="A")
        def test_it(context_case, judge):
            judge.assess({metric}, context_case)
        """
    )
    result = suite.in_process()
    result.assert_outcomes(failed=1)
    assert f"judge.assess: {told}, for instance, or one of 'context_awareness'" in result.stdout.str()


def test_cases_that_are_judged_side_by_side_stand_in_one_order(suite: Suite) -> None:
    suite.module(
        """
        import random, time
        from concurrent.futures import ThreadPoolExecutor
        import pytest

        @pytest.mark.ctxeval(session_id="shop", context="C", query="Q", assistant="SCORE=0.5")
        def test_it(context_case, judge):
            cases = [context_case(qa_id=f"q{number}") for number in range(12)]
            random.shuffle(cases)
            with ThreadPoolExecutor(4) as threads:
                list(threads.map(lambda case: judge.assess("context_awareness", case), cases))
        """
    )
    suite.in_process("--ctxeval-report=run.json")
    assert [case["qa_id"] for case in suite.report()["cases"]] == [f"q{number}" for number in range(12)]


def test_a_report_holds_the_chunks_that_were_judged(suite: Suite) -> None:
    suite.module(
        """
        import pytest

        @pytest.mark.ctxeval(context="", query="When?", retrieval_context=["Hours."])
        def test_it(context_case, judge):
            judge.assess("contextual_relevancy", context_case)
            context_case.retrieval_context.clear()
        """
    )
    suite.in_process("--ctxeval-report=run.json")
    assert suite.report()["cases"][0]["retrieval_context"] == ["Hours."]


def test_what_attempts_that_do_not_count_have_cost_is_told(suite: Suite) -> None:
    suite.module(
        """
        import pytest
        from pytest_ctxeval import assert_context_awareness

        @pytest.mark.ctxeval(session_id="shop", context="C", query="Q", assistant="SCORE=0.1/0.2/0.9")
        def test_it(context_case):
            assert_context_awareness(context_case)
        """
    )
    told = section(suite.run("--reruns", "2"))
    assert "judge     scripted: 0 replayed, 0 recorded, 3 live, 21 tokens, record=off" in told


def test_samples_on_both_sides_of_the_bar_are_told_in_a_quiet_run_too(suite: Suite) -> None:
    suite.module(
        """
        import pytest
        from pytest_ctxeval import assert_context_awareness

        @pytest.mark.ctxeval(samples=3, session_id="shop", context="C", query="Q", assistant="SCORE=0.62/0.58/0.61")
        def test_it(context_case):
            assert_context_awareness(context_case, min=0.6)
        """
    )
    told = suite.in_process("-q", "--ctxeval-concurrency=1", columns=80).stdout.str()
    assert "undecided 0.60  test_it.py::test_it  within the spread of the bar" in told
