"""One test's cassette: what it holds, what its record mode allows, what is kept of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pytest_ctxeval._core.verdict import Calls
from pytest_ctxeval._judge.cassette.file import Recording, Written, read_recording, write_recording
from pytest_ctxeval._judge.cassette.ids import settled
from pytest_ctxeval._judge.cassette.key import origin_of, request_key
from pytest_ctxeval._judge.cassette.shelf import Loan, Neighbours
from pytest_ctxeval._judge.cassette.trim import Interaction
from pytest_ctxeval._judge.pace import Pace
from pytest_ctxeval.errors import CassetteReadError

RecordMode = Literal["none", "once", "new_episodes", "all", "off"]

# How a test came to its end: with every assertion true; at one that was not; at anything else, so that calls may be
# missing.
Ending = Literal["passed", "asserted", "broken"]

Place = tuple[str, str]  # of an interaction on a cassette: its key and its origin
_Interactions = dict[Place, Interaction]

ACTIVE: Final[ContextVar[Call | None]] = ContextVar("ctxeval_call", default=None)
# The open blocks of assistants that are only replayed: beside them nothing goes out from threads that lack the context.
REPLAYING: Final[list[Call]] = []


@dataclass(frozen=True, slots=True)
class Miss:
    """A request that is not recorded and must not be recorded now."""

    method: str
    uri: str
    body: str | bytes


@dataclass(slots=True, eq=False)
class Call:
    """What happened at the transport during one call of a model, in whatever thread or task it ran.

    `rank` is its place among the calls of its test, whichever of them ends first. `may_record` is false where the
    cassette is only asked whether it has the answer. `sent` counts what went out;
    `strays` are addresses asked for from threads without the context; `keyless` says that a request was
    held back for want of a key, `mocked` that another tool answered in the place of the network, `nested` that another
    block was opened inside. Two calls are never the same, whatever they count.
    """

    tape: Tape
    rank: int = 0
    sample: int = 0
    may_record: bool = True
    recorded: list[Interaction] = field(default_factory=list)
    replayed: int = 0
    last: Interaction | None = None
    misses: list[Miss] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    sent: int = 0
    keyless: bool = False
    mocked: bool = False
    nested: bool = False

    @property
    def seen(self) -> int:
        """How many requests came by."""
        return self.replayed + self.sent + len(self.misses) + self.keyless

    @property
    def costs(self) -> Calls:
        """What the requests come to where none of them is kept."""
        return Calls(replayed=self.replayed, live=self.sent)

    def find(self, method: str, uri: str, body: str | bytes) -> Interaction | None:
        """Give the recorded exchange for a request, if there is one to replay."""
        key = request_key(method, uri, body, self.sample)
        origin = origin_of(uri)
        fresh = (made for made in reversed(self.recorded) if made.key == key and made.is_good)
        return next((made for made in fresh if made.origin == origin), None) or self.tape.find(key, origin)

    @property
    def records(self) -> bool:
        """Whether a request that is not recorded may go out."""
        return self.may_record and self.tape.records


class Use(NamedTuple):
    """What a test made of its cassettes.

    `unplayed` are the places on its own that it passed without asking for; `lent` those that it found on another
    test's, with the path of that one.
    """

    unplayed: tuple[Place, ...] = ()
    lent: tuple[tuple[str, str, str], ...] = ()


class Tape:
    """The cassette of one test. Nothing is read before the first request and nothing written before `close`.

    `neighbours` are asked for what it lacks.
    """

    def __init__(
        self, path: Path, *, node: str, mode: RecordMode, shown: str, neighbours: Neighbours | None = None
    ) -> None:
        self.path = path
        self.node = node
        self.mode: RecordMode = mode
        self.shown = shown
        self.judge = ""
        self.client = ""
        self.pace: Pace | None = None  # where many tests are judged at once
        self._old: Recording | None = None
        self._read = False
        self._written: Written | None = None
        self.lock = threading.RLock()  # of reading
        self._held: _Interactions = {}
        self._by_key: dict[str, list[Interaction]] = {}
        self._new: _Interactions = {}
        self._pending: _Interactions = {}
        self._neighbours = neighbours
        self._played: set[Place] = set()
        self._lent: dict[Place, Loan] = {}
        self._ranks: dict[Place, int] = {}  # of the calls that recorded them
        self._next_rank = count()
        self._standing_in: dict[Place, str] = {}  # for which origin a recording of another has been played

    @property
    def old(self) -> Recording | None:
        """What the file holds, None where there is no file. Raises `CassetteReadError` where it is damaged."""
        if not self._read:
            with self.lock:  # threads may ask at once
                self._old = self._old or read_recording(self.path, shown=self.shown)
                self._held = {(each.key, each.origin): each for each in self._old.interactions} if self._old else {}
                by_key: dict[str, list[Interaction]] = {}
                for each in self._held.values():
                    by_key.setdefault(each.key, []).append(each)
                self._by_key = by_key
                self._read = True
        return self._old

    @property
    def records(self) -> bool:
        """Whether the mode allows to record what is not on the cassette."""
        if self.mode == "once":
            return self.old is None or not self.old.complete
        return self.mode in ("new_episodes", "all")

    def find(self, key: str, origin: str) -> Interaction | None:
        """Give a recorded exchange: of this run, or of the file unless all is recorded anew.

        A server of a test has another port each day, so what was recorded at another scheme or port stands for it,
        unless several servers of one host were asked the same.
        """
        found = self._new.get((key, origin)) or self._pending.get((key, origin))
        if found is None and self.old is not None and self.mode != "all":
            found = self._held.get((key, origin)) or self._stand_in(key, origin)
        if found is None and self.mode != "all":
            return self._borrowed(key, origin)
        if found is not None:
            self._played.add((found.key, found.origin))
        return found

    def _stand_in(self, key: str, origin: str) -> Interaction | None:
        """Give the only recording of a request at another origin, to the first one that asks."""
        known = self._by_key.get(key, [])
        if len(known) != 1 or (key, known[0].origin) in self._played - self._standing_in.keys():
            return None
        first = self._standing_in.setdefault((key, known[0].origin), origin)
        return known[0] if first == origin else None

    def _borrowed(self, key: str, origin: str) -> Interaction | None:
        """Give what another test's cassette holds; where it could be recorded, only of a test that is gone."""
        if self._neighbours is None:
            return None
        loan = self._neighbours.find(self.path, key, origin, moved_only=self.records)
        if loan is None:
            return None
        self._lent[key, loan.interaction.origin] = loan
        return loan.interaction

    @property
    def source(self) -> str:
        """The file from which answers came, as messages call it: another test's where this one's has given none."""
        loan = next(iter(self._lent.values()), None)
        return loan.shown if loan and not self._played and not self._new else self.shown

    def use(self, ending: Ending) -> Use:
        """Say what a test made of its cassettes, as far as it has come."""
        lent = tuple((*place, str(loan.path)) for place, loan in self._lent.items())
        if ending != "passed" or self.mode == "all":
            return Use(lent=lent)
        if not self._read and self.path.exists():
            with suppress(CassetteReadError):
                _ = self.old
        # A run of more samples asks for the others.
        asked = {0, *(made.sample for place, made in self._held.items() if place in self._played)}
        unplayed = tuple(
            place
            for place, made in self._held.items()
            if place not in self._played and place not in self._new and made.sample in asked
        )
        return Use(unplayed, lent)

    @contextmanager
    def call(self, *, rank: int | None = None, sample: int = 0, may_record: bool = True) -> Iterator[Call]:
        """Route the requests of this block, and of what it starts in its context, to this cassette."""
        _ = self.old
        rank = self.next_rank() if rank is None else rank
        call, before = Call(self, rank=rank, sample=sample, may_record=may_record), ACTIVE.get()
        ACTIVE.set(call)
        try:
            yield call
        finally:
            if ACTIVE.get() is call:  # an async fixture, or the garbage collection, may leave it in another context
                ACTIVE.set(before)

    def next_rank(self) -> int:
        """Give the place of the next call among the recordings: those of calls made side by side do not change it."""
        return next(self._next_rank)

    def keep(self, call: Call, *, if_finished: bool = False, refusals: bool = False, of_judge: bool = False) -> Calls:
        """Keep the good exchanges of a call that succeeded, and count them; what else went out was live.

        `if_finished` keeps them only if the test comes to its end: of a call that failed, and was meant to. `refusals`
        keeps what a server refused for good as well, as an assistant's tool that finds nothing, where nothing better
        came of the same request. What is made up in the answers to a judge hangs on nothing (`of_judge`).
        """
        made = [each for each in call.recorded if refusals and each.is_refused]
        kept = {(each.key, each.origin): each for each in [*made, *(each for each in call.recorded if each.is_good)]}
        if of_judge:
            kept = {(each.key, each.origin): each for each in settled([*kept.values()])}
        for place in kept:
            self._ranks.setdefault(place, call.rank)
        (self._pending if if_finished else self._new).update(kept)
        return Calls(replayed=call.replayed, recorded=len(kept), live=call.sent - len(kept))

    def close(self, ending: Ending) -> bool:
        """Write what was recorded, and say whether the file now holds it.

        Recording everything anew drops what a passed test did not use, and leaves the old file as it is where the
        test broke before all was in. Where the same answers came again, the file stays as it is to the byte. Raises
        `CassetteError` where it must not or cannot be written.
        """
        finished = ending != "broken"
        if finished:
            self._new = {**self._pending, **self._new}
        self._new = dict(sorted(self._new.items(), key=lambda made: self._ranks.get(made[0], -1)))
        if not self._new and not self._finishes(finished=ending == "passed"):
            return True
        if self._new:  # with what it was lent, so that the file is whole by itself
            self._new = {**{place: loan.interaction for place, loan in self._lent.items()}, **self._new}
            self._lent.clear()
        old = self.old
        if self.mode == "all" and old is not None and not finished:
            return False
        if ending == "passed":
            self._settle()
        anew = {made.key for made in self._new.values()} if self.mode == "all" else set()
        kept = {place: made for place, made in self._held.items() if made.key not in anew}
        merged = self._in_old_order({} if self.mode == "all" and ending == "passed" else kept)
        complete = ending == "passed" or (old is not None and old.complete)
        if old is not None and old.interactions == merged and old.complete == complete:
            return True
        judge, client = (self.judge, self.client) if self._new or old is None else (old.judge, old.client)
        made = Recording(node=self.node, judge=judge, client=client, complete=complete, interactions=merged)
        self._written = write_recording(self.path, made, shown=self.shown, last=self._written)
        return True

    def _settle(self) -> None:
        """Fix the ids that servers have made up, now that nothing more is asked: until then they must be real ones."""
        first = self._held if self._old is not None and not self._old.complete and self.mode != "all" else {}
        made = settled([*first.values(), *self._new.values()])
        if first:
            self._held = {}
        self._new = {(each.key, each.origin): each for each in made}

    def _finishes(self, *, finished: bool) -> bool:
        """Whether an interrupted recording turns out to be whole."""
        interrupted = self._old is not None and not self._old.complete
        return finished and interrupted and self.mode in ("once", "new_episodes")

    def _in_old_order(self, kept: _Interactions) -> tuple[Interaction, ...]:
        place = {key: number for number, key in enumerate(self._by_key)}
        merged = {**kept, **self._new}
        return tuple(sorted(merged.values(), key=lambda made: place.get(made.key, len(place))))
