"""Calls side by side. What is looked at here shows outside only as time, or as memory."""

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial

import pytest

from pytest_ctxeval._judge.threads import AHEAD, as_they_end, in_order, in_thread, side_by_side


class Crowd:
    """Counts how many of its calls run at a time; each waits until so many are there, so no clock is needed."""

    def __init__(self, together: int) -> None:
        self._barrier = threading.Barrier(together)
        self._lock = threading.Lock()
        self.running = self.most = self.begun = 0

    def call(self, number: int) -> int:
        with self._lock:
            self.begun += 1
            self.running += 1
            self.most = max(self.most, self.running)
        self._barrier.wait(timeout=30)
        with self._lock:
            self.running -= 1
        return number


def test_what_runs_side_by_side_comes_back_in_order() -> None:
    crowd = Crowd(4)
    assert side_by_side([partial(crowd.call, number) for number in range(12)], limit=4) == [*range(12)]
    assert crowd.most == 4


def test_a_stream_runs_side_by_side_and_comes_back_in_order() -> None:
    crowd = Crowd(4)
    assert [*in_order((partial(crowd.call, number) for number in range(12)), limit=4)] == [*range(12)]
    assert crowd.most == 4


@pytest.mark.parametrize("limit", [1, 3])
def test_an_endless_stream_is_read_no_further_than_it_must_be(limit: int) -> None:
    read = []

    def endless() -> Iterator[Callable[[], int]]:
        while True:
            read.append(1)
            yield lambda: 7

    found = in_order(endless(), limit=limit)
    assert [next(found) for _ in range(20)] == [7] * 20
    assert len(read) <= 20 + AHEAD * limit
    found.close()  # type: ignore[attr-defined]  # it is a generator


@pytest.mark.parametrize("limit", [1, 8])
def test_all_are_run_though_one_fails_and_the_first_error_in_order_is_raised(limit: int) -> None:
    ran = []

    def call(number: int) -> int:
        ran.append(number)
        if number in (2, 4):
            raise ValueError(number)
        return number

    with pytest.raises(ValueError, match="2"):
        side_by_side([partial(call, number) for number in range(6)], limit=limit)
    assert sorted(ran) == [*range(6)]


def test_an_error_in_a_stream_comes_in_its_place_and_ends_it() -> None:
    def call(number: int) -> int:
        if number == 2:
            raise ValueError(number)
        return number

    found: list[int] = []
    with pytest.raises(ValueError, match="2"):
        found.extend(in_order((partial(call, number) for number in range(100)), limit=2))
    assert found == [0, 1]


def test_an_error_of_the_source_is_raised_once_what_had_begun_has_ended() -> None:
    begun, released = threading.Event(), threading.Event()
    ended = []

    def call() -> None:
        begun.set()
        ended.append(released.wait(timeout=30))

    def source() -> Iterator[Callable[[], None]]:
        yield call
        begun.wait(timeout=30)
        threading.Timer(0.05, released.set).start()
        raise LookupError("the source")

    with pytest.raises(LookupError, match="the source"):
        list(in_order(source(), limit=2))
    assert ended == [True]


def test_what_ends_first_comes_first_and_one_that_hangs_holds_nobody_up() -> None:
    release = threading.Event()

    def call(number: int) -> int:
        if number == 0:
            release.wait(30)
        return number

    found = as_they_end((partial(call, number) for number in range(20)), limit=2)
    assert [next(found) for _ in range(19)] == [*range(1, 20)]
    release.set()
    assert [*found] == [0]


def test_nothing_more_begins_once_the_loop_is_left() -> None:
    begun = []

    def call(number: int) -> None:
        begun.append(number)
        if number == 3:
            raise ValueError(number)

    with pytest.raises(ValueError, match="3"):
        list(as_they_end((partial(call, number) for number in range(1000)), limit=1))
    assert len(begun) < 1000


def test_a_thread_that_never_answers_is_left_behind() -> None:
    release = threading.Event()
    with pytest.raises(TimeoutError):
        in_thread(release.wait, timeout_s=0.01)
    release.set()
    assert in_thread(lambda: 3, timeout_s=30) == 3


def test_a_thread_that_is_used_again_knows_nothing_of_the_call_before() -> None:
    variable: ContextVar[str] = ContextVar("variable")

    def seen() -> tuple[str, int]:
        before = variable.get("nothing")
        variable.set("left behind")
        return before, threading.get_ident()

    found = [in_thread(seen, timeout_s=30) for _ in range(20)]
    assert {before for before, _ in found} == {"nothing"}
    assert len({thread for _, thread in found}) < 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_process_waits_for_no_thread_of_its_parent() -> None:
    in_thread(int, timeout_s=30)
    with warnings.catch_warnings():  # newer Pythons warn of a fork beside threads
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os._exit(in_thread(lambda: 7, timeout_s=30))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
