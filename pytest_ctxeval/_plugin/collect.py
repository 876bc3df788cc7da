"""From a test's marker to its cases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ctxeval._plugin.options import METRICS
from pytest_ctxeval._plugin.stash import COLLECTED, DESELECTED, JUDGED, NAMED, NODE_ID, POSITION, SETTINGS
from pytest_ctxeval.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ctxeval._core.data import ContextCase
    from pytest_ctxeval._metrics.prompt import Metric

_FIXTURES: Final = ("judge", "context_case", "ctxeval_cassette")
_NO_CASE: Final = ("dataset", "samples", "metrics")  # what a marker says beside fields of the case
_SESSION: Final = ("session_id", "assistant_id", "context", "language")
_OURS: Final = "pytest_ctxeval.plugin"


def mark_item(item: pytest.Item) -> None:
    """Give a test that uses the plugin its keyword, its marker, its judge and its place in the collection."""
    marked = _is_marked(item)
    if not marked and not _uses_fixtures(item):
        return
    collected = item.config.stash.setdefault(COLLECTED, [])
    item.stash[NODE_ID], item.stash[POSITION] = item.nodeid, len(collected)
    collected.append(item.nodeid)
    item.extra_keyword_matches.add("context")
    if not marked:
        item.add_marker("ctxeval")
    elif metrics_of(item):
        item.config.stash[NAMED] = True
    names = getattr(item, "fixturenames", None)
    if isinstance(names, list) and "judge" not in names:
        names.insert(0, "judge")  # the first one up is the last one down: fixtures of the test may judge as they end


def mark_late(items: list[pytest.Item]) -> None:
    """Do the same for tests that a hook of a conftest.py has marked after they were collected; note all of ours."""
    for item in items:
        if NODE_ID not in item.stash:
            mark_item(item)
    ours = frozenset(item.stash[NODE_ID] for item in items if NODE_ID in item.stash)
    if ours:
        items[0].config.stash[JUDGED] = ours


def note_deselected(items: list[pytest.Item]) -> None:
    """Note which tests of ours are among those that are left out."""
    ours = [item.stash.get(NODE_ID, item.nodeid) for item in items if NODE_ID in item.stash or _is_marked(item)]
    if ours:
        items[0].config.stash.setdefault(DESELECTED, []).extend(ours)


def note_dropped(session: pytest.Session) -> None:
    """Note which tests of ours were collected and are left out, where some are."""
    stash = session.config.stash
    if COLLECTED in stash and sum(NODE_ID in item.stash for item in session.items) < len(stash[COLLECTED]):
        left = {item.stash[NODE_ID] for item in session.items if NODE_ID in item.stash}
        stash[DESELECTED] = [node for node in stash[COLLECTED] if node not in left]


def is_judged(request: pytest.FixtureRequest) -> bool:
    """Whether a fixture is set up for a test of ours, whose judge may have to be built without its key."""
    item = getattr(request, "_pyfuncitem", None)
    return item is not None and NODE_ID in item.stash and request.config.stash[SETTINGS].record != "off"


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make one test of each case of the marker's dataset."""
    marker = metafunc.definition.get_closest_marker("ctxeval")
    if marker is None:
        return
    where = f"@pytest.mark.ctxeval of {metafunc.definition.nodeid}"
    _check_marker(metafunc.definition, where)
    given = _merged(metafunc.definition)
    if "dataset" not in given:
        _build_blank(metafunc.definition.nodeid, given)
        return
    if "context_case" not in metafunc.fixturenames:
        raise ConfigError(f"{where}: it names a dataset, so the test must take the fixture context_case")
    cases = _cases(given, metafunc)
    ids = [_visible(f"{case.session_id}-{case.qa_id}") for case in cases]
    metafunc.parametrize("context_case", cases, indirect=True, ids=ids)


def check_marked(item: pytest.Item) -> None:
    """Raise `ConfigError` for a test that asks for a fixture of ours only while it runs."""
    __tracebackhide__ = True
    if NODE_ID not in item.stash:
        raise ConfigError(
            f"{item.nodeid} asks for a fixture of pytest-ctxeval by request.getfixturevalue, so it was not known to be "
            "judged; mark it with @pytest.mark.ctxeval, or take the fixture as an argument"
        )


def blank_case(item: pytest.Item) -> ContextCase:
    """Give the case of a test without a dataset: what the marker says, and else its name and file."""
    return _build_blank(item.stash[NODE_ID], _merged(item))


def case_of(item: pytest.Item) -> ContextCase:
    """Give the case that `context_case` gives the test. Raises `ConfigError` for a wrong marker."""
    return item.callspec.params["context_case"] if _is_given(item) else blank_case(item)  # type: ignore[attr-defined]


def metrics_of(item: pytest.Item) -> Sequence[Metric | str]:
    """Give the metrics that a test says it will be judged by; most say nothing."""
    named = _merged(item).get("metrics", ())
    return named if isinstance(named, (list, tuple)) else (named,)


def check_item(item: pytest.Item) -> None:
    """Check what is seen of a marker only now: on a parameter, or on a method of a `unittest.TestCase`."""
    where = f"@pytest.mark.ctxeval of {item.stash[NODE_ID]}"
    _check_marker(item, where)
    if "dataset" in _merged(item) and not _is_given(item):
        raise ConfigError(f"{where}: a dataset needs a test function that takes the fixture context_case")


def planned(item: pytest.Item) -> dict[str, Any] | None:
    """Say which case a test is about, before it runs: if its process dies, that is all that is known of it.

    None where that cannot be said: of a wrong marker, or of the placeholder of an empty dataset.
    """
    try:
        case = case_of(item)
    except ConfigError:
        return None
    if not hasattr(case, "session_id"):
        return None
    return {
        "node_id": item.stash[NODE_ID],
        "position": item.stash[POSITION],
        "line": line_of(item),
        "session_id": case.session_id,
        "assistant_id": case.assistant_id,
        "qa_id": case.qa_id,
        "weight": case.weight,
        "query": case.query,
        "assistant": case.assistant,
        "context": case.context,
        "ground_truth_assistant": case.ground_truth_assistant,
        "language": case.language,
    }


def line_of(item: pytest.Item) -> int | None:
    """Give the line of a test in the file that its id names, from 1; None for one that is inherited from another."""
    file, line, _ = item.location
    same = file.replace("\\", "/") == item.stash[NODE_ID].partition("::")[0]
    return line + 1 if same and line is not None else None


def _is_marked(item: pytest.Item) -> bool:
    return item.get_closest_marker("ctxeval") is not None


def _is_given(item: pytest.Item) -> bool:
    """Whether the case is one of a dataset."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and "context_case" in callspec.params


def _build_blank(node: str, given: dict[str, Any]) -> ContextCase:
    from pytest_ctxeval._core.data import ContextCase, build

    given = {name: value for name, value in given.items() if name not in _NO_CASE}
    named = {"qa_id": node.partition("::")[2].replace("::", ".") or node, "session_id": node.partition("::")[0]}
    return build(ContextCase, {**named, **given}, where=f"@pytest.mark.ctxeval of {node}")


def _uses_fixtures(item: pytest.Item) -> bool:
    """Whether the test takes one of our fixtures, and not one of the same name that its project has made."""
    names = getattr(item, "fixturenames", ())
    found = [name for name in _FIXTURES if name in names]
    if not found:
        return False
    return any(map(is_ours, _definitions(item, found)))


def takes_case(item: pytest.Item) -> bool:
    """Whether the test takes the case of its marker, and not a fixture of that name that its project has made."""
    taken = _definitions(item, ("context_case", "judge"))
    return "context_case" in getattr(item, "fixturenames", ()) and all(map(is_ours, taken))


def is_ours(definition: Any) -> bool:
    """Whether a fixture is one of the plugin's own."""
    return bool(definition.func.__module__ == _OURS)


def _definitions(item: pytest.Item, names: Iterable[str]) -> list[Any]:
    """Give what a test takes under some names: of each, the definition that counts."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return [definition for name in names for definition in known.get(name, ())[-1:]]


def _merged(item: Any) -> dict[str, Any]:
    """What all markers of a test say together; the nearest one wins."""
    given: dict[str, Any] = {}
    for marker in item.iter_markers("ctxeval"):
        given = {**marker.kwargs, **given}
    return given


def _check_marker(item: Any, where: str) -> None:
    from pytest_ctxeval._core.data import ContextCase
    from pytest_ctxeval._core.text import nearest

    known = [*_NO_CASE, *ContextCase.model_fields]
    for marker in item.iter_markers("ctxeval"):
        if marker.args:
            raise ConfigError(f"{where}: {marker.args[0]!r} has no name; for instance dataset={marker.args[0]!r}")
        for name in marker.kwargs:
            if name not in known:
                raise ConfigError(f"{where}: unknown argument {name!r}; {nearest(name, known)}")
    merged = _merged(item)
    for name in _SESSION:
        if not isinstance(merged.get(name, ""), str):
            raise ConfigError(f"{where}: {name}={merged[name]!r} is no str")
    samples = merged.get("samples", 1)
    if not isinstance(samples, int) or isinstance(samples, bool) or samples < 1:
        raise ConfigError(f"{where}: samples={samples!r} is not a number of 1 or more")
    _check_metrics(item, f"{where}: metrics={merged.get('metrics')!r}")


def _check_metrics(item: Any, where: str) -> None:
    from pytest_ctxeval._core.text import nearest

    for metric in metrics_of(item):
        if isinstance(metric, str) and metric not in METRICS:
            raise ConfigError(f"{where}: {metric!r} is no metric; {nearest(metric, METRICS)}")
        if not isinstance(metric, str) and getattr(metric, "name", None) not in METRICS:
            raise ConfigError(
                f"{where}: a {type(metric).__name__} is no metric; give names, for "
                "instance metrics=['context_awareness'], or what context_awareness(...) makes"
            )


def _cases(given: dict[str, Any], metafunc: pytest.Metafunc) -> list[ContextCase]:
    from pytest_ctxeval._datasets.load import load

    sources = given["dataset"]
    defaults: dict[str, str] = {name: given[name] for name in _SESSION if name in given}
    base = metafunc.definition.path.parent
    if isinstance(sources, str) and not (base / sources).exists() and (metafunc.config.rootpath / sources).exists():
        base = metafunc.config.rootpath
    return [case for dataset in load(sources, base=Path(base), defaults=defaults) for case in dataset.cases()]


def _visible(text: str) -> str:
    """Keep control characters out of a test's id; pytest escapes what is not ASCII by itself."""
    return re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", text)
