"""Programs written for fair-forge, gaussia and agensight, with the import lines changed and nothing else.

The texts are ours; the calls, their arguments and the numbers are theirs. Each runs as a program of its own would, with
the keys and the address of the model in the environment, against a server on this machine.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from support.llm_server import LLMServer, Reply

SCORES = {"q1": 1.0, "q2": 0.9, "q3": 0.05}

CONTEXT = '''
import os
from pytest_ctxeval.metrics.context import Context
from pytest_ctxeval.statistical import BayesianMode, FrequentistMode
from pytest_ctxeval.retriever import Retriever
from pytest_ctxeval.schemas import Dataset, Batch
{client}

class BikeShopRetriever(Retriever):
    def load_dataset(self) -> list[Dataset]:
        context = """You answer for a shop that repairs and rents bicycles.
        What you know:
        - A repair takes two working days, a flat tyre an hour
        - The first hour of every rental is free
        - Open Tue-Sat 10am-6pm
        Be brief and friendly."""

        return [
            Dataset(
                session_id="context-eval-001",
                assistant_id="bike-shop-bot",
                language="english",
                context=context,
                conversation=[
                    Batch(
                        qa_id="q1",
                        query="How long does a repair take?",
                        assistant="Two working days; a flat tyre is done within the hour. (q1)",
                        ground_truth_assistant="Two working days, an hour for a flat tyre.",{weights[0]}
                    ),
                    Batch(
                        qa_id="q2",
                        query="Is the first hour of a rental free?",
                        assistant="Yes, the first hour is free. (q2)",
                        ground_truth_assistant="The first hour is free.",{weights[1]}
                    ),
                    Batch(
                        qa_id="q3",
                        query="Are you open on Mondays?",
                        assistant="Of course, we are open every day! (q3)",
                        ground_truth_assistant="No, Tue-Sat 10am-6pm.",{weights[2]}
                    ),
                ]
            )
        ]

judge = {judge}

metrics = Context.run(
    BikeShopRetriever,
    model=judge,
    {arguments}
)

for metric in metrics:
    print(f"Session: {{metric.session_id}}  ({{metric.n_interactions}} interactions)")
    ci = f"  [{{metric.context_awareness_ci_low:.2f}}, {{metric.context_awareness_ci_high:.2f}}]" \\
         if metric.context_awareness_ci_low is not None else ""
    print(f"  Context awareness: {{metric.context_awareness:.2f}}{{ci}}")
    print()
    print("  Per-interaction:")
    for interaction in metric.interactions:
        status = "PASS" if interaction.context_awareness >= 0.8 else "FAIL"
        print(f"    [{{interaction.qa_id}}] {{status}}  score={{interaction.context_awareness:.2f}}")
'''

CLIENTS = {
    "groq": (
        "from langchain_groq import ChatGroq",
        'ChatGroq(model="llama-3.3-70b-versatile", api_key=os.getenv("GROQ_API_KEY"), temperature=0.0)',
    ),
    "openai": (
        "from langchain_openai import ChatOpenAI",
        'ChatOpenAI(model="gpt-4o-mini", api_key=os.getenv("OPENAI_API_KEY"), temperature=0.0)',
    ),
}

RELEVANCY = """
from pytest_ctxeval.schemas import ModelTestCase
from pytest_ctxeval.metrics import ContextualRelevancyMetric

test_case = ModelTestCase(
    input="How do I cancel my rental?",
    actual_output="In the app, until an hour before it starts.",
    retrieval_context=[
        "Cancelling: rentals are cancelled in the app",
        "Deadline: one hour before the rental starts",
        "Refund: the whole price is paid back within a week",
        "Helmets: every rental comes with a helmet"
    ]
)

metric = ContextualRelevancyMetric(
    threshold=0.7,
    model="gpt-4o",
    include_reason=True{more}
)

metric.measure(test_case)
print(metric.score)
print(metric.reason)
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[str], tuple[str, list[Any]]]:
    """Run a program; give what it prints and what the server was sent."""

    def run(program: str) -> tuple[str, list[Any]]:
        with LLMServer() as server:
            server.answer = _said
            for provider, url in (("OPENAI_BASE_URL", server.openai_url), ("GROQ_API_BASE", server.url)):
                monkeypatch.setenv(provider, url)
                monkeypatch.setenv(f"{provider.partition('_')[0]}_API_KEY", "planted-0123456789")
            exec(compile(program, "program.py", "exec"), {"__name__": "program"})  # noqa: S102  # a user's program
            return capsys.readouterr().out, server.requests

    return run


def _said(prompt: str, body: dict[str, Any]) -> Reply:
    if "<<<chunk 4 " in prompt:
        found = re.findall(r"<<<chunk (\d) \w+>>>\n(.*)\n", prompt)
        chunks = [
            {
                "chunk": int(number),
                "statements": [
                    {
                        "statement": text,
                        "relevant": "helmet" not in text,
                        "reason": "It is about helmets." if "helmet" in text else None,
                    }
                ],
            }
            for number, text in found
        ]
        return Reply(f"```json\n{json.dumps({'chunks': chunks})}\n```")
    qa_id = re.search(r"\((q\d)\)", prompt)
    assert qa_id
    verdict = json.dumps({"insight": "as it is told", "score": SCORES[qa_id[1]]})
    return Reply(verdict if "response_format" in body else f"```json\n{verdict}\n```")


WEIGHTS = {
    "none": (("", "", ""), "0.65", ("0.05", "1.00")),
    "all": ((" weight=0.5,", " weight=0.3,", " weight=0.2,"), "0.78", ("0.33", "1.00")),
    "some": ((" weight=0.5,", "", ""), "0.74", ("0.33", "1.00")),
}


def _expected(mean: str, interval: str) -> str:
    return f"""\
Session: context-eval-001  (3 interactions)
  Context awareness: {mean}{interval}

  Per-interaction:
    [q1] PASS  score=1.00
    [q2] PASS  score=0.90
    [q3] FAIL  score=0.05
"""


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("structured", ["use_structured_output=True,", "use_structured_output=False,", ""])
@pytest.mark.parametrize("given", WEIGHTS)
def test_the_frequentist_example_runs_as_it_is_written(
    run: Callable[[str], tuple[str, list[Any]]], client: str, structured: str, given: str
) -> None:
    imported, judge = CLIENTS[client]
    weights, mean, _ = WEIGHTS[given]
    program = CONTEXT.format(client=imported, judge=judge, weights=weights, arguments=f"{structured} verbose=True,")
    printed, requests = run(program)
    assert printed == _expected(mean, "")
    assert len(requests) == 3
    assert {"response_format" in request.body for request in requests} == {"True" in structured}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("given", WEIGHTS)
def test_the_bayesian_example_runs_as_it_is_written(
    run: Callable[[str], tuple[str, list[Any]]], client: str, structured: bool, given: str
) -> None:
    imported, judge = CLIENTS[client]
    weights, mean, (low, high) = WEIGHTS[given]
    arguments = f'statistical_mode=BayesianMode(mc_samples=5000, ci_level=0.95, method="bootstrap"),\n    use_structured_output={structured},'
    printed, _ = run(CONTEXT.format(client=imported, judge=judge, weights=weights, arguments=arguments))
    assert printed == _expected(mean, f"  [{low}, {high}]")  # to the digit what they give
    plain = arguments.replace(', method="bootstrap"', "")
    printed, _ = run(CONTEXT.format(client=imported, judge=judge, weights=weights, arguments=plain))
    assert printed.startswith(f"Session: context-eval-001  (3 interactions)\n  Context awareness: {mean}  [0.")


@pytest.mark.parametrize(
    ("more", "printed"),
    [
        ("", "0.75\n3 of 4 statements are relevant to the query; not relevant: chunk 4, 'Helmets: every rental comes with a helmet' (It is about helmets.)\n"),
        (",\n    strict_mode=True", "0.0\n3 of 4 statements are relevant to the query; not relevant: chunk 4, 'Helmets: every rental comes with a helmet' (It is about helmets.)\n"),
        (",\n    async_mode=False, verbose_mode=True", "0.75\n3 of 4 statements are relevant to the query; not relevant: chunk 4, 'Helmets: every rental comes with a helmet' (It is about helmets.)\n"),
    ],
)  # fmt: skip
def test_the_relevancy_example_runs_as_it_is_written(
    run: Callable[[str], tuple[str, list[Any]]], more: str, printed: str
) -> None:
    told, requests = run(RELEVANCY.format(more=more))
    assert told == printed
    assert [request.body["model"] for request in requests] == ["gpt-4o"]
