"""From a provider's name to a chat model, and from a client's error to ours."""

from __future__ import annotations

import importlib
import math
import re
from importlib import metadata
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from pytest_ctxeval._core.text import harmless, one_line
from pytest_ctxeval._judge.cassette.key import origin_of
from pytest_ctxeval._judge.cassette.secrets import redact
from pytest_ctxeval._judge.provider import PROVIDERS, parse_judge
from pytest_ctxeval.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnreachableError


def model_from_name(text: str) -> BaseChatModel:
    """Build the chat model for "provider:name", at temperature 0.

    Raises `ConfigError` where the provider's client is not installed (it says what to install) or refuses to be built.
    """
    provider, name = parse_judge(text)
    module, model, _ = PROVIDERS[provider]
    try:
        factory = getattr(importlib.import_module(module), model)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ConfigError(
            f"the judge {text!r} needs {module.replace('_', '-')}, which is not installed; "
            f"pip install 'pytest-ctxeval[{provider}]'"
        ) from None
    try:
        return factory(model=name, temperature=0.0)  # type: ignore[no-any-return]
    except Exception as error:
        raise ConfigError(f"the judge {text!r} cannot be built: {one_line(redact(str(error)), 300)}") from None


def checked_model(given: Any, *, where: str = "judge_model gave") -> BaseChatModel:
    """Take a chat model or a "provider:name"; `where` begins the message for anything else."""
    if isinstance(given, str):
        return model_from_name(given)
    if isinstance(given, type) and issubclass(given, BaseChatModel):
        raise ConfigError(f"{where} the class {given.__name__}; build a model of it, {given.__name__}(...)")
    if not isinstance(given, BaseChatModel):
        raise ConfigError(
            f"{where} a {type(given).__name__}, which is neither a LangChain chat model nor a 'provider:name'"
        )
    return given


def model_name(model: BaseChatModel) -> str:
    """Give the name that the provider knows the model by, or else its class."""
    for attribute in ("model_name", "model", "model_id"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(model).__name__


def temperature_of(model: BaseChatModel) -> float | None:
    """Give the temperature that the model was built with; None where it does not tell."""
    temperature = getattr(model, "temperature", None)
    told = isinstance(temperature, (int, float)) and not isinstance(temperature, bool) and math.isfinite(temperature)
    return float(temperature) if told else None  # type: ignore[arg-type]


def client_of(model: BaseChatModel) -> str:
    """Give the package that the model comes from and its version, as "langchain-openai 1.7.4"."""
    package = type(model).__module__.partition(".")[0].replace("_", "-")
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return package


def explain(error: Exception, *, judge: str, after_s: float, answer: str = "") -> JudgeError:
    """Say in our words what went wrong in a model's client; the text of its error is stripped of secrets.

    `answer` is what the server had answered with before, where that was no error.
    """
    kinds, status = {kind.__name__ for kind in type(error).__mro__}, _status(error)
    told = one_line(redact(_text(error)), 400)
    if "LengthFinishReasonError" in kinds:
        return cut_reply(judge, raw=_cut_text(error))
    if any("Timeout" in kind for kind in kinds):
        return JudgeUnreachableError(
            f"the judge {judge}{_address(error)} did not answer within {after_s:.1f} s", transient=True
        )
    if status in (401, 403):
        return JudgeUnreachableError(
            f"the judge {judge} refused the key (HTTP {status}), so judging stops here: {told}", refused=True
        )
    if _is_too_long(error):
        return JudgeUnreachableError(f"the prompt is too long for the judge {judge}{_lengths(_whole(error))}: {told}")
    if status is not None:
        return JudgeUnreachableError(
            f"the judge {judge} answered with HTTP {status} after {after_s:.1f} s: {told}",
            transient=status in (408, 429) or status >= 500,
        )
    if kinds & _UNREACHED:
        return JudgeUnreachableError(
            f"the judge {judge}{_address(error)} could not be reached, given up after {after_s:.1f} s: {told}",
            transient=True,
        )
    if answer and isinstance(error, (ValueError, TypeError, AttributeError, LookupError)):
        return JudgeReplyError(
            f"the judge {judge} answered with something that its client cannot read ({type(error).__name__}):\n\n"
            f"{harmless(redact(answer))[:2000]}",
            raw=answer,
        )
    return JudgeError(f"the judge {judge} failed with {type(error).__name__}: {told}")


def cut_reply(judge: str, *, raw: str) -> JudgeReplyError:
    """The error for a reply that ended because the model ran out of tokens."""
    return JudgeReplyError(
        f"the reply of the judge {judge} was cut because it ran out of tokens; raise max_tokens of the judge's model",
        raw=raw,
    )


def is_refused_form(error: Exception, *, asked: bool | None) -> bool:
    """Whether a server or client refused the form that was asked for, rather than the question.

    `asked` says that a request had been made: a client that refuses a form does so before, unless it warns of it. None
    where that is not known: then what may come of a garbled answer is no refusal.
    """
    status = _status(error)
    if status is None:
        known = isinstance(error, (TypeError, ValueError, AttributeError)) and asked is False
        return isinstance(error, (Warning, NotImplementedError)) or known
    told = bool(_FORM.search(_whole(error)))
    return (status in (415, 501) or (status in (400, 422) and told)) and not _is_too_long(error)


_FORM: Final = re.compile(
    r"response_?format|json|schema|tool|function|structured|output_|\bformat\b|grammar", re.IGNORECASE
)

# By name, since no client is imported here: the SDKs' connection errors, httpx's and Python's own.
_UNREACHED: Final = frozenset({"APIConnectionError", "ModelConnectionError", "TransportError", "OSError"})
_CAUSES: Final = 8  # of an error, that are looked through for its request
_TOO_LONG: Final = re.compile(
    r"context[ _](?:length|size|window)|maximum context|exceed_context|prompt is too long|too many (?:input )?tokens"
    r"|reduce the length|input is too long|exceeds? the (?:available|maximum|model)",
    re.IGNORECASE,
)
_TOKENS: Final = re.compile(r"(\d[\d,]{2,}) (?:input )?tokens|n_prompt_tokens\W+(\d+)|n_ctx\W+(\d+)|\((\d+) tokens\)")


def _address(error: BaseException) -> str:
    """Give " at HOST:PORT" where a client's error, or one that it came from, tells of its request."""
    found: BaseException | None = error
    for _ in range(_CAUSES):
        if found is None:
            break
        try:
            url = getattr(getattr(found, "request", None), "url", None)
            if url is not None:
                return f" at {one_line(redact(origin_of(str(url)).partition('://')[2]), 100)}"
        except (RuntimeError, ValueError):  # httpx's, where an error has none; of a port that is no number
            pass
        found = found.__cause__ or found.__context__
    return ""


def _is_too_long(error: Exception) -> bool:
    status = _status(error)
    return status is not None and 400 <= status < 500 and bool(_TOO_LONG.search(_whole(error)))


def _whole(error: Exception) -> str:
    """The error's text and the body that it was made of, which may say more."""
    return f"{_text(error)} {getattr(error, 'body', None) or ''} {getattr(error, 'code', None) or ''}"


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # of a client that cannot even say it
        return "it cannot say why"


def _cut_text(error: Exception) -> str:
    """What there is of a reply, in the error that OpenAI's client raises instead of giving it."""
    try:
        return str(error.completion.choices[0].message.content)  # type: ignore[attr-defined]  # by its name it has one
    except (AttributeError, IndexError):
        return ""


def _lengths(text: str) -> str:
    found = sorted({int(next(filter(None, hit)).replace(",", "")) for hit in _TOKENS.findall(text)}, reverse=True)
    return f" ({' > '.join(f'{number:,}' for number in found[:2])} tokens)" if len(found) > 1 else ""


def _status(error: Exception) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None
