"""The real LangChain clients, pointed at the local server.

All four take `api_key`, `max_retries` (0, so that a fault is seen at once; Ollama's client never retries), `timeout_s`,
and whatever the client itself takes; with `api_key=None` the key is that of the environment.
"""

import weakref
from collections.abc import Callable
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from support.llm_server import LLMServer

# Shaped like a real one when it is used, but not in this file.
FAKE_KEY: Final = "sk-" + "fake" * 8 + "wxyz"


def chat_openai(server: LLMServer, **settings: Any) -> BaseChatModel:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(**_settings("gpt-4o-mini", server.openai_url, settings))


def chat_groq(server: LLMServer, **settings: Any) -> BaseChatModel:
    from langchain_groq import ChatGroq

    return ChatGroq(**_settings("llama-3.3-70b-versatile", server.url, settings))


def chat_anthropic(server: LLMServer, **settings: Any) -> BaseChatModel:
    from langchain_anthropic import ChatAnthropic

    # Nobody's model: of a real one the client comes to warn that its end is near.
    return ChatAnthropic(**_settings("claude-test", server.url, {"max_tokens": 1024, **settings}))


def chat_ollama(server: LLMServer, **settings: Any) -> BaseChatModel:
    from langchain_ollama import ChatOllama

    settings = _settings("llama3.1", server.url, settings)
    del settings["max_retries"]
    headers = {"authorization": f"Bearer {settings.pop('api_key')}"} if "api_key" in settings else {}
    model = ChatOllama(client_kwargs={"timeout": settings.pop("timeout"), "headers": headers}, **settings)
    # The other clients close their sockets when they are collected; this one leaves them to a ResourceWarning.
    weakref.finalize(model, model._client.close)
    return model


CLIENTS: Final[dict[str, Callable[..., BaseChatModel]]] = {
    "openai": chat_openai,
    "groq": chat_groq,
    "anthropic": chat_anthropic,
    "ollama": chat_ollama,
}


def _settings(model: str, url: str, given: dict[str, Any]) -> dict[str, Any]:
    timeout_s = given.pop("timeout_s", 10.0)
    defaults = {"model": model, "base_url": url, "api_key": FAKE_KEY, "temperature": 0.0, "max_retries": 0}
    settings = defaults | {"timeout": timeout_s} | given
    return {name: value for name, value in settings.items() if name != "api_key" or value is not None}
