"""One test's cassette: what it holds, what its record mode allows, what is kept of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from pytest_ctxeval._core.verdict import Calls
from pytest_ctxeval._judge.cassette.file import Recording, read_recording, write_recording
from pytest_ctxeval._judge.cassette.key import request_key
from pytest_ctxeval._judge.cassette.trim import Interaction, rename

RecordMode = Literal["none", "once", "new_episodes", "all", "off"]

ACTIVE: Final[ContextVar[Call | None]] = ContextVar("ctxeval_call", default=None)


@dataclass(frozen=True, slots=True)
class Miss:
    """A request that is not recorded and must not be recorded now."""

    method: str
    uri: str
    body: str | bytes


@dataclass(slots=True)
class Call:
    """What happened at the transport during one call of a model, in whatever thread or task it ran.

    `may_record` is false where the cassette is only asked whether it has the answer.
    """

    tape: Tape
    sample: int = 0
    may_record: bool = True
    recorded: list[Interaction] = field(default_factory=list)
    replayed: int = 0
    misses: list[Miss] = field(default_factory=list)
    keyless: bool = False

    @property
    def seen(self) -> int:
        """How many requests came by."""
        return self.replayed + len(self.recorded) + len(self.misses) + self.keyless

    def find(self, method: str, uri: str, body: str | bytes) -> Interaction | None:
        """Give the recorded exchange for a request, if there is one to replay."""
        key = request_key(method, uri, rename(body, self.tape.renamed), self.sample)
        fresh = next((made for made in reversed(self.recorded) if made.key == key and made.is_good), None)
        return fresh or self.tape.find(key)

    @property
    def records(self) -> bool:
        """Whether a request that is not recorded may go out."""
        return self.may_record and self.tape.records


class Tape:
    """The cassette of one test. Nothing is read before the first request and nothing written before `close`."""

    def __init__(self, path: Path, *, node: str, mode: RecordMode, shown: str) -> None:
        self.path = path
        self.node = node
        self.mode: RecordMode = mode
        self.shown = shown
        self.judge = ""
        self.client = ""
        self.renamed: dict[str, str] = {}
        self._old: Recording | None = None
        self._read = False
        self._by_key: dict[str, Interaction] = {}
        self._new: dict[str, Interaction] = {}

    @property
    def old(self) -> Recording | None:
        """What the file holds, None where there is no file. Raises `CassetteReadError` where it is damaged."""
        if not self._read:
            self._old = read_recording(self.path, shown=self.shown)
            self._by_key = {each.key: each for each in self._old.interactions} if self._old else {}
            self._read = True
        return self._old

    @property
    def records(self) -> bool:
        """Whether the mode allows to record what is not on the cassette."""
        if self.mode == "once":
            return self.old is None or not self.old.complete
        return self.mode in ("new_episodes", "all")

    def find(self, key: str) -> Interaction | None:
        """Give a recorded exchange: of this run, or of the file unless all is recorded anew."""
        found = self._new.get(key)
        if found is None and self.old is not None and self.mode != "all":
            found = self._by_key.get(key)
        return found

    @contextmanager
    def call(self, *, sample: int = 0, may_record: bool = True) -> Iterator[Call]:
        """Route the requests of this block, and of what it starts in its context, to this cassette."""
        _ = self.old
        call = Call(self, sample=sample, may_record=may_record)
        token = ACTIVE.set(call)
        try:
            yield call
        finally:
            ACTIVE.reset(token)

    def keep(self, call: Call) -> Calls:
        """Keep the good exchanges of a call that succeeded, and count them."""
        good = {made.key: made for made in call.recorded if made.is_good}
        self._new.update(good)
        return Calls(replayed=call.replayed, recorded=len(good))

    def close(self, *, finished: bool) -> None:
        """Write what was recorded. `finished` says that the test ran to its end, so that nothing is missing.

        Recording everything anew replaces the file only when all is in. Where the same answers came again, the
        file stays as it is to the byte. Raises `CassetteError` where it must not or cannot be written.
        """
        if not self._new and not self._finishes(finished=finished):
            return
        old = self.old
        if self.mode == "all":
            if old is not None and not finished:
                return
            merged = self._in_old_order({})
        else:
            merged = self._in_old_order(self._by_key)
        if old is not None and old.interactions == merged and old.complete >= finished:
            return
        judge, client = (self.judge, self.client) if self._new or old is None else (old.judge, old.client)
        made = Recording(node=self.node, judge=judge, client=client, complete=finished, interactions=merged)
        write_recording(self.path, made, shown=self.shown)

    def _finishes(self, *, finished: bool) -> bool:
        """Whether an interrupted recording turns out to be whole."""
        interrupted = self._old is not None and not self._old.complete
        return finished and interrupted and self.mode in ("once", "new_episodes")

    def _in_old_order(self, kept: dict[str, Interaction]) -> tuple[Interaction, ...]:
        place = {key: number for number, key in enumerate(self._by_key)}
        merged = {**kept, **self._new}
        return tuple(sorted(merged.values(), key=lambda made: place.get(made.key, len(place))))
