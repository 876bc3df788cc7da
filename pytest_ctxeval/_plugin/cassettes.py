"""Which cassette is a test's."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

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


@lru_cache(maxsize=1024)  # asked for when a test begins and when it ends
def cassette_path(node_id: str) -> Path:
    """Give each test a file of its own: readable, the same on every system, distinct whatever stands in the id."""
    file, _, test = node_id.partition("::")
    folders = [_slug(part) for part in file.removesuffix(".py").split("/") if part not in ("", ".")]
    digest = sha256(node_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return Path(*folders, f"{_slug(test)}-{digest}.yaml")


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9_.-]+", "-", text.lower()).strip("-.")
    return slug[:60].rstrip("-.") or "_"
