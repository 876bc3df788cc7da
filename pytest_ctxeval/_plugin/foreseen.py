"""Which tests can be judged before they run: it must be known by what, on what case, and by whose judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from pytest_ctxeval._plugin import collect
from pytest_ctxeval._plugin.item_judge import metric_of, samples_of
from pytest_ctxeval._plugin.options import Settings
from pytest_ctxeval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_ctxeval._core.data import ContextCase
    from pytest_ctxeval._metrics.prompt import Metric

_ONE_BY_ONE: Final = ("maxfail", "stepwise")  # options of runs that are to end at a failure, before anything else costs


class Foreseen(NamedTuple):
    """What a test will ask for."""

    item: pytest.Item
    case: ContextCase
    metrics: Sequence[Metric]
    samples: int


def foreseen(first: pytest.Item, settings: Settings) -> Iterator[Foreseen]:
    """Give a test and those after it that share its judge, where they say what they will ask for.

    Whatever is wrong with one is left to that one to tell.
    """
    shares = shared_judge(first)
    items = first.session.items
    for item in items[items.index(first) :]:
        found = _foreseen(item, settings) if shared_judge(item) is shares else None
        if found is not None and found.metrics:
            yield found


def _foreseen(item: pytest.Item, settings: Settings) -> Foreseen | None:
    try:
        return _told(item, settings)
    except Exception:  # a wrong marker, a case that cannot be built
        return None


def _told(item: pytest.Item, settings: Settings) -> Foreseen | None:
    named = collect.metrics_of(item)
    if not named or not collect.takes_case(item) or _may_be_skipped(item):
        return None
    case = collect.case_of(item)
    metrics = [metric for metric in map(metric_of, named) if _is_ready(metric, case)]
    return Foreseen(item, case, metrics, samples_of(item, settings))


def shared_judge(item: pytest.Item) -> Any:
    """Give the definition of the `judge_model` that is one object for all tests that see it; None where it is not.

    None too where the run is to end at a failure.
    """
    if any(item.config.getoption(name, None) for name in _ONE_BY_ONE):
        return None
    definitions = _definitions("judge_model", item)
    found = definitions[-1] if definitions else None
    return found if found is not None and found.scope == "session" and not _is_parametrized(item) else None


def _is_parametrized(item: pytest.Item) -> bool:
    """Whether the parameters of a test may choose among judges."""
    callspec = getattr(item, "callspec", None)
    given = {*callspec.params} - {"context_case"} if callspec is not None else set()
    names, waiting = {"judge_model"}, ["judge_model"]
    while waiting:
        for definition in _definitions(waiting.pop(), item):
            if definition.params:
                return True
            new = [name for name in definition.argnames if name not in names and not collect.is_ours(definition)]
            names.update(new)
            waiting += new
    return bool(given if "request" in names else given & names)  # by a request it may get at any other


def _definitions(name: str, item: pytest.Item) -> Sequence[Any]:
    manager = getattr(item.session, "_fixturemanager", None)
    return (manager.getfixturedefs(name, item) if manager is not None else None) or ()


def _is_ready(metric: Metric, case: ContextCase) -> bool:
    """Whether a case has all that a metric asks about."""
    try:
        return bool(metric.prompts(case, None))
    except ConfigError:
        return False


def _may_be_skipped(item: pytest.Item) -> bool:
    xfail = item.get_closest_marker("xfail")
    marked = any(item.get_closest_marker(name) for name in ("skip", "skipif"))
    return marked or (xfail is not None and not xfail.kwargs.get("run", True))
