"""The way of aiohttp: where a session is asked for one exchange. Redirects within it are part of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator
from typing import Any, Final

from vcr.request import Request  # noqa: TID251  # here is its home

from pytest_ctxeval._judge.cassette.routing import ROUTER, is_trace, refusal, unrouted, why_refused
from pytest_ctxeval._judge.cassette.tape import ACTIVE

TARGETS: Final = (("ClientSession", "_request"),)


def wrap(before: Any, module: Any) -> Any:
    """Give the `_request` that asks the active cassette first."""
    base = inspect.unwrap(before)

    @functools.wraps(before)
    async def _request(session: Any, method: str, url: Any, **kwargs: Any) -> Any:
        try:
            address = _address(session, url, kwargs.get("params"))
            headers = {**session.headers, **dict(kwargs.get("headers") or {})}
        except Exception:  # aiohttp has words of its own for what is wrong with it
            return await before(session, method, url, **kwargs)
        if ACTIVE.get() is None or is_trace(address):
            told = why_refused(address, headers, is_beneath=base is before)
            if not told:
                return await before(session, method, url, **kwargs)
            return await _checked(session, _made(Request(method, address, None, {}), refusal(told)), kwargs)
        body, kwargs = await _body(module, session, kwargs)
        request = Request(method, address, body, {str(name).lower(): str(value) for name, value in headers.items()})
        if ROUTER.can_play_response_for(request):
            return await _checked(session, _made(request, ROUTER.play_response(request)), kwargs)
        with unrouted():
            response = await base(session, method, url, **{**kwargs, "raise_for_status": False})
            if "upgrade" in request.headers:  # to a WebSocket, which is no exchange to keep
                return response
            data = await response.read()
        answer = _answer(session, response, data)
        ROUTER.append(request, answer)
        if data:  # reading it has drained the stream
            response.content = _made(request, answer).content
        return await _checked(session, response, kwargs)

    return _request


def _answer(session: Any, response: Any, data: bytes) -> dict[str, Any]:
    headers: dict[str, list[str]] = {}
    for name, value in response.headers.items():
        if name.lower() != "content-encoding" or not session.auto_decompress:
            headers.setdefault(str(name), []).append(value)
    return {
        "status": {"code": response.status, "message": response.reason},
        "headers": headers,
        "body": {"string": data},
    }


def _made(request: Request, answer: dict[str, Any]) -> Any:
    from vcr.stubs.aiohttp_stubs import build_response  # noqa: PLC0415, TID251  # it imports aiohttp

    return build_response(request, answer, [])


async def _checked(session: Any, response: Any, kwargs: dict[str, Any]) -> Any:
    """Raise for a status where the session or the request says so."""
    wanted = kwargs.get("raise_for_status")
    wanted = session._raise_for_status if wanted is None else wanted  # noqa: SLF001  # where it keeps it
    if callable(wanted):
        await wanted(response)
    elif wanted:
        response.raise_for_status()
    return response


async def _body(module: Any, session: Any, kwargs: dict[str, Any]) -> tuple[str | bytes | None, dict[str, Any]]:
    """Give a body in one piece, so that it can be compared, and the arguments with one that can still be sent."""
    data: Any = kwargs.get("data")
    if kwargs.get("json") is not None:
        return session.json_serialize(kwargs["json"]), kwargs
    if data is None or isinstance(data, (str, bytes)):
        return data, kwargs
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data), kwargs
    if hasattr(data, "__aiter__") and not isinstance(data, module.payload.Payload):
        parts = [part async for part in data]
        return b"".join(parts), {**kwargs, "data": _again(parts)}
    if hasattr(data, "read"):
        place, whole = data.tell(), data.read()
        data.seek(place)
        return whole, kwargs
    payload = data if isinstance(data, module.payload.Payload) else _form(module, data)()
    return await payload.as_bytes(), {**kwargs, "data": payload}


async def _again(parts: list[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def _form(module: Any, data: Any) -> Any:
    return data if isinstance(data, module.FormData) else module.FormData(data)


def _address(session: Any, url: Any, params: Any) -> str:
    whole = session._build_url(url)  # noqa: SLF001  # with the base of the session
    return str(whole.extend_query(params) if params else whole)
