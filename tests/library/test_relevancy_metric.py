"""`ContextualRelevancyMetric`: one test case, without pytest."""

import asyncio
import logging
import threading
from typing import Any

import pytest
from support.llm_server import LLMServer
from support.scripted import ScriptedJudge, relevancy_reply

from pytest_ctxeval import ConfigError, ContextualRelevancyTemplate, JudgeReplyError, JudgeUnreachableError, Statement
from pytest_ctxeval.metrics import ContextualRelevancyMetric, ModelTestCase

POLICY = [
    "Items go back within 30 days of purchase.",
    "They are unused and in their box.",
    "The receipt is shown.",
    "NOT Shipping is free above $50. BECAUSE It is about shipping, not about returns.",
]


def case(*chunks: str, **fields: Any) -> ModelTestCase:
    about = {"input": "What is your return policy?", "actual_output": "Within 30 days.", **fields}
    return ModelTestCase(**about, retrieval_context=[*chunks])


def metric(**arguments: Any) -> ContextualRelevancyMetric:
    return ContextualRelevancyMetric(**{"model": ScriptedJudge(asked=[]), **arguments})


def state(measured: ContextualRelevancyMetric) -> tuple[Any, ...]:
    return measured.score, measured.reason, measured.success, measured.is_successful(), measured.verdicts


NOTHING = (None, None, False, False, ())


@pytest.mark.parametrize(("threshold", "passes"), [(0.7, True), (0.75, True), (0.76, False), (0, True), (1, False)])
def test_three_statements_of_four_pass_at_three_quarters_and_not_above(threshold: float, passes: bool) -> None:
    measured = metric(threshold=threshold)
    assert measured.measure(case(*POLICY)) == measured.score == 0.75
    assert (measured.success, measured.is_successful(), measured.threshold) == (passes, passes, threshold)
    assert measured.reason == (
        "3 of 4 statements are relevant to the query; not relevant: chunk 4, 'Shipping is free above $50.' (It is about "
        "shipping, not about returns.)"
    )
    assert len(measured.verdicts) == 4
    assert measured.verdicts[0] == Statement(1, "Items go back within 30 days of purchase.", relevant=True)


@pytest.mark.parametrize(("chunks", "score"), [(POLICY, 0.0), (POLICY[:3], 1.0)])
def test_strict_mode_is_all_or_nothing_and_the_threshold_stands(chunks: list[str], score: float) -> None:
    measured = metric(strict_mode=True, threshold=0.3)
    assert measured.measure(case(*chunks)) == score
    assert (measured.success, measured.threshold) == (score == 1.0, 0.3)


def test_the_reason_may_be_left_out() -> None:
    measured = metric(include_reason=False)
    measured.measure(case(*POLICY))
    assert (measured.score, measured.reason, len(measured.verdicts)) == (0.75, None, 4)


@pytest.mark.parametrize(
    ("chunks", "score", "reason"),
    [
        ([], 0.0, "nothing was retrieved"),
        ([""], 0.0, "0 of 1 statements are relevant to the query; not relevant: chunk 1 (the chunk is blank)"),
        (["\n", " "], 0.0, "0 of 2 statements are relevant to the query; not relevant: chunk 1 (the chunk is blank); chunk 2 (the chunk is blank)"),
    ],
)  # fmt: skip
def test_what_needs_no_judge_builds_none(chunks: list[str], score: float, reason: str) -> None:
    measured = ContextualRelevancyMetric()  # gpt-4o, and there is no key
    assert (measured.measure(case(*chunks)), measured.reason, measured.success) == (score, reason, False)


def test_an_answer_is_no_matter() -> None:
    assert metric().measure(case(*POLICY, actual_output="")) == 0.75


def test_each_measure_starts_clean() -> None:
    measured = metric()
    assert state(measured) == NOTHING
    measured.measure(case(*POLICY))
    assert measured.is_successful()
    for wrong, error in (
        (case("REPLY=?"), JudgeReplyError),
        (case("RAISE=no route"), JudgeUnreachableError),
        (case(*POLICY, input=" "), ConfigError),
        ("a text", ConfigError),
    ):
        measured.measure(case(*POLICY))
        with pytest.raises(error):
            measured.measure(wrong)  # type: ignore[arg-type]  # one is no test case
        assert state(measured) == NOTHING


def test_one_of_several_calls_that_fails_leaves_no_score() -> None:
    model = ScriptedJudge(asked=[])
    measured = metric(model=model)
    with pytest.raises(JudgeUnreachableError):
        measured.measure(case(*["RAISE=no route", *POLICY * 4]))
    assert len(model.asked) == 3
    assert state(measured) == NOTHING


@pytest.mark.parametrize(("async_mode", "most"), [(True, 3), (False, 1)])
def test_many_chunks_are_judged_side_by_side_where_that_is_wanted(async_mode: bool, most: int) -> None:
    class Counting(ScriptedJudge):
        running: int = 0
        most: int = 0

        def _reply(self, prompt: str) -> str:
            with lock:
                self.running += 1
                self.most = max(self.most, self.running)
            if async_mode:
                barrier.wait(timeout=30)
            with lock:
                self.running -= 1
            return relevancy_reply(prompt)

    lock, barrier = threading.Lock(), threading.Barrier(3)
    model = Counting(asked=[])
    assert metric(model=model, async_mode=async_mode).measure(case(*POLICY * 6)) == 0.75
    assert (model.most, len(model.asked)) == (most, 3)


def test_awaiting_gives_the_same_and_blocks_no_loop() -> None:
    async def both() -> tuple[float, float]:
        one, two = metric(), metric(strict_mode=True)
        return tuple(await asyncio.gather(one.a_measure(case(*POLICY)), two.a_measure(case(*POLICY))))  # type: ignore[return-value]

    assert asyncio.run(both()) == (0.75, 0.0)


def test_a_prompt_of_ones_own_is_the_one_that_is_asked() -> None:
    class Brief(ContextualRelevancyTemplate):
        def user(self, *, query: str, chunks: Any, language: str) -> str:
            return f"{query} in {language}: {chunks}\n<<<chunk 1 0>>>\nfine\n<<<end of chunk 1 0>>>"

    model = ScriptedJudge(asked=[])
    assert metric(model=model, evaluation_template=Brief).measure(case("text")) == 1.0
    assert model.asked[0].startswith("What is your return policy? in english: {1: 'text'}\n")


class Placed:
    def system(self) -> str:
        return "x"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 1.1}, "threshold=1.1 is not a number from 0 to 1"),
        ({"threshold": -0.1}, "threshold=-0.1 is not a number from 0 to 1"),
        ({"threshold": float("nan")}, "threshold=nan is not a number from 0 to 1"),
        ({"threshold": True}, "threshold=True is not a number from 0 to 1"),
        ({"threshold": "0.5"}, "threshold='0.5' is not a number from 0 to 1"),
        ({"threshold": None}, "threshold=None is not a number from 0 to 1"),
        ({"model": 3}, "model= is a int, which is neither a LangChain chat model nor a 'provider:name'"),
        ({"model": "opnai:gpt-4o"}, "'opnai:gpt-4o' names no judge: 'opnai' is no provider; did you mean 'openai'?"),
        ({"model": ""}, "'openai:' names no judge: the model is missing; for instance openai:NAME"),
        ({"include_reason": 1}, "include_reason=1 is neither True nor False"),
        ({"strict_mode": "no"}, "strict_mode='no' is neither True nor False"),
        ({"async_mode": None}, "async_mode=None is neither True nor False"),
        ({"verbose_mode": 0}, "verbose_mode=0 is neither True nor False"),
        ({"evaluation_template": Placed}, "the template Placed has no user(); give a class or an object with the methods of ContextualRelevancyTemplate"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused_at_construction(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        metric(**arguments)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"input": "?"}, "a dict is no test case; give a ModelTestCase"),
        (case("x", input=" "), "'test case': contextual relevancy needs input=, and it is blank"),
        (case("x", input="", name="mine"), "'mine': contextual relevancy needs input=, and it is blank"),
    ],
)
def test_a_wrong_test_case_is_refused_before_any_call(wrong: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ContextualRelevancyMetric().measure(wrong)
    assert str(refused.value) == message


def test_the_arguments_may_stand_without_their_names() -> None:
    measured = ContextualRelevancyMetric(0.8, ScriptedJudge(asked=[]), False, True, False, True)
    assert measured.measure(case(*POLICY)) == 0.0
    assert (measured.threshold, measured.reason) == (0.8, None)


@pytest.mark.parametrize(
    ("given", "asked"), [(None, "gpt-4o"), ("gpt-4o-mini", "gpt-4o-mini"), ("openai:other", "other")]
)
def test_a_model_may_be_named(given: str | None, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with LLMServer() as server:
        server.answer = lambda prompt, _: relevancy_reply(prompt)
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "planted-0123456789")
        measured = ContextualRelevancyMetric(model=given)
        assert measured.measure(case(*POLICY)) == measured.measure(case(*POLICY)) == 0.75
        assert [request.body["model"] for request in server.requests] == [asked] * 2
        assert {request.body["temperature"] for request in server.requests} == {0.0}


def test_a_model_whose_key_is_missing_says_so_at_the_first_measure() -> None:
    with pytest.raises(ConfigError, match=r"^the judge 'openai:gpt-4o' cannot be built: "):
        ContextualRelevancyMetric().measure(case("x"))


@pytest.mark.parametrize(("verbose", "level"), [(True, logging.INFO), (False, logging.DEBUG)])
def test_each_statement_goes_to_the_logger(verbose: bool, level: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="pytest_ctxeval"):
        metric(verbose_mode=verbose).measure(case("fine", "NOT odd BECAUSE it is", " "))
    assert caplog.record_tuples == [
        ("pytest_ctxeval", level, "chunk 1: relevant: fine"),
        ("pytest_ctxeval", level, "chunk 2: not relevant: odd it is"),
        ("pytest_ctxeval", level, "chunk 3: not relevant: the chunk is blank"),
        ("pytest_ctxeval", level, "contextual relevancy: 0.33, threshold 0.50"),
    ]
