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


@contextmanager
def placeholder_keys() -> Iterator[None]:
    """Let unset key variables hold a placeholder while the block runs. A request that carries it never goes out."""
    with _lock:
        mine = unset_variables(KEY_VARIABLES)
        for name in mine:
            _held[name] = _held.get(name, 0) + 1
            os.environ[name] = PLACEHOLDER
    try:
        yield
    finally:
        with _lock:
            for name in mine:
                _held[name] -= 1
                if not _held[name] and os.environ.get(name) == PLACEHOLDER:
                    del os.environ[name]
