"""Which tests a run was to have: from pytest's command line and hooks to what a stored run keeps of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path

import pytest

from pytest_ctxeval._core.selection import Selection
from pytest_ctxeval._plugin.stash import DESELECTED, TESTS


def selection_of(config: pytest.Config) -> Selection:
    """Say which tests a run was to have, once they are collected."""
    deselected = config.stash.get(DESELECTED, [])
    collected = config.stash.get(TESTS, [])
    if config.option.setuponly or config.option.setupplan:
        paths: Iterable[str] = ()
    elif getattr(config.option, "lf", False):  # what it leaves out is told to nobody
        paths = collected
    elif config.option.pyargs:  # where the files of a package are is told to nobody
        paths = (node.partition("::")[0] for node in [*collected, *deselected])
    else:
        paths = (_id(config, argument) for argument in config.args)
    return Selection(tuple(dict.fromkeys(paths)), tuple(_ignored(config)), tuple(sorted(deselected)))


def _ignored(config: pytest.Config) -> Iterator[str]:
    yield from (escape(_id(config, path)) for path in config.getoption("ignore", None) or ())
    yield from (_id(config, pattern) for pattern in config.getoption("ignore_glob", None) or ())


def _id(config: pytest.Config, argument: str) -> str:
    """Give the id of what a path on the command line means, which may go on with the names of a test."""
    file, colons, inner = str(argument).partition("::")
    path = Path(os.path.abspath(config.invocation_params.dir / file))  # noqa: PTH100  # a link stays one
    if not path.is_relative_to(config.rootpath):
        path = path.resolve()
    return Path(os.path.relpath(path, config.rootpath)).as_posix() + colons + inner
