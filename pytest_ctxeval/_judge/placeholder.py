"""Stand in for keys that are not set: a client insists on one even where every answer is replayed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pytest_ctxeval._judge.cassette.secrets import PLACEHOLDER, unset_variables
from pytest_ctxeval._judge.provider import KEY_VARIABLES

_lock: Final = threading.Lock()
_held: dict[str, int] = {}
_before: dict[str, str | None] = {}


@contextmanager
def placeholder_keys() -> Iterator[None]:
    """Let unset key variables hold a placeholder while the block runs. None that carries it leaves this machine."""
    with _lock:
        mine = unset_variables(KEY_VARIABLES)
        for name in mine:
            if not _held.get(name):
                _before[name] = os.environ.get(name)
            _held[name] = _held.get(name, 0) + 1
            os.environ[name] = PLACEHOLDER
    try:
        yield
    finally:
        with _lock:
            for name in mine:
                _held[name] -= 1
        sweep()


def sweep() -> None:
    """Take the placeholder out of the environment, whoever put it back; what stood there before stands there again."""
    with _lock:
        for name in [name for name, count in _held.items() if not count and os.environ.get(name) == PLACEHOLDER]:
            before = _before.get(name)
            if before is None or before == PLACEHOLDER:
                del os.environ[name]
            else:
                os.environ[name] = before
