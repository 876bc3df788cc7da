"""Prompts of one's own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.scripted import ScriptedJudge

from pytest_ctxeval import (
    CONTEXT_AWARENESS,
    CONTEXTUAL_RELEVANCY,
    ConfigError,
    ContextAwarenessTemplate,
    ContextCase,
    ContextualRelevancyTemplate,
    Judge,
    Metric,
    context_awareness,
    contextual_relevancy,
    enclose,
)
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._metrics.prompt import Clauses

CASE = ContextCase(
    qa_id="q",
    session_id="s",
    context="Open 9 to 5.",
    query="When?",
    assistant="SCORE=0.9",
    ground_truth_assistant="9 to 5",
    observation="by phone",
    language="spanish",
    retrieval_context=["Open 9 to 5.", "", "NOT Cake."],
)
MADE = [(context_awareness, ContextAwarenessTemplate), (contextual_relevancy, ContextualRelevancyTemplate)]


class Brief:
    """No subclass of anything, and for either metric."""

    def system(self) -> str:
        return "Judge."

    def user(self, **values: Any) -> str:
        return f"{sorted(values.items())}"


@pytest.mark.parametrize("template", [ContextAwarenessTemplate, ContextAwarenessTemplate()])
def test_the_standard_template_makes_the_standard_metric_of_awareness(template: object) -> None:
    made = context_awareness(template=template)
    assert made.version == CONTEXT_AWARENESS.version == "1"
    assert made.prompts(CASE, Clauses()) == CONTEXT_AWARENESS.prompts(CASE, Clauses())


@pytest.mark.parametrize("template", [ContextualRelevancyTemplate, ContextualRelevancyTemplate()])
def test_the_standard_template_makes_the_standard_metric_of_relevancy(template: object) -> None:
    made = contextual_relevancy(template=template)
    assert made.version == CONTEXTUAL_RELEVANCY.version == "1"
    assert made.prompts(CASE, Clauses())[0].user == CONTEXTUAL_RELEVANCY.prompts(CASE, Clauses())[0].user


def test_a_template_of_awareness_gets_plain_values_and_the_form_of_the_reply_stands_behind_its_text() -> None:
    (prompt,) = context_awareness(template=Brief).prompts(CASE, Clauses("<v>", "</v>"))
    assert prompt.system == "Judge."
    assert (
        prompt.user
        == """\
[('answer', 'SCORE=0.9'), ('context', 'Open 9 to 5.'), ('ground_truth', '9 to 5'), ('language', 'spanish'), \
('observation', 'by phone'), ('query', 'When?')]

Reply with one JSON object and nothing else, opened and closed by exactly these marks:
<v>
{"insight": "<the reason, in spanish>", "score": <a number from 0.0 to 1.0>}
</v>"""
    )


def test_a_template_of_relevancy_gets_the_chunks_by_their_numbers() -> None:
    (prompt,) = contextual_relevancy(template=Brief()).prompts(CASE, None)
    assert prompt.system == "Judge."
    assert prompt.user.startswith(
        "[('chunks', {1: 'Open 9 to 5.', 3: 'NOT Cake.'}), ('language', 'spanish'), ('query', 'When?')]\n\n"
        "Reply with one JSON object and nothing else, in this form:\n"
    )


def test_a_template_may_keep_one_of_the_standard_texts() -> None:
    class Stern(ContextAwarenessTemplate):
        def system(self) -> str:
            return f"{super().system()}\nBe stern."

    (prompt,) = context_awareness(template=Stern).prompts(CASE, None)
    assert prompt.system.endswith("\nBe stern.")
    assert enclose("answer", "SCORE=0.9") in prompt.user


@pytest.mark.parametrize(("make", "standard"), MADE)
def test_another_prompt_has_another_version_and_the_same_prompt_the_same(
    make: Callable[..., Metric], standard: type
) -> None:
    class Stern(standard):  # type: ignore[misc]  # a base that mypy cannot see
        def system(self) -> str:
            return "Be stern."

    class Sterner(standard):  # type: ignore[misc]
        def system(self) -> str:
            return "Be sterner."

    versions = [make(template=each).version for each in (Stern, Stern(), Sterner, Brief, standard)]
    assert versions[0] == versions[1]
    assert len(set(versions)) == 4
    assert all(version.startswith("custom-") and len(version) == 15 for version in versions[:4])
    assert versions[4] == "1"


def test_a_verdict_carries_the_version_of_its_prompt() -> None:
    judge = Judge(lambda: JudgeModel(ScriptedJudge()))
    metric = context_awareness(template=Brief)
    assert judge.assess(metric, CASE).prompt_version == metric.version
    assert judge.assess(metric, CASE).metric == "context_awareness"
    assert contextual_relevancy(template=Brief, strict_mode=True, chunks_per_call=2).version.endswith("-by-2-strict")


class OnlySystem:
    def system(self) -> str:
        return "x"


class OfDeepeval:
    @staticmethod
    def generate_verdicts(input: str, context: str) -> str:
        return f"{input} {context}"


class Odd(Brief):
    def __init__(self, system: Any = "x", user: Any = "x") -> None:
        self._texts = {"system": system, "user": user}

    def system(self) -> Any:
        return self._texts["system"]

    def user(self, **values: Any) -> Any:
        if isinstance(self._texts["user"], Exception):
            raise self._texts["user"]
        return self._texts["user"]


class Needy(Brief):
    def __init__(self, tone: str) -> None:
        self.tone = tone


class Breaking(Brief):
    def __init__(self) -> None:
        raise ValueError("no")


class Property(Brief):
    @property
    def system(self) -> Any:
        raise KeyError("system")


class Waiting(Brief):
    async def user(self, **values: Any) -> str:  # type: ignore[override]
        return f"{values}"


class OtherArguments(Brief):
    def user(self, question: str) -> str:  # type: ignore[override]
        return question


@pytest.mark.parametrize(("make", "standard"), MADE)
@pytest.mark.parametrize(
    ("template", "told"),
    [
        (OfDeepeval, "the template OfDeepeval has no system() and no user()"),
        (OnlySystem(), "the template OnlySystem has no user()"),
        (None, "the template NoneType has no system() and no user()"),
        ("Judge {answer}.", "the template str has no system() and no user()"),
        (Needy, "the template Needy cannot be built without arguments: TypeError: "),
        (Breaking, "the template Breaking cannot be built without arguments: ValueError: no"),
        (Property(), "the template Property has no system()"),
        (Waiting, "the template Waiting: user() is a coroutine; write it without 'async'"),
        (
            Odd(user="half \ud83d"),
            "the template Odd: user(): the text holds '\\ud83d' at position 5, half of a surrogate pair",
        ),
        (Odd(user=None), "the template Odd: user() gave None, and no text"),
        (Odd(system=3), "the template Odd: system() gave 3, and no text"),
        (Odd(user=" "), "the template Odd: user() gave ' ', and no text"),
        (Odd(user=KeyError("x")), "the template Odd: user() raised KeyError: 'x'"),
        (OtherArguments, "the template OtherArguments: user() raised TypeError: "),
    ],
)
def test_a_wrong_template_is_refused_when_the_metric_is_made_and_told_what_is_missing(
    make: Callable[..., Metric], standard: type, template: object, told: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        make(template=template)
    assert str(refused.value).startswith(told)
    if "has no" in told:
        cure = f"give a class or an object with the methods of {standard.__name__}"
        assert str(refused.value) == f"{told}; {cure}"


class InItsLanguage(Brief):
    """It knows the language of its suite alone."""

    asks = "¿Cuándo?"

    def user(self, *, language: str, **values: Any) -> str:  # type: ignore[override]
        return {"spanish": f"{self.asks} {values}"}[language]


class InItsLanguageHarder(InItsLanguage):
    asks = "¿Cuándo exactamente?"


class Cut(ContextAwarenessTemplate):
    def __init__(self, length: int = 100) -> None:
        self.length = length

    def user(self, **values: Any) -> str:
        return super().user(**{**values, "context": values["context"][: self.length]})


class OfRefunds(ContextAwarenessTemplate):
    def user(self, **values: Any) -> str:
        return super().user(**values) + ("" if "refund" not in values["query"] else " Be lenient.")


class OfRefundsHarder(ContextAwarenessTemplate):
    def user(self, **values: Any) -> str:
        return super().user(**values) + ("" if "refund" not in values["query"] else " Be stern.")


@pytest.mark.parametrize(
    "templates",
    [
        [InItsLanguage, InItsLanguageHarder],
        [Cut(100), Cut(1_000), Cut(100_000), ContextAwarenessTemplate],
        [OfRefunds, OfRefundsHarder, ContextAwarenessTemplate],
        [Odd("a\0b", "c"), Odd("a", "b\0c")],
    ],
    ids=["another language", "long texts", "rare queries", "where one text ends"],
)
def test_templates_that_differ_have_versions_that_differ(templates: list[object]) -> None:
    versions = [context_awareness(template=each).version for each in templates]
    assert len(set(versions)) == len(templates)
    assert [context_awareness(template=each).version for each in templates] == versions


def test_a_template_has_the_same_version_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pytest_ctxeval import ContextAwarenessTemplate, context_awareness\n"
        "class Mine(ContextAwarenessTemplate):\n"
        "    def __init__(self):\n"
        "        self.thing, self.words, self.bar = object(), ['a', 'b'], {'x': 1.5}\n"
        "    def system(self):\n"
        "        return 'Judge.'\n"
        "print(context_awareness(template=Mine).version)\n",
        encoding="utf-8",
    )
    said = [
        subprocess.run(
            [sys.executable, "mine.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert said[0].startswith("custom-")


@pytest.mark.parametrize("text", [None, "", 3])
def test_a_template_that_has_no_text_for_a_case_is_told_and_nothing_is_sent(text: Any) -> None:
    class Partial(Brief):
        def user(self, *, query: str, **values: Any) -> Any:  # type: ignore[override]
            return text if query == "When?" else query

    for metric in (context_awareness(template=Partial), contextual_relevancy(template=Partial)):
        model = ScriptedJudge(asked=[])
        with pytest.raises(ConfigError) as refused:
            Judge(lambda model=model: JudgeModel(model)).assess(metric, CASE)  # type: ignore[misc]
        assert str(refused.value) == f"case 'q': the template Partial: user() gave {text!r}, and no text"
        assert model.asked == []


def test_a_template_that_changes_what_it_is_given_changes_nothing_else() -> None:
    class Taking(ContextualRelevancyTemplate):
        def user(self, *, chunks: Any, **values: Any) -> str:
            text = super().user(chunks=dict(chunks), **values)
            chunks.clear()
            return text

    versions = {contextual_relevancy(template=Taking).version for _ in range(2)}
    assert len(versions) == 1
    judge = Judge(lambda: JudgeModel(ScriptedJudge()))
    assert (
        judge.assess(contextual_relevancy(template=Taking), CASE).statements
        == judge.assess(CONTEXTUAL_RELEVANCY, CASE).statements
    )
    assert contextual_relevancy(template=Brief).version == contextual_relevancy(template=Brief()).version


def test_a_template_is_asked_for_each_call_once() -> None:
    asked: list[int] = []

    class Counting(ContextualRelevancyTemplate):
        def user(self, *, chunks: Any, **values: Any) -> str:
            asked.append(min(chunks))
            return super().user(chunks=chunks, **values)

    metric = contextual_relevancy(template=Counting, chunks_per_call=1)
    asked.clear()
    case = CASE(retrieval_context=[f"chunk {number}" for number in range(20)])
    Judge(lambda: JudgeModel(ScriptedJudge()), samples=3).assess(metric, case)
    assert sorted(asked) == list(range(1, 21))
