from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from pytest_ctxeval._core.combine import combine
from pytest_ctxeval._core.run import Run
from pytest_ctxeval._core.statistics import BayesianMode
from pytest_ctxeval._core.summary import summarise
from pytest_ctxeval._core.verdict import Calls, CaseResult, Cost
from pytest_ctxeval.errors import ConfigError


def result(file: str, number: int, position: int, score: float = 0.9, weight: float | None = None) -> CaseResult:
    return CaseResult(
        node_id=f"{file}::test[q{number}]",
        position=position,
        session_id="shop",
        assistant_id="bot",
        qa_id=f"{file}-q{number}",
        metric="context_awareness",
        score=score,
        weight=weight,
    )


WHOLE = [result(file, number, at) for at, (file, number) in enumerate(itertools.product(("a.py", "b.py"), range(4)))]


def test_shards_that_know_their_places_give_the_whole_in_any_order() -> None:
    odd, even = Run(tuple(WHOLE[1::2])), Run(tuple(WHOLE[::2]))
    expected = summarise(WHOLE, BayesianMode())
    assert summarise(combine({"1": odd, "2": even}).results, BayesianMode()) == expected
    assert summarise(combine({"2": even, "1": odd}).results, BayesianMode()) == expected


def test_shards_of_different_files_stand_by_file() -> None:
    first = Run(tuple(replace(each, position=at) for at, each in enumerate(WHOLE[:4])))
    second = Run(tuple(replace(each, position=at) for at, each in enumerate(WHOLE[4:])))
    expected = summarise(WHOLE, BayesianMode())
    assert summarise(combine({"1": first, "2": second}).results, BayesianMode()) == expected
    assert summarise(combine({"2": second, "1": first}).results, BayesianMode()) == expected


def test_the_weights_of_a_session_that_was_cut_in_two_are_those_of_the_whole() -> None:
    cases = [result("a.py", 0, 0, 1.0, 0.9), result("a.py", 1, 1, 0.0, 0.1)]
    whole = combine({"1": Run((cases[0],)), "2": Run((cases[1],))})
    (row,) = summarise(whole.results, BayesianMode()).sessions
    assert row.mean == pytest.approx(0.9)
    assert row.note is None


def test_overlapping_cases_are_an_error_that_names_them() -> None:
    with pytest.raises(ConfigError) as refused:
        combine({"shard-1.json": Run(tuple(WHOLE[:5])), "shard-2.json": Run(tuple(WHOLE[4:]))})
    assert str(refused.value) == (
        "the same case stands in two shards:\n    b.py::test[q0] in shard-1.json and shard-2.json"
    )
    with pytest.raises(ConfigError) as refused:
        combine({"shard-1.json": Run(tuple(WHOLE)), "shard-2.json": Run(tuple(WHOLE))})
    assert str(refused.value).splitlines()[-1] == "    and 3 more"
    assert len(str(refused.value).splitlines()) == 7


@pytest.mark.parametrize("folders", ["tests/", "packages/shop/tests/"])
def test_a_test_that_was_seen_from_another_folder_is_the_same(folders: str) -> None:
    seen = replace(WHOLE[0], node_id=folders + WHOLE[0].node_id)
    with pytest.raises(ConfigError) as refused:
        combine({"1": Run((WHOLE[0],)), "2": Run((seen,))})
    assert str(refused.value).splitlines()[1] == f"    {seen.node_id} in 1 and 2"
    other = replace(WHOLE[0], node_id=f"more/{WHOLE[0].node_id}")
    assert len(combine({"1": Run((seen,)), "2": Run((other,))}).results) == 2


def test_one_case_in_two_tests_or_by_two_prompts_is_no_overlap() -> None:
    first = replace(WHOLE[0], prompt_version="1")
    other = replace(first, node_id="c.py::test", position=9)
    third = replace(first, prompt_version="2", position=0)
    assert len(combine({"1": Run((first,)), "2": Run((other, third))}).results) == 3


def test_a_case_that_one_shard_could_not_judge_is_the_same_as_in_the_other() -> None:
    broken = replace(WHOLE[0], score=None, unscored="worker crashed", prompt_version=None)
    with pytest.raises(ConfigError, match="stands in two shards"):
        combine({"1": Run((replace(WHOLE[0], prompt_version="1"),)), "2": Run((broken,))})


def test_costs_are_summed_and_what_was_broken_off_stays_so() -> None:
    whole = combine(
        {
            "1": Run(
                (WHOLE[0],), record="none", assistant=Calls(1, 2, 3), spent=Cost(Calls(1), 10), partial="left out"
            ),
            "2": Run((WHOLE[1],), record="once", assistant=Calls(1, 1, 1), spent=Cost(Calls(2), None), broken_off=True),
        }
    )
    assert whole == Run(
        tuple(WHOLE[:2]),
        record="none, once",
        assistant=Calls(2, 3, 4),
        spent=Cost(Calls(3), None),
        partial=None,
        broken_off=True,
    )


def test_shards_of_different_statistics_are_refused() -> None:
    with pytest.raises(ConfigError, match="different statistics: a is bayesian, b is frequentist; run them with one"):
        combine({"a": Run((WHOLE[0],)), "b": Run((WHOLE[1],), stat="frequentist")})
