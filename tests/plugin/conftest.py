"""A suite whose judge is a real client, and the server that answers it."""

from collections.abc import Iterator

import pytest
from support.llm_server import LLMServer
from support.suite import Suite, replaying


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        yield running


@pytest.fixture
def recorded(suite: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite whose judge and assistant are a real client and the local server."""
    monkeypatch.setenv("JUDGE_URL", server.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "planted-0123456789")
    suite.pytester.makeconftest(
        """
        import os
        import pytest
        from langchain_openai import ChatOpenAI

        def model():
            return ChatOpenAI(model="m", base_url=os.environ["JUDGE_URL"], temperature=0.0, max_retries=0)

        @pytest.fixture(scope="session")
        def judge_model():
            return model()

        @pytest.fixture
        def bot():
            return lambda question: model().invoke(question).text
        """
    )
    return suite


@pytest.fixture
def shrunk(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite of three cases that were recorded, of which the last is no more."""
    recorded.cases("one", "two", "three")
    recorded.in_process(record="once").assert_outcomes(passed=3)
    recorded.cases("one", "two")
    replaying(monkeypatch)
    return recorded
