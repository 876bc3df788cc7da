"""Who is compared by `compare.py`: what each needs installed, and its suite of the same cases, one test a case.

Each suite asks the judge at `JUDGE_URL`, asserts that the score is at least 0.5, and notes it in `scores.jsonl`. The
hand-written judge is as short as one can be; nobody's suite asks anything twice on purpose.
"""

from __future__ import annotations

from typing import NamedTuple

SHARED = """
import json
from pathlib import Path

CASES = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
IDS = [case["qa_id"] for case in CASES]


def note(qa_id, score):
    with Path("scores.jsonl").open("a") as file:
        file.write(json.dumps([qa_id, score]) + "\\n")
"""
HAND_WRITTEN = """
import json
import os

from openai import OpenAI

SYSTEM = "Does the answer keep to the context? Reply with JSON: insight, a text, and score, from 0 to 1."
CLIENT = OpenAI(base_url=os.environ["JUDGE_URL"], api_key="none")


def judge(case):
    asked = f"Context: {case['context']}\\nQuery: {case['query']}\\nAnswer: {case['assistant']}"
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": asked}]
    told = CLIENT.chat.completions.create(model="m", temperature=0.0, messages=messages)
    return float(json.loads(told.choices[0].message.content)["score"])
"""
WITH_LANGCHAIN = """
import json
import os

from langchain_openai import ChatOpenAI

SYSTEM = "Does the answer keep to the context? Reply with JSON: insight, a text, and score, from 0 to 1."
MODEL = ChatOpenAI(model="m", base_url=os.environ["JUDGE_URL"], api_key="none", temperature=0.0)


def judge(case):
    asked = f"Context: {case['context']}\\nQuery: {case['query']}\\nAnswer: {case['assistant']}"
    return float(json.loads(MODEL.invoke([("system", SYSTEM), ("human", asked)]).content)["score"])
"""
PLAIN = """
import pytest
from shared import CASES, IDS, note


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_it(case):
    note(case["qa_id"], 0.9)
    assert 0.9 >= 0.5
"""
CTXEVAL_CONFTEST = """
import os

import pytest
from langchain_openai import ChatOpenAI


@pytest.fixture(scope="session")
def judge_model():
    return ChatOpenAI(model="m", base_url=os.environ["JUDGE_URL"], api_key="none", temperature=0.0)
"""
CTXEVAL = """
import pytest
from pytest_ctxeval import assert_context_awareness
from shared import note


@pytest.mark.ctxeval(dataset="answers.jsonl"{named})
def test_it(context_case):
    note(context_case.qa_id, assert_context_awareness(context_case, min=0.5).score)
"""
RECORDING = """
import pytest
from hand_written import judge
from shared import CASES, IDS, note


@pytest.fixture(scope="module")
def vcr_config():
    return {"filter_headers": ["authorization"]}


@pytest.mark.vcr
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_it(case):
    score = judge(case)
    note(case["qa_id"], score)
    assert score >= 0.5
"""
DEEPEVAL = """
import os

import pytest
from deepeval import assert_test
from deepeval.metrics import GEval
from deepeval.models import LocalModel
from deepeval.test_case import LLMTestCase, SingleTurnParams
from shared import CASES, IDS

METRIC = GEval(
    name="context awareness",
    evaluation_steps=["Tell whether the actual output keeps to the context."],
    evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.CONTEXT],
    model=LocalModel(model="m", base_url=os.environ["JUDGE_URL_OF_TEN"], api_key="none", temperature=0.0),
    threshold=0.5,
)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_it(case):
    about = LLMTestCase(input=case["query"], actual_output=case["assistant"], context=[case["context"]])
    assert_test(about, [METRIC])
"""
EVALS = """
import pytest
from hand_written import judge
from shared import CASES, IDS, note


@pytest.mark.eval(name="answers")
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_it(case, eval_bag):
    eval_bag.score = judge(case)
    note(case["qa_id"], eval_bag.score)
    assert eval_bag.score >= 0.5
"""
GAUSSIA = """
import os
from itertools import groupby

import pytest
from gaussia import Batch, Dataset, Retriever
from gaussia.metrics.context import Context
from langchain_openai import ChatOpenAI
from shared import CASES, IDS, note


class Answers(Retriever):
    def load_dataset(self):
        about = ("qa_id", "query", "assistant")
        return [
            Dataset(
                session_id=session_id,
                assistant_id="bot",
                language="english",
                context="Open 9 to 5.",
                conversation=[
                    Batch(ground_truth_assistant=case["assistant"], **{name: case[name] for name in about})
                    for case in cases
                ],
            )
            for session_id, cases in groupby(CASES, key=lambda case: case["session_id"])
        ]


@pytest.fixture(scope="session")
def scores():
    model = ChatOpenAI(model="m", base_url=os.environ["JUDGE_URL"], api_key="none", temperature=0.0)
    found = Context.run(Answers, model=model)
    return {each.qa_id: each.context_awareness for session in found for each in session.interactions}


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_it(case, scores):
    score = scores[case["qa_id"]]
    note(case["qa_id"], score)
    assert score >= 0.5
"""
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")


class Neighbour(NamedTuple):
    """One row: its environment and what pip installs there, its files, the arguments of Python, what to know of it."""

    name: str
    environment: str
    packages: tuple[str, ...]  # the first one gives the row its version
    files: dict[str, str]
    first: tuple[str, ...]
    second: tuple[str, ...]
    remark: str


OURS = "pytest-ctxeval"
PLAIN_NAME = "plain pytest"
NEIGHBOURS = (
    Neighbour(PLAIN_NAME, "plain", ("pytest",), {"test_it.py": PLAIN}, PYTEST, PYTEST, "asserts a constant: the floor"),
    Neighbour(
        OURS,
        "ctxeval",
        ("pytest-ctxeval", "langchain-openai", "pytest"),
        {"conftest.py": CTXEVAL_CONFTEST, "test_it.py": CTXEVAL.format(named=', metrics=["context_awareness"]')},
        (*PYTEST, "--ctxeval-record=once"),
        (*PYTEST, "--ctxeval-record=none"),
        "judges ahead, 8 calls in flight; replays",
    ),
    Neighbour(
        f"{OURS}, one by one",
        "ctxeval",
        ("pytest-ctxeval", "langchain-openai", "pytest"),
        {"conftest.py": CTXEVAL_CONFTEST, "test_it.py": CTXEVAL.format(named="")},
        (*PYTEST, "--ctxeval-record=once"),
        (*PYTEST, "--ctxeval-record=none"),
        "the marker names no metrics: each test asks when it runs, as the neighbours' do; replays",
    ),
    Neighbour(
        "pytest-recording",
        "recording",
        ("pytest-recording", "vcrpy", "openai", "pytest"),
        {"hand_written.py": HAND_WRITTEN, "test_it.py": RECORDING},
        (*PYTEST, "--record-mode=once"),
        (*PYTEST, "--record-mode=none"),
        "a hand-written judge; replays, whatever the question: what is asked is not compared",
    ),
    Neighbour(
        "pytest-recording, langchain",
        "recording-langchain",
        ("pytest-recording", "vcrpy", "langchain-openai", "pytest"),
        {"hand_written.py": WITH_LANGCHAIN, "test_it.py": RECORDING},
        (*PYTEST, "--record-mode=once"),
        (*PYTEST, "--record-mode=none"),
        "the same through the client that this plugin and gaussia use",
    ),
    Neighbour(
        "deepeval",
        "deepeval",
        ("deepeval", "pytest"),
        {"test_it.py": DEEPEVAL},
        ("-m", "deepeval.cli.main", "test", "run", "test_it.py", "--use-cache", "-p", "no:cacheprovider"),
        ("-m", "deepeval.cli.main", "test", "run", "test_it.py", "--use-cache", "-p", "no:cacheprovider"),
        "GEval with given steps, so that a case is one call; its cache is asked for in both runs",
    ),
    Neighbour(
        "pytest-evals",
        "evals",
        ("pytest-evals", "openai", "pytest"),
        {"hand_written.py": HAND_WRITTEN, "test_it.py": EVALS},
        (*PYTEST, "--run-eval"),
        (*PYTEST, "--run-eval"),
        "a hand-written judge; cannot replay",
    ),
    Neighbour(
        "gaussia",
        "gaussia",
        ("gaussia", "langchain-openai", "pytest"),
        {"test_it.py": GAUSSIA},
        PYTEST,
        PYTEST,
        "no plugin: a fixture runs its metric over all cases; cannot replay; a question carries the ones before it",
    ),
)
