"""The way of aiohttp: where a session is asked for one exchange. Redirects within it are part of it."""

from __future__ import annotations

import functools
import inspect
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
        address = _address(session, url, kwargs.get("params"))
        headers = {**session.headers, **(kwargs.get("headers") or {})}
        if ACTIVE.get() is None or is_trace(address):
            told = why_refused(address, headers, is_beneath=base is before)
            if not told:
                return await before(session, method, url, **kwargs)
            return await _checked(session, _made(Request(method, address, None, {}), refusal(told)), kwargs)
        kwargs = await _settled(module, session, kwargs)
        headers = {str(name).lower(): str(value) for name, value in {**headers, **(kwargs["headers"] or {})}.items()}
        request = Request(method, address, kwargs["data"], headers)
        if not ROUTER.can_play_response_for(request):
            if "upgrade" in headers:  # to a WebSocket, which is no exchange to keep
                with unrouted():
                    return await base(session, method, url, **kwargs)
            ROUTER.append(request, answer := await _asked(base, session, method, url, kwargs))
            return await _checked(session, _made(request, answer), kwargs)
        return await _checked(session, _made(request, ROUTER.play_response(request)), kwargs)

    return _request


async def _asked(base: Any, session: Any, method: str, url: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    with unrouted():
        response = await base(session, method, url, **{**kwargs, "raise_for_status": False})
        data = await response.read()
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


async def _settled(module: Any, session: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Give the arguments with a body in one piece, so that it can be compared and still be sent."""
    given, headers = dict(kwargs), dict(kwargs.get("headers") or {})
    data: Any = kwargs.get("data")
    if given.pop("json", None) is not None:
        data = session.json_serialize(kwargs["json"])
        headers.setdefault("Content-Type", "application/json")
    elif hasattr(data, "__aiter__"):
        data = b"".join([part async for part in data])
    elif hasattr(data, "read"):
        data = data.read()
    elif data is not None and not isinstance(data, (str, bytes, bytearray, memoryview)):
        payload = (data if isinstance(data, module.FormData) else module.FormData(data))()
        data = await payload.as_bytes()
        headers.setdefault("Content-Type", payload.content_type)
    data = bytes(data) if isinstance(data, (bytearray, memoryview)) else data
    return {**given, "data": data, "headers": headers or kwargs.get("headers")}


def _address(session: Any, url: Any, params: Any) -> str:
    whole = session._build_url(url)  # noqa: SLF001  # with the base of the session
    return str(whole.extend_query(params) if params else whole)
