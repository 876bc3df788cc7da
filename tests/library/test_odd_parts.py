"""Odd models, modes, retrievers and values: told before the first call, or counted, and no verdict is lost."""

import asyncio
import copy
import pickle
import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from support.llm_server import Fault, LLMServer
from support.scripted import ScriptedJudge

from pytest_ctxeval import Batch, ConfigError, Dataset, Retriever, ScoreTooLow, Verdict
from pytest_ctxeval.metrics import Context, ContextualRelevancyMetric, ModelTestCase


def shop(*answers: str) -> Dataset:
    batches = [Batch(qa_id=f"q{number}", query="When?", assistant=each) for number, each in enumerate(answers, 1)]
    return Dataset(session_id="shop", assistant_id="bot", context="Open 9 to 5.", conversation=batches)


def giving(*datasets: Dataset) -> type[Retriever]:
    class Giving(Retriever):
        def load_dataset(self) -> list[Dataset]:
            return [*datasets]

    return Giving


class Sum:
    """A mode that trusts the weights to sum to 1."""

    def aggregate(self, scores: Any, weights: Any) -> tuple[float, None, None]:
        return sum(score * weight for score, weight in zip(scores, weights, strict=True)), None, None


def test_a_mode_of_ones_own_gets_weights_that_sum_to_one_though_a_case_is_unscored() -> None:
    (metric,) = Context.run(giving(shop("SCORE=0.9", "RAISE=no")), model=ScriptedJudge(), statistical_mode=Sum())
    assert metric.context_awareness == pytest.approx(0.9)
    assert metric.n_unscored == 1


class Wald:
    def aggregate(self, scores: Any, weights: Any) -> tuple[float, float, float]:
        mean = sum(scores) / len(scores)
        return mean, mean - 0.1 * (len(scores) > 1), mean + 0.2 * (len(scores) > 1)


class OfMany:
    def aggregate(self, scores: Any, weights: Any) -> tuple[float, None, None]:
        if len(scores) > 1:
            raise ZeroDivisionError("n")
        return scores[0], None, None


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        (Wald(), "statistical_mode= is an object of type Wald; on the scores [1.0, 1.0, 1.0, 0.7] Wald.aggregate gave ("),
        (OfMany(), "statistical_mode= is an object of type OfMany, whose aggregate failed on the scores [1.0, 1.0, 1.0, 0.7] with ZeroDivisionError: n"),
    ],
)  # fmt: skip
def test_a_mode_that_fails_on_several_scores_is_told_before_the_first_call(mode: Any, told: str) -> None:
    model = ScriptedJudge(asked=[])
    with pytest.raises(ConfigError) as refused:
        Context.run(giving(shop("SCORE=0.9")), model=model, statistical_mode=mode)
    assert str(refused.value).startswith(told)
    assert model.asked == []


class Odd(ScriptedJudge):
    """Its last answer is odd."""

    odd: Any = None

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if "odd" not in str(messages[1].content):
            return super()._generate(messages, *args, **kwargs)
        if isinstance(self.odd, Exception):
            raise self.odd
        return ChatResult(generations=[ChatGeneration(message=self.odd)])


class Speechless(Exception):
    def __str__(self) -> str:
        raise ValueError("no str")


@pytest.mark.parametrize(
    ("odd", "scored"),
    [
        (AIMessage('{"insight": "ok", "score": 0.5}', additional_kwargs={"tool_calls": None}), 3),
        (AIMessage('{"insight": "ok", "score": 0.5}', additional_kwargs={"tool_calls": [{"function": None}]}), 3),
        (AIMessage('{"insight": "ok", "score": 0.5}', additional_kwargs={"tool_calls": "x"}), 3),
        (Speechless(), 2),
        (LookupError("nobody's"), 2),
    ],
    ids=["no calls", "no function", "text for calls", "speechless", "other error"],
)
def test_one_odd_answer_leaves_the_other_verdicts(odd: Any, scored: int) -> None:
    (metric,) = Context.run(giving(shop("SCORE=0.9", "SCORE=0.8", "odd")), model=Odd(odd=odd), concurrency=1)
    assert metric.n_interactions - metric.n_unscored == scored
    assert [each.context_awareness for each in metric.interactions][:2] == [0.9, 0.8]


@pytest.mark.parametrize("scores", [(0.1, 0.9), (0.9, 0.1)])
def test_a_tool_that_is_called_twice_with_different_verdicts_gives_none(scores: tuple[float, float]) -> None:
    calls = [{"name": "v", "args": {"insight": "x", "score": score}, "id": str(score)} for score in scores]
    (metric,) = Context.run(giving(shop("odd")), model=Odd(odd=AIMessage("", tool_calls=calls)))
    assert metric.n_unscored == 1
    assert "it calls the tool more than once, with different verdicts" in metric.interactions[0].insight


def test_a_value_that_was_changed_behind_its_models_back_is_told_with_its_session() -> None:
    data = shop("SCORE=0.9")
    changed = data.model_copy(update={"conversation": [data.conversation[0].model_copy(update={"weight": -1})]})
    with pytest.raises(
        ConfigError, match=r"^session 'shop': its cases cannot be made: 1 validation error for ContextCase; weight"
    ):
        Context.run(giving(changed), model=ScriptedJudge())


def test_a_retriever_on_top_of_a_built_in_type_is_one() -> None:
    class OfDict(dict):  # type: ignore[type-arg]
        def load_dataset(self) -> list[Dataset]:
            return [shop("SCORE=0.9")]

    (metric,) = Context.run(OfDict, model=ScriptedJudge())  # type: ignore[arg-type]
    assert metric.context_awareness == 0.9


def test_a_retriever_that_takes_everything_swallows_no_slip_of_ours() -> None:
    class Everything(Retriever):
        def __init__(self, **values: Any) -> None:
            self.values = values

        def load_dataset(self) -> list[Dataset]:
            return [shop(f"SCORE={self.values['bar']}")]

    assert Context.run(Everything, model=ScriptedJudge(), bar=0.7)[0].context_awareness == 0.7
    for slip in ("use_structured_outptu", "statistical_mod", "concurency"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{slip}', .*; did you mean"):
            Context.run(Everything, model=ScriptedJudge(), bar=0.7, **{slip: 1})  # type: ignore[arg-type]


def test_a_model_class_is_told_to_be_built() -> None:
    with pytest.raises(ConfigError) as refused:
        Context.run(giving(), model=ScriptedJudge)  # type: ignore[arg-type]
    assert str(refused.value) == "model= is the class ScriptedJudge; build a model of it, ScriptedJudge(...)"


class Slow(ScriptedJudge):
    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if "SLOW" in str(messages[1].content):
            time.sleep(0.4)
        return super()._generate(messages, *args, **kwargs)


def test_the_time_that_a_call_may_take_is_an_argument() -> None:
    (metric,) = Context.run(giving(shop("SCORE=0.9", "SCORE=0.8 SLOW")), model=Slow(), timeout_s=0.1)
    assert [each.context_awareness for each in metric.interactions] == [0.9, None]
    assert "did not answer within" in metric.interactions[1].insight
    for wrong in (0, -1, True, "5", 1e6):
        with pytest.raises(
            ConfigError, match=f"timeout_s={wrong!r} is not a number of seconds above 0 and up to 86400"
        ):
            Context.run(giving(), model=Slow(), timeout_s=wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="timeout_s="):
            ContextualRelevancyMetric(model=Slow(), timeout_s=wrong)  # type: ignore[arg-type]


async def test_a_measuring_that_was_given_up_leaves_the_next_ones_outcome_as_it_is() -> None:
    metric = ContextualRelevancyMetric(model=Slow())
    slow, bad = (
        ModelTestCase(input="When?", actual_output="x", retrieval_context=[chunk]) for chunk in ("SLOW", "NOT this")
    )
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(metric.a_measure(slow), 0.05)
    assert await metric.a_measure(bad) == 0.0
    await asyncio.sleep(0.6)
    assert (metric.score, metric.is_successful()) == (0.0, False)


def test_a_low_score_travels_between_processes() -> None:
    verdict = Verdict(metric="m", score=0.1, reason="r", samples=(), judge="j", prompt_version="1", source="live")
    low = ScoreTooLow("0.1 < 0.8", verdict=verdict, min=0.8)
    for same in (pickle.loads(pickle.dumps(low)), copy.copy(low)):  # noqa: S301
        assert (str(same), same.verdict, same.min) == (str(low), verdict, 0.8)


def test_one_garbled_answer_costs_the_judge_no_form_for_the_others() -> None:
    from langchain_groq import ChatGroq

    with LLMServer() as server:
        server.fail(Fault("not json"))
        model = ChatGroq(model="m", base_url=server.url, api_key="nobody's", temperature=0.0, max_retries=0)  # type: ignore[arg-type]
        data = shop("one", "two", "three")
        (metric,) = Context.run(giving(data), model=model, use_structured_output=True, concurrency=1)
    assert [each.context_awareness for each in metric.interactions] == [None, 0.9, 0.9]
    assert ["response_format" in request.body for request in server.requests] == [True] * 3
