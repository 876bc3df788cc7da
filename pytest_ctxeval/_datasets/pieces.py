"""Join the pieces of sessions, wherever they stand, into one dataset per session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from pytest_ctxeval._core.data import SESSION_FIELDS, Batch, ContextCase, Dataset, build
from pytest_ctxeval.errors import ConfigError


class Piece(NamedTuple):
    """A part of a session and where it stands: a whole dataset, or one row of a file.

    `given` names the session's fields that the place itself states; the others are defaults. `context` is not in
    `session` where neither gives it. Each batch comes with its own place.
    """

    where: str
    session: Mapping[str, str]
    given: Collection[str]
    batches: Sequence[tuple[str, Batch]]


def piece_of_dataset(dataset: Dataset, where: str) -> Piece:
    """Take a whole dataset as a piece, which states all of its session's fields."""
    session = {name: getattr(dataset, name) for name in SESSION_FIELDS}
    batches = [(f"{where}, conversation.{at}", batch) for at, batch in enumerate(dataset.conversation)]
    return Piece(where, session, SESSION_FIELDS, batches)


def piece_of_row(fields: Mapping[str, Any], where: str, *, defaults: Mapping[str, str]) -> Piece:
    """Read a flat row: the fields of a batch, and those of its session that are not in `defaults`.

    Raises `ConfigError` for an unknown field, a missing one or a wrong value.
    """
    row = build(_Row, {**defaults, **fields}, where=where)
    session = {name: getattr(row, name) for name in SESSION_FIELDS if name in row.model_fields_set or name != "context"}
    batch = Batch(**{name: getattr(row, name) for name in Batch.model_fields})
    return Piece(where, session, fields.keys() & SESSION_FIELDS, [(where, batch)])


def join(pieces: Iterable[Piece]) -> list[Dataset]:
    """Make one dataset per session, sessions and cases in order of first appearance.

    Raises `ConfigError` as `Seen.check` does.
    """
    seen = Seen()
    sessions: dict[str, tuple[Mapping[str, str], list[Batch]]] = {}
    for piece in pieces:
        seen.check(piece)
        _, batches = sessions.setdefault(piece.session["session_id"], (piece.session, []))
        batches += [batch for _, batch in piece.batches]
    return [Dataset(**fields, conversation=batches) for fields, batches in sessions.values()]


class Seen:
    """The sessions and cases met so far. Of them only names, places and digests are kept, however long they are."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}

    def check(self, piece: Piece) -> None:
        """Take note of a piece.

        Raises `ConfigError`, naming both places, for a qa_id that comes twice in a session and for a session with
        two contexts, assistants or languages: the first is never silently dropped.
        """
        session_id = piece.session["session_id"]
        if session_id not in self._sessions:
            self._sessions[session_id] = _opened_by(piece)
        session = self._sessions[session_id]
        for name in SESSION_FIELDS:
            if name in piece.given and _digest(piece.session[name]) != session.digests[name]:
                raise ConfigError(
                    f"{piece.where}: field {name!r}: session {session_id!r} has another {name} "
                    f"at {session.where}; repeat that one, or use another session_id"
                )
        for where, batch in piece.batches:
            if batch.qa_id in session.places:
                raise ConfigError(
                    f"{where}: field 'qa_id': {batch.qa_id!r} stands already at {session.places[batch.qa_id]} "
                    f"in session {session_id!r}; each case of a session needs a qa_id of its own"
                )
            session.places[batch.qa_id] = where


class _Row(ContextCase):
    """A case as a file states it: here the query is required."""

    query: str


@dataclass(frozen=True, slots=True)
class _Session:
    where: str
    digests: Mapping[str, bytes]
    places: dict[str, str] = field(default_factory=dict)


def _opened_by(piece: Piece) -> _Session:
    if "context" not in piece.session:
        raise ConfigError(
            f"{piece.where}: field 'context' is missing; the first row of session "
            f"{piece.session['session_id']!r} must give it, or the marker: context=..."
        )
    return _Session(piece.where, {name: _digest(text) for name, text in piece.session.items()})


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
