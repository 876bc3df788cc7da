"""A judge that does what the answer or the chunk under test says."""

import json
import re
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Refused(Exception):
    """What a client raises where the server takes no key."""

    status_code = 401


class ScriptedJudge(BaseChatModel):
    """`SCORE=0.9` in the prompt gets a verdict of 0.9, `REPLY=text` that text, `RAISE=text` an error, `REFUSE` a 401.

    `SCORE=0.9/0.1` gives the two in turn.

    Each line of a retrieved chunk is a statement; `NOT this BECAUSE of that` is an irrelevant one, `NOTHING` none.
    """

    model_name: str = "scripted"
    tokens: int | None = 7
    asked: list[str] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        prompt = str(messages[1].content)
        self.asked.append(prompt)
        message = AIMessage(self._reply(prompt))
        if self.tokens is not None:
            message.usage_metadata = {"input_tokens": self.tokens, "output_tokens": 0, "total_tokens": self.tokens}
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _reply(self, prompt: str) -> str:
        if "REFUSE" in prompt:
            raise Refused
        if found := re.search(r"RAISE=(.*)", prompt):
            raise ConnectionError(found[1])
        if found := re.search(r"REPLY=(.*)", prompt):
            return found[1]
        if "<<<chunk " in prompt:
            return relevancy_reply(prompt)
        scores = re.search(r"SCORE=([\d./]+)", prompt)
        assert scores, prompt
        turns = scores[1].split("/")
        reason = re.search(r"REASON=(.*)", prompt)
        score = turns[(len([each for each in self.asked if each == prompt]) - 1) % len(turns)]
        return f'{{"insight": "{reason[1] if reason else "because"}", "score": {score}}}'


_CHUNK = re.compile(r"<<<chunk (\d+) (\w+)>>>\n(.*?)\n<<<end of chunk \1 \2>>>", re.DOTALL)


def relevancy_reply(prompt: str) -> str:
    """What is said of the chunks in a prompt: of each by itself, whatever their order."""
    chunks = [
        {"chunk": int(number), "statements": [_statement(line) for line in text.splitlines() if line != "NOTHING"]}
        for number, _, text in _CHUNK.findall(prompt)
    ]
    return json.dumps({"chunks": chunks})


def _statement(line: str) -> dict[str, Any]:
    statement, _, reason = line.removeprefix("NOT ").partition(" BECAUSE ")
    return {"statement": statement, "relevant": not line.startswith("NOT "), "reason": reason or None}
