"""What `ctxeval cassettes` does: it asks pytest which tests there are, or runs them, and sees to the files."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import pytest

from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._judge.cassette.file import read_recording, secrets_of
from pytest_ctxeval._judge.cassette.secrets import redact
from pytest_ctxeval._judge.cassette.shelf import (
    adopt,
    all_cassettes,
    delete,
    left_overs,
    node_of,
    shown_path,
    take_out,
)
from pytest_ctxeval._plugin.cassettes import cassette_path
from pytest_ctxeval._plugin.ledger import ledger_of
from pytest_ctxeval._plugin.options import read_settings
from pytest_ctxeval._plugin.stash import NODE_ID, SETTINGS, SKIPPED
from pytest_ctxeval._plugin.unused import find_unused, folders_of, gone, looks_everywhere, why_partial
from pytest_ctxeval.errors import CassetteError, CassetteReadError, ConfigError

_FOUND_NONE = pytest.ExitCode.NO_TESTS_COLLECTED
_PRUNE = "'ctxeval cassettes prune' deletes it"
_REVOKE = "revoke it, and record the test again without it"


class _Instead:
    """A plugin that does something with the configuration in the place of a run."""

    def __init__(self, do: Callable[[pytest.Config], int]) -> None:
        self._do = do

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        _check_loaded(config)
        try:
            config.stash[SETTINGS] = read_settings(config)
        except ConfigError as error:
            print(f"ERROR: {error}")
            return int(pytest.ExitCode.USAGE_ERROR)
        return self._do(config)


class _Kept:
    """A plugin that keeps the session for what is to be done after it."""

    session: pytest.Session | None = None  # none where pytest was asked for its version, for instance

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        _check_loaded(config)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.session = session


def _check_loaded(config: pytest.Config) -> None:
    if not hasattr(config.option, "ctxeval_record"):
        raise pytest.UsageError("the plugin is switched off in this run; load it with -p pytest_ctxeval.plugin")


def list_cassettes(arguments: Sequence[str]) -> int:
    """Print a line for each cassette."""

    def do(config: pytest.Config) -> int:
        root, base = config.stash[SETTINGS].cassettes, config.rootpath
        paths = list(all_cassettes(root))
        for path in paths:
            print(_about(path, shown_path(path, base)))
        if not paths:
            print(_none_in(root, base))
        return 0

    return int(pytest.main([*arguments], plugins=[_Instead(do)]))


def check_cassettes(arguments: Sequence[str]) -> int:
    """Print what is wrong with the cassettes, and give 1 if anything is."""
    kept, output = _Kept(), io.StringIO()
    with redirect_stdout(output):
        code = pytest.main([*arguments, "--collect-only", "-q"], plugins=[kept])
    if kept.session is None or code not in (pytest.ExitCode.OK, _FOUND_NONE):
        print(output.getvalue())
        return int(code)
    config = kept.session.config
    root, base = config.stash[SETTINGS].cassettes, config.rootpath
    ours = {item.stash[NODE_ID] for item in kept.session.items if NODE_ID in item.stash}
    why = why_partial(kept.session)
    unused = [] if why else list(gone(config, ours))
    paths = list(all_cassettes(root))
    problems = [
        *([f"damaged   {_none_in(root, base)}"] if root.exists() and not root.is_dir() else []),
        *(problem for path in paths for problem in _problems(path, shown_path(path, base))),
        *_told_unused(unused, config, ours),
        *(f"left over {_shown(path, base)}: of a run that was killed; {_PRUNE}" for path in left_overs(root)),
    ]
    for problem in problems:
        print(problem)
    if why:
        print(f"unused cassettes were not looked for: {why}")
    else:
        _say_where(config)
    if not paths and not problems:
        print(_none_in(root, base))
        return 0
    count = "1 cassette" if len(paths) == 1 else f"{len(paths)} cassettes"
    print(f"{count}: {len(problems)} to see to" if problems else f"{count}: in order")
    return 1 if problems else 0


def _done(do: Callable[[], None], *, dry_run: bool) -> bool:
    """Do something to a file, and say what keeps it from being done."""
    try:
        if not dry_run:
            do()
    except CassetteError as error:
        print(f"not done: {one_line(redact(str(error)))}")
        return False
    return True


def prune_cassettes(arguments: Sequence[str], *, dry_run: bool) -> int:
    """Delete what a run of all tests did not ask for. Refuses, and gives 1, where the run cannot tell."""
    kept, code = _run(arguments, "deleted")
    if kept is None:
        return code
    config = kept.config
    ledger, root, base = ledger_of(config), config.stash[SETTINGS].cassettes, config.rootpath
    refusal = why_partial(kept) or _why_not(kept, code)
    if refusal:
        print(f"nothing is deleted: {refusal}")
        return code or 1
    unused = find_unused(kept)
    reasons = {path: _why_unused(path, set(ledger.nodes)) for path in unused.files}
    reasons |= dict.fromkeys(left_overs(root), "of a run that was killed")
    fine = True
    for path, why in reasons.items():
        if _done(partial(delete, path, root, shown=shown_path(path, base)), dry_run=dry_run):
            _say("delete", path, config, why, dry_run=dry_run)
        else:
            fine = False
    for path, places in unused.entries.items():
        cut = partial(take_out, path, places, root, shown=shown_path(path, base))
        if _done(cut, dry_run=dry_run):
            _say("cut", path, config, f"{len(places)} not asked for", dry_run=dry_run)
        else:
            fine = False
    _say_where(config)
    if not reasons and not unused:
        tests = "1 test needs" if len(ledger.nodes) == 1 else f"{len(ledger.nodes)} tests need"
        print(f"nothing to delete: {tests} every recording")
    return 0 if fine else 1


def adopt_cassettes(arguments: Sequence[str], *, dry_run: bool) -> int:
    """Move recordings to the tests that found them on the cassettes of others."""
    kept, code = _run(arguments, "adopted")
    if kept is None:
        return code
    config = kept.config
    ledger, root, base = ledger_of(config), config.stash[SETTINGS].cassettes, config.rootpath
    lent, fine = ledger.lent, True
    for node, loans in lent.items():
        own = root / cassette_path(node)
        move = partial(adopt, own, node, loans, complete=node in ledger.uses, shown=shown_path(own, base))
        if not _done(move, dry_run=dry_run):
            fine = False
            continue
        for source in dict.fromkeys(path for *_, path in loans):
            _say("adopt", own, config, f"from {_shown(Path(source), base)}", dry_run=dry_run)
    stays = why_partial(kept) or _why_unsure(kept, code) or ("" if fine else "not all of them were adopted")
    sources: dict[Path, set[tuple[str, str]]] = {}
    for key, origin, source in (loan for loans in lent.values() for loan in loans):
        sources.setdefault(Path(source), set()).add((key, origin))
    needed = {root / cassette_path(node) for node in ledger.nodes}
    for path, places in sources.items():
        if not stays and path not in needed:
            fine &= _done(partial(take_out, path, places, root, shown=shown_path(path, base)), dry_run=dry_run)
    if stays and lent:
        print(f"the recordings stay at their old place as well: {stays}")
    if not lent:
        print("nothing to adopt: no test found its recordings on the cassette of another one")
    return 0 if fine else 1


def _run(arguments: Sequence[str], done: str) -> tuple[pytest.Session | None, int]:
    """Run the tests on their cassettes; no session where there was no run to speak of, so that nothing is `done`."""
    kept = _Kept()
    code = int(pytest.main([*arguments, "--ctxeval-record=none", "--ctxeval-unused=ignore"], plugins=[kept]))
    if kept.session is None or code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return kept.session, code
    why = "no test was found" if code == _FOUND_NONE else "the run was broken off"
    print(f"nothing is {done}: {why_partial(kept.session) or why}")
    return None, code


def _why_not(session: pytest.Session, code: int) -> str:
    """Say why a run of all tests does not tell what can be deleted."""
    config = session.config
    ledger, unsure = ledger_of(config), _why_unsure(session, code)
    if unsure or config.option.collectonly:
        return unsure or "no test was run"
    if not ledger.nodes:
        folder = _shown(config.stash[SETTINGS].cassettes, config.rootpath)
        return f"no test used a cassette; where none is to be judged any more, delete the folder {folder}"
    if ledger.lent:
        return f"{one_line(next(iter(ledger.lent)))} uses the cassette of another test; adopt it first"
    return ""


def _why_unsure(session: pytest.Session, code: int) -> str:
    """Say why some test may need more than it has asked for."""
    config = session.config
    ledger, root = ledger_of(config), config.stash[SETTINGS].cassettes
    if code:
        return "the run was red"
    if ledger.skipped:
        return f"{_named(ledger.skipped[0])} was skipped"
    if SKIPPED in config.stash:
        return f"{_named(config.stash[SKIPPED])} was skipped"
    bare = [node for node in ledger.unfinished if not (root / cassette_path(node)).exists()]
    return f"{_named(bare[0])} did not pass and has no cassette of its own" if bare else ""


def _none_in(root: Path, base: Path) -> str:
    """Say why there are no cassettes."""
    if root.is_dir():
        return f"no cassettes in the folder {_shown(root, base)}"
    what = "it is a file, and no folder" if root.exists() else "there is no such folder"
    return f"no cassettes in {_shown(root, base)}: {what}"


def _say_where(config: pytest.Config) -> None:
    """Say which folders' tests there were, where they are not all."""
    if not looks_everywhere(config):
        where = ", ".join(_shown(folder, config.rootpath.resolve()) for folder in folders_of(config))
        print(f"unused cassettes were looked for among those of {where} alone")


def _told_unused(paths: Iterable[Path], config: pytest.Config, tests: Collection[str]) -> Iterator[str]:
    """Tell of cassettes that no test reads, and what to do; their tests may be among those that have none."""
    root, base = config.stash[SETTINGS].cassettes, config.rootpath
    bare = {node.partition("::")[0] for node in tests if not (root / cassette_path(node)).exists()}
    prune = _PRUNE if tests else "no test is judged any more, so delete it"
    for path in paths:
        file = str(node_of(path)).partition("::")[0]
        may_be_renamed = file in bare or (bare and not (base / file).exists())
        cure = f"if it was renamed, 'ctxeval cassettes adopt' moves it, else {prune}" if may_be_renamed else prune
        yield f"unused    {_shown(path, base)}: {_why_unused(path, tests)}; {cure}"


def _why_unused(path: Path, tests: Collection[str]) -> str:
    node = node_of(path)
    return f"its test has {_named(cassette_path(node).name)}" if node in tests and node else "its test is gone"


def _named(text: str) -> str:
    return one_line(redact(text))


def _shown(path: Path, base: Path) -> str:
    return one_line(redact(shown_path(path, base)))


def _say(verb: str, path: Path, config: pytest.Config, why: str, *, dry_run: bool) -> None:
    told = f"{'would ' if dry_run else ''}{verb} {_shown(path, config.rootpath)}"
    print(f"{told}: {why}" if why else told)


def _about(path: Path, shown: str) -> str:
    try:
        recording = read_recording(path, shown=shown)
    except CassetteReadError as error:
        return f"{one_line(redact(shown))}\n    damaged: {one_line(redact(str(error)))}"
    if recording is None:
        return f"{one_line(redact(shown))}\n    a link that leads nowhere"
    state = "" if recording.complete else ", incomplete"
    count = len(recording.interactions)
    who = [one_line(redact(text)) for text in (shown, recording.node, recording.judge)]
    return (
        f"{who[0]}\n    {who[1]}\n    {who[2] or 'no judge'}, "
        f"{count} {'recording' if count == 1 else 'recordings'}, {path.stat().st_size:,} bytes{state}"
    )


def _problems(path: Path, shown: str) -> Iterator[str]:
    try:
        recording = read_recording(path, shown=shown)
    except CassetteReadError as error:
        yield f"damaged   {one_line(redact(str(error)))}"
        return
    if recording is None:
        yield f"damaged   {one_line(redact(shown))}: a link that leads nowhere; restore what it leads to, or delete it"
        return
    yield from (f"secret    {one_line(found)}; {_REVOKE}" for found in secrets_of(recording, shown))
