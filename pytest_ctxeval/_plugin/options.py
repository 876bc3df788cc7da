"""Every option: its names, its default, its meaning, and how it is read. `--help` and the README come from here."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import pytest

from pytest_ctxeval._core.run import StatMode
from pytest_ctxeval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_ctxeval._core.gate import Gate

RecordMode = Literal["none", "once", "new_episodes", "all", "off"]
UnusedMode = Literal["ignore", "warn", "fail"]

METRICS: Final = ("context_awareness", "contextual_relevancy")
REPORTS: Final = (".json", ".md", ".html")

_PREFIX: Final = "CTXEVAL_"  # of the environment variables
_SLIP: Final = 0.75  # how much alike a misspelt variable and the one that was meant are, 0 to 1
_DAY_S: Final = 86_400
_DIGITS: Final = 9

_CI: Final = (
    "CI", "GITHUB_ACTIONS", "GITLAB_CI", "JENKINS_URL", "BUILDKITE", "CIRCLECI", "TF_BUILD", "TEAMCITY_VERSION",
    "TRAVIS", "BITBUCKET_BUILD_NUMBER", "APPVEYOR", "DRONE", "CODEBUILD_BUILD_ID",
)  # fmt: skip


class Option(NamedTuple):
    """One row of the table. `flag` is None for what stands in the ini file alone; `many` may be given again."""

    name: str
    metavar: str
    help: str
    default: str
    flag: str | None = None
    ini: str | None = None
    many: bool = False

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"{_PREFIX}{self.name.upper()}"

    @property
    def ini_name(self) -> str:
        """The key of the ini file."""
        return self.ini or f"ctxeval_{self.name}"


def _option(name: str, metavar: str, default: str, help: str, *, ini: str | None = None, many: bool = False) -> Option:
    flag = f"--ctxeval-{name.replace('_', '-')}"
    return Option(name=name, metavar=metavar, help=help, default=default, flag=flag, ini=ini, many=many)


OPTIONS: Final = (
    _option(
        "record", "MODE", "none on a CI, else once",
        "what becomes of a judge call that is not on its test's cassette: none (fails at once), once (recorded if the "
        "test has no complete cassette yet), new_episodes (recorded), all (everything is recorded anew), off (calls go "
        "live, cassettes are not looked at)",
    ),
    _option(
        "judge", "PROVIDER:NAME", "no judge",
        "the judge, at temperature 0, where no judge_model fixture is overridden; openai, groq, anthropic or ollama",
    ),
    _option(
        "gate", "EXPR", "no gate",
        "fail the run unless the bar is reached: context_awareness:0.8 (each session's mean), "
        "context_awareness.low:0.6 (the low end of its interval), context_awareness@SESSION:0.9 (one session), "
        "unscored:0 (at most so many), and against a baseline drop:0.05 (no session's mean falls by more, beyond "
        "noise, no case falls through its bar or is gone), context_awareness.drop:0.05, drop@SESSION:0.05, missing:0",
        ini="ctxeval_gates", many=True,
    ),
    _option("stat", "MODE", "bayesian", "bayesian (means with a 95% interval) or frequentist (means alone)"),
    _option("samples", "N", "1", "judge each case so many times; the score is the mean"),
    _option("concurrency", "N", "8", "judge calls in flight in one process"),
    _option("timeout", "SECONDS", "120", "how long one judge call may take"),
    _option(
        "structured", "YES/NO", "no",
        "ask for the judge's own structured output (JSON schema, else tool calling) before plain text",
    ),
    _option(
        "baseline", "FILE", "no baseline",
        "a stored run to compare with: the .json report of an earlier one, as of the branch to merge into",
    ),
    _option(
        "report", "FILE", "no report", "write the run to a .json, .md or .html file", ini="ctxeval_reports", many=True
    ),
    _option(
        "github", "YES/NO", "no",
        "on GitHub Actions, add the run to the step's summary, and annotate the tests that failed or got worse",
    ),
    _option(
        "unused", "WHAT", "warn",
        "what a run of all tests does about recordings that no test needs: ignore, warn (list them) or fail (list "
        "them, and the run is red)",
    ),
    Option(
        name="cassettes", metavar="FOLDER", default="cassettes", help="where the cassettes are, under the rootdir",
    ),
)  # fmt: skip


class Settings(NamedTuple):
    """What a run was asked to do."""

    record: RecordMode
    judge: str | None
    gates: tuple[Gate, ...]
    stat: StatMode
    samples: int
    concurrency: int
    timeout_s: float
    structured: bool
    baseline: Path | None
    reports: tuple[Path, ...]
    github: bool
    unused: UnusedMode
    cassettes: Path


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and ini key."""
    group = parser.getgroup("ctxeval", "evaluation of language model answers (ctxeval)")
    for option in OPTIONS:
        also = f"ini {option.ini_name}, environment {option.variable}"
        if option.flag:
            group.addoption(
                option.flag, dest=f"ctxeval_{option.name}", metavar=option.metavar, default=None,
                action="append" if option.many else "store",
                help=f"{option.help} (default: {option.default}; {also})".replace("%", "%%"),
            )  # fmt: skip
        kind: Literal["linelist", "string"] = "linelist" if option.many else "string"
        parser.addini(option.ini_name, f"{option.help} (default: {option.default})", type=kind, default=None)


def read_settings(config: pytest.Config) -> Settings:
    """Read and check all options. Raises `ConfigError` that names the place of a wrong one and lists the choices.

    The command line beats the environment, which beats the ini file, which beats the default.
    """
    _check_variables(os.environ)
    given = {option.name: _given(config, option) for option in OPTIONS}
    return Settings(
        record=_one(given["record"], _choice(RecordMode), default="none" if on_ci(os.environ) else "once"),
        judge=_one(given["judge"], _judge, default=None),
        gates=_gates(given["gate"], given["stat"], given["baseline"]),
        stat=_one(given["stat"], _choice(StatMode), default="bayesian"),
        samples=_one(given["samples"], _count, default=1),
        concurrency=_one(given["concurrency"], _count, default=8),
        timeout_s=_one(given["timeout"], _seconds, default=120.0),
        structured=_one(given["structured"], _yes_or_no, default=False),
        baseline=_one(given["baseline"], lambda text: _file(_base(config, given["baseline"]) / text), default=None),
        reports=tuple(
            _base(config, given["report"]) / _read(each, given["report"], report_path)
            for each in given["report"].values
        ),
        github=_one(given["github"], _yes_or_no, default=False) and _is_set(os.environ, "GITHUB_ACTIONS"),
        unused=_one(given["unused"], _choice(UnusedMode), default="warn"),
        cassettes=config.rootpath / _one(given["cassettes"], str, default="cassettes"),
    )


def _base(config: pytest.Config, given: _Given) -> Path:
    """Give the folder that paths are relative to: the project's for the ini file, else where pytest was started."""
    return config.rootpath if given.where.startswith("ini ") else config.invocation_params.dir


def _check_variables(environment: Mapping[str, str]) -> None:
    """Raise `ConfigError` for a variable that is one of ours but for a slip; pytest itself warns of such ini keys.

    A project may have variables of its own that begin as ours do: what is not close to one of ours is left alone.
    """
    known = {option.variable.removeprefix(_PREFIX): option for option in OPTIONS}
    strangers = sorted(name for name in environment if name.startswith(_PREFIX) and name[len(_PREFIX) :] not in known)
    if not strangers:
        return
    from difflib import get_close_matches

    for name in strangers:
        close = get_close_matches(name[len(_PREFIX) :], known, n=1, cutoff=_SLIP)
        if close:
            raise ConfigError(f"${name} is no setting of pytest-ctxeval; did you mean '${known[close[0]].variable}'?")


def on_ci(environment: Mapping[str, str]) -> bool:
    """Whether this looks like a continuous integration machine."""
    return any(_is_set(environment, name) for name in _CI)


def _is_set(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() not in ("", "0", "false", "no")


def place_of(config: pytest.Config, name: str) -> str:
    """Say where the value of an option was given, as messages call it."""
    return _given(config, next(option for option in OPTIONS if option.name == name)).where


class _Given(NamedTuple):
    """What was given for an option, and where."""

    values: tuple[str, ...]
    where: str
    on_command_line: bool = False


def _given(config: pytest.Config, option: Option) -> _Given:
    if option.flag:
        found = config.getoption(f"ctxeval_{option.name}")
        if found is not None:
            return _Given(tuple(found) if option.many else (found,), option.flag, on_command_line=True)
    variable = os.environ.get(option.variable, "")
    if variable.strip():
        where = f"${option.variable}"
        return _Given(_words(variable, where) if option.many else (variable.strip(),), where)
    found = config.getini(option.ini_name)
    if not found:
        return _Given((), "")
    values = found if isinstance(found, list) else [found]
    return _Given(tuple(str(value).strip() for value in values), f"ini {option.ini_name}")


def _words(text: str, where: str) -> tuple[str, ...]:
    """Split at spaces, as a shell does: what holds one is quoted. A backslash is itself, since paths have them."""
    reader = shlex.shlex(text, posix=True, punctuation_chars=False)
    reader.whitespace_split, reader.escape, reader.commenters = True, "", ""
    try:
        return tuple(reader)
    except ValueError as error:
        raise ConfigError(f"{where}: {text!r} has a quote that is not closed") from error


def _one(given: _Given, parse: Callable[[str], Any], *, default: Any) -> Any:
    return _read(given.values[0], given, parse) if given.values else default


def _read(value: str, given: _Given, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(value)
    except ConfigError as error:
        raise ConfigError(f"{given.where}: {error}") from None


def _gates(given: _Given, stat: _Given, baseline: _Given) -> tuple[Gate, ...]:
    if not given.values:
        return ()
    from pytest_ctxeval._core.gate import check_needs, parse_gate

    gates = tuple(
        _read(value, given, lambda text: parse_gate(text, metrics=METRICS, required=given.on_command_line))
        for value in given.values
    )
    try:
        check_needs(gates, intervals=stat.values != ("frequentist",), baseline=bool(baseline.values))
    except ConfigError as error:
        raise ConfigError(f"{given.where}: {error}") from None
    return gates


def _choice(choices: Any) -> Callable[[str], str]:
    names = get_args(choices)

    def parse(text: str) -> str:
        if text not in names:
            raise ConfigError(f"{text!r} is not a mode; use {', '.join(names[:-1])} or {names[-1]}")
        return text

    return parse


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS or int(text) < 1:
        raise ConfigError(f"{text!r} is not a number of 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _DAY_S:
        raise ConfigError(f"{text!r} is not a number of seconds above 0 and up to {_DAY_S}")
    return seconds


def _yes_or_no(text: str) -> bool:
    answers = {"yes": True, "true": True, "1": True, "on": True, "no": False, "false": False, "0": False, "off": False}
    if text.lower() not in answers:
        raise ConfigError(f"{text!r} is neither yes nor no")
    return answers[text.lower()]


def _judge(text: str) -> str:
    from pytest_ctxeval._judge.provider import parse_judge

    parse_judge(text)
    return text


def _file(path: Path) -> Path:
    if not path.is_file():
        from pytest_ctxeval._core.text import shown_path

        raise ConfigError(
            f"{shown_path(path)!r} is not there; --ctxeval-report=run.json writes a run that can be compared with"
        )
    return path


def report_path(text: str) -> Path:
    """Take the name of a report's file. Raises `ConfigError` for a kind that there is not."""
    if Path(text).suffix not in REPORTS:
        kinds = f"{', '.join(REPORTS[:-1])} or {REPORTS[-1]}"
        raise ConfigError(f"{text!r} is no kind of report; use a name that ends in {kinds}")
    if Path(text).suffix == ".html" and find_spec("jinja2") is None:
        raise ConfigError(f"{text!r} needs jinja2, which is not installed; pip install 'pytest-ctxeval[html]'")
    return Path(text)
