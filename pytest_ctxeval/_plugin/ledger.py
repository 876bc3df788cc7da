"""What a run has judged: gathered from the reports of its tests, on the process that prints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import Calls, CaseResult, Cost, Sample, Statement, cost_of
from pytest_ctxeval._judge.cassette.secrets import may_hold_secrets, redact, redacted
from pytest_ctxeval._judge.cassette.shelf import Unused
from pytest_ctxeval._judge.cassette.tape import Use
from pytest_ctxeval._plugin.stash import LEDGER

if TYPE_CHECKING:
    from pytest_ctxeval._core.baseline import Comparison
    from pytest_ctxeval._core.gate import GateCheck
    from pytest_ctxeval._core.summary import Summary

ATTRIBUTE: Final = "ctxeval"  # of a report: one JSON string, which travels between processes whatever it holds

# Values do not change, so that all tests may share one.
_NO_CALLS: Final = Calls()
_NO_COST: Final = Cost()
_NO_USE: Final = Use()


@dataclass(slots=True)
class _Entry:
    """What is known of one test: of its last attempt."""

    planned: CaseResult | None = None  # the case it is about, with neither metric nor score
    results: tuple[CaseResult, ...] = ()
    assistant: Calls = _NO_CALLS
    failed: str | None = None
    red: bool = False
    let_off: bool = False  # since it was expected to fail
    reruns: int = 0
    again: bool = False  # whether the attempt does not count, since there will be another
    skipped: bool = False
    passed: bool = False
    use: Use = _NO_USE
    spent: Cost = _NO_COST  # in attempts that do not count

    @property
    def expects_failure(self) -> bool:
        """Whether a case that did not pass is no fault of the test: it passed all the same, or was to fail."""
        return (self.passed or self.let_off) and not self.red and not self.again


class Ledger:
    """All results of a run by test, whatever the order and the process they come from."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._texts: dict[str, str] = {}  # each once, however many results hold it, as the context of a session
        self.summary: Summary | None = None
        self.checks: tuple[GateCheck, ...] = ()
        self.comparison: Comparison | None = None
        self.broken_off = False
        self.left_out: str | None = None  # why tests were left out, of those that the run was to have
        self.stopped = False
        self.partial = False  # whether some tests were left out of the run
        self.unused = Unused()
        self.notes: list[str] = []

    def record(self, report: pytest.TestReport) -> None:
        """Take what a report carries, and how its test fared."""
        text = getattr(report, ATTRIBUTE, None)
        if text is not None:
            self.take(report.nodeid, text)
        entry = self._entries.get(report.nodeid)
        if entry is None:
            return
        if str(report.outcome) == "rerun":  # of pytest-rerunfailures
            entry.reruns += 1
            entry.again = True
        entry.red = entry.red or report.failed
        entry.let_off = entry.let_off or _is_let_off(report)
        if report.failed or _is_let_off(report):
            entry.failed = "worker crashed" if is_crash(report) else _first_line(report)
        entry.passed = entry.passed or (report.when == "call" and report.passed)
        entry.skipped = entry.skipped or (report.skipped and not hasattr(report, "wasxfail"))

    def take(self, node: str, text: str) -> None:
        """Take what a test has judged. A new attempt of it replaces the one before."""
        entry = self._entries.setdefault(node, _Entry())
        self._texts.setdefault(node, node)
        sent = json.loads(text, object_pairs_hook=self._shared)
        if "planned" in sent:
            entry.planned = CaseResult(**_known(sent["planned"]), metric="", score=None)
            entry.failed, entry.use = None, _NO_USE
            entry.passed = entry.skipped = entry.again = entry.red = entry.let_off = False
            entry.spent = sum((cost_of(result) for result in entry.results), entry.spent)
        entry.results = tuple(_result_from(each) for each in sent["results"])
        entry.assistant = Calls(**sent["assistant"])
        self.stopped = self.stopped or bool(sent["stopped"])
        self.partial = self.partial or bool(sent["partial"])
        if "use" in sent:
            entry.use = Use(*(tuple(map(tuple, each)) for each in sent["use"]))

    def _shared(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        once = self._texts.setdefault
        return {name: once(value, value) if isinstance(value, str) else value for name, value in pairs}

    def forget_texts(self) -> None:
        """Let go of what tells which texts are there already: nothing more comes."""
        self._texts.clear()

    @property
    def results(self) -> list[CaseResult]:
        """Every case of the run, those included that were to be judged and were not."""
        siblings = _Siblings(self._entries)
        return [result for node, entry in self._entries.items() for result in self._of(node, entry, siblings)]

    def judged(self, node: str) -> tuple[Sequence[CaseResult], str | None]:
        """Give what a test has judged in an attempt that counts, and why it judged nothing, where it broke before."""
        entry = self._entries.get(node)
        if entry is None or entry.again:
            return (), None
        return entry.results, None if entry.results else entry.failed

    @property
    def assistant(self) -> Calls:
        """The calls of assistants under test."""
        return sum((entry.assistant for entry in self._entries.values()), Calls())

    @property
    def spent(self) -> Cost:
        """What attempts that were rerun have cost; else they do not count."""
        return sum((entry.spent for entry in self._entries.values()), Cost())

    @property
    def uses(self) -> dict[str, Use]:
        """What each test of ours that passed made of its cassettes."""
        return {
            _id(node, entry): entry.use
            for node, entry in self._entries.items()
            if entry.passed and not entry.failed and not entry.skipped
        }

    @property
    def nodes(self) -> list[str]:
        """The ids of all tests of ours that were set up."""
        return [_id(node, entry) for node, entry in self._entries.items()]

    @property
    def lent(self) -> dict[str, tuple[tuple[str, str, str], ...]]:
        """What tests found on the cassettes of others: key, origin and path of each recording."""
        return {_id(node, entry): entry.use.lent for node, entry in self._entries.items() if entry.use.lent}

    @property
    def skipped(self) -> list[str]:
        """The tests of ours that were skipped."""
        return [node for node, entry in self._entries.items() if entry.skipped and not entry.passed]

    @property
    def unfinished(self) -> list[str]:
        """The tests of ours that did not pass, those included that were expected to fail."""
        return [_id(node, entry) for node, entry in self._entries.items() if entry.failed or not entry.passed]

    def _of(self, node: str, entry: _Entry, siblings: _Siblings) -> Iterator[CaseResult]:
        yield from (_settled(result, entry) for result in entry.results)
        if entry.failed and entry.planned:
            had = {_measure(result) for result in entry.results}
            for metric, version in siblings.measures(node, entry) - had:
                yield replace(
                    entry.planned,
                    metric=metric,
                    prompt_version=version,
                    unscored=entry.failed,
                    reruns=entry.reruns,
                    expected=entry.expects_failure,
                )


def _settled(result: CaseResult, entry: _Entry) -> CaseResult:
    """A result with what is known of its test only when that is over."""
    expected = not result.passed and entry.expects_failure
    return replace(result, reruns=entry.reruns, expected=expected) if entry.reruns or expected else result


class _Siblings:
    """What the tests of a run were judged by, looked up by their function and by their session."""

    def __init__(self, entries: Mapping[str, _Entry]) -> None:
        self._of_function: dict[str, set[tuple[str, str | None]]] = {}
        self._of_session: dict[str, set[tuple[str, str | None]]] = {}
        for node, entry in entries.items():
            of_function = self._of_function.setdefault(_function(node), set())
            for result in entry.results:
                of_function.add(_measure(result))
                self._of_session.setdefault(result.session_id, set()).add(_measure(result))

    def measures(self, node: str, entry: _Entry) -> set[tuple[str, str | None]]:
        """What a test that came to its end too soon would have been judged by: what its siblings were."""
        siblings = self._of_function.get(_function(node), set())
        if siblings or entry.results or not entry.planned:
            return siblings
        return self._of_session.get(entry.planned.session_id) or {("context_awareness", None)}


def ledger_of(config: pytest.Config) -> Ledger:
    """Give the ledger of this run, made at the first use."""
    if LEDGER not in config.stash:
        config.stash[LEDGER] = Ledger()
    return config.stash[LEDGER]


def to_text(
    results: Iterable[CaseResult],
    *,
    assistant: Calls,
    stopped: bool = False,
    partial: bool = False,
    use: Use | None = None,
    planned: dict[str, Any] | None = None,
) -> str:
    """Give what a report carries, without secrets; `stopped` says that the judge refused the key.

    `partial` says that tests were left out of the run, `use` what the test made of its cassettes.
    """
    sent: dict[str, Any] = {
        "results": [*results],
        "assistant": assistant,
        "stopped": stopped,
        "partial": partial,
    }
    if use is not None:
        sent["use"] = use
    if planned is not None:
        sent["planned"] = planned
    text = json.dumps(sent, default=_as_dict)
    if not may_hold_secrets(text):
        return text
    sent = json.loads(text)
    sent["results"] = [_shown(each) for each in sent["results"]]
    if planned is not None:
        sent["planned"] = _shown(planned)
    return json.dumps(sent)


def forget_text(report: pytest.TestReport) -> None:
    """Take off a report what the ledger has: pytest keeps all reports until the run ends."""
    vars(report).pop(ATTRIBUTE, None)


_FIELDS: Final = {kind: tuple(each.name for each in fields(kind)) for kind in (CaseResult, Calls, Sample, Statement)}
_IDENTITY: Final = ("node_id", "session_id", "assistant_id", "qa_id", "metric")


def _as_dict(part: Any) -> dict[str, Any]:
    """Give a part of a result as JSON has it; `dataclasses.asdict` copies all that is in it first."""
    return {name: getattr(part, name) for name in _FIELDS[type(part)]}


def _shown(result: dict[str, Any]) -> dict[str, Any]:
    """Hide keys in the texts of a result, and never in what it is known by: a gate must find its session."""
    return {**redacted(result), **{name: result[name] for name in _IDENTITY if name in result}}


def _id(node: str, entry: _Entry) -> str:
    """Give a test's own id, without what other plugins add to it."""
    return entry.planned.node_id if entry.planned else node


def _result_from(sent: dict[str, Any]) -> CaseResult:
    given = _known(sent)
    given["samples"] = tuple(Sample(**each) for each in sent["samples"])
    given["statements"] = tuple(Statement(**each) for each in sent["statements"])
    given["calls"] = Calls(**sent["calls"])
    return CaseResult(**given)


def _known(sent: dict[str, Any]) -> dict[str, Any]:
    return {name: sent[name] for name in _FIELDS[CaseResult] if name in sent}


def is_crash(report: pytest.TestReport) -> bool:
    """Whether pytest-xdist made this report up for the test at which a worker crashed."""
    return str(report.when) == "???"


def _is_let_off(report: pytest.TestReport) -> bool:
    """Whether the test ran, and was expected to fail."""
    reason = getattr(report, "wasxfail", None)
    return report.skipped and reason is not None and "[NOTRUN]" not in str(reason)


def _measure(result: CaseResult) -> tuple[str, str | None]:
    return result.metric, result.prompt_version


def _function(node: str) -> str:
    return node.partition("[")[0]


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(getattr(report, "longrepr", None), "reprcrash", None)
    message = getattr(crash, "message", None) or str(report.longrepr or "").strip()
    return one_line(redact(f"not judged: {message.splitlines()[0] if message else 'its test failed'}"), 300)
