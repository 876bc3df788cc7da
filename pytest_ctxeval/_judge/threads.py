"""Run calls in threads that never keep a process from ending."""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
_Ended: TypeAlias = tuple[T | None, BaseException | None]
_Answer: TypeAlias = "SimpleQueue[_Ended[T]]"

_Work: TypeAlias = Callable[[Callable[[], None]], None]  # gets what to call when its thread is free again

AHEAD: Final = 4

_PATIENCE_S: Final = 1.0
_lock = threading.Lock()
_idle: Final[
    list[SimpleQueue[_Work]]
] = []  # the inboxes of threads that wait; starting one costs more than a hand-over
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # threads stay with the parent


def in_thread(function: Callable[[], T], *, timeout_s: float) -> T:
    """Give what `function` returns, or raise what it raises or, after `timeout_s` seconds, `TimeoutError`.

    It runs in another thread, in a copy of this context: there is no running event loop in its way, and one that never
    answers can be left behind.
    """
    answer = _started(function, threading.Semaphore())
    try:
        ended = answer.get(timeout=timeout_s)
    except Empty:
        raise TimeoutError from None
    return _value(ended)


def side_by_side(functions: Sequence[Callable[[], T]], *, limit: int) -> list[T]:
    """Run the functions with at most `limit` at a time and give what they return, in order.

    All are run, whatever becomes of the others; then the first error in order is raised.
    """
    if len(functions) == 1 or limit == 1:
        ended = [_ended(function) for function in functions]
    else:
        places = threading.Semaphore(limit)
        answers = [_started(function, places) for function in functions]
        ended = [answer.get() for answer in answers]
    return [_value(each) for each in ended]


def in_order(functions: Iterable[Callable[[], T]], *, limit: int) -> Iterator[T]:
    """Run the functions as they come, at most `limit` at a time, and give what they return, in order.

    What they come from is read ahead by at most `AHEAD` times `limit`, so it may be endless. An error of theirs is
    raised in its place, once those that had begun have ended; the others are then not begun.
    """
    if limit == 1:
        yield from (function() for function in functions)
        return
    places, stopped = threading.Semaphore(limit), threading.Event()
    answers: deque[_Answer[T]] = deque()
    try:
        for function in functions:
            answers.append(_started(function, places, stopped))
            if len(answers) >= AHEAD * limit:
                yield _value(answers.popleft().get())
        while answers:
            yield _value(answers.popleft().get())
    except Exception:
        stopped.set()
        for answer in answers:
            answer.get()
        raise
    finally:
        stopped.set()


def as_they_end(functions: Iterable[Callable[[], T]], *, limit: int) -> Iterator[T]:
    """Run the functions with at most `limit` at a time, and give what each returns as soon as it ends.

    The first error is raised. After that, or once the loop is left, no further function begins.
    """
    waiting = deque(functions)
    ended: SimpleQueue[_Ended[T] | None] = SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        with suppress(IndexError):  # none waits any more
            while not stopped.is_set():
                each = _ended(waiting.popleft())
                if each[1] is not None:
                    stopped.set()
                ended.put(each)
        ended.put(None)

    try:
        for _ in range(limit):
            _started(work, threading.Semaphore())
        working = limit
        while working:
            each = ended.get()
            if each is None:
                working -= 1
            else:
                yield _value(each)
    finally:
        stopped.set()


def _started(
    function: Callable[[], T], places: threading.Semaphore, stopped: threading.Event | None = None
) -> _Answer[T]:
    """Begin in another thread, in a copy of this context, once there is a place."""
    answer: _Answer[T] = SimpleQueue()

    def run(free: Callable[[], None]) -> None:
        with places:
            ended: _Ended[T] = (None, None) if stopped is not None and stopped.is_set() else _ended(function)
            free()  # before the answer is there, or else whoever waits for it would start another thread
            answer.put(ended)

    context = contextvars.copy_context()
    _hand_over(lambda free: context.run(run, free))
    return answer


def _hand_over(work: _Work) -> None:
    """Give work to a thread that waits for some, or else to a new one."""
    with _lock:
        inbox = _idle.pop() if _idle else None
    if inbox is None:
        inbox = SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), name="ctxeval-judge", daemon=True).start()
    inbox.put(work)


def _serve(inbox: SimpleQueue[_Work]) -> None:
    """Do what comes in, one at a time, until for a while nothing does."""

    def free() -> None:
        with _lock:
            _idle.append(inbox)

    while True:
        try:
            inbox.get(timeout=_PATIENCE_S)(free)
        except Empty:
            with _lock:
                if inbox in _idle:
                    _idle.remove(inbox)
                    return


def _ended(function: Callable[[], T]) -> _Ended[T]:
    try:
        return function(), None
    except BaseException as error:  # raised again where the answer is waited for
        return None, error


def _value(ended: _Ended[T]) -> T:
    value, error = ended
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # a T where there is no error
