"""Answer a request from the cassette that is active, or say why it is held back: the same for every HTTP client."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import quote, urlsplit

from vcr.request import Request  # noqa: TID251  # here is its home

from pytest_ctxeval._judge.cassette.key import origin_of, steady, without_secrets
from pytest_ctxeval._judge.cassette.secrets import PLACEHOLDER
from pytest_ctxeval._judge.cassette.tape import ACTIVE, REPLAYING, Call, Miss
from pytest_ctxeval._judge.cassette.trim import Interaction, trim

_TRACERS: Final = ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT")
_ASCII: Final = "".join(map(chr, range(128)))
_TRACER: Final = "smith.langchain.com"


class Router:
    """What vcrpy's stubs ask of a cassette, answered by the call that is active."""

    write_protected = False

    def can_play_response_for(self, request: Request) -> bool:
        """Find the answer, or the reason to give none; False lets the request go out."""
        call = active()
        found = call.find(request.method, request.uri, _body(request))
        if found is not None:
            call.replayed += 1
            call.last = found
            request.ctxeval_answer = _response(found)
            return True
        if not call.records:
            call.misses.append(Miss(request.method, without_secrets(request.uri), steady(_body(request))))
        elif is_keyless(request.headers, request.uri, _body(request)):
            call.keyless = True
        else:
            call.sent += 1
            return False
        request.ctxeval_answer = refusal()
        return True

    def play_response(self, request: Request) -> Any:
        """Give what was found, as vcrpy writes a response."""
        return request.ctxeval_answer

    def append(self, request: Request, response: Any) -> None:
        """Keep what came back."""
        call = active()
        if call.tape.pace is not None:
            call.tape.pace.note(response["status"]["code"], response["headers"])
        call.last = _exchange(call, request, response)
        call.recorded.append(call.last)


ROUTER: Final = Router()


def active() -> Call:
    """Give the call of this context; there is one."""
    call = ACTIVE.get()
    assert call is not None
    return call


@contextmanager
def unrouted() -> Iterator[None]:
    """Let what is asked in the block go out."""
    token = ACTIVE.set(None)
    try:
        yield
    finally:
        ACTIVE.reset(token)


def why_refused(url: str, headers: Mapping[str, Any], *, is_beneath: bool) -> str:
    """Say why a request that is not ours must not go out all the same; nothing where it may.

    `is_beneath` says that nobody else's patch would answer it.
    """
    if is_keyless(headers, url):
        return "it carries no key, since none is set; make it inside 'with ctxeval_cassette:', or set the key"
    if not REPLAYING or not is_beneath or is_trace(url):
        return ""
    for call in tuple(REPLAYING):
        call.strays.append(without_secrets(url))
    return "an assistant is being replayed, and this thread does not know of its block"


def refusal(told: str = "it is not recorded") -> dict[str, Any]:
    """A 400 that no client retries; what it means is told by our own error once the client has given up."""
    message = f"pytest-ctxeval has held this request back: {told}"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message, "code": "ctxeval_miss"}}
    headers = {"content-type": ["application/json"], "x-should-retry": ["false"]}
    return {
        "status": {"code": 400, "message": "Bad Request"},
        "headers": headers,
        "body": {"string": json.dumps(body).encode()},
    }


def is_trace(url: str) -> bool:
    """Whether a request tells LangSmith of a run: that is the user's own business, whatever else goes on."""
    host = (urlsplit(url).hostname or "").lower()
    named = filter(None, (os.environ.get(name, "").rstrip("/") for name in _TRACERS))
    return host == _TRACER or host.endswith(f".{_TRACER}") or any(_is_below(url, each) for each in named)


def _is_below(url: str, base: str) -> bool:
    """Whether an address is the base, or one below it, on the same server."""
    path, above = urlsplit(url).path, urlsplit(base).path
    return origin_of(url) == origin_of(base) and (path == above or path.startswith(f"{above}/"))


def is_keyless(headers: Mapping[str, Any], url: str, body: str | bytes = "") -> bool:
    """Whether a request would carry the placeholder to another machine. A server on this one may need no key."""
    texts = [url, *map(str, headers.values()), *map(_of_basic, headers.values())]
    carried = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return (any(PLACEHOLDER in text for text in texts) or PLACEHOLDER.encode() in carried) and not _is_local(url)


def _of_basic(value: Any) -> str:
    """The name and password of a header of basic authentication."""
    scheme, _, packed = str(value).partition(" ")
    try:
        return base64.b64decode(packed, validate=True).decode() if scheme.lower() == "basic" else ""
    except ValueError:
        return ""


def _exchange(call: Call, request: Request, response: Any) -> Interaction:
    body = _body(request)
    return trim(
        method=request.method,
        uri=request.uri,
        body=body.encode() if isinstance(body, str) else body,
        content_type=str(request.headers.get("content-type", "")),
        status=response["status"]["code"],
        reason=response["status"]["message"] or "",
        headers=response["headers"],
        answer=response["body"]["string"],
        sample=call.sample,
    )


def _body(request: Request) -> str | bytes:
    body = request.body or b""
    try:
        return body if isinstance(body, str) else bytes(body).decode()
    except UnicodeDecodeError:
        return bytes(body)


def _response(found: Interaction) -> dict[str, Any]:
    answer = found.answer if isinstance(found.answer, bytes) else found.answer.encode("utf-8", "surrogatepass")
    headers = {name: [_as_http(value) for value in values] for name, values in found.headers.items()}
    return {"status": {"code": found.status, "message": found.reason}, "headers": headers, "body": {"string": answer}}


def _as_http(value: str) -> str:
    """Give a header in ASCII, which is all that clients take from us: an address of a redirect may hold more.

    Some clients read the bytes of one as Latin-1, and others as UTF-8.
    """
    try:
        value = value.encode("latin-1").decode()
    except UnicodeError:
        return quote(value, safe=_ASCII)
    return quote(value, safe=_ASCII)


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
