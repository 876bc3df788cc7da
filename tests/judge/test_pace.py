"""How fast a pool of calls may ask: `Retry-After` holds all of them back, and fewer of them go on."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pytest_ctxeval._judge.pace import Pace
from pytest_ctxeval.errors import JudgeUnreachableError


def in_flight_at_once(pace: Pace, calls: int) -> int:
    """How many turns are taken while none is given back."""
    taken, enough = threading.Semaphore(0), threading.Event()

    def call() -> None:
        with pace.turn():
            taken.release()
            enough.wait(10)

    with ThreadPoolExecutor(calls) as pool:
        for _ in range(calls):
            pool.submit(call)
        count = 0
        while taken.acquire(timeout=0.3):
            count += 1
        enough.set()
    return count


def moment_of_turn(pace: Pace) -> float:
    with pace.turn():
        return time.monotonic()


def test_at_most_the_width_is_in_flight() -> None:
    assert in_flight_at_once(Pace(3, longest_s=1), 8) == 3


def test_one_that_is_told_to_wait_holds_all_back() -> None:
    pace = Pace(8, longest_s=10)
    told = time.monotonic()
    pace.note(429, {"Retry-After": ["0.4"]})
    with ThreadPoolExecutor(4) as pool:
        assert min(pool.map(lambda _: moment_of_turn(pace), range(4))) >= told + 0.4


def test_a_date_to_wait_until_is_understood() -> None:
    pace = Pace(8, longest_s=10)
    told = time.monotonic()
    pace.note(503, {"retry-after": [format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)]})
    assert moment_of_turn(pace) >= told + 1  # a date has whole seconds


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_one_that_asks_for_a_longer_pause_than_a_call_may_take_is_not_asked_again(form: str) -> None:
    pace = Pace(8, longest_s=120)
    tomorrow = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    pace.note(429, {"retry-after": [{"seconds": "3600", "date": tomorrow}[form]]})
    with (
        pytest.raises(JudgeUnreachableError, match=r"left alone for .* s, which is longer than the 120 s"),
        pace.turn(),
    ):
        pass


def test_fewer_go_on_after_calls_that_came_to_nothing() -> None:
    pace = Pace(8, longest_s=1)
    for transient in (False, True):
        with pytest.raises(JudgeUnreachableError), pace.turn(), pace.turn(), pace.turn():  # as if in flight together
            raise JudgeUnreachableError("no answer in time", transient=transient)
    assert in_flight_at_once(pace, 8) == 4


@pytest.mark.parametrize("told", [[], ["soon"], ["-3"]])
def test_what_cannot_be_read_stops_nobody_for_long(told: list[str]) -> None:
    pace = Pace(8, longest_s=0.2)
    pace.note(429, {"retry-after": told})
    moment_of_turn(pace)


def test_fewer_go_on_after_it_and_more_again_with_each_good_answer() -> None:
    pace = Pace(8, longest_s=0.01)
    for _ in range(5):  # in flight together: they tell the same
        pace.note(429, {"retry-after": ["0.01"]})
    time.sleep(0.02)
    assert in_flight_at_once(pace, 8) == 4
    for _ in range(40):
        pace.note(200, {})
    assert in_flight_at_once(pace, 10) == 8
