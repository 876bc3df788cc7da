"""The providers whose chat models are known by name. Light: no client and no langchain is imported here."""

from __future__ import annotations

from typing import Final, NamedTuple

from pytest_ctxeval._core.text import nearest
from pytest_ctxeval.errors import ConfigError


class Provider(NamedTuple):
    """Where a provider's chat model is found, and which environment variable holds its key."""

    module: str
    model: str
    key: str | None


PROVIDERS: Final = {
    "openai": Provider("langchain_openai", "ChatOpenAI", "OPENAI_API_KEY"),
    "groq": Provider("langchain_groq", "ChatGroq", "GROQ_API_KEY"),
    "anthropic": Provider("langchain_anthropic", "ChatAnthropic", "ANTHROPIC_API_KEY"),
    "ollama": Provider("langchain_ollama", "ChatOllama", None),
}

KEY_VARIABLES: Final = tuple(provider.key for provider in PROVIDERS.values() if provider.key)

NO_JUDGE: Final = """no judge is set; name one on the command line or in the ini file

    pytest --ctxeval-judge=openai:gpt-4o-mini        # ini: ctxeval_judge = openai:gpt-4o-mini

or give any LangChain chat model in conftest.py

    @pytest.fixture(scope="session")
    def judge_model():
        return ChatOpenAI(model="gpt-4o-mini", temperature=0.0)"""


def parse_judge(text: str) -> tuple[str, str]:
    """Split "provider:name". Raises `ConfigError` for an unknown provider or a missing name."""
    provider, colon, name = text.partition(":")
    if provider not in PROVIDERS:
        raise ConfigError(f"{text!r} names no judge: {provider!r} is no provider; {nearest(provider, PROVIDERS)}")
    if not colon or not name.strip():
        raise ConfigError(f"{text!r} names no judge: the model is missing; for instance {provider}:NAME")
    return provider, name.strip()
