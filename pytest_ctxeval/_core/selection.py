"""Which tests a run was to have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property
from typing import Final

EVERYTHING: Final = "."


@dataclass(frozen=True)
class Selection:
    """Which tests a run was to have, by their ids: all that are in `paths`, but for `ignored` and `deselected`.

    `paths` are the ids of folders, files, classes and tests, "." is all of them; `ignored` are patterns of folders and
    files, as `fnmatch` has them; `deselected` are the ids of tests that were found, and not run.
    """

    paths: tuple[str, ...] = (EVERYTHING,)
    ignored: tuple[str, ...] = ()
    deselected: tuple[str, ...] = field(default=(), repr=False)

    def leaves_out(self, node: str) -> bool:
        """Whether the run was not to have a test, which need not exist any more."""
        if node in self._deselected or self._paths.isdisjoint(_parts(node)):
            return True
        return any(re.match(pattern, path) for pattern in self._patterns for path in _folders(node))

    @cached_property
    def _paths(self) -> frozenset[str]:
        return frozenset(self.paths)

    @cached_property
    def _deselected(self) -> frozenset[str]:
        return frozenset(self.deselected)

    @cached_property
    def _patterns(self) -> list[str]:
        return [translate(pattern) for pattern in self.ignored]


def _parts(node: str) -> Iterator[str]:
    """Give the ids of all that a test is in, and of itself with and without its parameters."""
    yield EVERYTHING
    yield from _folders(node)
    file, colons, inner = node.partition("::")
    if not colons:
        return
    name, bracket, _ = inner.partition("[")
    names = name.split("::")
    yield from (f"{file}::{'::'.join(names[:end])}" for end in range(1, len(names) + 1))
    if bracket:
        yield node


def _folders(node: str) -> Iterable[str]:
    """Give the path of a test's file, and before it those of its folders."""
    parts = node.partition("::")[0].split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
