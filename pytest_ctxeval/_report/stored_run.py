"""A run as a JSON file: every case with all that is known of it, and what was made of them.

The models describe the file; `docs/run.schema.json` is made from them. What is derived (sessions, gates, spreads)
stands there for other readers: when a file is read, it follows anew from the cases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_ctxeval._core.run import Run, StatMode
from pytest_ctxeval._core.selection import Selection
from pytest_ctxeval._core.statistics import statistical_mode
from pytest_ctxeval._core.strict_json import finite, no_constant, no_duplicates
from pytest_ctxeval._core.summary import Summary, summarise
from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import Calls, CaseResult, Cost, Sample, Source, Statement, spread_of
from pytest_ctxeval._report.report import Report
from pytest_ctxeval.errors import ConfigError

SCHEMA: Final = 1

_ANEW: Final = "write the run anew"
_WRITTEN_BY: Final = "--ctxeval-report=run.json writes one"

Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**53)]  # what every reader of JSON can hold
Word = Annotated[str, Field(pattern="^[A-Za-z0-9_.-]{1,80}$")]
Words = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,40}(, [A-Za-z0-9_-]{1,40}){0,9}$")]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StoredCalls(_Stored):
    """Exchanges with a model: played from a cassette, recorded, or live and unrecorded."""

    replayed: Count = 0
    recorded: Count = 0
    live: Count = 0


class StoredCost(_Stored):
    """Exchanges and tokens; tokens are null where the model does not tell."""

    calls: StoredCalls
    tokens: Count | None


class StoredSample(_Stored):
    """One judging of a case."""

    score: Score
    reason: str


class StoredStatement(_Stored):
    """One statement of a retrieved chunk (numbered from 1)."""

    chunk: Annotated[int, Field(ge=1, le=2**53)]
    statement: str
    relevant: bool
    reason: str | None


class StoredCase(_Stored):
    """One case judged by one metric. `score` is null, and `unscored` says why, where it could not be judged."""

    node_id: str
    position: Count
    session_id: str
    assistant_id: str
    qa_id: str
    metric: Word
    score: Score | None
    reason: str
    unscored: str | None
    min: Annotated[Score | None, Field(description="the bar of the assertion")]
    weight: Annotated[float | None, Field(ge=0, allow_inf_nan=False, description="as given; null for an equal share")]
    query: str
    assistant: str
    context: str
    retrieval_context: list[str] | None
    ground_truth_assistant: str | None
    language: str
    samples: list[StoredSample]
    statements: list[StoredStatement]
    judge: str | None
    prompt_version: Word | None
    source: Source | None
    calls: StoredCalls
    tokens: Count | None
    cassette: str | None
    reruns: Count
    temperature: Annotated[float | None, Field(allow_inf_nan=False)]
    line: Annotated[Count | None, Field(description="of the test in its file, from 1")]
    expected: Annotated[bool, Field(description="the case did not pass, and its test was to fail or asked for that")]
    spread: Annotated[list[Score] | None, Field(description="lowest and highest sample, where there are several")]


class StoredSession(_Stored):
    """One session by one metric; what it says follows from the cases."""

    session_id: str
    assistant_id: str
    metric: str
    n: Count
    n_unscored: Count
    mean: Score | None
    low: Score | None
    high: Score | None
    note: str | None
    prompt_version: str | None


class StoredGate(_Stored):
    """What came of a gate in one session, or, where that is null, in the whole run."""

    gate: str
    session_id: str | None
    status: Literal["passed", "failed", "not checked"]
    text: str


class StoredSelection(_Stored):
    """Which tests the run was to have, by their ids: all in `paths`, but for `ignored` (patterns) and `deselected`."""

    paths: list[str]
    ignored: list[str]
    deselected: list[str]


class StoredRun(_Stored):
    """A run of pytest-ctxeval. `schema` counts up whenever a reader of the version before would be misled."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    record: Words
    stat: StatMode
    partial: Annotated[str | None, Field(description="why tests were left out of the run")]
    selection: StoredSelection
    broken_off: bool
    assistant: StoredCalls
    spent: Annotated[StoredCost, Field(description="in attempts that were rerun")]
    sessions: list[StoredSession]
    gates: list[StoredGate]
    cases: list[StoredCase]


def run_json(report: Report) -> str:
    """Give the text of a stored run. It holds no time, no path of a machine and no order of arrival."""
    run = report.run
    stored = {
        "schema": SCHEMA,
        "record": run.record,
        "stat": run.stat,
        "partial": run.partial,
        "selection": asdict(run.selection),
        "broken_off": run.broken_off,
        "assistant": asdict(run.assistant),
        "spent": asdict(run.spent),
        "sessions": [asdict(row) for row in report.summary.sessions],
        "gates": [
            {
                "gate": check.gate.text,
                "session_id": check.session.session_id if check.session else None,
                "status": check.status,
                "text": check.text,
            }
            for check in report.checks
        ],
        "cases": [_case(result) for result in report.summary.results],
    }
    return json.dumps(_whole(stored), indent=2) + "\n"


def parse_run(text: str, *, where: str) -> tuple[Run, Summary]:
    """Read a stored run, and sum it up anew. Raises `ConfigError`, which starts with `where`, for anything else.

    That includes a file whose own session means do not follow from its cases: it was changed by hand, or cut.
    """
    try:
        given = json.loads(text, object_pairs_hook=no_duplicates, parse_constant=no_constant, parse_float=finite)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{where}, line {error.lineno}: not a stored run, which is JSON: {error.msg}; {_WRITTEN_BY}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not a stored run: {one_line(str(error), 200)}") from None
    if not isinstance(given, dict) or "schema" not in given:
        raise ConfigError(f"{where}: not a stored run; {_WRITTEN_BY}")
    if type(given["schema"]) is not int or given["schema"] != SCHEMA:
        told = one_line(repr(given["schema"]), 40)
        raise ConfigError(f"{where}: its schema is {told}, and this version reads {SCHEMA}; write the run anew")
    try:
        stored = StoredRun.model_validate(given)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise ConfigError(
            f"{where}: {one_line(place, 100)}: {one_line(problem['msg'], 200).lower()}; write the run anew"
        ) from None
    run = _run(stored)
    summary = summarise(run.results, statistical_mode(run.stat))
    _check(stored, summary, where)
    return replace(run, results=summary.results), summary


def schema_json() -> str:
    """Give the JSON Schema of a stored run."""
    return json.dumps(StoredRun.model_json_schema(mode="serialization"), indent=2) + "\n"


def _case(result: CaseResult) -> dict[str, Any]:
    spread = spread_of(result.samples)
    return {**asdict(result), "spread": [spread.low, spread.high] if spread else None}


def _whole(value: Any) -> Any:
    """Put U+FFFD for half characters, which stand in no file."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {name: _whole(each) for name, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, (list, tuple)) else value


def _run(stored: StoredRun) -> Run:
    return Run(
        results=tuple(map(_result, stored.cases)),
        record=stored.record,
        stat=stored.stat,
        assistant=_calls(stored.assistant),
        spent=Cost(_calls(stored.spent.calls), stored.spent.tokens),
        partial=stored.partial,
        selection=_selection(stored.selection),
        broken_off=stored.broken_off,
    )


def _result(case: StoredCase) -> CaseResult:
    plain = {each.name: getattr(case, each.name) for each in fields(CaseResult)}
    plain["samples"] = tuple(Sample(each.score, each.reason) for each in case.samples)
    plain["statements"] = tuple(Statement(**dict(each)) for each in case.statements)
    plain["calls"] = _calls(case.calls)
    return CaseResult(**plain)


def _selection(stored: StoredSelection) -> Selection:
    return Selection(tuple(stored.paths), tuple(stored.ignored), tuple(stored.deselected))


def _calls(stored: StoredCalls) -> Calls:
    return Calls(stored.replayed, stored.recorded, stored.live)


def _check(stored: StoredRun, summary: Summary, where: str) -> None:
    for at, case in enumerate(summary.results):
        if (case.score is None) != (case.unscored is not None) or (case.expected and case.passed):
            raise ConfigError(f"{where}: cases.{at}: its score, unscored and expected contradict each other; {_ANEW}")
    told = [(row.session_id, row.metric, row.n, row.n_unscored, _rounded(row.mean)) for row in stored.sessions]
    found = [(row.session_id, row.metric, row.n, row.n_unscored, _rounded(row.mean)) for row in summary.sessions]
    if told != found:
        raise ConfigError(
            f"{where}: its sessions do not follow from its cases, so it was changed or cut; write the run anew"
        )


def _rounded(mean: float | None) -> float | None:
    return None if mean is None else round(mean, 9)
