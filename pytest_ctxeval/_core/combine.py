"""From the shards of a run to the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from pytest_ctxeval._core.run import Run
from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import Calls, CaseResult, Cost
from pytest_ctxeval.errors import ConfigError

_NAMED: Final = 5


class _Place(NamedTuple):
    """Where a result stands."""

    node: str
    version: str | None
    shard: str


def combine(shards: Mapping[str, Run]) -> Run:
    """Join runs, each under the name of its file, into the one that they are parts of.

    The result is the same in whatever order they come. Raises `ConfigError` where a case stands in two of them (it
    names the cases), also under ids that tell its test from other folders, or where they were summed up by different
    statistics. Together they leave nothing out.
    """
    _check_apart(shards)
    stats = {run.stat: name for name, run in reversed([*shards.items()])}
    if len(stats) > 1:
        told = ", ".join(f"{name} is {stat}" for stat, name in sorted(stats.items()))
        raise ConfigError(
            f"the shards were summed up by different statistics: {told}; run them with one --ctxeval-stat"
        )
    return Run(
        results=tuple(_placed(shards.values())),
        record=", ".join(sorted({run.record for run in shards.values()})),
        stat=next(iter(stats)),
        assistant=sum((run.assistant for run in shards.values()), Calls()),
        spent=sum((run.spent for run in shards.values()), Cost()),
        broken_off=any(run.broken_off for run in shards.values()),
    )


def _check_apart(shards: Mapping[str, Run]) -> None:
    known: dict[tuple[Any, ...], list[_Place]] = {}
    twice: list[str] = []
    for name, run in shards.items():
        for node, version, *case in {
            (each.node_id, each.prompt_version, each.session_id, each.qa_id, each.metric) for each in run.results
        }:
            like = known.setdefault((_without_folders(node), *case), [])
            same = (each for each in like if each.shard != name and _is_same(each, node, version))
            other = next(same, None)
            if other is not None:
                twice.append(f"{one_line(node, 200)} in {one_line(other.shard, 80)} and {one_line(name, 80)}")
            like.append(_Place(node, version, name))
    if twice:
        twice.sort()
        shown = [*twice[:_NAMED], *([f"and {len(twice) - _NAMED} more"] if len(twice) > _NAMED else [])]
        raise ConfigError("\n    ".join(["the same case stands in two shards:", *shown]))


def _without_folders(node: str) -> str:
    file, colons, inner = node.partition("::")
    return file.rpartition("/")[2] + colons + inner


def _is_same(place: _Place, node: str, version: str | None) -> bool:
    """Whether two results are of one test, as seen from one folder or from two of which one is in the other.

    Of one that could not be judged the version may not be known.
    """
    if version != place.version and None not in (version, place.version):
        return False
    return node == place.node or node.endswith(f"/{place.node}") or place.node.endswith(f"/{node}")


def _placed(runs: Iterable[Run]) -> list[CaseResult]:
    """Give all results with their places in the whole.

    Shards that each collected everything know them. Shards of different files count each from 0: then their tests stand
    by file, and in it as they were collected.
    """
    found = [result for run in runs for result in run.results]
    tests = {(result.position, result.node_id) for result in found}
    if len({position for position, _ in tests}) == len(tests):
        return found
    order = sorted(tests, key=lambda test: (test[1].partition("::")[0], *test))
    place = {test: at for at, test in enumerate(order)}
    return [replace(result, position=place[result.position, result.node_id]) for result in found]
