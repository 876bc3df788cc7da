"""The assistant under test, when its own model calls are recorded."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import Calls
from pytest_ctxeval._judge.cassette.miss import keyless_error, miss_error
from pytest_ctxeval._judge.cassette.secrets import redact
from pytest_ctxeval._judge.cassette.tape import ACTIVE, REPLAYING, Call, Tape
from pytest_ctxeval._judge.cassette.transport import install
from pytest_ctxeval._judge.placeholder import placeholder_keys
from pytest_ctxeval.errors import CassetteError, CassetteMissError


def is_assertion(error: BaseException) -> bool:
    """Whether a test failed because something was asserted that is not so, and not because something broke."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_assertion(each) for each in error.exceptions)
    return isinstance(error, (AssertionError, pytest.fail.Exception))


class AssistantCassette:
    """`with ctxeval_cassette:` puts the assistant's own model calls on the cassette of the test.

    The same one may be entered again, by several tasks or threads at a time as well.
    """

    def __init__(self, tape: Tape | None) -> None:
        self._tape = tape
        self._open: list[tuple[Call, ExitStack]] = []
        self._lock = threading.Lock()
        self.calls = Calls()

    def __enter__(self) -> None:
        """Record or replay what is asked over HTTP in the block."""
        __tracebackhide__ = True
        if self._tape is None:
            return
        install()
        with ExitStack() as stack:
            stack.enter_context(placeholder_keys())
            call = stack.enter_context(self._tape.call())
            if not self._tape.records:
                REPLAYING.append(call)
                stack.callback(REPLAYING.remove, call)
            self._open.append((call, stack.pop_all()))

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Keep what was recorded. Raises `CassetteMissError` where something was asked that is not recorded."""
        __tracebackhide__ = True
        if self._tape is None:
            return
        call = self._leave()
        went_well = error is None or is_assertion(error)
        kept = self._tape.keep(call, if_finished=not went_well, refusals=went_well)
        with self._lock:
            self.calls += kept
        problem = self._problem(self._tape, call, nothing_is_wrong=error is None)
        if problem is not None:
            raise problem from None

    def _leave(self) -> Call:
        """Close the block of this task or thread, or else the one that was opened last."""
        active = ACTIVE.get()
        with self._lock:
            entry = next((each for each in reversed(self._open) if each[0] is active), self._open[-1])
            self._open.remove(entry)
        call, stack = entry
        stack.close()
        outer = ACTIVE.get()
        if outer is not None and outer.tape is self._tape:
            outer.nested = True
        return call

    @staticmethod
    def _problem(tape: Tape, call: Call, *, nothing_is_wrong: bool) -> Exception | None:
        if call.misses:
            return miss_error(tape, call.misses[:1])
        if call.strays:
            return CassetteMissError(
                f"{one_line(redact(call.strays[0]), 200)} was asked for beside 'with ctxeval_cassette:', from a thread "
                "that does not know of the block, and nothing may go out while an assistant is replayed; start such "
                "calls with asyncio.to_thread or contextvars.copy_context().run, and record the test again"
            )
        if call.keyless:
            return keyless_error(tape, "the assistant's model")
        if nothing_is_wrong and not call.seen and not call.nested:
            return CassetteError(
                "nothing was asked over HTTP inside 'with ctxeval_cassette:' that could be recorded or replayed; call "
                "the assistant inside the block, or use --ctxeval-record=off for one that runs in this process"
            )
        return None
