"""What GitHub shows at the lines of a pull request: workflow commands, one a line.

Their form: https://docs.github.com/actions/reference/workflow-commands-for-github-actions. GitHub shows 10 of each kind
for a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pytest_ctxeval._core.gate import GateCheck
from pytest_ctxeval._core.text import harmless, one_line
from pytest_ctxeval._report.bad_cases import BadCase, bad_cases
from pytest_ctxeval._report.report import Report

_SHOWN: Final = 10
_TITLE: Final = 120
_MESSAGE: Final = 400


@dataclass(frozen=True, slots=True)
class _Annotation:
    kind: Literal["error", "warning"]
    title: str
    message: str
    file: str = ""
    line: int | None = None


def annotation_lines(report: Report, *, shown_path: Callable[[str], str]) -> list[str]:
    """Give the commands for what turns a run red, as errors, and for what got worse and still passes, as warnings.

    The most important stand first: gates, cases that regressed, that are below their bar, that have no score.
    `shown_path` makes of a test file's path one that GitHub knows, from the repository's root.
    """
    gates = [_of_gate(check) for check in report.checks if check.status == "failed"]
    cases = [_of_case(case, shown_path) for case in bad_cases(report)]
    errors = [*gates, *(each for each in cases if each.kind == "error")]
    warnings = [each for each in cases if each.kind == "warning"]
    return [_command(each) for each in [*_first(errors), *_first(warnings)]]


def _of_gate(check: GateCheck) -> _Annotation:
    row = check.session
    where = f"{one_line(row.session_id, _TITLE)}, {row.measure}: " if row else ""
    return _Annotation("error", f"gate {one_line(check.gate.text, _TITLE)} failed", where + check.text)


def _of_case(case: BadCase, shown_path: Callable[[str], str]) -> _Annotation:
    result = case.result
    metric = result.metric.replace("_", " ")
    return _Annotation(
        kind="error" if result.failed else "warning",
        title=f"{metric} of {one_line(result.qa_id, _TITLE // 2)}: {case.fault}",
        message=f"{one_line(result.unscored or result.reason, _MESSAGE)}\n{one_line(result.node_id, _MESSAGE)}",
        file=shown_path(result.node_id.partition("::")[0]),
        line=result.line,
    )


def _first(annotations: Sequence[_Annotation]) -> Iterator[_Annotation]:
    """As many as are shown; where there are more, the last of them says so."""
    if len(annotations) <= _SHOWN:
        yield from annotations
        return
    yield from annotations[: _SHOWN - 1]
    left = len(annotations) - _SHOWN + 1
    yield _Annotation(
        annotations[0].kind,
        "context evaluation",
        f"and {left} more; a report of the run, as --ctxeval-report=run.html, has all of them",
    )


def _command(annotation: _Annotation) -> str:
    place = {"file": harmless(annotation.file), "line": str(annotation.line or "") if annotation.file else ""}
    properties = {**place, "title": one_line(annotation.title, _TITLE)}
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{annotation.kind} {told}::{_data(harmless(annotation.message))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
