"""Keep of an exchange what is worth keeping, in a form that can be read and that does not change for nothing."""

from __future__ import annotations

import gzip
import importlib
import json
import re
import zlib
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from pytest_ctxeval._core.strict_json import finite, no_constant, no_duplicates
from pytest_ctxeval._judge.cassette.key import origin_of, request_key, steady, without_secrets

_KEPT_HEADERS: Final = ("content-type", "retry-after")
_IDS: Final = frozenset({"id", "call_id", "item_id", "response_id", "request_id", "tool_call_id", "tool_use_id"}) | {
    "previous_response_id"
}
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
_CONTENT: Final = frozenset(
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
    renamed: MutableMapping[str, str],
) -> Interaction:
    """Make the interaction that is kept of an exchange.

    `renamed` maps the ids that the server made up to the fixed ones that stand in the file, over the whole cassette:
    an assistant sends the id of a tool call back with the result.
    """
    lower = {name.lower(): values for name, values in headers.items()}
    kept: dict[str, list[str]] = {name: list(lower[name]) for name in _KEPT_HEADERS if name in lower}
    if 300 <= status < 400 and "location" in lower:
        kept["location"] = [without_secrets(address) for address in lower["location"]]
    data, encoding = _decompressed(answer, lower.get("content-encoding", []))
    if encoding:
        kept["content-encoding"] = [encoding]
    text: str | bytes = data
    if not encoding:
        text = _decoded(data, kept)
    made = Interaction(
        method=method.upper(),
        uri=rename_uri(without_secrets(uri), renamed),
        body=pretty(rename(steady(_plain(body)), renamed)),
        status=status,
        reason=reason if reason.isascii() else "",  # as HTTP has it
        headers=kept,
        answer="",
        sample=sample,
        content_type=re.sub(r"boundary=[^;]+", "boundary=boundary", content_type),
    )
    return replace(made, answer=_steady(text, made.key, renamed) if isinstance(text, str) else text)


def rename(body: str | bytes, renamed: Mapping[str, str]) -> str | bytes:
    """Put the fixed ids in place of the server's own in a request's body."""
    if not renamed or not isinstance(body, str) or not any(name in body for name in renamed):
        return body
    return _as_json(body, lambda value: _swapped(value, renamed)) or body


def rename_uri(uri: str, renamed: Mapping[str, str]) -> str:
    """Put the fixed ids in place of the server's own in a path, as of OpenAI's responses that are fetched later."""
    if not any(f"/{name}" in uri for name in renamed):
        return uri
    parts = urlsplit(uri)
    path = "/".join(renamed.get(segment, segment) for segment in parts.path.split("/"))
    return urlunsplit(parts._replace(path=path))


def pretty(body: str | bytes) -> str | bytes:
    """Lay JSON out for reading; anything else stays as it is."""
    if not isinstance(body, str):
        return body
    return _as_json(body, lambda value: value) or body


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


def _steady(text: str, key: str, renamed: MutableMapping[str, str]) -> str:
    """Give what changes from call to call a fixed value: in JSON, in lines of JSON, in server-sent events."""
    whole = _as_json(text, lambda value: _steadied(value, key, renamed))
    if whole is not None:
        return whole
    return "".join(_steady_line(line, key, renamed) for line in re.split(r"(?<=\n)", text))


def _steady_line(line: str, key: str, renamed: MutableMapping[str, str]) -> str:
    opening = re.match(r"\s*(?:data:\s*)?(?=[{\[])", line)
    if not opening:
        return line
    start, end = opening.end(), len(line.rstrip("\r\n"))
    packed = _as_json(line[start:end], lambda value: _steadied(value, key, renamed), indent=None)
    return line if packed is None else line[:start] + packed + line[end:]


def _steadied(value: Any, key: str, renamed: MutableMapping[str, str]) -> Any:
    """Fix what a chat API makes up; what any other server says, a user's search for instance, means something."""
    return _fixed(value, key, renamed) if _is_of_chat(value) else value


def _is_of_chat(value: Any) -> bool:
    """Whether this is what OpenAI's, Anthropic's or Ollama's chat API and their likes send, whole or as one event."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    return (
        (isinstance(value.get("choices"), list) and ("object" in value or "model" in value))
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


def _fixed(value: Any, key: str, renamed: MutableMapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_fixed(item, key, renamed) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _fixed_field(name, item, key, renamed) for name, item in value.items()}


def _fixed_field(name: str, value: Any, key: str, renamed: MutableMapping[str, str]) -> Any:
    if name in _IDS and isinstance(value, str) and value:
        if value not in renamed:
            renamed[value] = _fixed_id(value, key, renamed)
        return renamed[value]
    if name in _TIMES and isinstance(value, (int, float)) and not isinstance(value, bool):
        return 0
    if name in _TIMES and isinstance(value, str):
        return _EPOCH
    if name in _FIXED and isinstance(value, str):
        return _FIXED[name]
    return value if name in _CONTENT and not _is_blocks(value) else _fixed(value, key, renamed)


def _is_blocks(value: Any) -> bool:
    """Whether content is a list of typed blocks, which hold ids of their own beside the text."""
    return isinstance(value, list) and all(isinstance(item, dict) and "type" in item for item in value)


def _fixed_id(value: str, key: str, renamed: Mapping[str, str]) -> str:
    """Derive an id from the request, so that it is the same at every recording; the kind before - or _ stays."""
    kind = re.match(r"[A-Za-z]{1,12}[-_]", value)
    return f"{kind[0] if kind else ''}{key[:12]}{sum(key[:12] in fixed for fixed in renamed.values())}"


def _swapped(value: Any, renamed: Mapping[str, str]) -> Any:
    """Only where an id is meant: a server may take the name of a tool for the id of its call."""
    if isinstance(value, list):
        return [_swapped(item, renamed) for item in value]
    if isinstance(value, dict):
        return {
            name: renamed.get(item, item) if name in _IDS and isinstance(item, str) else _swapped(item, renamed)
            for name, item in value.items()
        }
    return value


def _as_json(text: str, change: Any, *, indent: int | None = 2) -> str | None:
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
