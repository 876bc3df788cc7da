"""What has changed from one run to another: paired by session, case and metric."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pytest_ctxeval._core.numbers import arrow, below, count, figure
from pytest_ctxeval._core.run import Run
from pytest_ctxeval._core.statistics import Aggregate, BayesianMode
from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import CaseResult, reaches, spread_of
from pytest_ctxeval._core.weights import resolve_weights, weighted_mean

Change = Literal["regressed", "missing", "improved", "within noise", "same", "new", "unscored", "left out"]

_Key = tuple[str, str, str | None]  # of a row: session, metric, version

_SAME: Final = 1e-9
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class CaseChange:
    """What became of one case by one metric; `old` or `new` is None where a run has no such case.

    `fell` says that it reached its bar of today before, and does not any more. `text` is short and harmless.
    """

    change: Change
    old: CaseResult | None
    new: CaseResult | None
    fell: bool = False
    text: str = ""

    @property
    def result(self) -> CaseResult:
        """The result of today, or of before where there is none today."""
        result = self.new or self.old
        assert result is not None
        return result

    @property
    def difference(self) -> float | None:
        """How far the score moved, -1 to 1; None where there are not two."""
        if self.old is None or self.new is None or self.old.score is None or self.new.score is None:
            return None
        return self.new.score - self.old.score


@dataclass(frozen=True, slots=True)
class SessionChange:
    """What became of a session by a metric (and its version of today): its cases in the order of the collection.

    `difference` is the weighted mean of the paired differences (-1 to 1, below 0 for worse), None without a pair; `low`
    and `high` are its interval.
    """

    session_id: str
    metric: str
    prompt_version: str | None
    cases: tuple[CaseChange, ...]
    difference: float | None
    low: float | None
    high: float | None

    @property
    def n_pairs(self) -> int:
        """How many cases have a score in both runs."""
        return sum(case.difference is not None for case in self.cases)

    def having(self, change: Change) -> tuple[CaseChange, ...]:
        """Give the cases of which this became."""
        return tuple(case for case in self.cases if case.change == change)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run against an earlier one. `differs` says what makes the two hard to compare, and comes before any number."""

    differs: tuple[str, ...]
    sessions: tuple[SessionChange, ...]

    def having(self, change: Change) -> tuple[CaseChange, ...]:
        """Give the cases of all sessions of which this became."""
        return tuple(case for session in self.sessions for case in session.having(change))


def compare(old: Run, new: Run) -> Comparison:
    """Compare two runs case by case.

    A case that is gone is missing, unless the new run was not to have its test, or was broken off before it came to
    it. A case has changed where the ranges of its samples do not touch, one sample being a range of no width: replayed
    from the same recordings it is the same to the last bit. It has regressed too where it fell through its own bar,
    or cannot be judged any more.
    """
    pairs = list(_paired(old.results, new.results))
    moved = {_file(old.node_id): _file(new.node_id) for old, new in pairs if old is not None and new is not None}

    def left_out(node: str) -> bool:
        today = moved.get(_file(node), _file(node)) + node.removeprefix(_file(node))
        return new.broken_off or (new.selection.leaves_out(node) and new.selection.leaves_out(today))

    rows: dict[_Key, list[CaseChange]] = {_key(result): [] for result in new.results}
    likes = {row[:2]: row for row in reversed(rows)}
    for before, after in pairs:
        became = _case(before, after, left_out)
        own = _key(became.result)
        row = own if after is not None or own in rows else likes.get(own[:2], own)
        rows.setdefault(row, []).append(became)
    sessions = tuple(_session(key, cases) for key, cases in rows.items())
    return Comparison((*_shortcomings(old, pairs), *_differences(pairs)), sessions)


def paired_interval(differences: Sequence[float], weights: Sequence[float]) -> Aggregate:
    """Give the weighted mean of differences (-1 to 1) and its 95% interval.

    The Bayesian bootstrap of `BayesianMode`, over the differences: its two prior cases moved as far as the one that
    moved most, one down and one up. So it takes five cases that all fall alike to exclude 0, as it does in a sign test.
    Where none moved, nothing did, and the interval has no width. All None where no case that counts is there.
    """
    mean = weighted_mean(differences, weights)
    most = max(map(abs, differences), default=0.0)
    if mean is None or not most:
        return Aggregate(mean, mean, mean)
    _, low, high = BayesianMode().aggregate([(each / most + 1) / 2 for each in differences], weights)
    assert low is not None
    assert high is not None
    return Aggregate(mean, min((2 * low - 1) * most, mean), max((2 * high - 1) * most, mean))


def _paired(
    old: Sequence[CaseResult], new: Sequence[CaseResult]
) -> Iterator[tuple[CaseResult | None, CaseResult | None]]:
    """Pair the results of two runs, in the order of the new one; then those of the old one that are left over.

    A case that was judged more than once by a metric, in two tests or by two prompts, is paired with its like.
    """
    alike: tuple[Callable[[CaseResult], Any], ...] = (
        lambda result: (result.node_id, result.prompt_version),
        lambda result: result.prompt_version,
        lambda result: result.node_id,
        lambda _: None,
    )
    partner: dict[int, CaseResult] = {}
    left = list(old)
    for key in alike:
        waiting: dict[Any, deque[CaseResult]] = {}
        for result in left:
            waiting.setdefault((*_identity(result), key(result)), deque()).append(result)
        for at, result in enumerate(new):
            candidates = waiting.get((*_identity(result), key(result))) if at not in partner else None
            if candidates:
                partner[at] = candidates.popleft()
        taken = set(map(id, partner.values()))
        left = [result for result in left if id(result) not in taken]
    yield from ((partner.get(at), result) for at, result in enumerate(new))
    yield from ((result, None) for result in left)


def _identity(result: CaseResult) -> tuple[str, str, str]:
    return result.session_id, result.metric, result.qa_id


def _file(node: str) -> str:
    return node.partition("::")[0]


def _key(result: CaseResult) -> _Key:
    return result.session_id, result.metric, result.prompt_version


def _case(old: CaseResult | None, new: CaseResult | None, left_out: Callable[[str], bool]) -> CaseChange:
    if old is None:
        return CaseChange("new", None, new, text=_shown(new))
    if new is None:
        return CaseChange("left out" if left_out(old.node_id) else "missing", old, None, text=f"was {_shown(old)}")
    if new.score is None:
        change: Change = "unscored" if old.score is None else "regressed"
        return CaseChange(change, old, new, text=f"{_shown(old)} -> {_shown(new)}")
    if old.score is None:
        return CaseChange("new", old, new, text=f"{_shown(old)} -> {_shown(new)}")
    fell = new.min is not None and reaches(old.score, new.min) and not reaches(new.score, new.min)
    bar = f", {below(new.score, new.min)}" if fell and new.min is not None else ""
    return CaseChange(_scored(old, new, fell=fell), old, new, fell, arrow(old.score, new.score) + bar)


def _scored(old: CaseResult, new: CaseResult, *, fell: bool) -> Change:
    assert old.score is not None
    assert new.score is not None
    if fell:
        return "regressed"
    if abs(new.score - old.score) <= _SAME:
        return "same"
    (low, high), (new_low, new_high) = _range(old, old.score), _range(new, new.score)
    if new_low <= high and low <= new_high:
        return "within noise"
    return "regressed" if new.score < old.score else "improved"


def _range(result: CaseResult, score: float) -> tuple[float, float]:
    spread = spread_of(result.samples)
    return (spread.low, spread.high) if spread else (score, score)


def _shown(result: CaseResult | None) -> str:
    return "unscored" if result is None or result.score is None else f"{result.score:.2f}"


def _session(key: _Key, cases: Sequence[CaseChange]) -> SessionChange:
    """Sum the cases of a row up. Their weights are those of the new run, over all of its cases."""
    present = [case for case in cases if case.new is not None]
    weights = resolve_weights([case.result.weight for case in present]).values
    scored = [
        (case.difference, weight) for case, weight in zip(present, weights, strict=True) if case.difference is not None
    ]
    difference, low, high = paired_interval([each for each, _ in scored], [weight for _, weight in scored])
    return SessionChange(*key, tuple(cases), difference, low, high)


def _shortcomings(old: Run, pairs: Iterable[tuple[CaseResult | None, CaseResult | None]]) -> Iterator[str]:
    """Say what the earlier run lacks, and would have had as a whole."""
    if old.broken_off:
        yield "was broken off: what it did not come to counts as new"
    left_out = sum(
        before is None and after is not None and old.selection.leaves_out(after.node_id) for before, after in pairs
    )
    if left_out:
        yield f"left out {count(left_out, 'case')} of this run, which {'counts' if left_out == 1 else 'count'} as new"


def _differences(pairs: Iterable[tuple[CaseResult | None, CaseResult | None]]) -> Iterator[str]:
    """Say what was not the same in both runs, besides the answers: the judge, the prompt, the question."""
    scored = [
        (old, new) for old, new in pairs if old is not None and new is not None and None not in (old.score, new.score)
    ]
    asked = [(old, new) for old, new in scored if old.judge and new.judge]
    facts: tuple[tuple[str, Callable[[CaseResult], Any]], ...] = (
        ("judge", lambda result: result.judge),
        ("temperature", lambda result: "not told" if result.temperature is None else f"{result.temperature:g}"),
        ("samples", lambda result: len(result.samples)),
    )
    yield from (f"bar {change}" for change in _changed(scored, _bar))
    for name, fact in facts:
        yield from (f"{name} {change}" for change in _changed(asked, fact))
    for metric in dict.fromkeys(new.metric for _, new in asked):
        of_metric = [(old, new) for old, new in asked if new.metric == metric]
        title = metric.replace("_", " ")
        yield from (f"prompt of {title} {change}" for change in _changed(of_metric, lambda each: each.prompt_version))
    for name, fact in _QUESTION:
        other = list(dict.fromkeys(new.qa_id for old, new in scored if fact(old) != fact(new)))
        if other:
            named = ", ".join(one_line(each, 40) for each in other[:_NAMED]) + (", ..." if len(other) > _NAMED else "")
            yield f"{name} of {len(other)} {'case' if len(other) == 1 else 'cases'} is another: {named}"


def _bar(result: CaseResult) -> str:
    return "none" if result.min is None else figure(result.min)


_QUESTION: Final[tuple[tuple[str, Callable[[CaseResult], Any]], ...]] = (
    ("query", lambda result: result.query),
    ("context", lambda result: result.context),
    ("reference answer", lambda result: result.ground_truth_assistant),
)


def _changed(pairs: Iterable[tuple[CaseResult, CaseResult]], fact: Callable[[CaseResult], Any]) -> Iterator[str]:
    """Give "1 -> 2" for each two values of a fact that differ, the most frequent first; with the count, if not all."""
    pairs = list(pairs)
    counts = Counter((fact(old), fact(new)) for old, new in pairs if fact(old) != fact(new))
    for (before, after), n in counts.most_common(_NAMED):
        of = "" if n == len(pairs) else f" ({n} of {len(pairs)} cases)"
        yield f"{one_line(str(before), 60)} -> {one_line(str(after), 60)}{of}"
    more = counts.total() - sum(n for _, n in counts.most_common(_NAMED))
    if more:
        yield f"-> others ({more} of {len(pairs)} cases)"
