"""The judge of the examples: a small local model, whose answers are on the cassettes in this repository."""

import os

import pytest
from langchain_openai import ChatOpenAI

MODEL = "qwen2.5-coder-1.5b-instruct"


def local_model() -> ChatOpenAI:
    """Any OpenAI-compatible server will do; it is asked only when something is recorded."""
    return ChatOpenAI(
        base_url=os.environ.get("CTXEVAL_EXAMPLES_URL", "http://127.0.0.1:18080/v1"),
        api_key="local",  # type: ignore[arg-type]  # langchain-openai takes a str as well
        model=MODEL,
        temperature=0.0,
        seed=1,
        max_completion_tokens=400,
    )


@pytest.fixture(scope="session")
def judge_model() -> ChatOpenAI:
    """The model that judges every example."""
    return local_model()


@pytest.fixture(scope="session")
def assistant_model() -> ChatOpenAI:
    """The model of the assistant that is under test in `test_hotel.py`."""
    return local_model()
