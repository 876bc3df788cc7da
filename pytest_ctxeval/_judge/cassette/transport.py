"""Put cassettes under the HTTP clients, routed by a context variable.

One patch for the whole process. It acts only where a call of ours is active in the context, and otherwise hands on to
whatever stood there before, so that a user's own vcr, respx or plain traffic stays as it is. One thing is never let
through: a request from a thread without our context while an assistant is replayed.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pytest_ctxeval._judge.cassette import aiohttp_route, httpx_route, urllib3_route

_Wrap = Callable[[Any, Any], Any]

# By module: the class, its method, and what is put in its place.
_HTTPX: Final = tuple(zip(httpx_route.TARGETS, (httpx_route.wrap_sync, httpx_route.wrap_async), strict=True))
_ROUTES: Final[dict[str, tuple[tuple[tuple[str, str], _Wrap], ...]]] = {
    "httpx": _HTTPX,
    "httpx2": _HTTPX,
    "urllib3": tuple((target, urllib3_route.wrap) for target in urllib3_route.TARGETS),
    "aiohttp": tuple((target, aiohttp_route.wrap) for target in aiohttp_route.TARGETS),
}

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
    """Patch every client imported so far that is not under our patch already.

    Called before each call of a judge: another library may have been imported, or a user's cassette put on top, since.
    """
    with _lock:
        for module, owner, method, wrap in _targets():
            before = getattr(owner, method)
            if before not in _beneath:
                ours = wrap(before, module)
                _beneath[ours] = before
                setattr(owner, method, ours)


def _uninstall() -> None:
    for _, owner, method, _ in _targets():
        while (now := getattr(owner, method)) in _beneath:
            setattr(owner, method, _beneath[now])


def _targets() -> Iterator[tuple[Any, type, str, _Wrap]]:
    for name, routes in _ROUTES.items():
        module = sys.modules.get(name)
        for (owner, method), wrap in routes if module is not None else ():
            found = getattr(module, owner, None)
            if found is not None:  # else it is being imported by another thread
                yield module, found, method, wrap
