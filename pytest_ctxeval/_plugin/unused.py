"""Which recordings nobody needs any more: what a run of all tests can tell, and no other."""

from __future__ import annotations

from collections.abc import Iterable
from os.path import normcase
from pathlib import Path

import pytest

from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._judge.cassette.shelf import Unused, all_cassettes, node_of, shown_path
from pytest_ctxeval._plugin.cassettes import cassette_name, cassette_path
from pytest_ctxeval._plugin.ledger import ledger_of
from pytest_ctxeval._plugin.stash import BROKEN, DESELECTED, SETTINGS, TESTS

_NAMED = 3


def find_unused(session: pytest.Session) -> Unused:
    """Give the cassettes whose test is gone, and the recordings that a test which passed did not ask for.

    None at all after a run that left something out.
    """
    config = session.config
    ledger, settings = ledger_of(config), config.stash[SETTINGS]
    if why_partial(session):
        return Unused()
    lent: dict[Path, set[tuple[str, str]]] = {}
    for key, origin, path in (loan for loans in ledger.lent.values() for loan in loans):
        lent.setdefault(Path(path), set()).add((key, origin))
    unplayed = {node: use.unplayed for node, use in ledger.uses.items() if use.unplayed}
    left = {settings.cassettes / cassette_path(node): {*places} for node, places in unplayed.items()}
    entries = {path: frozenset(places - lent.get(path, set())) for path, places in left.items()}
    entries = {path: places for path, places in entries.items() if places}
    return Unused(tuple(path for path in gone(config, ledger.nodes) if path not in lent), entries)


def gone(config: pytest.Config, nodes: Iterable[str]) -> Iterable[Path]:
    """Give the cassettes of tests that are not among `nodes`, the ids of all tests of ours that were collected."""
    root = config.stash[SETTINGS].cassettes
    needed = {normcase(f"{root}/{cassette_name(node)}") for node in nodes}
    files = {node.partition("::")[0] for node in config.stash.get(TESTS, ())}
    for path in all_cassettes(root, but=needed):
        node = node_of(path)
        if node is not None and _was_looked_for(config, node.partition("::")[0], files):
            yield path


def why_partial(session: pytest.Session) -> str:
    """Say why a run does not tell which recordings are needed; nothing where every test has run."""
    config = session.config
    ledger = ledger_of(config)
    reasons = {
        config.stash.get(BROKEN, ""): True,
        "the run was broken off": bool(session.shouldstop or session.shouldfail),
        "tests were left out": selects_tests(config),
        "judging was stopped": ledger.stopped,
        "cassettes were not looked at": config.stash[SETTINGS].record == "off",
    }
    return next((reason for reason, holds in reasons.items() if holds and reason), "")


def selects_tests(config: pytest.Config) -> bool:
    """Whether tests were left out: by the command line, by a hook or by another plugin."""
    names = ("lf", "stepwise", "ignore_glob", "pyargs", "setuponly", "setupplan")
    told = ledger_of(config).partial or bool(config.stash.get(DESELECTED, []))
    return told or any(getattr(config.option, name, None) for name in names) or any("::" in arg for arg in config.args)


def told(unused: Unused, base: Path) -> list[str]:
    """Give the lines that tell of unused recordings: how many, and where the first of them are."""
    if not unused:
        return []
    entries = sum(map(len, unused.entries.values()))
    files = len(unused.files)
    counts = [
        "1 cassette whose test is gone" if files == 1 else f"{files} cassettes whose tests are gone" if files else "",
        "1 recording that no test asks for" if entries == 1 else f"{entries} recordings that no test asks for",
    ]
    shown = [text for text, count in zip(counts, (files, entries), strict=True) if count]
    paths = [one_line(shown_path(path, base)) for path in [*unused.files, *unused.entries]]
    more = [f"and {len(paths) - _NAMED} more files"] if len(paths) > _NAMED + 1 else paths[_NAMED:]
    return [f"{', '.join(shown)}; 'ctxeval cassettes prune' deletes them", *paths[:_NAMED], *more]


def _was_looked_for(config: pytest.Config, file: str, collected: set[str]) -> bool:
    """Whether a test of this file would have been collected, if there were one."""
    path = config.rootpath / file
    if path.exists():
        if file not in collected:  # of another system, for instance, or in want of a module
            return False
    elif not looks_everywhere(config):
        return False  # it may have moved to where nobody has looked
    ignored = _folders(config, config.getoption("ignore", None) or ())
    return _is_under(path, folders_of(config)) and not _is_under(path, ignored)


def looks_everywhere(config: pytest.Config) -> bool:
    """Whether a run was to have the tests of the whole project, rather than those of some of its folders."""
    return config.args_source is config.ArgsSource.TESTPATHS or config.rootpath.resolve() in folders_of(config)


def folders_of(config: pytest.Config) -> list[Path]:
    """Give the folders and files whose tests a run was to have."""
    return _folders(config, config.args)


def _folders(config: pytest.Config, paths: Iterable[str]) -> list[Path]:
    return [(config.invocation_params.dir / each).resolve() for each in paths]


def _is_under(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.resolve().is_relative_to(folder) for folder in folders)
