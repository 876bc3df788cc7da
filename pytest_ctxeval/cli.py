"""`ctxeval`: what there is to do beside the runs of pytest."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from pytest_ctxeval.errors import ConfigError

_ABOUT: Final = "Compare, gate and combine the stored runs of pytest-ctxeval suites, and look after their cassettes."
_EXIT_CODES: Final = "exit codes: 0 fine; 1 a gate failed, or something to see to; 2 a wrong command, file or option"
_START: Final = """\
A stored run is the JSON report of one:

    pytest -k context --ctxeval-report=run.json
"""
CASSETTES: Final = {
    "list": "show every cassette: its test, its judge, how much it holds",
    "check": "fail if a cassette is damaged, holds a key, or is of a test that is gone; runs no test",
    "prune": "run all tests on their cassettes, and delete what none of them asked for",
    "adopt": "run the tests on their cassettes, and move what a renamed test found under its old name",
}
RUNS: Final = {
    "compare": "show what has changed from one stored run to another, case by case",
    "gate": "check other bars on a stored run, without a judge",
    "combine": "join the stored runs of a CI's shards, or of several machines, into one",
}
_EXAMPLES: Final = {
    "compare": """\
    ctxeval compare main.json run.json
    ctxeval compare main.json run.json --gate=drop:0.05 --report=change.md

Alone it fails nothing: give it a gate. Of a case that is judged by another model, by another prompt or at another
temperature than before, that is said before any number.""",
    "gate": """\
    ctxeval gate run.json --gate=context_awareness:0.8 --gate=unscored:0
    ctxeval gate run.json --baseline=main.json --gate=drop:0.05 --gate=missing:2""",
    "combine": """\
    ctxeval combine shard-*.json --output=run.json --gate=context_awareness:0.8

The means and intervals are made anew from the cases. A case that stands in two shards is an error.""",
}
_GATE_HELP: Final = (
    "fail unless the bar is reached: context_awareness:0.8, context_awareness.low:0.6, context_awareness@SESSION:0.9, "
    "unscored:0; against a baseline drop:0.05, context_awareness.drop:0.05, drop@SESSION:0.05, missing:0; may be given "
    "again"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and give the exit code: 0 fine, 1 something to see to, 2 a wrong command.

    The code stands where whoever reads the output has seen enough of it, and where it has letters that do not fit.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = 2
    try:
        code, text = _do(arguments)
        if sys.stdout is not None:
            print(text, end="\n" if text else "", flush=True)
    except BrokenPipeError:
        _write_no_more()
    except OSError as error:
        _write_no_more()
        with contextlib.suppress(OSError):
            print(f"ctxeval: {error.strerror or error}", file=sys.stderr, flush=True)
        return 2
    return code


def _write_no_more() -> None:
    """Let go of what takes no more output, which the interpreter would try once more as it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, AttributeError):  # or there is none
            with contextlib.suppress(OSError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _do(arguments: Sequence[str] | None) -> tuple[int, str]:
    parser = _parser()
    given, for_pytest = parser.parse_known_args(arguments)
    if given.show_help is not None:
        return _ask_for_command(given, for_pytest), ""
    if given.area == "cassettes":
        return _see_to_cassettes(given, for_pytest), ""
    if for_pytest:
        parser.error(f"unrecognized arguments: {' '.join(for_pytest)}")
    try:
        return _tell_of_runs(given)
    except ConfigError as error:
        print(f"ctxeval {given.area}: {error}", file=sys.stderr)
        return 2, ""


def _ask_for_command(given: argparse.Namespace, unknown: Sequence[str]) -> int:
    given.show_help(sys.stderr)
    if unknown:
        print(f"\nunrecognized arguments: {' '.join(unknown)}", file=sys.stderr)
    return 2


def _see_to_cassettes(given: argparse.Namespace, for_pytest: Sequence[str]) -> int:
    from pytest_ctxeval._plugin import housekeeping

    command = getattr(housekeeping, f"{given.command}_cassettes")
    code = int(command(for_pytest, **({"dry_run": given.dry_run} if "dry_run" in given else {})))
    return code if code in (0, 1) else 2 if code == 4 else 1  # 4 is pytest's own for a wrong option


def _tell_of_runs(given: argparse.Namespace) -> tuple[int, str]:
    from pytest_ctxeval._plugin import stored_runs

    asked = stored_runs.Asked(
        gates=given.gate,
        baseline=getattr(given, "baseline", None),
        reports=given.report,
        verbosity=given.verbose - given.quiet,
    )
    if given.area == "compare":
        return stored_runs.compare_runs(given.old, given.new, asked)
    if given.area == "gate":
        return stored_runs.gate_run(given.run, asked)
    return stored_runs.combine_runs(given.shards, asked._replace(reports=[given.output, *given.report]))


def _parser() -> argparse.ArgumentParser:
    parser = _command(argparse.ArgumentParser, about=_ABOUT, prog="ctxeval", epilog=f"{_START}\n{_EXIT_CODES}")
    parser.add_argument("--version", action="version", version=f"pytest-ctxeval {version('pytest-ctxeval')}")
    parser.set_defaults(show_help=parser.print_help)
    areas = parser.add_subparsers(dest="area", metavar="COMMAND")
    for name, about in RUNS.items():
        command = _command(areas.add_parser, name, about=about, epilog=f"{_EXAMPLES[name]}\n\n{_START}\n{_EXIT_CODES}")
        command.set_defaults(show_help=None)
        _add_runs(name, command)
        command.add_argument("--gate", action="append", default=[], metavar="EXPR", help=_GATE_HELP)
        if name != "compare":
            command.add_argument("--baseline", type=Path, metavar="FILE", help="a stored run to compare with")
        command.add_argument(
            "--report",
            action="append",
            default=[],
            metavar="FILE",
            help="write a report, as --ctxeval-report of pytest does; may be given again",
        )
        command.add_argument("-v", "--verbose", action="count", default=0, help="show every case")
        command.add_argument("-q", "--quiet", action="count", default=0, help="show the sessions and gates alone")
    cassettes = _command(
        areas.add_parser, "cassettes", about="list, check, prune or adopt cassettes", epilog=_EXIT_CODES
    )
    cassettes.set_defaults(show_help=cassettes.print_help)
    commands = cassettes.add_subparsers(dest="command", metavar="COMMAND")
    for name, about in CASSETTES.items():
        told = "Any other argument goes to pytest, for instance -n 4 or the folder of the tests."
        command = _command(commands.add_parser, name, about=about, epilog=f"{told}\n\n{_EXIT_CODES}")
        command.set_defaults(show_help=None)
        if name in ("prune", "adopt"):
            command.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    return parser


def _command(
    make: Callable[..., argparse.ArgumentParser], *names: str, about: str, **options: str
) -> argparse.ArgumentParser:
    if names:
        options["help"] = about
    return make(
        *names,
        description=f"{about[0].upper()}{about[1:].removesuffix('.')}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **options,
    )


def _add_runs(name: str, command: argparse.ArgumentParser) -> None:
    if name == "compare":
        command.add_argument("old", type=Path, metavar="OLD", help="the run to compare with")
        command.add_argument("new", type=Path, metavar="NEW", help="the run of today")
    elif name == "gate":
        command.add_argument("run", type=Path, metavar="RUN", help="a stored run")
    else:
        command.add_argument("shards", type=Path, nargs="+", metavar="SHARD", help="a stored run")
        command.add_argument("-o", "--output", required=True, metavar="FILE", help="where to store the whole run")


if __name__ == "__main__":
    sys.exit(main())
