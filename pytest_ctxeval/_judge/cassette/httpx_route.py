"""The way of httpx and httpx2: through vcrpy's stubs, at the transport that uses the network."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Final

from vcr.stubs.httpx_stubs import vcr_handle_async_request, vcr_handle_request  # noqa: TID251  # here is its home

from pytest_ctxeval._judge.cassette.routing import ROUTER, active, is_trace, refusal, unrouted, why_refused
from pytest_ctxeval._judge.cassette.tape import ACTIVE

TARGETS: Final = (("HTTPTransport", "handle_request"), ("AsyncHTTPTransport", "handle_async_request"))


def wrap_sync(before: Any, module: Any) -> Any:
    """Give the `handle_request` that asks the active cassette first."""
    base = inspect.unwrap(before)

    def live(transport: Any, request: Any) -> Any:
        with unrouted():
            response = base(transport, request)
        active().mocked |= "network_stream" not in response.extensions
        return response

    ours = vcr_handle_request(ROUTER, live, module)

    @functools.wraps(before)
    def handle_request(transport: Any, request: Any) -> Any:
        if ACTIVE.get() is not None and not is_trace(str(request.url)):
            return ours(transport, request)
        told = why_refused(str(request.url), request.headers, is_beneath=base is before)
        return _refused(module, request, told) if told else before(transport, request)

    return handle_request


def wrap_async(before: Any, module: Any) -> Any:
    """Give the `handle_async_request` that asks the active cassette first."""
    base = inspect.unwrap(before)

    async def live(transport: Any, request: Any) -> Any:
        with unrouted():
            response = await base(transport, request)
        active().mocked |= "network_stream" not in response.extensions
        return response

    ours = vcr_handle_async_request(ROUTER, live, module)

    @functools.wraps(before)
    async def handle_async_request(transport: Any, request: Any) -> Any:
        if ACTIVE.get() is not None and not is_trace(str(request.url)):
            return await ours(transport, request)
        told = why_refused(str(request.url), request.headers, is_beneath=base is before)
        return _refused(module, request, told) if told else await before(transport, request)

    return handle_async_request


def _refused(module: Any, request: Any, told: str) -> Any:
    body = refusal(told)["body"]["string"]
    return module.Response(400, headers={"x-should-retry": "false"}, content=body, request=request)
