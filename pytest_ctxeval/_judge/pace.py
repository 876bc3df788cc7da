"""How fast a judge may be asked, by all the calls of a pool together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Final

from pytest_ctxeval.errors import JudgeUnreachableError

BUSY: Final = frozenset({429, 503, 529})  # too many requests; no room at present, in HTTP's words and in Anthropic's


class Pace:
    """Lets calls begin, at most `width` in flight; where the judge tells one of them to wait, all the others wait.

    After such an answer half as many calls may be in flight, and for each good one a little more again, up to `width`:
    additive increase, multiplicative decrease, as TCP does it (RFC 5681). Nobody waits longer than `longest_s` seconds.
    """

    def __init__(self, width: int, *, longest_s: float) -> None:
        self._width = self._room = float(width)
        self._longest_s = longest_s
        self._in_flight = 0
        self._not_before = 0.0  # on the monotonic clock
        self._changed = threading.Condition()
        self.is_stopped = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until a call may begin; it is in flight as long as the block runs.

        Raises `JudgeUnreachableError` once no call may begin any more.
        """
        with self._changed:
            while not self.is_stopped and (pause_s := self._pause_s()) != 0:
                self._changed.wait(pause_s)
            if self.is_stopped:
                told = "the judge has refused another call, so this one was not made"
                raise JudgeUnreachableError(told, refused=True)
            self._in_flight += 1
        try:
            yield
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Let no call begin any more."""
        with self._changed:
            self.is_stopped = True
            self._changed.notify_all()

    def _pause_s(self) -> float | None:
        """How long a call must wait: 0 where it may begin, None until another one ends."""
        pause_s = self._not_before - time.monotonic()
        if pause_s > 0:
            return pause_s
        return None if self._in_flight >= int(self._room) else 0

    def note(self, status: int, headers: Mapping[str, Sequence[str]]) -> None:
        """Learn from an answer of the judge."""
        with self._changed:
            if status in BUSY:
                now = time.monotonic()
                if now >= self._not_before:  # those that were in flight with the first one tell the same
                    self._room = max(1.0, self._room / 2)
                self._not_before = max(self._not_before, now + min(_wait_s(headers), self._longest_s))
            elif status < 400:
                self._room = min(self._width, self._room + 1 / self._room)
                self._changed.notify_all()


def _wait_s(headers: Mapping[str, Sequence[str]]) -> float:
    """How long `Retry-After` says to wait, in seconds or until a date; without it, for a second."""
    found = next((values[0] for name, values in headers.items() if name.lower() == "retry-after" and values), "1")
    try:
        return max(0.0, float(found))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(found).timestamp() - time.time())
    except ValueError:
        return 1.0
