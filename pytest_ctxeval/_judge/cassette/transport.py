"""Put cassettes under the HTTP clients: vcrpy's stubs, routed by a context variable.

One patch for the whole process. It acts only where a call of ours is active in the context, and otherwise hands on to
whatever stood there before, so that a user's own vcr, respx or plain traffic stays as it is.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from vcr.request import Request  # noqa: TID251  # here is its home
from vcr.stubs.httpx_stubs import vcr_handle_async_request, vcr_handle_request  # noqa: TID251  # likewise

from pytest_ctxeval._judge.cassette.secrets import PLACEHOLDER
from pytest_ctxeval._judge.cassette.tape import ACTIVE, Call, Miss
from pytest_ctxeval._judge.cassette.trim import Interaction, trim

_SYNC: Final = ("HTTPTransport", "WSGITransport", "MockTransport")
_ASYNC: Final = ("AsyncHTTPTransport", "ASGITransport", "MockTransport")
_MINE: Final = "_ctxeval_routes"

_lock = threading.RLock()
_users = 0
_patched: list[tuple[type, str, Any]] = []


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
        for module in filter(None, map(sys.modules.get, ("httpx", "httpx2"))):
            for name in _SYNC:
                _patch(module, name, "handle_request", _sync)
            for name in _ASYNC:
                _patch(module, name, "handle_async_request", _async)


def _patch(module: Any, name: str, method: str, wrap: Callable[[Any, Any], Any]) -> None:
    owner = getattr(module, name, None)
    before = getattr(owner, method, None)
    if owner is None or before is None or hasattr(before, _MINE):
        return
    _patched[:] = [entry for entry in _patched if hasattr(getattr(entry[0], entry[1]), _MINE)]
    setattr(owner, method, wrap(before, module))
    _patched.append((owner, method, before))


def _uninstall() -> None:
    for owner, method, before in reversed(_patched):
        if hasattr(getattr(owner, method), _MINE):
            setattr(owner, method, before)
    _patched.clear()


def _sync(before: Any, module: Any) -> Any:
    base = _without_others(before)

    def unrouted(transport: Any, request: Any) -> Any:
        token = ACTIVE.set(None)
        try:
            return base(transport, request)
        finally:
            ACTIVE.reset(token)

    ours = vcr_handle_request(_Router(), unrouted, module)

    @functools.wraps(before)
    def handle_request(transport: Any, request: Any) -> Any:
        return (before if ACTIVE.get() is None else ours)(transport, request)

    setattr(handle_request, _MINE, True)
    return handle_request


def _async(before: Any, module: Any) -> Any:
    base = _without_others(before)

    async def unrouted(transport: Any, request: Any) -> Any:
        token = ACTIVE.set(None)
        try:
            return await base(transport, request)
        finally:
            ACTIVE.reset(token)

    ours = vcr_handle_async_request(_Router(), unrouted, module)

    @functools.wraps(before)
    async def handle_async_request(transport: Any, request: Any) -> Any:
        return await (before if ACTIVE.get() is None else ours)(transport, request)

    setattr(handle_async_request, _MINE, True)
    return handle_async_request


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
            request.ctxeval_answer = _response(found)
            return True
        if not call.records:
            call.misses.append(Miss(request.method, request.uri, _body(request)))
        elif _is_keyless(request):
            call.keyless = True
        else:
            return False
        request.ctxeval_answer = _refusal()
        return True

    def play_response(self, request: Request) -> Any:
        return request.ctxeval_answer

    def append(self, request: Request, response: Any) -> None:
        call = _active()
        call.recorded.append(_exchange(call, request, response))


def _active() -> Call:
    call = ACTIVE.get()
    assert call is not None
    return call


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


def _refusal() -> dict[str, Any]:
    """A 400 that no client retries; what it means is told by our own error once the client has given up."""
    told = "pytest-ctxeval: this request is not recorded"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": told, "code": "ctxeval_miss"}}
    headers = {"content-type": ["application/json"], "x-should-retry": ["false"]}
    return {
        "status": {"code": 400, "message": "Bad Request"},
        "headers": headers,
        "body": {"string": json.dumps(body).encode()},
    }


def _is_keyless(request: Request) -> bool:
    return any(PLACEHOLDER in str(value) for value in request.headers.values())
