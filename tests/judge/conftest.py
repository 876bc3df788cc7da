"""A server that judges, and a bench to judge at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bench import Bench
from support.llm_server import LLMServer, Reply

from pytest_ctxeval._judge.cassette.transport import routed


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        running.reply = Reply('{"insight": "agrees", "score": 0.9}', usage=(5, 2))
        yield running


@pytest.fixture(autouse=True)
def _patched() -> Iterator[None]:
    with routed():
        yield


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "cassettes" / "a.yaml")
