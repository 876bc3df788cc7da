"""Chat models as people write them over requests, urllib3 and aiohttp: OpenAI's protocol by hand."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult


class PlainModel(BaseChatModel):
    """What the three have in common. Without a key in the environment none is sent."""

    url: str
    model_name: str = "plain"

    @property
    def _llm_type(self) -> str:
        return "plain"

    def body(self, messages: list[BaseMessage], *, stream: bool = False) -> dict[str, Any]:
        roles = {"human": "user", "ai": "assistant", "system": "system"}
        said = [{"role": roles[each.type], "content": each.text} for each in messages]
        return {"model": self.model_name, "messages": said, "stream": stream}

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}

    @property
    def address(self) -> str:
        return f"{self.url}/v1/chat/completions"

    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def lines(self, body: dict[str, Any]) -> Iterator[bytes]:
        raise NotImplementedError

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        answer = self.post(self.body(messages))
        message = AIMessage(answer["choices"][0]["message"]["content"])
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for line in self.lines(self.body(messages, stream=True)):
            text = piece(line)
            if text:
                yield ChatGenerationChunk(message=AIMessageChunk(content=text))


class RequestsModel(PlainModel):
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        import requests

        answer = requests.post(self.address, json=body, headers=self.headers, timeout=10)
        answer.raise_for_status()
        return dict(answer.json())

    def lines(self, body: dict[str, Any]) -> Iterator[bytes]:
        import requests

        with requests.post(self.address, json=body, headers=self.headers, timeout=10, stream=True) as answer:
            answer.raise_for_status()
            yield from answer.iter_lines()


class Urllib3Model(PlainModel):
    pools: ClassVar[Any] = None  # one for all, as it is in a program that has it since its start

    @classmethod
    def pool(cls) -> Any:
        import urllib3

        cls.pools = cls.pools or urllib3.PoolManager(
            retries=urllib3.Retry(2, status_forcelist=[503], allowed_methods=None)
        )
        return cls.pools

    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.pool().request("POST", self.address, body=json.dumps(body), headers=self.headers, timeout=10)
        if answer.status >= 400:
            raise ConnectionError(answer.data.decode())
        return dict(json.loads(answer.data))

    def lines(self, body: dict[str, Any]) -> Iterator[bytes]:
        sent = json.dumps(body).encode()
        answer = self.pool().request("POST", self.address, body=sent, headers=self.headers, preload_content=False)
        if answer.status >= 400:
            raise ConnectionError(answer.read().decode())
        yield from b"".join(answer.stream(7)).splitlines()


class AiohttpModel(PlainModel):
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        async def asked() -> dict[str, Any]:
            import aiohttp

            async with aiohttp.ClientSession(headers=self.headers, raise_for_status=True) as session:
                async with session.post(self.address, json=body) as answer:
                    return dict(await answer.json())

        return asyncio.run(asked())

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        import aiohttp

        async with aiohttp.ClientSession() as session:
            async with session.post(
                self.address, data=json.dumps(self.body(messages)), headers=self.headers, raise_for_status=True
            ) as answer:
                text = (await answer.json())["choices"][0]["message"]["content"]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    def lines(self, body: dict[str, Any]) -> Iterator[bytes]:
        async def asked() -> list[bytes]:
            return [line async for line in self.alines(body)]

        yield from asyncio.run(asked())

    async def alines(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        import aiohttp

        async with aiohttp.ClientSession(headers=self.headers) as session:
            async with session.post(self.address, json=body) as answer:
                answer.raise_for_status()
                async for line in answer.content:
                    yield line

    async def _astream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        async for line in self.alines(self.body(messages, stream=True)):
            text = piece(line)
            if text:
                yield ChatGenerationChunk(message=AIMessageChunk(content=text))


def piece(line: bytes) -> str:
    """The text that one server-sent event adds."""
    data = line.decode().strip().removeprefix("data: ")
    if not data.startswith("{"):
        return ""
    choices = json.loads(data)["choices"]
    return str(choices[0]["delta"].get("content") or "") if choices else ""
