"""Contextual relevancy in a test run: the helper, the failure, the section, the gates, the report."""

import json
import re
from typing import Any

import pytest
from support.suite import Suite, section

CHUNKS = [
    "Items go back within 30 days of purchase.",
    "They are unused and in their box.",
    "The receipt is shown.",
    "NOT Shipping is free above $50. BECAUSE It is about shipping, not about returns.",
]


def write(suite: Suite, *chunks: list[str] | None, bar: float = 0.8, marks: str = "", helper: str = "") -> None:
    """One test of each list of chunks."""
    batches = [
        {"qa_id": f"q{number}", "query": "What is your return policy?", "retrieval_context": each}
        for number, each in enumerate(chunks, 1)
    ]
    dataset = {"session_id": "shop", "assistant_id": "bot", "context": "", "conversation": batches}
    (suite.path / "test_it.json").write_text(json.dumps(dataset), encoding="utf-8")
    suite.module(
        f"""
        import pytest
        from pytest_ctxeval import assert_contextual_relevancy, contextual_relevancy

        @pytest.mark.ctxeval(dataset="test_it.json"{marks})
        def test_retrieval(context_case):
            assert_contextual_relevancy(context_case, min={bar}{helper})
        """
    )


def failure(result: pytest.RunResult) -> str:
    lines = [line for line in result.outlines if re.match(r"E\s", line)]
    return "\n".join(line[8:].rstrip() for line in lines)


def outcome(suite: Suite, source: str, *arguments: str, **expected: int) -> pytest.RunResult:
    suite.module(source)
    result = suite.in_process(*arguments)
    result.assert_outcomes(**expected)
    return result


@pytest.mark.parametrize(("bar", "passes"), [(0.7, True), (0.75, True), (0.76, False)])
def test_three_statements_of_four_pass_at_three_quarters_and_not_above(suite: Suite, bar: float, passes: bool) -> None:
    write(suite, CHUNKS, bar=bar)
    suite.in_process().assert_outcomes(passed=int(passes), failed=int(not passes))


def test_a_low_score_tells_which_chunk_says_what_and_why_that_is_not_relevant(suite: Suite) -> None:
    write(suite, CHUNKS)
    result = suite.in_process()
    assert (
        failure(result)
        == """\
pytest_ctxeval.ScoreTooLow: 0.75 < 0.80 contextual relevancy of 'q1' (3 of 4 statements relevant)

query      What is your return policy?
chunk 4    NOT Shipping is free above $50. BECAUSE It is about shipping, not about returns.
  not      Shipping is free above $50. (It is about shipping, not about returns.)
relevant   all of chunks 1, 2, 3

judged by scripted, live"""
    )
    assert "test_it.py:7: ScoreTooLow" in result.stdout.str()
    assert "item_judge.py" not in result.stdout.str()


def test_blank_and_empty_chunks_are_told_apart(suite: Suite) -> None:
    write(suite, [" ", "NOTHING", "fine", "NOT odd"])
    assert (
        failure(suite.in_process())
        == """\
pytest_ctxeval.ScoreTooLow: 0.25 < 0.80 contextual relevancy of 'q1' (1 of 4 statements relevant)

query      What is your return policy?
chunk 1    (blank)
  not      the chunk is blank
chunk 2    NOTHING
  not      no statement was found in the chunk
chunk 4    NOT odd
  not      odd
relevant   all of chunk 3

judged by scripted, live"""
    )


def test_many_irrelevant_statements_are_cut_short_and_counted(suite: Suite) -> None:
    write(
        suite, ["\n".join(f"NOT s{number}" for number in range(5)), *[f"NOT chunk {number}" for number in range(2, 9)]]
    )
    assert (
        failure(suite.in_process())
        == """\
pytest_ctxeval.ScoreTooLow: 0.00 < 0.80 contextual relevancy of 'q1' (0 of 12 statements relevant)

query      What is your return policy?
chunk 1    NOT s0 NOT s1 NOT s2 NOT s3 NOT s4
  not      s0
  not      s1
  not      s2
           and 2 more statements of it are not relevant
chunk 2    NOT chunk 2
  not      chunk 2
chunk 3    NOT chunk 3
  not      chunk 3
chunk 4    NOT chunk 4
  not      chunk 4
chunk 5    NOT chunk 5
  not      chunk 5
           and 3 more chunks hold statements that are not relevant

judged by scripted, live"""
    )


def test_nothing_retrieved_is_told_and_no_model_is_asked(suite: Suite) -> None:
    write(suite, [])
    suite.pytester.makeconftest("import pytest\n@pytest.fixture(scope='session')\ndef judge_model(): raise OSError")
    result = suite.in_process("--ctxeval-report=run.json")
    assert (
        failure(result)
        == """\
pytest_ctxeval.ScoreTooLow: 0.00 < 0.80 contextual relevancy of 'q1' (nothing was retrieved)

query      What is your return policy?
reason     nothing was retrieved

judged without asking a model"""
    )
    assert section(result).endswith("judge     not asked: 0 replayed, 0 recorded, 0 live, 0 tokens, record=off")
    (case,) = suite.report()["cases"]
    assert (case["score"], case["source"], case["judge"], case["cassette"]) == (0.0, "none", "", None)


def test_no_retrieval_context_is_an_error_and_the_case_unscored(suite: Suite) -> None:
    write(suite, None, CHUNKS, bar=0.5)
    result = suite.in_process()
    result.assert_outcomes(passed=1, failed=1)
    assert "ConfigError: case 'q1': contextual relevancy needs retrieval_context=, and the case has none" in (
        result.stdout.str()
    )
    assert "1/2  0.75" in section(result)


def test_where_every_reply_is_unreadable_there_is_no_score_and_the_run_fails(suite: Suite) -> None:
    suite.ini(ctxeval_gates=["contextual_relevancy:0.5"])
    write(suite, ["REPLY=they are all fine"], ['REPLY={"chunks": []}'])
    result = suite.in_process()
    result.assert_outcomes(failed=2)
    assert (
        failure(result)
        == """\
pytest_ctxeval.JudgeReplyError: the judge scripted gave no verdict in 2 replies; of the last one, it holds no JSON object:

they are all fine
pytest_ctxeval.JudgeReplyError: the judge scripted gave no verdict in 2 replies; of the last one, chunk 1 is missing:

{"chunks": []}"""
    )
    assert "shop     contextual relevancy  0/2  no score                FAILED  no score; 2 of 2 unscored" in section(
        result
    )


def test_samples_tell_that_the_statements_are_those_of_the_lowest(suite: Suite) -> None:
    write(suite, ["fine", "NOT odd"], marks=", samples=2")
    told = failure(suite.in_process())
    assert "0.50 < 0.80 contextual relevancy of 'q1' (1 of 2 statements relevant in the lowest sample)" in told
    assert "\nsamples    0.50 0.50 (0.50 to 0.50)\n" in told


def test_the_section_and_the_report_show_both_metrics_and_each_has_its_gates(suite: Suite) -> None:
    suite.ini(ctxeval_gates=["context_awareness:0.8", "contextual_relevancy:0.7", "contextual_relevancy.low:0.6"])
    result = outcome(
        suite,
        f"""
        import pytest
        from pytest_ctxeval import assert_context_awareness, assert_contextual_relevancy

        @pytest.mark.ctxeval(session_id="shop", context="C", query="Q", assistant="SCORE=0.9", retrieval_context={CHUNKS})
        def test_it(context_case):
            assert_context_awareness(context_case)
            assert_contextual_relevancy(context_case)
        """,
        "--ctxeval-report=run.json",
        passed=1,
    )
    assert (
        section(result)
        == """\
session  metric                n  mean  95% interval   gate
shop     context awareness     1  0.90  0.15 ... 0.95  passed  >= 0.80
shop     contextual relevancy  1  0.75  0.14 ... 0.92  passed  >= 0.70, FAILED  low 0.14 < 0.60
lowest    0.75  test_it.py::test_it  3 of 4 statements are relevant to the query; not relevant:...
judge     scripted: 0 replayed, 0 recorded, 2 live, 14 tokens, record=off"""
    )
    assert result.ret == 1
    _, case = suite.report()["cases"]
    assert (case["metric"], case["score"], case["min"], case["retrieval_context"]) == (
        "contextual_relevancy", 0.75, 0.5, CHUNKS,
    )  # fmt: skip
    assert [row["metric"] for row in suite.report()["sessions"]] == ["context_awareness", "contextual_relevancy"]
    assert case["statements"][3] == {
        "chunk": 4,
        "statement": "Shipping is free above $50.",
        "relevant": False,
        "reason": "It is about shipping, not about returns.",
    }


def test_the_section_is_the_same_on_workers(suite: Suite) -> None:
    write(suite, CHUNKS, ["fine"], [], bar=0.0)
    alone, spread = suite.run("-n", "0"), suite.run("-n", "2")
    assert section(alone) == section(spread) != ""


def test_a_batch_belongs_to_the_session_of_its_test_and_needs_no_context(suite: Suite) -> None:
    outcome(
        suite,
        """
        import pytest
        from pytest_ctxeval import Batch, ConfigError, assert_contextual_relevancy

        BATCH = Batch(qa_id="mine", query="Q", retrieval_context=["fine", "NOT odd"])

        @pytest.mark.ctxeval(session_id="batches", assistant_id="bot", language="spanish")
        def test_it():
            verdict = assert_contextual_relevancy(BATCH)
            assert (verdict.score, [each.chunk for each in verdict.statements]) == (0.5, [1, 2])
            with pytest.raises(ConfigError) as refused:
                assert_contextual_relevancy({"qa_id": "mine"})
            assert str(refused.value) == (
                "assert_contextual_relevancy: a dict is no case; give a ContextCase, or a Batch"
            )
        """,
        "--ctxeval-report=run.json",
        passed=1,
    )
    (case,) = suite.report()["cases"]
    assert (case["session_id"], case["qa_id"], case["context"]) == ("batches", "mine", "")
    assert (case["assistant_id"], case["language"]) == ("bot", "spanish")


def test_a_case_keeps_its_context_in_the_report(suite: Suite) -> None:
    outcome(
        suite,
        """
        import pytest
        from pytest_ctxeval import assert_contextual_relevancy

        @pytest.mark.ctxeval(context="C", query="Q", retrieval_context=["fine"])
        def test_it(context_case):
            assert_contextual_relevancy(context_case)
        """,
        "--ctxeval-report=run.json",
        passed=1,
    )
    assert [case["context"] for case in suite.report()["cases"]] == ["C"]


def test_the_judge_knows_the_metric_by_its_name(suite: Suite) -> None:
    outcome(
        suite,
        """
        def test_it(judge, context_case):
            case = context_case(query="Q", retrieval_context=["fine"])
            assert judge.assess("contextual_relevancy", case).score == 1.0
        """,
        passed=1,
    )


def test_a_metric_of_ones_own_is_judged_beside_the_standard_one(suite: Suite) -> None:
    result = outcome(
        suite,
        """
        import pytest
        from pytest_ctxeval import (
            ScoreTooLow, assert_context_awareness, assert_contextual_relevancy, context_awareness, contextual_relevancy
        )

        class Brief:
            def system(self): return "Judge."
            def user(self, **values): return str(values)

        @pytest.mark.ctxeval(context="C", query="Q", assistant="SCORE=0.9", retrieval_context=["fine", "NOT odd"])
        def test_it(context_case):
            assert assert_contextual_relevancy(context_case).score == 0.5
            with pytest.raises(ScoreTooLow) as low:
                assert_contextual_relevancy(context_case, metric=contextual_relevancy(strict_mode=True))
            assert (low.value.verdict.score, low.value.verdict.prompt_version) == (0.0, "1-strict")
            brief = assert_context_awareness(context_case, metric=context_awareness(template=Brief))
            assert brief.prompt_version.startswith("custom-")
            assert assert_context_awareness(context_case).prompt_version == "1"
        """,
        passed=1,
    )
    assert "4 live" in section(result)


@pytest.mark.parametrize(
    ("helper", "metric", "told"),
    [
        ("contextual_relevancy", "CONTEXT_AWARENESS", "metric= is none of contextual relevancy; make it with contextual_relevancy(...)"),
        ("context_awareness", "CONTEXTUAL_RELEVANCY", "metric= is none of context awareness; make it with context_awareness(...)"),
        ("contextual_relevancy", "'strict'", "metric= is none of contextual relevancy; make it with contextual_relevancy(...)"),
    ],
)  # fmt: skip
def test_a_metric_of_the_other_kind_is_refused(suite: Suite, helper: str, metric: str, told: str) -> None:
    source = f"""
        from pytest_ctxeval import *

        def test_it(context_case):
            assert_{helper}(context_case(query="Q", retrieval_context=["a"]), metric={metric})
    """
    assert f"ConfigError: assert_{helper}: {told}" in outcome(suite, source, failed=1).stdout.str()


@pytest.mark.parametrize("bar", ["1.1", "True", "None"])
def test_a_bar_that_is_none_is_refused(suite: Suite, bar: str) -> None:
    write(suite, CHUNKS, bar=bar)  # type: ignore[arg-type]  # as it is written in a test
    told = f"ConfigError: assert_contextual_relevancy: min={bar} is no bar; give a number from 0 to 1"
    assert told in suite.in_process().stdout.str()


def test_what_the_judge_and_the_chunks_say_is_made_harmless(suite: Suite) -> None:
    write(suite, ["NOT \x1b[31mred\x1b[0m BECAUSE ::error::no\u202e"])
    told = suite.in_process("-rA", "-v").stdout.str()
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert not [line for line in told.splitlines() if line.lstrip("E ").startswith("::")]


def test_a_chunk_in_a_file_that_is_no_text_is_refused_with_its_place(suite: Suite) -> None:
    rows: Any = [["fine", 1]]
    write(suite, *rows)
    result = suite.in_process()
    assert "retrieval_context.1" in result.stdout.str()
    assert "input should be a valid string, not 1" in result.stdout.str()
    assert result.ret == 2
