"""Put cassettes under the HTTP clients: vcrpy's stubs, routed by a context variable.

One patch for the whole process. It acts only where a call of ours is active in the context, and otherwise hands on to
whatever stood there before, so that a user's own vcr, respx or plain traffic stays as it is. One thing is never let
through: a request from a thread without our context while an assistant is replayed.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from vcr.request import Request  # noqa: TID251  # here is its home
from vcr.stubs.httpx_stubs import vcr_handle_async_request, vcr_handle_request  # noqa: TID251  # likewise

from pytest_ctxeval._judge.cassette.secrets import PLACEHOLDER
from pytest_ctxeval._judge.cassette.tape import ACTIVE, REPLAYING, Call, Miss
from pytest_ctxeval._judge.cassette.trim import Interaction, trim

_TRANSPORTS: Final = {"HTTPTransport": "handle_request", "AsyncHTTPTransport": "handle_async_request"}

_lock = threading.RLock()
_users = 0
# What stood beneath each function of ours. Known by the function itself: another's wrapper copies our attributes.
_beneath: Final[weakref.WeakKeyDictionary[Any, Any]] = weakref.WeakKeyDictionary()


@contextmanager
def routed() -> Iterator[None]:
    """Keep the patch in place for the length of the block; the last one out takes it away."""
    global _users  # noqa: PLW0603  # one patch for the process, since it patches classes of the process
    with _lock:
        _users += 1
        install()
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _uninstall()


def install() -> None:
    """Patch every transport of the clients imported so far that is not under our patch already.

    Called before each call of a judge: another library may have been imported, or a user's cassette put on top, since.
    """
    with _lock:
        for owner, method, wrap in _targets():
            before = getattr(owner, method)
            if before not in _beneath:
                ours = wrap(before, sys.modules[owner.__module__.partition(".")[0]])
                _beneath[ours] = before
                setattr(owner, method, ours)


def _uninstall() -> None:
    for owner, method, _ in _targets():
        while (now := getattr(owner, method)) in _beneath:
            setattr(owner, method, _beneath[now])


def _targets() -> Iterator[tuple[type, str, Callable[[Any, Any], Any]]]:
    for module in filter(None, map(sys.modules.get, ("httpx", "httpx2"))):
        for name, method in _TRANSPORTS.items():
            yield getattr(module, name), method, _sync if method == "handle_request" else _async


def _sync(before: Any, module: Any) -> Any:
    base = _without_others(before)

    def unrouted(transport: Any, request: Any) -> Any:
        token = ACTIVE.set(None)
        try:
            response = base(transport, request)
        finally:
            ACTIVE.reset(token)
        _active().mocked |= "network_stream" not in response.extensions
        return response

    ours = vcr_handle_request(_Router(), unrouted, module)

    @functools.wraps(before)
    def handle_request(transport: Any, request: Any) -> Any:
        if ACTIVE.get() is not None:
            return ours(transport, request)
        refusal = _refused(request, module, is_beneath=base is before)
        if refusal is not None:
            return refusal
        return before(transport, request)

    return handle_request


def _async(before: Any, module: Any) -> Any:
    base = _without_others(before)

    async def unrouted(transport: Any, request: Any) -> Any:
        token = ACTIVE.set(None)
        try:
            response = await base(transport, request)
        finally:
            ACTIVE.reset(token)
        _active().mocked |= "network_stream" not in response.extensions
        return response

    ours = vcr_handle_async_request(_Router(), unrouted, module)

    @functools.wraps(before)
    async def handle_async_request(transport: Any, request: Any) -> Any:
        if ACTIVE.get() is not None:
            return await ours(transport, request)
        refusal = _refused(request, module, is_beneath=base is before)
        if refusal is not None:
            return refusal
        return await before(transport, request)

    return handle_async_request


def _refused(request: Any, module: Any, *, is_beneath: bool) -> Any:
    """Answer a request that is not ours and must not go out all the same; None lets it pass.

    `is_beneath` says that nobody else's patch would answer it.
    """
    told = ""
    if _is_keyless(request):
        told = "it carries no key, since none is set; make it inside 'with ctxeval_cassette:', or set the key"
    elif REPLAYING and is_beneath:
        told = "an assistant is being replayed, and this thread does not know of its block"
        for call in tuple(REPLAYING):
            call.strays.append(str(request.url))
    if not told:
        return None
    body = _refusal(told)["body"]["string"]
    return module.Response(400, headers={"x-should-retry": "false"}, content=body, request=request)


def _without_others(function: Any) -> Any:
    """Find what really sends, beneath the wrappers of a user's vcr: their cassette must not record our judge."""
    return inspect.unwrap(function)


class _Router:
    """What vcrpy's stubs ask of a cassette, answered by the call that is active."""

    write_protected = False

    def can_play_response_for(self, request: Request) -> bool:
        call = _active()
        found = call.find(request.method, request.uri, _body(request))
        if found is not None:
            call.replayed += 1
            call.last = found
            request.ctxeval_answer = _response(found)
            return True
        if not call.records:
            call.misses.append(Miss(request.method, request.uri, _body(request)))
        elif _is_keyless(request):
            call.keyless = True
        else:
            call.sent += 1
            return False
        request.ctxeval_answer = _refusal()
        return True

    def play_response(self, request: Request) -> Any:
        return request.ctxeval_answer

    def append(self, request: Request, response: Any) -> None:
        call = _active()
        call.last = _exchange(call, request, response)
        call.recorded.append(call.last)


def _active() -> Call:
    call = ACTIVE.get()
    assert call is not None
    return call


def _exchange(call: Call, request: Request, response: Any) -> Interaction:
    body = _body(request)
    with call.tape.lock:
        return _trimmed(call, request, body, response)


def _trimmed(call: Call, request: Request, body: str | bytes, response: Any) -> Interaction:
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
        renamed=call.tape.renamed,
    )


def _body(request: Request) -> str | bytes:
    body = request.body or b""
    try:
        return body if isinstance(body, str) else bytes(body).decode()
    except UnicodeDecodeError:
        return bytes(body)


def _response(found: Interaction) -> dict[str, Any]:
    answer = found.answer if isinstance(found.answer, bytes) else found.answer.encode("utf-8", "surrogatepass")
    headers = {name: list(values) for name, values in found.headers.items()}
    return {"status": {"code": found.status, "message": found.reason}, "headers": headers, "body": {"string": answer}}


def _refusal(told: str = "it is not recorded") -> dict[str, Any]:
    """A 400 that no client retries; what it means is told by our own error once the client has given up."""
    message = f"pytest-ctxeval has held this request back: {told}"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message, "code": "ctxeval_miss"}}
    headers = {"content-type": ["application/json"], "x-should-retry": ["false"]}
    return {
        "status": {"code": 400, "message": "Bad Request"},
        "headers": headers,
        "body": {"string": json.dumps(body).encode()},
    }


def _is_keyless(request: Any) -> bool:
    """Whether the request would carry the placeholder to another machine. A server on this one may need no key."""
    return any(PLACEHOLDER in str(value) for value in request.headers.values()) and not _is_local(str(request.url))


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
