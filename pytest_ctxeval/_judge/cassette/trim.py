"""Keep of an exchange what is worth keeping, in a form that can be read and that does not change for nothing."""

from __future__ import annotations

import gzip
import importlib
import json
import re
import zlib
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_ctxeval._core.strict_json import finite, no_constant, no_duplicates
from pytest_ctxeval._judge.cassette.key import origin_of, request_key, steady, without_secrets

_KEPT_HEADERS: Final = ("content-type", "retry-after")
_TIMES: Final = frozenset(
    {
        "created",
        "created_at",
        "completed_at",
        "total_duration",
        "load_duration",
        "prompt_eval_duration",
        "eval_duration",
        "queue_time",
        "prompt_time",
        "completion_time",
        "total_time",
        "prompt_ms",
        "predicted_ms",
        "prompt_per_token_ms",
        "predicted_per_token_ms",
        "prompt_per_second",
        "predicted_per_second",
    }
)
_FIXED: Final = {"system_fingerprint": "fixed"}
# What a model or a user wrote is never touched.
CONTENT: Final = frozenset(
    {"arguments", "input", "content", "text", "parameters", "properties", "metadata", "logprobs"}
)
_ANTHROPIC_EVENTS: Final = ("message_start", "content_block_start", "content_block_delta", "message_delta")
_EPOCH: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Interaction:
    """One request and its answer. A body is text where it can be, else bytes."""

    method: str
    uri: str
    body: str | bytes
    status: int
    reason: str
    headers: Mapping[str, list[str]]
    answer: str | bytes
    sample: int = 0
    content_type: str = "application/json"
    key: str = field(init=False)
    origin: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", origin_of(self.uri))
        object.__setattr__(self, "key", request_key(self.method, self.uri, self.body, self.sample))

    @property
    def is_good(self) -> bool:
        """Whether the server gave what was asked for."""
        return self.status < 400

    @property
    def is_refused(self) -> bool:
        """Whether the server would say no again to the same request."""
        return 400 <= self.status < 500 and self.status not in _PASSING


# What may be otherwise when the same is asked again: no key, no room, too early, too much at once.
_PASSING: Final = frozenset({401, 403, 407, 408, 409, 423, 425, 429})


def trim(
    *,
    method: str,
    uri: str,
    body: bytes,
    content_type: str,
    status: int,
    reason: str,
    headers: Mapping[str, list[str]],
    answer: bytes,
    sample: int,
) -> Interaction:
    """Make the interaction that is kept of an exchange, with the server's own ids still in it."""
    lower = {name.lower(): values for name, values in headers.items()}
    kept: dict[str, list[str]] = {name: list(lower[name]) for name in _KEPT_HEADERS if name in lower}
    if 300 <= status < 400 and "location" in lower:
        kept["location"] = [_address(each) for each in lower["location"]]
    data, encoding = _decompressed(answer, lower.get("content-encoding", []))
    if encoding:
        kept["content-encoding"] = [encoding]
    text: str | bytes = data
    if not encoding:
        text = _decoded(data, kept)
    return Interaction(
        method=method.upper(),
        uri=without_secrets(uri),
        body=pretty(steady(_plain(body))),
        status=status,
        reason=reason if reason.isascii() else "",  # as HTTP has it
        headers=kept,
        answer=in_chat(text, _fixed) if isinstance(text, str) else text,
        sample=sample,
        content_type=re.sub(r"boundary=[^;]+", "boundary=boundary", content_type),
    )


def _address(text: str) -> str:
    try:
        return without_secrets(text)
    except ValueError:  # it leads nowhere; the client says so, if it follows
        return text


def pretty(body: str | bytes) -> str | bytes:
    """Lay JSON out for reading; anything else stays as it is."""
    if not isinstance(body, str):
        return body
    return as_json(body, lambda value: value) or body


def _plain(body: bytes) -> str | bytes:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _decompressed(data: bytes, encodings: list[str]) -> tuple[bytes, str]:
    """Undo the compressions, last one first; what cannot be undone here is left with its name."""
    names = [name.strip().lower() for value in encodings for name in value.split(",") if name.strip()]
    while names:
        try:
            data = _decompress(names[-1], data)
        except Exception:  # each of them has errors of its own
            return data, ", ".join(names)
        names.pop()
    return data, ""


def _decompress(name: str, data: bytes) -> bytes:
    if name in ("gzip", "x-gzip"):
        return gzip.decompress(data)
    if name == "deflate":
        try:
            return zlib.decompress(data)
        except zlib.error:
            return zlib.decompress(data, -zlib.MAX_WBITS)
    if name == "br":
        return bytes(_first_module("brotli", "brotlicffi").decompress(data))
    if name == "zstd":
        return bytes(_first_module("zstandard").ZstdDecompressor().decompressobj().decompress(data))
    if name == "identity":
        return data
    raise ValueError(name)


def _first_module(*names: str) -> Any:
    for name in names[:-1]:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return importlib.import_module(names[-1])


def _decoded(data: bytes, headers: MutableMapping[str, list[str]]) -> str | bytes:
    """Give the text of an answer; one in another charset is kept, and said to be, in UTF-8."""
    about = ", ".join(headers.get("content-type", []))
    charset = re.search(r"charset=\"?([\w.:-]+)", about, re.IGNORECASE)
    try:
        text = data.decode(charset[1] if charset else "utf-8")
    except (UnicodeDecodeError, LookupError):
        return data
    if charset and charset[1].lower() not in ("utf-8", "utf8"):
        headers["content-type"] = [about.replace(charset[1], "utf-8")]
    return text


def in_chat(text: str, change: Callable[[Any], Any]) -> str:
    """Change what a chat API says: in JSON, which is laid out for reading, in lines of JSON, in server-sent events.

    What any other server says, a user's search for instance, means something to the letter and stays as it is.
    """
    whole = _changed(text, change, indent=2)
    if whole is not None:
        return whole
    return "".join(_changed_line(line, change) for line in re.split(r"(?<=\n)", text))


def _changed_line(line: str, change: Callable[[Any], Any]) -> str:
    opening = re.match(r"\s*(?:data:\s*)?(?=[{\[])", line)
    if not opening:
        return line
    start, end = opening.end(), len(line.rstrip("\r\n"))
    packed = _changed(line[start:end], change, indent=None)
    return line if packed is None else line[:start] + packed + line[end:]


def _changed(text: str, change: Callable[[Any], Any], *, indent: int | None) -> str | None:
    """None where it is no JSON, the same text where it is not that of a chat."""
    is_chat = False

    def change_chat(value: Any) -> Any:
        nonlocal is_chat
        is_chat = is_of_chat(value)
        return change(value) if is_chat else None

    laid_out = as_json(text, change_chat, indent=indent)
    return text if laid_out is not None and not is_chat else laid_out


def is_of_chat(value: Any) -> bool:
    """Whether this is what OpenAI's, Anthropic's or Ollama's chat API and their likes send, whole or as one event."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    return (
        (_are_choices(value.get("choices")) and ("object" in value or "model" in value))
        or value.get("object") == "response"
        or (
            isinstance(kind, str)
            and kind.startswith("response.")
            and not {"response", "item", "item_id", "delta"}.isdisjoint(value)
        )
        or (kind == "message" and {"role", "content", "model", "stop_reason"} <= value.keys())
        or (kind in _ANTHROPIC_EVENTS and not {"message", "content_block", "delta"}.isdisjoint(value))
        or {"model", "done"} <= value.keys()
    )


def _are_choices(value: Any) -> bool:
    """Whether this is what a model said; others have choices too."""
    said = {"message", "delta", "text", "finish_reason"}
    return isinstance(value, list) and all(isinstance(each, dict) and not said.isdisjoint(each) for each in value)


def _fixed(value: Any) -> Any:
    if isinstance(value, list):
        return [_fixed(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _fixed_field(name, item) for name, item in value.items()}


def _fixed_field(name: str, value: Any) -> Any:
    if name in _TIMES and isinstance(value, (int, float)) and not isinstance(value, bool):
        return 0
    if name in _TIMES and isinstance(value, str):
        return _EPOCH
    if name in _FIXED and isinstance(value, str):
        return _FIXED[name]
    return value if name in CONTENT and not is_blocks(value) else _fixed(value)


def is_blocks(value: Any) -> bool:
    """Whether content is a list of typed blocks, which hold ids of their own beside the text."""
    return isinstance(value, list) and all(isinstance(item, dict) and "type" in item for item in value)


def as_json(text: str, change: Any, *, indent: int | None = 2) -> str | None:
    """Parse, change and lay out JSON again; None where that would lose something."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text, object_pairs_hook=no_duplicates, parse_constant=no_constant, parse_float=finite)
        laid_out = json.dumps(change(value), indent=indent, ensure_ascii=False)
        laid_out.encode()  # a lone surrogate cannot stand as itself
    except (ValueError, RecursionError):
        return None
    return laid_out
