"""Which tests a run was to have: from pytest's command line and hooks to what a stored run keeps of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path

import pytest

from pytest_ctxeval._core.selection import EVERYTHING, Selection
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
    elif config.args_source is config.ArgsSource.TESTPATHS:  # the project's tests: one of its folders may be gone
        paths = (EVERYTHING,)
    else:
        paths = (each for argument in config.args for each in _ids(config, argument) or [EVERYTHING])
    return Selection(tuple(dict.fromkeys(paths)), tuple(_ignored(config)), tuple(sorted(deselected)))


def _ignored(config: pytest.Config) -> Iterator[str]:
    yield from (escape(each) for path in config.getoption("ignore", None) or () for each in _ids(config, path))
    yield from (each for pattern in config.getoption("ignore_glob", None) or () for each in _ids(config, pattern))


def _ids(config: pytest.Config, argument: str) -> list[str]:
    """Give the ids of what a path on the command line means: by its links as they stand there, and as they lead.

    There is none for what is outside of the project: the ids of tests there do not tell where they are.
    """
    file, colons, inner = str(argument).partition("::")
    path = config.invocation_params.dir / file
    as_written = Path(os.path.abspath(path)), config.rootpath  # noqa: PTH100  # `resolve` follows links
    places = dict.fromkeys([as_written, (path.resolve(), config.rootpath.resolve())])
    return [place.relative_to(root).as_posix() + colons + inner for place, root in places if place.is_relative_to(root)]
