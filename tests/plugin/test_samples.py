"""A case that is judged several times: the mean counts, and how far the samples lie apart is said."""

from typing import Any

import pytest
from support.suite import Suite, section

PLAIN = ["--ctxeval-concurrency=1"]  # the script's replies come in the order in which it is asked


def sampled(suite: Suite, *scores: float, bar: float) -> None:
    turns = "/".join(map(str, scores))
    suite.module(
        f"""
        import pytest
        from pytest_ctxeval import assert_context_awareness

        @pytest.mark.ctxeval(samples={len(scores)}, session_id="shop", context="C", query="Q", assistant="SCORE={turns}")
        def test_it(context_case):
            assert_context_awareness(context_case, min={bar})
        """
    )


def test_a_failure_shows_the_samples_their_spread_and_the_reason_of_the_lowest(suite: Suite) -> None:
    sampled(suite, 0.9, 0.5, 0.6, bar=0.8)
    told = suite.in_process(*PLAIN).stdout.str()
    assert "ScoreTooLow: 0.67 < 0.80 context awareness of 'test_it' (good)" in told
    assert "samples    0.90 0.50 0.60 (within the spread of the bar 0.80, 0.50 to 0.90)" in told


def test_a_verdict_within_the_spread_of_its_bar_says_so_though_it_passed(suite: Suite) -> None:
    sampled(suite, 0.62, 0.58, 0.61, bar=0.6)
    suite.cases("SCORE=0.1", bar=0.0, name="test_other", session="other")
    result = suite.in_process(*PLAIN, "--ctxeval-report=run.json", columns=140)
    result.assert_outcomes(passed=2)
    assert (
        "undecided 0.60  test_it.py::test_it  within the spread of the bar 0.60, 0.58 to 0.62, 3 samples: because"
        in (section(result))
    )
    (case,) = (case for case in suite.report()["cases"] if case["session_id"] == "shop")
    assert case["score"] == pytest.approx(0.6033333333333334)
    assert case["spread"] == [0.58, 0.62]
    assert [sample["score"] for sample in case["samples"]] == [0.62, 0.58, 0.61]


def test_a_verdict_away_from_its_bar_is_not_called_undecided(suite: Suite) -> None:
    sampled(suite, 0.9, 0.8, 0.85, bar=0.6)
    assert "undecided" not in section(suite.in_process(*PLAIN))


def test_every_case_is_listed_with_its_spread_when_asked_for(suite: Suite) -> None:
    sampled(suite, 0.9, 0.8, bar=0.6)
    told = section(suite.in_process(*PLAIN, "-v"))
    assert "case      0.85  test_it.py::test_it  0.80 to 0.90, 2 samples: because" in told


@pytest.mark.parametrize(
    "way", [("option", "--ctxeval-samples=2"), ("ini", ""), ("environment", "")], ids=lambda way: way[0]
)
def test_samples_may_be_asked_for_in_each_way(suite: Suite, way: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.cases("SCORE=0.8/0.9")
    if way[0] == "ini":
        suite.ini(ctxeval_samples="2")
    if way[0] == "environment":
        monkeypatch.setenv("CTXEVAL_SAMPLES", "2")
    result = suite.in_process(*PLAIN, *filter(None, way[1:]), "--ctxeval-report=run.json")
    assert suite.report()["cases"][0]["spread"] == [0.8, 0.9]
    assert "shop     context awareness  1  0.85" in section(result)
