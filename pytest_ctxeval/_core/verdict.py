"""What a judge says of a case, and what a run keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Source = Literal["replayed", "recorded", "live", "none"]  # "none" where nothing had to be asked


@dataclass(frozen=True, slots=True)
class Calls:
    """How many exchanges with a model were played from a cassette, recorded, or went live unrecorded."""

    replayed: int = 0
    recorded: int = 0
    live: int = 0

    def __add__(self, other: Calls) -> Calls:
        return Calls(self.replayed + other.replayed, self.recorded + other.recorded, self.live + other.live)


@dataclass(frozen=True, slots=True)
class Cost:
    """What was spent: exchanges, and tokens, None where the model does not tell."""

    calls: Calls = Calls()
    tokens: int | None = 0

    def __add__(self, other: Cost) -> Cost:
        known = self.tokens is not None and other.tokens is not None
        return Cost(self.calls + other.calls, (self.tokens or 0) + (other.tokens or 0) if known else None)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement found in a retrieved chunk (numbered from 1) and whether it is relevant to the query.

    `statement` is empty for a chunk that states nothing, and `reason` then says so.
    """

    chunk: int
    statement: str
    relevant: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One judging of a case: the score (0 to 1) and the judge's reason for it."""

    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judge's verdict on one case by one metric.

    `score` is the mean of the samples, 0 to 1; `reason` and `statements` are those of the lowest one. `tokens` is None
    where the judge does not tell. Where nothing had to be asked, `judge` is empty and `source` is "none".
    `temperature` is that of the judge's model, None where the model does not tell.
    """

    metric: str
    score: float
    reason: str
    samples: tuple[Sample, ...]
    judge: str
    prompt_version: str
    source: Source
    calls: Calls = Calls()
    tokens: int | None = None
    statements: tuple[Statement, ...] = ()
    cassette: str | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case judged by one metric in a test run; `score` is None and `unscored` says why where it failed.

    `weight` is the weight as given, `min` the bar of the assertion (None where the score was only asked
    for). `node_id` and `position` (in the collection) say which test it was, `line` where it stands in its file
    (from 1, None where pytest does not know). `expected` says that the case did not pass, and that its test was marked
    as one that fails, or asked for the failure.
    """

    node_id: str
    position: int
    session_id: str
    assistant_id: str
    qa_id: str
    metric: str
    score: float | None
    reason: str = ""
    unscored: str | None = None
    min: float | None = None
    weight: float | None = None
    query: str = ""
    assistant: str = ""
    context: str = ""
    retrieval_context: Sequence[str] | None = None
    ground_truth_assistant: str | None = None
    language: str = "english"
    samples: tuple[Sample, ...] = ()
    statements: tuple[Statement, ...] = ()
    judge: str | None = None
    prompt_version: str | None = None
    source: Source | None = None
    calls: Calls = Calls()
    tokens: int | None = None
    cassette: str | None = None
    reruns: int = 0
    temperature: float | None = None
    line: int | None = None
    expected: bool = False

    @property
    def failed(self) -> bool:
        """Whether the case did not pass, and should have."""
        return not self.passed and not self.expected

    @property
    def passed(self) -> bool:
        """Whether the score reached the bar: an unscored case never did, a case without a bar always."""
        return self.score is not None and (self.min is None or reaches(self.score, self.min))


def cost_of(result: CaseResult) -> Cost:
    """Give what a result has cost; where nothing was asked, nothing."""
    return Cost(result.calls, 0 if result.tokens is None and result.calls == Calls() else result.tokens)


class Spread(NamedTuple):
    """The lowest and the highest score of the samples of one case, each 0 to 1."""

    low: float
    high: float
    n: int

    def holds(self, bar: float) -> bool:
        """Whether the samples disagree on which side of the bar the case is, or touch it (1e-9)."""
        return self.low - 1e-9 <= bar <= self.high + 1e-9


def spread_of(samples: Sequence[Sample]) -> Spread | None:
    """Give the spread of the samples; None where there are not two of them, which say nothing of it."""
    scores = [sample.score for sample in samples]
    return Spread(min(scores), max(scores), len(scores)) if len(scores) > 1 else None


def reaches(score: float, bar: float) -> bool:
    """Whether `score` is at or above `bar`, with the one tolerance of the package (1e-9)."""
    return score >= bar - 1e-9
