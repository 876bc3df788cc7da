"""A line on the terminal that shows how far judging ahead is."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Self

import pytest


class Bar:
    """Shows how far it is, on a terminal; elsewhere nothing."""

    def __init__(self, item: pytest.Item, total: int) -> None:
        self._item, self._total = item, total
        self._exits = ExitStack()
        plugins = item.config.pluginmanager
        reporter = plugins.getplugin("terminalreporter")
        self._reporter: Any = reporter if getattr(reporter, "isatty", False) else None
        self._capture: Any = plugins.getplugin("capturemanager")

    def __enter__(self) -> Self:
        if self._reporter is not None:
            if self._capture is not None:
                self._exits.enter_context(self._capture.global_and_fixture_disabled())
            self._reporter.ensure_newline()
            self.show(0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._reporter is not None:
            self._reporter.pytest_runtest_logstart(self._item.nodeid, self._item.location)  # on a line of its own again
        self._exits.close()

    def show(self, done: int) -> None:
        """Tell that so many are done."""
        if self._reporter is not None:
            self._reporter.rewrite(bar_line(done, self._total), erase=True)
            self._reporter.flush()


def bar_line(done: int, total: int) -> str:
    """Give the line: at most 60 characters, so that it fits where a terminal is narrow."""
    filled = 20 * done // total
    return f"judging ahead [{'#' * filled}{'.' * (20 - filled)}] {done} of {total}"
