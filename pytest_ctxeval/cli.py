"""`ctxeval`: what there is to do beside the runs of pytest."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

_ABOUT = "Look after the cassettes of a pytest-ctxeval suite. Run it where you run pytest."
CASSETTES = {
    "list": "show every cassette: its test, its judge, how much it holds",
    "check": "fail if a cassette is damaged, holds a key, or is of a test that is gone; runs no test",
    "prune": "run all tests on their cassettes, and delete what none of them asked for",
    "adopt": "run the tests on their cassettes, and move what a renamed test found under its old name",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and give the exit code: 0 fine, 1 something to see to, else as pytest's."""
    given, for_pytest = _parser().parse_known_args(arguments)
    from pytest_ctxeval._plugin import housekeeping

    command = getattr(housekeeping, f"{given.command}_cassettes")
    return int(command(for_pytest, **({"dry_run": given.dry_run} if "dry_run" in given else {})))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ctxeval", description=_ABOUT, allow_abbrev=False)
    areas = parser.add_subparsers(required=True, metavar="AREA")
    cassettes = areas.add_parser("cassettes", help="list, check, prune or adopt cassettes", allow_abbrev=False)
    commands = cassettes.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, about in CASSETTES.items():
        command = commands.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog="Any other argument goes to pytest, for instance -n 4 or the folder of the tests.",
            allow_abbrev=False,
        )
        if name in ("prune", "adopt"):
            command.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
