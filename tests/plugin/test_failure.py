"""What a failed test says."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.suite import Suite

from pytest_ctxeval._report.failure import excerpt

LONG = (
    "Returns within 30 days with a receipt. "
    + "Free shipping above $50. " * 20
    + "Support hours: Mon-Fri 9am-5pm EST. "
    + "Be polite. " * 30
)


def failure(result: pytest.RunResult) -> str:
    lines = [line for line in result.outlines if re.match(r"E\s", line)]
    return "\n".join(line[1:].strip() for line in lines)


def test_a_low_score_tells_the_numbers_and_then_what_one_needs_to_judge_the_judge(suite: Suite) -> None:
    suite.cases(
        {
            "qa_id": "hours",
            "query": "What are your hours?",
            "assistant": "SCORE=0.05\nREASON=contradicts the stated support hours",
            "ground_truth_assistant": "Mon-Fri 9am-5pm EST.",
        }
    )
    result = suite.in_process()
    assert (
        failure(result)
        == """\
pytest_ctxeval.ScoreTooLow: 0.05 < 0.80 context awareness of 'hours' (very poor)

query      What are your hours?
assistant  SCORE=0.05 REASON=contradicts the stated support hours
truth      Mon-Fri 9am-5pm EST.
context    Open 9 to 5.
reason     contradicts the stated support hours

judged by scripted, live"""
    )
    assert "test_it.py:7: ScoreTooLow" in result.stdout.str()
    assert "item_judge.py" not in result.stdout.str()
    assert result.outlines[-2].startswith(
        "FAILED test_it.py::test_answers[shop-hours] - pytest_ctxeval.ScoreTooLow: 0.05 < 0.80"
    )


def test_a_judge_that_fails_is_told_in_one_message_without_the_way_through_it(suite: Suite) -> None:
    suite.cases("RAISE=no route to host")
    result = suite.in_process()
    assert failure(result) == (
        "pytest_ctxeval.JudgeUnreachableError: the judge scripted could not be reached, given up after 0.0 s: no route to host"
    )
    told = result.stdout.str()
    assert "Traceback" not in told
    assert "ConnectionError" not in told
    assert "judge.py" not in told


def test_a_reply_that_cannot_be_read_is_shown(suite: Suite) -> None:
    suite.cases("REPLY=I give it 8 of 10, \x1b[31mreally\x1b[0m")
    assert (
        failure(suite.in_process())
        == """\
pytest_ctxeval.JudgeReplyError: the judge scripted gave no verdict in 2 replies; of the last one, it holds no JSON object:

I give it 8 of 10, really"""
    )


def test_scores_that_look_alike_get_more_digits(suite: Suite) -> None:
    suite.cases("SCORE=0.7999")
    assert "ScoreTooLow: 0.7999 < 0.8000 context awareness of 'q1' (good)" in suite.in_process().stdout.str()


def test_the_part_of_a_long_context_that_is_spoken_of_is_shown() -> None:
    found = excerpt(LONG, near="What are your support hours? contradicts the stated hours Mon-Fri")
    assert "Support hours: Mon-Fri 9am-5pm EST." in found
    assert found.startswith("... ")
    assert found.endswith(" ...")
    assert len(found) < 220


def test_a_long_context_in_another_script_is_cut_as_well() -> None:
    text = "营业时间为周一至周五上午九点至下午五点" * 40
    assert len(excerpt(text, near="营业时间")) < 220


def test_a_short_context_is_shown_whole() -> None:
    assert excerpt("a\nb  c", near="x") == "a b c"


WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "营业时间", "x"]), max_size=200)


@settings(deadline=None)
@given(text=WORDS, near=WORDS.map(lambda words: words[:3]))
def test_an_excerpt_is_the_part_with_most_of_the_words(text: list[str], near: list[str]) -> None:
    """By the plain definition, which takes far too long for a long text."""
    whole = " ".join(text)
    if len(whole) <= 240:
        assert excerpt(whole, near=" ".join(near)) == whole
        return
    words = {word for word in near if len(word) > 3 or not word.isascii()}
    counts = {at: sum(word in whole[at : at + 200] for word in words) for at in range(0, len(whole) - 160, 40)}
    best = [at for at, count in counts.items() if count == max(counts.values())]
    start = best[len(best) // 2]
    assert excerpt(whole, near=" ".join(near)).strip(". ") == whole[start : start + 200].strip()


def test_an_excerpt_of_a_very_long_text_by_very_many_words_is_found() -> None:
    text = " ".join(f"word{number}" for number in range(50_000))
    assert excerpt(text, near=text).strip(". ") in text
