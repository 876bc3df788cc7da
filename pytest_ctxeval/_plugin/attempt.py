"""What the hooks do for one attempt at a test, in the process that runs it."""

from __future__ import annotations

import pytest

from pytest_ctxeval._core.verdict import Calls
from pytest_ctxeval._plugin.collect import check_item, planned
from pytest_ctxeval._plugin.ledger import ATTRIBUTE, to_text
from pytest_ctxeval._plugin.stash import ASSISTANT, BENCH, FINISHED, RESULTS, SENT
from pytest_ctxeval.errors import ScoreTooLow


def start_attempt(item: pytest.Item) -> None:
    """Forget what an earlier attempt at this test has judged: the last one counts. Raises `ConfigError`."""
    item.stash[RESULTS], item.stash[SENT], item.stash[FINISHED] = [], -1, False
    check_item(item)


def attach_results(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put on the report what was judged so far, where it says more than the report before."""
    if call.when == "call":
        item.stash[FINISHED] = call.excinfo is None or isinstance(call.excinfo.value, ScoreTooLow)
    results = item.stash.get(RESULTS, [])
    if call.when != "call" and len(results) == item.stash.get(SENT, -1):
        return
    item.stash[SENT] = len(results)
    counter = item.stash.get(ASSISTANT, None)
    assistant = counter.calls if counter is not None else Calls()
    about = planned(item) if call.when == "setup" else None
    stopped = BENCH in item.config.stash and item.config.stash[BENCH].stopped is not None
    setattr(report, ATTRIBUTE, to_text(results, assistant=assistant, stopped=stopped, planned=about))
