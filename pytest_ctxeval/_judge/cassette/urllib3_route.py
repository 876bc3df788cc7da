"""The way of urllib3, and so of requests and botocore: where a pool is asked for one exchange.

Below that, at the connection, vcrpy's own stubs would live on in the pool; above it there are too many clients.
"""

from __future__ import annotations

import copy
import functools
import inspect
from email.message import Message
from io import BytesIO
from typing import Any, Final
from urllib.parse import urlsplit

from vcr.request import Request  # noqa: TID251  # here is its home

from pytest_ctxeval._judge.cassette.routing import ROUTER, is_trace, refusal, unrouted, why_refused
from pytest_ctxeval._judge.cassette.tape import ACTIVE

TARGETS: Final = (("HTTPConnectionPool", "urlopen"),)


def wrap(before: Any, module: Any) -> Any:
    """Give the `urlopen` that asks the active cassette first. Redirects and retries within it are one exchange."""
    signature = inspect.signature(before)

    @functools.wraps(before)
    def urlopen(pool: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        address, headers = _address(pool, url), _headers(pool, *args, **kwargs)
        is_ours = ACTIVE.get() is not None and not is_trace(address)
        told = "" if is_ours else why_refused(address, headers, is_beneath=not hasattr(pool.ConnectionCls, "cassette"))
        if not is_ours and not told:
            return before(pool, method, url, *args, **kwargs)
        given = signature.bind(pool, method, url, *args, **kwargs)
        if told:
            return _made(module, refusal(told), given)
        given.arguments["body"] = body = _whole(given.arguments.get("body"))
        request = Request(method, address, body, {str(name): str(value) for name, value in headers.items()})
        if ROUTER.can_play_response_for(request):
            return _made(module, ROUTER.play_response(request), given)
        answer = _asked(before, given)
        ROUTER.append(request, answer)
        return _made(module, answer, given)

    return urlopen


def _headers(pool: Any, body: Any = None, headers: Any = None, *_: Any, **__: Any) -> Any:
    del body
    return headers or pool.headers or {}


def _asked(before: Any, given: inspect.BoundArguments) -> dict[str, Any]:
    """Ask the server, and read its whole answer, compressed as it comes."""
    asked = copy.copy(given)
    asked.arguments = {**given.arguments, "preload_content": False, "decode_content": False}
    twin = asked.arguments["self"] = _beneath(given.arguments["self"])
    with unrouted():
        response = before(*asked.args, **asked.kwargs)
        data = response.read(decode_content=False)
        response.release_conn()
    if twin is not given.arguments["self"]:
        twin.close()
    return {
        "status": {"code": response.status, "message": response.reason},
        "headers": {name: response.headers.getlist(name) for name in response.headers},
        "body": {"string": data},
        "url": response.geturl(),
        "retries": response.retries,
    }


def _beneath(pool: Any) -> Any:
    """Give a pool whose connections are real ones: a user's vcr has put its own in their place, and must not see us."""
    real = getattr(pool.ConnectionCls, "_baseclass", None)
    if real is None:
        return pool
    twin = copy.copy(pool)
    twin.ConnectionCls = real
    twin.pool = twin.QueueCls(1)
    twin.pool.put(None)
    return twin


def _made(module: Any, answer: dict[str, Any], given: inspect.BoundArguments) -> Any:
    """Make urllib3's response of an answer that is all there."""
    is_head = given.arguments["method"].upper() == "HEAD"
    dropped = ("transfer-encoding",) if is_head else ("transfer-encoding", "content-length")
    headers = module.HTTPHeaderDict()
    for name, values in answer["headers"].items():
        for value in values if name.lower() not in dropped else ():
            headers.add(name, value)
    response = module.HTTPResponse(
        body=BytesIO(b"" if is_head else answer["body"]["string"]),
        headers=headers,
        status=answer["status"]["code"],
        reason=answer["status"]["message"],
        preload_content=given.arguments.get("preload_content", True),
        decode_content=given.arguments.get("decode_content", True),
        request_method=given.arguments["method"],
        request_url=answer.get("url") or given.arguments["url"],
        retries=answer.get("retries"),
    )
    response._original_response = _Original(answer["headers"])  # noqa: SLF001  # where requests looks for cookies
    return response


class _Original:
    """The response of `http.client`, as far as others ask for it."""

    def __init__(self, headers: dict[str, list[str]]) -> None:
        self.msg = Message()
        for name, values in headers.items():
            for value in values:
                self.msg[name] = value

    def isclosed(self) -> bool:
        return True

    def close(self) -> None:
        """There is nothing to close."""


def _address(pool: Any, url: str) -> str:
    if urlsplit(url).scheme:  # through a proxy
        return url
    port = f":{pool.port}" if pool.port and pool.port != {"http": 80, "https": 443}[pool.scheme] else ""
    host = f"[{pool.host}]" if ":" in pool.host else pool.host
    return f"{pool.scheme}://{host}{port}{url}"


def _whole(body: Any) -> Any:
    """Give a body in one piece, so that it can be compared and still be sent."""
    if body is None or isinstance(body, (str, bytes)):
        return body
    if hasattr(body, "read"):
        body = body.read()
        return body if isinstance(body, (str, bytes)) else bytes(body)
    try:
        return bytes(memoryview(body))
    except TypeError:
        return b"".join(part.encode() if isinstance(part, str) else bytes(part) for part in body)
