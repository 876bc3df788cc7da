"""What the hooks do for one attempt at a test, in the process that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ctxeval._core.verdict import Calls
from pytest_ctxeval._plugin.assistant import is_assertion
from pytest_ctxeval._plugin.collect import check_item, planned
from pytest_ctxeval._plugin.ledger import ATTRIBUTE, ledger_of, to_text
from pytest_ctxeval._plugin.stash import ASSISTANT, BENCH, DESELECTED, ENDING, JUDGE, PART_FAILED, RESULTS, SENT, USE

if TYPE_CHECKING:
    from pytest_ctxeval._core.verdict import CaseResult
    from pytest_ctxeval._judge.cassette.tape import Ending

_OF_ATTEMPT: Final[tuple[pytest.StashKey[Any], ...]] = (JUDGE, ASSISTANT, RESULTS, SENT, ENDING, PART_FAILED, USE)


def announce(item: pytest.Item) -> None:
    """Tell the process that prints which case is next, before anything of the test can end this process.

    It goes as a report of an empty setup: reports are what pytest-xdist passes on as they are made.
    """
    report = pytest.TestReport(item.nodeid, item.location, {}, "passed", None, "setup")
    setattr(report, ATTRIBUTE, to_text([], assistant=Calls(), planned=planned(item)))
    item.ihook.pytest_runtest_logreport(report=report)


def start_attempt(item: pytest.Item) -> None:
    """Forget what an earlier attempt at this test has judged: the last one counts. Raises `ConfigError`."""
    if USE in item.stash:
        del item.stash[USE]
    item.stash[RESULTS], item.stash[SENT], item.stash[ENDING], item.stash[PART_FAILED] = [], -1, "broken", False
    check_item(item)


def attach_results(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put on the report what was judged so far, where it says more than the report before."""
    if call.when == "call":
        item.stash[ENDING] = _ending(call)
    results = item.stash.get(RESULTS, [])
    if call.when != "call" and len(results) == item.stash.get(SENT, -1):
        return
    item.stash[SENT] = len(results)
    setattr(report, ATTRIBUTE, _text(item, with_plan=call.when == "setup"))


def leave_clean() -> None:
    """Leave the environment as it was: a test's own monkeypatch may have put a placeholder back."""
    from pytest_ctxeval._judge.placeholder import sweep

    sweep()


def forget(item: pytest.Item) -> None:
    """Let go of what nobody asks a test for once it is over; pytest keeps the tests themselves until the run ends."""
    for key in _OF_ATTEMPT:
        if key in item.stash:
            del item.stash[key]


def keep_unreported(item: pytest.Item) -> None:
    """Keep what a test had judged when the run was broken off in it: pytest makes no report of that test."""
    if len(item.stash.get(RESULTS, [])) > item.stash.get(SENT, -1):
        ledger_of(item.config).take(item.nodeid, _text(item, with_plan=False))


def _text(item: pytest.Item, *, with_plan: bool) -> str:
    counter = item.stash.get(ASSISTANT, None)
    stopped = BENCH in item.config.stash and bool(item.config.stash[BENCH].stopped)
    results: list[CaseResult] = item.stash.get(RESULTS, [])
    return to_text(
        results,
        use=item.stash.get(USE, None),
        partial=bool(item.config.stash.get(DESELECTED, [])),
        assistant=counter.calls if counter is not None else Calls(),
        stopped=stopped,
        planned=planned(item) if with_plan else None,
    )


def _ending(call: pytest.CallInfo[None]) -> Ending:
    if call.excinfo is None:
        return "passed"
    return "asserted" if is_assertion(call.excinfo.value) else "broken"
