"""The plugin's state: on pytest's own objects, typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_ctxeval._core.run import Run
    from pytest_ctxeval._core.verdict import CaseResult
    from pytest_ctxeval._judge.cassette.tape import Ending, Use
    from pytest_ctxeval._plugin.ahead import Ahead
    from pytest_ctxeval._plugin.assistant import AssistantCassette
    from pytest_ctxeval._plugin.item_judge import Bench, ItemJudge
    from pytest_ctxeval._plugin.ledger import Ledger
    from pytest_ctxeval._plugin.options import Settings

# The assertion helpers are plain functions, called in whatever thread, task or event loop a test runs them: only the
# process knows which test that is. A stack, since pytest's own pytester runs sessions inside sessions.
RUNNING: Final[list[pytest.Item]] = []

# Of a config.
SETTINGS: Final[pytest.StashKey[Settings]] = pytest.StashKey()
BASELINE: Final[pytest.StashKey[Run]] = pytest.StashKey()  # the stored run to compare with
LEDGER: Final[pytest.StashKey[Ledger]] = pytest.StashKey()
BENCH: Final[pytest.StashKey[Bench]] = pytest.StashKey()  # what the tests of one process share
JUDGED: Final[pytest.StashKey[Collection[str]]] = pytest.StashKey()  # the ids of all tests of ours
DESELECTED: Final[pytest.StashKey[list[str]]] = pytest.StashKey()  # the ids of tests of ours that were left out
TESTS: Final[pytest.StashKey[list[str]]] = pytest.StashKey()  # the ids of all tests, of others too
BROKEN: Final[pytest.StashKey[str]] = pytest.StashKey()  # why not all of them were found or run
SKIPPED: Final[pytest.StashKey[str]] = pytest.StashKey()  # a file that was skipped as a whole
COLLECTED: Final[pytest.StashKey[list[str]]] = pytest.StashKey()  # the ids of tests of ours, as they were found
NAMED: Final[pytest.StashKey[bool]] = pytest.StashKey()  # whether a test says by which metrics it will be judged

# Of an item.
NODE_ID: Final[pytest.StashKey[str]] = pytest.StashKey()  # its id before other plugins add to it
POSITION: Final[pytest.StashKey[int]] = pytest.StashKey()  # its place in the collection, before anyone shuffles
AHEAD: Final[pytest.StashKey[Ahead]] = pytest.StashKey()  # what was judged before its turn
JUDGE: Final[pytest.StashKey[ItemJudge]] = pytest.StashKey()
ASSISTANT: Final[pytest.StashKey[AssistantCassette]] = pytest.StashKey()
RESULTS: Final[pytest.StashKey[list[CaseResult]]] = pytest.StashKey()  # what was judged in this attempt
SENT: Final[pytest.StashKey[int]] = pytest.StashKey()  # how many of them the last report carried
PART_FAILED: Final[pytest.StashKey[bool]] = pytest.StashKey()  # whether a report of it, as of a subtest, failed
USE: Final[pytest.StashKey[Use]] = pytest.StashKey()  # what it made of its cassettes
ENDING: Final[pytest.StashKey[Ending]] = pytest.StashKey()  # how it came to its end
