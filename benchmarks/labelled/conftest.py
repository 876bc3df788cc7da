"""The judge whose verdicts are measured: a small local model, whose answers are on the cassettes beside this file."""

import os

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr


@pytest.fixture(scope="session")
def judge_model() -> ChatOpenAI:
    """Any OpenAI-compatible server will do; it is asked only when something is recorded."""
    return ChatOpenAI(
        base_url=os.environ.get("CTXEVAL_EXAMPLES_URL", "http://127.0.0.1:18080/v1"),
        api_key=SecretStr("local"),
        model="qwen2.5-coder-1.5b-instruct",
        temperature=0.0,
        seed=1,
        max_completion_tokens=400,
    )
