"""How fast a judge may be asked, by all the calls of a pool together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Final

from pytest_ctxeval.errors import JudgeUnreachableError

_BUSY: Final = frozenset({429, 503, 529})  # too many requests; no room at present, in HTTP's words and in Anthropic's


class Pace:
    """Lets calls begin, at most `width` in flight; where the judge tells one of them to wait, all the others wait.

    After such an answer, or none in time, half as many calls may be in flight, and for each good one a little more
    again, up to `width`: additive increase, multiplicative decrease, as TCP does it (RFC 5681). Nobody waits longer
    than `longest_s` seconds: a judge that asks for more is not asked again, and `stopped` says so.
    """

    def __init__(self, width: int, *, longest_s: float) -> None:
        self._width = self._room = float(width)
        self._longest_s = longest_s
        self._in_flight = 0
        self._not_before = 0.0  # on the monotonic clock
        self._narrowed = 0  # how often
        self._changed = threading.Condition()
        self.stopped = ""  # why no call may begin any more

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until a call may begin; it is in flight as long as the block runs.

        Raises `JudgeUnreachableError` once no call may begin any more.
        """
        with self._changed:
            while not self.stopped and (pause_s := self._pause_s()) != 0:
                self._changed.wait(pause_s)
            if self.stopped:
                raise JudgeUnreachableError(f"{self.stopped}, so this call was not made", transient=True)
            self._in_flight += 1
            narrowed = self._narrowed
        try:
            yield
        except JudgeUnreachableError as error:
            with self._changed:
                if error.transient and narrowed == self._narrowed:  # those in flight with the first one tell the same
                    self._narrow()
            raise
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def stop(self, why: str) -> None:
        """Let no call begin any more."""
        with self._changed:
            self.stopped = self.stopped or why
            self._changed.notify_all()

    def note(self, status: int, headers: Mapping[str, Sequence[str]]) -> None:
        """Learn from an answer of the judge."""
        if status in _BUSY:
            self._hold(_wait_s(headers))
        elif status < 400:
            with self._changed:
                self._room = min(self._width, self._room + 1 / self._room)
                self._changed.notify_all()

    def _hold(self, told_s: float | None) -> None:
        if told_s is not None and told_s > self._longest_s:
            limit = f"{self._longest_s:g} s that a call may take"
            self.stop(f"the judge asks to be left alone for {told_s:.0f} s, which is longer than the {limit}")
            return
        wait_s = min(1.0, self._longest_s) if told_s is None else told_s
        with self._changed:
            now = time.monotonic()
            if now >= self._not_before:  # those that were in flight with the first one tell the same
                self._narrow()
            self._not_before = max(self._not_before, now + wait_s)

    def _narrow(self) -> None:
        self._room = max(1.0, self._room / 2)
        self._narrowed += 1

    def _pause_s(self) -> float | None:
        """How long a call must wait: 0 where it may begin, None until another one ends."""
        pause_s = self._not_before - time.monotonic()
        if pause_s > 0:
            return pause_s
        return None if self._in_flight >= int(self._room) else 0


def _wait_s(headers: Mapping[str, Sequence[str]]) -> float | None:
    """How long `Retry-After` says to wait, in seconds or until a date; None where it cannot be read."""
    found = next((values[0] for name, values in headers.items() if name.lower() == "retry-after" and values), "")
    try:
        return max(0.0, float(found))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(found).timestamp() - time.time())
    except ValueError:
        return None
