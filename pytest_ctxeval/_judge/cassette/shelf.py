"""All the cassettes of a folder: whose they are, and which of them nobody needs."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from os.path import normcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import yaml

from pytest_ctxeval._judge.cassette.file import LEFT_OVER, Recording, read_recording, write_recording
from pytest_ctxeval._judge.cassette.trim import Interaction
from pytest_ctxeval.errors import CassetteError, CassetteReadError

_HEAD: Final = 4_000  # bytes, in which most cassettes say whose they are
_NAME: Final = re.compile(r"[a-z0-9_.-]+-[0-9a-f]{8}\.yaml")


class Loan(NamedTuple):
    """A recording that a test found in the cassette of another one."""

    interaction: Interaction
    path: Path
    shown: str
    node: str


class Unused(NamedTuple):
    """What nobody needs: files whose test is gone, and places (key and origin) on files that are needed otherwise."""

    files: tuple[Path, ...] = ()
    entries: Mapping[Path, frozenset[tuple[str, str]]] = MappingProxyType({})

    def __bool__(self) -> bool:
        return bool(self.files or self.entries)


@dataclass(slots=True)
class Neighbours:
    """The cassettes of other tests, where a renamed test finds what was recorded under its old name.

    `root` is the folder of all cassettes, `base` that from which ids of tests count, `tests` are the ids of the tests
    of this run. Each folder is read once, at the first request that a test's own cassette lacks.
    """

    root: Path
    base: Path
    tests: Collection[str] = ()
    _known: dict[Path, dict[str, list[Loan]]] = field(default_factory=dict)
    _left: list[Path] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def find(self, path: Path, key: str, origin: str, *, moved_only: bool) -> Loan | None:
        """Give what another cassette than `path` holds: of its folder, or of the folder of a test file that is gone.

        `moved_only` leaves out those of tests of this run: they are of use where they stand.
        """
        with self._lock:
            if self._left is None:
                self._left = [folder for folder in _folders(self.root) if self._is_left(folder)]
            folders = dict.fromkeys([path.parent, *self._left])
            loans = [loan for folder in folders for loan in self._loans(folder).get(key, ())]
        fit = [loan for loan in loans if loan.path != path and not (moved_only and loan.node in self.tests)]
        there = [loan for loan in fit if loan.interaction.origin == origin]
        known = {loan.interaction.origin for loan in fit}
        return next(iter(there or (fit if len(known) == 1 else ())), None)

    def _loans(self, folder: Path) -> dict[str, list[Loan]]:
        if folder not in self._known:
            found: dict[str, list[Loan]] = {}
            for path in cassettes_in(folder):
                for recording in _readable(path):
                    for each in recording.interactions:
                        loan = Loan(each, path, shown_path(path, self.base), recording.node)
                        found.setdefault(each.key, []).append(loan)
            self._known[folder] = found
        return self._known[folder]

    def _is_left(self, folder: Path) -> bool:
        """Whether the test file of a folder is gone."""
        node = next(filter(None, map(node_of, cassettes_in(folder))), None)
        return node is not None and not (self.base / node.partition("::")[0]).exists()


def cassettes_in(folder: Path, *, but: Collection[str] = ()) -> list[Path]:
    """Give the files of a folder, and not of those in it, that may be cassettes, in the order of their names.

    Those in `but` are not given: paths as `os.path.normcase` gives them.
    """
    return sorted(path for path in folder.glob("*.yaml") if normcase(path) not in but) if folder.is_dir() else []


def all_cassettes(root: Path, *, but: Collection[str] = ()) -> Iterator[Path]:
    """Give the files of a folder and of those in it that are cassettes of ours, or are named as ours are.

    Those in `but` are neither given nor opened: paths as `os.path.normcase` gives them.
    """
    for folder in _folders(root):
        files = cassettes_in(folder, but=but)
        yield from (path for path in files if node_of(path) is not None or _may_be_ours(path))


def _may_be_ours(path: Path) -> bool:
    """Whether a file that does not say whose it is has the name of one of ours, and is not another tool's."""
    if not _NAME.fullmatch(path.name):
        return False
    try:
        data = path.read_bytes()
    except OSError:
        return True
    return b"ctxeval:" in data or not re.search(rb"^interactions:", data, re.MULTILINE)


def left_overs(root: Path) -> Iterator[Path]:
    """Give what a process left that was killed while it saved."""
    for folder in _folders(root):
        yield from sorted(folder.glob(f"{LEFT_OVER}*.tmp"))


def is_complete(path: Path) -> bool:
    """Whether a cassette says that its test ran to the end when it was recorded."""
    return _head(path).get("complete") is True


def node_of(path: Path) -> str | None:
    """Give the id of the test that a cassette says it is of; None where it is none of ours, or is damaged."""
    node = _head(path).get("node")
    return node if isinstance(node, str) else None


def _head(path: Path) -> Mapping[str, Any]:
    """Give what a cassette says of itself, without reading all of it; nothing where it is none of ours, or damaged."""
    try:
        with path.open("rb") as file:
            data = file.read(_HEAD)
            if b"\ninteractions:" not in data:  # the id of a test may be of any length
                data += file.read()
    except OSError:
        return {}
    head = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    about = re.search(r"^ctxeval:\n((?:  .*\n)+)", head, re.MULTILINE)
    try:
        found = yaml.safe_load(about[1]) if about else None
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def shown_path(path: Path, base: Path) -> str:
    """Give a path as messages call it: from the folder that ids of tests count from."""
    return (path.relative_to(base) if path.is_relative_to(base) else path).as_posix()


def _readable(path: Path) -> Iterator[Recording]:
    with suppress(CassetteReadError):  # its own test tells
        recording = read_recording(path, shown=path.name)
        if recording is not None:
            yield recording


def _folders(root: Path) -> Iterator[Path]:
    if root.is_dir():
        # A link leads to files that are seen under their own names, or are none of this project's.
        yield from sorted(Path(folder) for folder, _, _ in os.walk(root, followlinks=False))


def adopt(own: Path, node: str, loans: Iterable[tuple[str, str, str]], *, complete: bool, shown: str) -> None:
    """Put on a test's own cassette what it found on others: by key, origin and path. Raises `CassetteError`.

    `complete` says that the test has passed.
    """
    known = read_recording(own, shown=shown)
    wanted: dict[Path, set[tuple[str, str]]] = {}
    for key, origin, source_path in loans:
        wanted.setdefault(Path(source_path), set()).add((key, origin))
    for path, places in wanted.items():
        source = read_recording(path, shown=path.name)
        if source is None:
            continue
        found = tuple(each for each in source.interactions if (each.key, each.origin) in places)
        known = known or replace(source, node=node, interactions=(), complete=complete)
        there = {(each.key, each.origin) for each in known.interactions}
        found = tuple(each for each in found if (each.key, each.origin) not in there)
        known = replace(known, interactions=(*known.interactions, *found))
    if known is not None:
        write_recording(own, known, shown=shown)


def take_out(path: Path, places: Collection[tuple[str, str]], root: Path, *, shown: str) -> None:
    """Take recordings off a cassette; delete it where none is left. Raises `CassetteError`."""
    recording = read_recording(path, shown=shown)
    if recording is None:
        return
    kept = tuple(each for each in recording.interactions if (each.key, each.origin) not in places)
    if kept:
        write_recording(path, replace(recording, interactions=kept), shown=shown)
    else:
        delete(path, root, shown=shown)


def delete(path: Path, root: Path, *, shown: str) -> None:
    """Delete a file, and the folders under `root` that it leaves empty. Raises `CassetteError` where it stays."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise CassetteError(f"{shown}: it cannot be deleted: {error.strerror}") from error
    with suppress(OSError):  # a folder that is not empty, or that stays
        for folder in takewhile(lambda folder: folder != root and folder.is_relative_to(root), path.parents):
            folder.rmdir()
