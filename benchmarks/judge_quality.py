"""How often the judge is right, on answers whose label is beyond dispute: accuracy, and AUC.

    python benchmarks/judge_quality.py [--record]

The answers stand in `labelled/awareness.jsonl`, the retrieved chunks in `labelled/relevancy.jsonl`, the recorded
verdicts in `labelled/cassettes`; `--record` asks the judge of `labelled/conftest.py` anew. A chunk is an answer of its
own: good if it is relevant, and scored by the share of its statements that the judge calls relevant.

Accuracy is the share of the scored answers for which `score >= bar` says what the label says. AUC is the chance that a
good answer scores higher than a bad one, a tie counting half: 0.5 is a coin, and it depends on no bar. An unscored
answer is counted beside both and is in neither.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pytest_ctxeval._core.text import one_line
from pytest_ctxeval._core.verdict import reaches
from pytest_ctxeval._datasets.load import load

ROOT = Path(__file__).parent.parent
LABELLED = ROOT / "benchmarks" / "labelled"
KEPT = ("CTXEVAL_EXAMPLES_URL",)  # where the judge is, not how the plugin is set
AWARENESS, RELEVANCY = "context_awareness", "contextual_relevancy"
BARS = (0.5, 0.8)


class Judged(NamedTuple):
    """An answer with its label, and what the judge made of it: None where it is unscored."""

    name: str
    language: str
    kind: str
    good: bool
    score: float | None
    reason: str = ""


def accuracy(answers: Iterable[Judged], bar: float) -> float | None:
    """The share of the scored answers that the bar sorts as their labels do; None where none is scored."""
    right = [reaches(answer.score, bar) == answer.good for answer in answers if answer.score is not None]
    return sum(right) / len(right) if right else None


def auc(answers: Iterable[Judged]) -> float | None:
    """The share of pairs of a good and a bad answer in which the good one scores higher, a tie counting half.

    By ranks (Mann and Whitney); None where there is no such pair.
    """
    scored = [(answer.score, answer.good) for answer in answers if answer.score is not None]
    good = np.array([is_good for _, is_good in scored], dtype=bool)
    n_good, n_bad = int(good.sum()), int((~good).sum())
    if not n_good or not n_bad:
        return None
    _, place, count = np.unique([score for score, _ in scored], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    return float((ranks[good].sum() - n_good * (n_good + 1) / 2) / (n_good * n_bad))


def misjudged(answers: Iterable[Judged], bar: float) -> list[Judged]:
    """The scored answers that the bar sorts against their labels, in their order."""
    return [answer for answer in answers if answer.score is not None and reaches(answer.score, bar) != answer.good]


def table(answers: Sequence[Judged]) -> list[str]:
    """One row for all, one per language, one per label and kind; then what was misjudged at the higher bar."""
    groups = {"all": list(answers)}
    groups |= grouped(answers, lambda answer: answer.language)
    groups |= dict(sorted(grouped(answers, lambda answer: f"{label(answer)}: {answer.kind}").items(), reverse=True))
    bars = "".join(f"{f'acc {bar}':>9}" for bar in BARS)
    rows = [f"{'':<18}{'n':>4}{'unscored':>10}{bars}{'AUC':>7}"]
    for name, group in groups.items():
        unscored = sum(answer.score is None for answer in group)
        shares = "".join(f"{shown(accuracy(group, bar)):>9}" for bar in BARS)
        rows.append(f"{name:<18}{len(group):>4}{unscored:>10}{shares}{shown(auc(group)):>7}")
    wrong = misjudged(answers, BARS[-1])
    rows += ["", f"misjudged at {BARS[-1]}: {len(wrong)} of {len(answers)}"]
    for each in wrong:
        about = f"{label(each):<4}  {each.kind:<10}  {each.name:<24}"
        rows.append(f"{shown(each.score)}  {about}  {one_line(each.reason, 60)}")
    return rows


def grouped(answers: Iterable[Judged], key: Callable[[Judged], str]) -> dict[str, list[Judged]]:
    groups: dict[str, list[Judged]] = {}
    for answer in answers:
        groups.setdefault(key(answer), []).append(answer)
    return groups


def label(answer: Judged) -> str:
    return "good" if answer.good else "bad"


def shown(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.2f}"


def joined(cases: Iterable[Mapping[str, Any]]) -> list[Judged]:
    """Put the label beside each case of a run's report; an answer that is not in the report is unscored."""
    found = by_case(cases, AWARENESS)
    answers = []
    for dataset in load("awareness.jsonl", base=LABELLED, defaults={}):
        for batch in dataset.conversation:
            case = found.get((dataset.session_id, batch.qa_id), {})
            answers.append(
                Judged(
                    name=f"{dataset.session_id}-{batch.qa_id}",
                    language=dataset.language,
                    kind=batch.metadata["kind"],
                    good=batch.metadata["label"] == "good",
                    score=case.get("score"),
                    reason=case.get("reason") or case.get("unscored") or "",
                )
            )
    return answers


def joined_chunks(cases: Iterable[Mapping[str, Any]]) -> list[Judged]:
    """Put the label beside each chunk of a run's report."""
    found = by_case(cases, RELEVANCY)
    chunks = []
    for dataset in load("relevancy.jsonl", base=LABELLED, defaults={}):
        for batch in dataset.conversation:
            case = found.get((dataset.session_id, batch.qa_id), {})
            for number, good in enumerate(batch.metadata["relevant"], 1):
                statements = [each for each in case.get("statements", ()) if each["chunk"] == number]
                share = sum(each["relevant"] for each in statements) / len(statements) if statements else None
                reason = "; ".join(each["reason"] or each["statement"] for each in statements)
                name = f"{dataset.session_id}-{batch.qa_id} {number}"
                chunks.append(Judged(name, dataset.language, "chunk", good=good, score=share, reason=reason))
    return chunks


def by_case(cases: Iterable[Mapping[str, Any]], metric: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {(case["session_id"], case["qa_id"]): case for case in cases if case["metric"] == metric}


def run(mode: str) -> list[dict[str, Any]]:
    """Judge the labelled answers in a pytest run of their own, and give the cases of its report."""
    options = ("CTXEVAL_", "PYTEST_ADDOPTS")
    inherited = {name: value for name, value in os.environ.items() if name in KEPT or not name.startswith(options)}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "run.json")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(LABELLED)]
        command += [f"--ctxeval-record={mode}", f"--ctxeval-report={report}", "--ctxeval-timeout=600"]
        done = subprocess.run(command, cwd=ROOT, env=inherited, check=False, capture_output=True, text=True)
        if done.returncode not in (0, 1) or not report.exists():
            sys.exit(f"{done.stdout}{done.stderr}")
        found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["cases"]
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", action="store_true", help="ask the judge anew")
    cases = run("all" if parser.parse_args().record else "none")
    for metric, answers in ((AWARENESS, joined(cases)), (RELEVANCY, joined_chunks(cases))):
        asked = [case for case in cases if case["metric"] == metric and case["judge"]]
        judges = {f"{case['judge']}, prompt {case['prompt_version']} of {metric}" for case in asked}
        print(*sorted(judges), *table(answers), "", sep="\n")


if __name__ == "__main__":
    main()
