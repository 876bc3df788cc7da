"""The figures of the judge's quality: on small sets that can be counted by hand, and as they are written down."""

import re
import subprocess
import sys
from pathlib import Path

import judge_quality
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_quality import Judged, accuracy, auc, joined, joined_chunks, misjudged, table

ROOT = Path(__file__).parent.parent


def judged(*scores: tuple[bool, float | None]) -> list[Judged]:
    return [
        Judged(name=f"q{number}", language="english", kind="time", good=good, score=score)
        for number, (good, score) in enumerate(scores, 1)
    ]


@pytest.mark.parametrize(
    ("good", "bad", "expected"),
    [
        ([1.0], [0.0], 1.0),
        ([0.0], [1.0], 0.0),
        ([0.5], [0.5], 0.5),  # a tie counts half
        ([1.0, 0.0], [0.5], 0.5),
        ([0.9, 0.4], [0.5, 0.1], 0.75),  # 0.9 beats both, 0.4 beats one: 3 of 4
        ([1.0, 1.0, 0.0], [1.0, 0.0], 3.5 / 6),  # each 1.0: a tie and a win; the 0.0: a loss and a tie
        ([0.8, 0.8, 0.8], [0.8, 0.2], 4.5 / 6),
    ],
)
def test_auc_counts_the_pairs(good: list[float], bad: list[float], expected: float) -> None:
    answers = judged(*((True, score) for score in good), *((False, score) for score in bad))
    assert auc(answers) == pytest.approx(expected)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0])), max_size=12))
def test_auc_by_ranks_is_auc_by_pairs(scores: list[tuple[bool, float]]) -> None:
    good = [score for is_good, score in scores if is_good]
    bad = [score for is_good, score in scores if not is_good]
    pairs = [(high > low) + (high == low) / 2 for high in good for low in bad]
    assert auc(judged(*scores)) == (pytest.approx(sum(pairs) / len(pairs)) if pairs else None)


def test_auc_of_one_label_alone_is_not_a_number() -> None:
    assert auc(judged((True, 1.0), (True, 0.0))) is None
    assert auc(judged((True, 1.0), (False, None))) is None
    assert auc([]) is None


@pytest.mark.parametrize(("bar", "expected"), [(0.5, 0.75), (0.8, 0.5)])
def test_accuracy_is_the_share_that_the_bar_sorts_as_the_labels_do(bar: float, expected: float) -> None:
    assert accuracy(judged((True, 1.0), (True, 0.6), (False, 0.9), (False, 0.0)), bar) == expected


def test_a_score_at_the_bar_reaches_it() -> None:
    assert accuracy(judged((True, 0.7999999999999999)), 0.8) == 1.0


def test_an_unscored_answer_is_in_no_figure_but_its_own() -> None:
    answers = judged((True, 1.0), (False, 0.0), (False, None))
    assert accuracy(answers, 0.5) == auc(answers) == 1.0
    assert misjudged(answers, 0.5) == []
    assert table(answers)[1].split() == ["all", "3", "1", "1.00", "1.00", "1.00"]


def test_the_accuracy_of_nothing_is_not_a_number() -> None:
    assert accuracy(judged((True, None)), 0.5) is None


def test_the_misjudged_are_those_on_the_wrong_side_of_the_bar() -> None:
    answers = judged((True, 0.6), (False, 0.6), (True, 0.8), (False, 0.8))
    assert [answer.name for answer in misjudged(answers, 0.8)] == ["q1", "q4"]


def test_the_table_has_all_each_language_each_kind_and_what_was_misjudged() -> None:
    answers = [
        Judged("shop-q1", "english", "negative", good=True, score=0.6, reason="The answer\nsays no."),
        Judged("shop-q2", "english", "time", good=False, score=0.0),
        Judged("tienda-q1", "spanish", "time", good=False, score=None),
    ]
    assert "\n".join(table(answers)) == (
        "                     n  unscored  acc 0.5  acc 0.8    AUC\n"
        "all                  3         1     1.00     0.50   1.00\n"
        "english              2         0     1.00     0.50   1.00\n"
        "spanish              1         1        -        -      -\n"
        "good: negative       1         0     1.00     0.00      -\n"
        "bad: time            2         1     1.00     1.00      -\n"
        "\n"
        "misjudged at 0.8: 1 of 3\n"
        "0.60  good  negative    shop-q1                   The answer says no."
    )


def test_the_labelled_answers_are_as_many_good_as_bad_in_two_languages() -> None:
    answers = joined([])
    assert len(answers) == 36
    assert sum(answer.good for answer in answers) == 18
    assert {answer.language for answer in answers} == {"english", "spanish"}


def test_an_answer_that_is_not_in_the_report_is_unscored() -> None:
    case = {"metric": "context_awareness", "session_id": "clinic", "qa_id": "water", "score": 0.4, "reason": "why"}
    found = {answer.name: answer for answer in joined([case])}
    assert (found["clinic-water"].score, found["clinic-water"].reason) == (0.4, "why")
    assert found["clinic-walk-in"].score is None


def test_a_chunk_is_scored_by_its_statements_and_labelled_by_its_place() -> None:
    said = [
        {"chunk": 1, "statement": "a", "relevant": True, "reason": None},
        {"chunk": 1, "statement": "b", "relevant": False, "reason": "why"},
        {"chunk": 2, "statement": "c", "relevant": False, "reason": "not"},
    ]
    case = {"metric": "contextual_relevancy", "session_id": "bakery", "qa_id": "gluten", "statements": said}
    chunks = {chunk.name: chunk for chunk in joined_chunks([case])}
    assert len(chunks) == 38
    assert chunks["bakery-gluten 1"] == Judged("bakery-gluten 1", "english", "chunk", True, 0.5, "a; why")
    assert chunks["bakery-gluten 2"] == Judged("bakery-gluten 2", "english", "chunk", False, 0.0, "not")
    assert chunks["bakery-gluten 3"].score is None


def test_the_figures_are_what_the_shipped_recordings_give() -> None:
    written = (ROOT / "benchmarks" / "labelled" / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- figures -->\n```text\n(.*?)```", written, re.DOTALL)
    assert block
    command = [sys.executable, judge_quality.__file__]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert told.strip() == block[1].strip()
