"""The forms in which a judge may be asked for its answer, and what its model is known to take."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Sequence
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from pytest_ctxeval._judge.model import client_of, model_name, temperature_of
from pytest_ctxeval._judge.reply import text_of
from pytest_ctxeval._metrics.prompt import Prompt
from pytest_ctxeval.errors import CtxEvalWarning, JudgeError

TEXT: Final = "text"
_FORMS: Final = ("json_schema", "function_calling", TEXT)


class JudgeModel:
    """A chat model that judges, and what has been learnt of it: which form of structured output it takes.

    One per session and process; several threads may use it.
    """

    def __init__(self, model: BaseChatModel, *, use_structured_output: bool = False) -> None:
        self.model = model
        self.name = model_name(model)
        self.client = client_of(model)
        self.temperature = temperature_of(model)
        self._forms: tuple[str, ...] = _FORMS if use_structured_output else (TEXT,)
        self._untold: list[str] = []
        self._lock = threading.Lock()

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms that may still be asked for, the best first; text is the last one, and always there."""
        return self._forms

    def settle(self, form: str, refusals: Sequence[str]) -> None:
        """Never ask again for the forms that the model refused before it answered in this one."""
        with self._lock:
            if not refusals or form not in self._forms[1:]:
                return
            self._forms = self._forms[self._forms.index(form) :]
            self._untold.append(
                f"the judge {self.name} does not take {'; nor '.join(refusals)}; asked for {form} instead"
            )

    def tell(self) -> None:
        """Warn of what it has been found not to take: once, and when the verdict is safe, since a warning may raise."""
        while self._untold:
            warnings.warn(CtxEvalWarning(self._untold.pop()), stacklevel=2)


class UnknownFormError(Exception):
    """The client does not know of this form of structured output: it said so before it was asked anything."""


def invoke(model: BaseChatModel, prompt: Prompt, form: str, messages: Sequence[BaseMessage]) -> AIMessage:
    """Ask the model once, in one form."""
    if form == TEXT:
        said: Any = model.invoke(list(messages))
    else:
        schema = dict(prompt.json_schema)
        try:
            structured = model.with_structured_output(schema, method=form, include_raw=True)
        except Exception as error:
            raise UnknownFormError from error
        said = structured.invoke(list(messages))
        said = said["raw"] if isinstance(said, dict) else said
    if not isinstance(said, AIMessage):
        raise JudgeError(f"the model gave a {type(said).__name__} and no message")
    return said


def said_text(message: AIMessage) -> str:
    """The reply as text; where the model called the tool it was offered, what it called it with, each call on a line.

    As it was sent, where the client keeps that: what it has parsed holds no name twice.
    """
    raw = [_sent_arguments(each) for each in message.additional_kwargs.get("tool_calls") or ()]
    if raw and None not in raw:
        return "\n".join(map(str, raw))
    if message.tool_calls or message.invalid_tool_calls:
        parsed = [json.dumps(each["args"]) for each in message.tool_calls]
        return "\n".join([*parsed, *(str(each["args"] or "") for each in message.invalid_tool_calls)])
    return text_of(message)


def _sent_arguments(call: Any) -> str | None:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments if isinstance(arguments, str) else None


def tokens_of(message: AIMessage) -> int | None:
    """What the call cost; a client that was not told says nothing, or 0."""
    return message.usage_metadata["total_tokens"] or None if message.usage_metadata else None
