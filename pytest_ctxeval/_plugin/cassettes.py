"""Which cassette is a test's."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from pytest_ctxeval._judge.cassette.shelf import Neighbours, shown_path
from pytest_ctxeval._judge.cassette.tape import Tape
from pytest_ctxeval._plugin.options import Settings
from pytest_ctxeval._plugin.stash import NODE_ID


def tape_of(item: pytest.Item, settings: Settings, neighbours: Neighbours) -> Tape | None:
    """Give the cassette of a test, None where cassettes are not looked at."""
    if settings.record == "off":
        return None
    node = item.stash[NODE_ID]
    path = settings.cassettes / cassette_path(node)
    shown = shown_path(path, item.config.rootpath)
    return Tape(path, node=node, mode=settings.record, shown=shown, neighbours=neighbours)


def cassette_path(node_id: str) -> Path:
    """Give each test a file of its own: readable, the same on every system, distinct whatever stands in the id."""
    return Path(cassette_name(node_id))


def cassette_name(node_id: str) -> str:
    """Give the same path as a text, its folders ended by "/": of many tests, a `Path` each takes time and memory."""
    file, _, test = node_id.partition("::")
    digest = sha256(node_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_folder(file)}{_slug(test)}-{digest}.yaml"


@lru_cache(maxsize=64)  # the tests of a file come one after the other
def _folder(file: str) -> str:
    return "".join(f"{_slug(part)}/" for part in file.removesuffix(".py").split("/") if part not in ("", "."))


def _slug(text: str) -> str:
    slug = _ODD.sub("-", text.lower()).strip("-.")
    return slug[:60].rstrip("-.") or "_"


_ODD: Final = re.compile(r"[^a-z0-9_.-]+")
