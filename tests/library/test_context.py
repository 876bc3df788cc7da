"""`Context.run`: whole datasets, without pytest."""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from support.llm_server import LLMServer, Reply
from support.scripted import ScriptedJudge

from pytest_ctxeval import (
    Batch,
    BayesianMode,
    ConfigError,
    ContextAwarenessTemplate,
    ContextInteraction,
    ContextMetric,
    CtxEvalWarning,
    Dataset,
    FrequentistMode,
    JudgeUnreachableError,
    Retriever,
)
from pytest_ctxeval.metrics import Context


def dataset(session_id: str, *answers: str, **fields: Any) -> Dataset:
    conversation = [Batch(qa_id=f"q{number}", query="When?", assistant=each) for number, each in enumerate(answers, 1)]
    about = {"context": "Open 9 to 5.", "conversation": conversation, **fields}
    return Dataset(session_id=session_id, assistant_id=f"{session_id}-bot", **about)


def weighted(*weights: float | None) -> Dataset:
    scores = ("1.0", "0.9", "0.05")
    conversation = [
        Batch(qa_id=f"q{number}", query="When?", assistant=f"SCORE={score}", weight=weight)
        for number, (score, weight) in enumerate(zip(scores, weights, strict=True), 1)
    ]
    return dataset("shop", conversation=conversation)


def giving(*datasets: Any) -> type[Retriever]:
    class Given(Retriever):
        def load_dataset(self) -> Any:
            return [*datasets]

    return Given


def streaming(*datasets: Any) -> type[Retriever]:
    class Streaming(Retriever):
        def load_dataset(self) -> Iterator[Any]:
            yield from datasets

    return Streaming


def judge() -> ScriptedJudge:
    return ScriptedJudge(asked=[])


def told(error: type[Exception], retriever: Any, **arguments: Any) -> str:
    """What a wrong call says; nothing was asked."""
    model = judge()
    with pytest.raises(error) as refused:
        Context.run(retriever, **{"model": model, **arguments})
    assert model.asked == []
    return str(refused.value)


SHOP = dataset("shop", "SCORE=1.0", "SCORE=0.5\nREASON=half of it")


def test_each_session_becomes_one_metric() -> None:
    assert Context.run(giving(SHOP, dataset("bank", "SCORE=0.25")), model=judge()) == [
        ContextMetric(
            session_id="shop",
            assistant_id="shop-bot",
            n_interactions=2,
            context_awareness=0.75,
            interactions=[
                ContextInteraction(qa_id="q1", context_awareness=1.0, insight="because"),
                ContextInteraction(qa_id="q2", context_awareness=0.5, insight="half of it"),
            ],
        ),
        ContextMetric(
            session_id="bank",
            assistant_id="bank-bot",
            n_interactions=1,
            context_awareness=0.25,
            interactions=[ContextInteraction(qa_id="q1", context_awareness=0.25, insight="because")],
        ),
    ]


@pytest.mark.parametrize("make", [giving, streaming])
@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_however_it_comes_and_however_many_run_at_a_time_the_result_is_the_same(
    make: Callable[..., type[Retriever]], concurrency: int
) -> None:
    datasets = [dataset(f"s{number}", f"SCORE=0.{number}", "SCORE=1.0") for number in range(9)]
    found = Context.run(make(*datasets), model=judge(), concurrency=concurrency, statistical_mode=BayesianMode())
    assert found == Context.run(giving(*datasets), model=judge(), concurrency=1, statistical_mode=BayesianMode())
    assert [metric.session_id for metric in found] == [f"s{number}" for number in range(9)]


def test_cases_of_several_sessions_are_judged_side_by_side() -> None:
    barrier = threading.Barrier(4)

    class Waiting(ScriptedJudge):
        def _reply(self, prompt: str) -> str:
            barrier.wait(timeout=30)  # breaks unless four are asked at a time
            return super()._reply(prompt)

    datasets = [dataset(f"s{number}", "SCORE=1.0") for number in range(8)]
    found = Context.run(giving(*datasets), model=Waiting(asked=[]), concurrency=4)
    assert [metric.context_awareness for metric in found] == [1.0] * 8


def test_a_streaming_retriever_is_read_as_it_is_judged() -> None:
    read: list[int] = []
    ahead: list[int] = []

    class Counting(ScriptedJudge):
        def _reply(self, prompt: str) -> str:
            ahead.append(len(read) - len(self.asked))
            return super()._reply(prompt)

    class Streaming(Retriever):
        def load_dataset(self) -> Iterator[Dataset]:
            for number in range(300):
                read.append(number)
                yield dataset(f"s{number}", "SCORE=1.0")

    found = Context.run(Streaming, model=Counting(asked=[]), concurrency=2)
    assert len(found) == 300
    assert max(ahead) <= 8


def test_a_session_that_comes_in_pieces_is_one() -> None:
    later = [Batch(qa_id="q3", query="When?", assistant="SCORE=0.0")]
    (metric,) = Context.run(streaming(SHOP, dataset("shop", conversation=later)), model=judge())
    assert (metric.n_interactions, metric.context_awareness) == (3, 0.5)


# Statistics.


@pytest.mark.parametrize(
    ("weights", "mean"),
    [
        ((None, None, None), 0.65),
        ((0.5, 0.3, 0.2), 0.78),
        ((0.5, None, None), 0.7375),
    ],
)
@pytest.mark.parametrize("mode", [FrequentistMode(), BayesianMode()])
def test_weights_count_in_either_mode(weights: tuple[float | None, ...], mode: Any, mean: float) -> None:
    (metric,) = Context.run(giving(weighted(*weights)), model=judge(), statistical_mode=mode)
    assert metric.context_awareness == pytest.approx(mean, abs=1e-12)
    low, high = metric.context_awareness_ci_low, metric.context_awareness_ci_high
    if isinstance(mode, FrequentistMode):
        assert (low, high) == (None, None)
    else:
        assert low is not None
        assert high is not None
        assert 0 <= low < mean < high <= 1


@pytest.mark.parametrize("verbose", [True, False])
def test_weights_that_do_not_sum_to_1_are_warned_of_whatever_verbose_says(verbose: bool) -> None:
    with pytest.warns(CtxEvalWarning) as warned:
        (metric,) = Context.run(giving(weighted(0.5, 0.3, 0.1)), model=judge(), verbose=verbose)
    (warning,) = warned
    assert str(warning.message) == "session 'shop': the weights sum to 0.9, not 1: every case counts the same"
    assert warning.filename == __file__
    assert metric.context_awareness == pytest.approx(0.65)


def test_any_object_with_aggregate_is_a_mode() -> None:
    class Lowest:
        def aggregate(self, scores: Any, weights: Any) -> tuple[float, float, float]:
            return min(scores), 0.0, max(scores)

    (metric,) = Context.run(giving(SHOP), model=judge(), statistical_mode=Lowest())
    assert (metric.context_awareness, metric.context_awareness_ci_low, metric.context_awareness_ci_high) == (
        0.5,
        0.0,
        1.0,
    )


class NoBounds:
    def aggregate(self, scores: Any, weights: Any) -> float:
        return float(scores[0])


class OneArgument:
    def aggregate(self, scores: Any) -> tuple[float, None, None]:
        return float(scores[0]), None, None


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        (object(), "statistical_mode= is an object of type object; give FrequentistMode(), BayesianMode() or any object with aggregate(scores, weights)"),
        (None, "statistical_mode= is an object of type NoneType; give FrequentistMode(), BayesianMode() or any object with aggregate(scores, weights)"),
        ("bayesian", "statistical_mode= is an object of type str; give FrequentistMode(), BayesianMode() or any object with aggregate(scores, weights)"),
        (BayesianMode, "statistical_mode= is the class BayesianMode; give FrequentistMode(), BayesianMode() or any object with aggregate(scores, weights)"),
        (NoBounds(), "statistical_mode= is an object of type NoBounds; on the scores [0.5] NoBounds.aggregate gave 0.5; a statistical mode gives (mean, low, high), numbers from 0 to 1 with low <= high, or None for both bounds"),
        (OneArgument(), "statistical_mode= is an object of type OneArgument, whose aggregate failed on the scores [0.5] with TypeError: OneArgument.aggregate() takes 2 positional arguments but 3 were given"),
    ],
)  # fmt: skip
def test_a_wrong_mode_is_refused_before_any_call(mode: Any, message: str) -> None:
    assert told(ConfigError, giving(SHOP), statistical_mode=mode) == message


# What fails.


@pytest.mark.parametrize(
    ("answer", "insight"),
    [
        ("RAISE=no route", "the judge scripted could not be reached, given up after 0.0 s: no route"),
        ("REPLY=8 of 10", "the judge scripted gave no verdict in 2 replies; of the last one, it holds no JSON object: 8 of 10"),
        (" ", "case 'q2': context awareness needs assistant=, and it is blank; give it in the dataset, on the marker or with context_case(assistant=...)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_case_that_fails_leaves_the_others_scored_and_says_why(answer: str, insight: str, concurrency: int) -> None:
    data = dataset("shop", "SCORE=1.0", answer, "SCORE=0.5")
    (metric,) = Context.run(giving(data), model=judge(), concurrency=concurrency, statistical_mode=BayesianMode())
    assert (metric.n_interactions, metric.n_unscored, metric.context_awareness) == (3, 1, 0.75)
    assert [each.context_awareness for each in metric.interactions] == [1.0, None, 0.5]
    assert re.sub(r"after \d+\.\d s", "after 0.0 s", metric.interactions[1].insight) == insight


@pytest.mark.parametrize("mode", [FrequentistMode(), BayesianMode()])
def test_a_session_without_any_score_has_no_mean(mode: Any) -> None:
    (metric,) = Context.run(giving(dataset("shop", "REPLY=?", "REPLY=?")), model=judge(), statistical_mode=mode)
    assert (metric.context_awareness, metric.context_awareness_ci_low, metric.context_awareness_ci_high) == (None,) * 3
    assert (metric.n_interactions, metric.n_unscored) == (2, 2)


def test_a_refused_key_ends_the_run_with_one_error() -> None:
    class RefusedError(Exception):
        status_code = 401

    class Refusing(ScriptedJudge):
        def _reply(self, prompt: str) -> str:
            raise RefusedError("no such key")

    model = Refusing(asked=[])
    with pytest.raises(JudgeUnreachableError) as refused:
        Context.run(giving(*[dataset(f"s{number}", "x") for number in range(50)]), model=model, concurrency=2)
    assert str(refused.value) == "the judge scripted refused the key (HTTP 401), so judging stops here: no such key"
    assert len(model.asked) <= 3


@pytest.mark.parametrize("make", [giving, streaming])
def test_an_error_in_a_template_is_not_taken_for_the_judges(make: Callable[..., type[Retriever]]) -> None:
    class Failing(ContextAwarenessTemplate):
        def user(self, *, answer: str, **_: Any) -> str:
            return {"From 9 to 5.": "the case that is tried"}[answer]

    (metric,) = Context.run(make(SHOP), model=judge(), evaluation_template=Failing)
    assert metric.n_unscored == metric.n_interactions == len(SHOP.conversation)
    first = metric.interactions[0]
    assert first.insight.startswith(f"case {first.qa_id!r}: the template Failing: user() raised KeyError: ")


# What is handed in.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": None}, "model= is a NoneType, which is neither a LangChain chat model nor a 'provider:name'"),
        ({"model": object()}, "model= is a object, which is neither a LangChain chat model nor a 'provider:name'"),
        ({"model": "opnai:gpt-4o"}, "'opnai:gpt-4o' names no judge: 'opnai' is no provider; did you mean 'openai'?"),
        ({"concurrency": 0}, "concurrency=0 is not a number of 1 or more"),
        ({"concurrency": 2.0}, "concurrency=2.0 is not a number of 1 or more"),
        ({"verbose": "yes"}, "verbose='yes' is neither True nor False"),
        ({"use_structured_output": None}, "use_structured_output=None is neither True nor False"),
        ({"bos_json_clause": ""}, "bos_json_clause='' is no mark; give the text that stands around the JSON of a reply"),
        ({"eos_json_clause": None}, "eos_json_clause=None is no mark; give the text that stands around the JSON of a reply"),
        ({"evaluation_template": str}, "the template str has no system() and no user(); give a class or an object with the methods of ContextAwarenessTemplate"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused_before_any_call(arguments: dict[str, Any], message: str) -> None:
    class Untouched(Retriever):
        def load_dataset(self) -> list[Dataset]:
            raise AssertionError("the retriever was asked")

    assert told(ConfigError, Untouched, **arguments) == message


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        (None, "Context.run: a NoneType is no retriever; give a subclass of Retriever"),
        ([SHOP], "Context.run: a list is no retriever; give a subclass of Retriever"),
        (Dataset, "Context.run: the class Dataset is no retriever; give a subclass of Retriever"),
    ],
)
def test_what_is_no_retriever_is_refused(retriever: Any, message: str) -> None:
    assert told(ConfigError, retriever) == message


class Configured(Retriever):
    def __init__(self, score: str = "1.0", *, session: str = "shop") -> None:
        self.data = dataset(session, f"SCORE={score}")

    def load_dataset(self) -> list[Dataset]:
        return [self.data]


class Anything(Configured):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)


@pytest.mark.parametrize("retriever", [Configured, Anything])
def test_an_argument_that_the_retriever_takes_is_the_retrievers(retriever: Any) -> None:
    (metric,) = Context.run(retriever, model=judge(), score="0.5", session="bank")
    assert (metric.session_id, metric.context_awareness) == ("bank", 0.5)


def test_a_retriever_may_be_built_before() -> None:
    (metric,) = Context.run(Configured("0.5"), model=judge())
    assert metric.context_awareness == 0.5


@pytest.mark.parametrize(
    ("retriever", "argument", "near"),
    [
        (Configured, "statistical_mod", "did you mean 'statistical_mode'?"),
        (Configured, "sesion", "did you mean 'session'?"),
        (giving(SHOP), "use_structured_outptu", "did you mean 'use_structured_output'?"),
        (Configured("0.5"), "session", "known are model, statistical_mode, use_structured_output, bos_json_clause, eos_json_clause, verbose, concurrency, evaluation_template, timeout_s"),
    ],
)  # fmt: skip
def test_an_argument_that_nobody_takes_is_a_type_error_that_names_the_nearest(
    retriever: Any, argument: str, near: str
) -> None:
    assert told(TypeError, retriever, **{argument: 1}) == (
        f"Context.run() got an unexpected keyword argument {argument!r}, which the retriever does not take either; {near}"
    )


def test_a_model_must_be_given() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'model'"):
        Context.run(giving(SHOP))  # type: ignore[call-arg]


# What the retriever gives (CASES B6 to B8).


@pytest.mark.parametrize("make", [giving, streaming])
def test_no_dataset_is_no_metric(make: Callable[..., type[Retriever]]) -> None:
    assert Context.run(make(), model=judge()) == []


def test_a_session_without_a_case_is_told_and_not_left_out() -> None:
    empty, shop = Context.run(giving(dataset("empty"), SHOP), model=judge())
    assert (empty.session_id, empty.n_interactions, empty.context_awareness, empty.interactions) == (
        "empty",
        0,
        None,
        [],
    )
    assert shop.context_awareness == 0.75


def test_one_dataset_is_a_list_of_one() -> None:
    class One(Retriever):
        def load_dataset(self) -> Dataset:  # type: ignore[override]  # as people write it
            return SHOP

    assert [metric.session_id for metric in Context.run(One, model=judge())] == ["shop"]


def test_a_retriever_that_gives_nothing_or_raises_is_told_with_its_cause() -> None:
    class Nothing(Retriever):
        def load_dataset(self) -> list[Dataset]:
            return None  # type: ignore[return-value]

    class Raising(Retriever):
        def load_dataset(self) -> list[Dataset]:
            raise OSError("no database")

    class Needy(Retriever):
        def __init__(self, url: str) -> None:
            self.url = url

        def load_dataset(self) -> list[Dataset]:
            return []

    assert told(ConfigError, Nothing) == "Nothing: load_dataset gave None; it must give an iterable of Dataset"
    assert told(ConfigError, Raising) == "Raising: load_dataset raised OSError: no database"
    assert told(ConfigError, Needy).startswith("Needy: building it without arguments raised TypeError: ")
    assert told(ConfigError, giving(SHOP, None)) == "Given: load_dataset gave None as item 2; it must be a Dataset"


def test_arguments_with_which_a_retriever_cannot_be_built_are_named() -> None:
    class Refusing(Configured):
        def __init__(self, score: str = "", *, session: str = "shop") -> None:
            raise ValueError(score)

    message = "Refusing: building it with score, session raised ValueError: x"
    assert told(ConfigError, Refusing, score="x", session="y") == message


def test_a_generator_that_raises_midway_is_told_with_its_cause() -> None:
    class Failing(Retriever):
        def load_dataset(self) -> Iterator[Dataset]:
            yield SHOP
            raise KeyError("sessions")

    with pytest.raises(ConfigError) as caught:
        Context.run(Failing, model=judge())
    assert str(caught.value) == "Failing: load_dataset raised KeyError: 'sessions'"
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("again", "message"),
    [
        (dataset("shop", "SCORE=1.0"), "Given, dataset 2, conversation.0: field 'qa_id': 'q1' stands already at Given, dataset 1, conversation.0 in session 'shop'; each case of a session needs a qa_id of its own"),
        (dataset("shop", context="Other."), "Given, dataset 2: field 'context': session 'shop' has another context at Given, dataset 1; repeat that one, or use another session_id"),
        (dataset("shop", language="german"), "Given, dataset 2: field 'language': session 'shop' has another language at Given, dataset 1; repeat that one, or use another session_id"),
    ],
)  # fmt: skip
def test_a_case_or_a_session_that_comes_twice_names_both_places(again: Dataset, message: str) -> None:
    assert told(ConfigError, giving(SHOP, again)) == message
    with pytest.raises(ConfigError) as caught:
        Context.run(streaming(SHOP, again), model=judge())
    assert str(caught.value) == message.replace("Given", "Streaming")


@pytest.mark.parametrize(
    "text", ["营业时间为周一至周五上午九点至下午五点", "ساعات العمل من الاثنين إلى الجمعة", "{0.__class__} {{x}} %s"]
)
def test_text_in_any_script_reaches_the_judge_as_it_is(text: str) -> None:
    model = judge()
    Context.run(giving(dataset("shop", f"{text} SCORE=1.0", context=text)), model=model)
    assert model.asked[0].count(text) == 2


def test_ground_truth_observation_and_language_reach_the_judge() -> None:
    model = judge()
    batch = Batch(
        qa_id="q", query="When?", assistant="SCORE=1.0", ground_truth_assistant="9 to 5", observation="by phone"
    )
    (metric,) = Context.run(giving(dataset("shop", conversation=[batch], language="spanish")), model=model)
    (asked,) = model.asked
    assert re.search(r"<<<reference answer \w+>>>\n9 to 5\n", asked)
    assert re.search(r"<<<observation \w+>>>\nby phone\n", asked)
    assert "in the language spanish" in asked
    assert metric.interactions[0].insight == "because"


# How the judge is asked.


def test_the_clauses_that_are_given_are_asked_for_and_looked_for() -> None:
    class Clause(ScriptedJudge):
        def _reply(self, prompt: str) -> str:
            assert "<verdict>\n" in prompt
            assert "```" not in prompt
            return '{"insight": "draft", "score": 0.1} <verdict>{"insight": "final", "score": 0.9}</verdict> {"insight": "?", "score": 0.2}'

    (metric,) = Context.run(
        giving(dataset("shop", "x")), model=Clause(asked=[]), bos_json_clause="<verdict>", eos_json_clause="</verdict>"
    )
    assert metric.context_awareness == 0.9


@pytest.mark.parametrize("structured", [True, False])
def test_structured_output_is_asked_for_where_it_is_wanted(structured: bool) -> None:
    from support.clients import chat_openai

    with LLMServer() as server:
        server.reply = Reply('{"insight": "agrees", "score": 0.9}')
        (metric,) = Context.run(giving(SHOP), model=chat_openai(server), use_structured_output=structured)
        assert metric.context_awareness == 0.9
        assert {"response_format" in request.body for request in server.requests} == {structured}


def test_a_prompt_of_ones_own_is_the_one_that_is_asked() -> None:
    class Brief(ContextAwarenessTemplate):
        def user(self, *, answer: str, **_: Any) -> str:
            return f"Is this so? {answer}"

    model = judge()
    Context.run(giving(SHOP), model=model, evaluation_template=Brief)
    assert all(asked.startswith("Is this so? SCORE=") for asked in model.asked)


def test_a_reply_in_blocks_with_thinking_is_read() -> None:
    class Blocks(ScriptedJudge):
        def _generate(self, *arguments: Any, **named: Any) -> Any:
            result = super()._generate(*arguments, **named)
            thought = {"type": "thinking", "thinking": '{"insight": "draft", "score": 0.1}'}
            message = AIMessage([thought, {"type": "text", "text": str(result.generations[0].message.content)}])
            result.generations[0].message = message
            return result

    (metric,) = Context.run(giving(SHOP), model=Blocks(asked=[]))
    assert metric.context_awareness == 0.75


# What is told on the way.


@pytest.mark.parametrize(("verbose", "level"), [(True, "INFO"), (False, "DEBUG")])
def test_each_verdict_goes_to_the_logger_and_nothing_is_set_up(
    verbose: bool, level: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    before = [*logging.getLogger().handlers], logging.getLogger("pytest_ctxeval").level
    data = dataset("shop", "SCORE=0.5\nREASON=half \\u001b[31mof it", "REPLY=no")
    with caplog.at_level(logging.DEBUG, logger="pytest_ctxeval"):
        Context.run(giving(data), model=judge(), verbose=verbose, concurrency=1)
    assert caplog.record_tuples == [
        ("pytest_ctxeval", logging.getLevelName(level), "shop q1: 0.50 half of it"),
        (
            "pytest_ctxeval",
            logging.getLevelName(level),
            "shop q2: unscored: the judge scripted gave no verdict in 2 replies; of the last one, it holds no JSON object: no",
        ),
    ]
    assert ([*logging.getLogger().handlers], logging.getLogger("pytest_ctxeval").level) == before
    assert capfd.readouterr() == ("", "")
