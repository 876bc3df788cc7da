"""Run calls in threads that never keep a process from ending."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


def in_thread(function: Callable[[], T], *, timeout_s: float) -> T:
    """Give what `function` returns, or raise what it raises or, after `timeout_s` seconds, `TimeoutError`.

    It runs in a thread of its own, in a copy of this context: there is no running event loop in its way, and one that
    never answers can be left behind.
    """
    answer: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            answer.put((function(), None))
        except BaseException as error:  # raised again where the answer is waited for
            answer.put((None, error))

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="ctxeval-judge", daemon=True).start()
    try:
        value, error = answer.get(timeout=timeout_s)
    except Exception:  # queue.Empty
        raise TimeoutError from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # a T where there is no error


def side_by_side(functions: Sequence[Callable[[], T]], *, limit: int) -> list[T]:
    """Run the functions with at most `limit` at a time and give what they return, in order.

    The first error in order is raised, once all that were started have ended.
    """
    if len(functions) == 1 or limit == 1:
        return [function() for function in functions]
    places = threading.Semaphore(limit)
    ended: list[tuple[T | None, BaseException | None]] = [(None, None)] * len(functions)

    def run(number: int) -> None:
        with places:
            try:
                ended[number] = (functions[number](), None)
            except BaseException as error:  # raised again below
                ended[number] = (None, error)

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(run, number), name="ctxeval-judge", daemon=True)
        for number in range(len(functions))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _, error in ended:
        if error is not None:
            raise error
    return [value for value, _ in ended]  # type: ignore[misc]  # likewise
