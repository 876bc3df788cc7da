from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ctxeval._core.gate import check_gates, parse_gate
from pytest_ctxeval._core.run import Run
from pytest_ctxeval._core.selection import Selection
from pytest_ctxeval._core.statistics import BayesianMode, statistical_mode
from pytest_ctxeval._core.summary import summarise
from pytest_ctxeval._core.verdict import Calls, CaseResult, Cost, Sample, Statement
from pytest_ctxeval._report.report import Report
from pytest_ctxeval._report.stored_run import StoredCase, parse_run, run_json, schema_json
from pytest_ctxeval.errors import ConfigError

STEADY = settings(deadline=None, derandomize=True, database=None, max_examples=150)
SCHEMA = Path(__file__).parents[2] / "docs" / "run.schema.json"

shares = st.floats(0, 1)
texts = st.text(st.characters(exclude_categories=()))
whole_texts = st.text()
counts = st.integers(0, 1000)
calls = st.builds(Calls, counts, counts, counts)
results = st.builds(
    CaseResult,
    node_id=whole_texts,
    position=counts,
    session_id=st.sampled_from(["shop", "desk"]),
    assistant_id=whole_texts,
    qa_id=whole_texts,
    metric=st.sampled_from(["context_awareness", "contextual_relevancy"]),
    score=st.none() | shares,
    reason=whole_texts,
    unscored=st.none() | whole_texts,
    min=st.none() | shares,
    weight=st.none() | st.floats(0, 10),
    query=whole_texts,
    assistant=whole_texts,
    context=whole_texts,
    retrieval_context=st.none() | st.lists(whole_texts, max_size=3),
    ground_truth_assistant=st.none() | whole_texts,
    language=whole_texts,
    samples=st.lists(st.builds(Sample, shares, whole_texts), max_size=3).map(tuple),
    statements=st.lists(
        st.builds(Statement, st.integers(1, 9), whole_texts, st.booleans(), st.none() | whole_texts), max_size=3
    ).map(tuple),
    judge=st.none() | whole_texts,
    prompt_version=st.sampled_from([None, "1", "custom-0a"]),
    source=st.sampled_from([None, "replayed", "recorded", "live", "none"]),
    calls=calls,
    tokens=st.none() | counts,
    cassette=st.none() | whole_texts,
    reruns=counts,
    temperature=st.none() | st.floats(0, 2),
    line=st.none() | st.integers(1, 9999),
).map(
    lambda each: replace(each, unscored=(each.unscored or "") if each.score is None else None, expected=not each.passed)
)
runs = st.builds(
    Run,
    st.lists(results, max_size=6).map(tuple),
    record=st.sampled_from(["none", "once"]),
    stat=st.sampled_from(["frequentist", "bayesian"]),
    assistant=calls,
    spent=st.builds(Cost, calls, st.none() | counts),
    partial=st.none() | whole_texts,
    selection=st.builds(Selection, *[st.lists(whole_texts, max_size=3).map(tuple)] * 3),
    broken_off=st.booleans(),
)


def report(run: Run) -> Report:
    summary = summarise(run.results, statistical_mode(run.stat))
    gates = [parse_gate(text, metrics=("context_awareness",), required=True) for text in ("unscored:0",)]
    return Report(run, summary, check_gates(gates, summary))


def one(**changed: Any) -> CaseResult:
    about: dict[str, Any] = {
        "node_id": "t.py::t",
        "position": 0,
        "session_id": "s",
        "assistant_id": "a",
        "qa_id": "q",
        "metric": "context_awareness",
        "score": 0.5,
    }
    return CaseResult(**{**about, **changed})


@STEADY
@given(runs)
def test_reading_a_stored_run_back_gives_the_same_to_the_digit(run: Run) -> None:
    told = report(run)
    text = run_json(told)
    back, summary = parse_run(text, where="run.json")
    assert summary == told.summary
    assert back == Run(**{**{each.name: getattr(run, each.name) for each in fields(Run)}, "results": summary.results})
    assert run_json(report(back)) == text


def test_c7_the_means_follow_from_the_files_own_cases() -> None:
    cases = tuple(
        one(qa_id=f"q{at}", score=score, weight=weight)
        for at, (score, weight) in enumerate([(1.0, 0.5), (0.9, 0.3), (0.05, 0.2)])
    )
    stored = json.loads(run_json(report(Run(cases))))
    mean = sum(each["score"] * each["weight"] for each in stored["cases"])
    assert stored["sessions"][0]["mean"] == pytest.approx(mean, abs=1e-15)
    assert stored["sessions"][0]["mean"] == 0.78


def test_c11_what_no_file_can_hold_is_made_whole() -> None:
    text = run_json(report(Run((one(reason="half \ud800 a character, a whole \U0001f600 one"),))))
    _, summary = parse_run(text, where="run.json")
    assert summary.results[0].reason == "half \ufffd a character, a whole \U0001f600 one"


@STEADY
@given(texts)
def test_any_text_can_be_stored_and_read(text: str) -> None:
    parse_run(run_json(report(Run((one(reason=text, query=text, qa_id=text, judge=text),)))), where="run.json")


def test_every_field_of_a_result_is_stored() -> None:
    assert set(StoredCase.model_fields) - {"spread"} == {each.name for each in fields(CaseResult)}


def test_the_spread_of_samples_stands_there() -> None:
    samples = (Sample(0.4, ""), Sample(0.6, ""))
    stored = json.loads(run_json(report(Run((one(samples=samples), one(qa_id="r"))))))
    assert [each["spread"] for each in stored["cases"]] == [[0.4, 0.6], None]


def test_the_schema_in_the_documentation_is_that_of_the_code() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_json()


GOOD = run_json(report(Run((one(),))))


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(GOOD), **fields})


def changed_case(**fields: Any) -> str:
    stored = json.loads(GOOD)
    return json.dumps({**stored, "cases": [{**stored["cases"][0], **fields}]})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "run.json, line 1: not a stored run, which is JSON: Expecting value"),
        ("<html>", "run.json, line 1: not a stored run, which is JSON: Expecting value"),
        (
            GOOD[:-20],
            f"run.json, line {GOOD[:-20].count(chr(10)) + 1}: not a stored run, which is JSON: Unterminated string starting at",
        ),
        ("[]", "run.json: not a stored run; --ctxeval-report=run.json writes one"),
        ("{}", "run.json: not a stored run; --ctxeval-report=run.json writes one"),
        ('{"schema": 1, "schema": 1}', "run.json: not a stored run: 'schema' stands there twice"),
        ("[" * 100_000, "run.json: not a stored run: "),
        (GOOD.replace("0.5", "NaN"), "run.json: not a stored run: NaN is not a number in JSON"),
        (GOOD.replace("0.5", "1e999"), "run.json: not a stored run: 1e999 is too large a number"),
        (changed(schema=2), "run.json: its schema is 2, and this version reads 1; write the run anew"),
        (changed(schema=1.0), "run.json: its schema is 1.0, and this version reads 1; write the run anew"),
        (changed(record="none\n::error::"), "run.json: record: string should match pattern"),
        (changed_case(metric="\x1b[2J"), "run.json: cases.0.metric: string should match pattern"),
        (changed_case(prompt_version="1\n::error::"), "run.json: cases.0.prompt_version: string should match pattern"),
        (
            changed_case(tokens=10**4299),
            "run.json: cases.0.tokens: input should be less than or equal to 9007199254740992",
        ),
        (changed_case(score=None), "run.json: cases.0: its score, unscored and expected contradict each other"),
        (changed_case(expected=True), "run.json: cases.0: its score, unscored and expected contradict each other"),
        (changed(schema=True), "run.json: its schema is True, and this version reads 1; write the run anew"),
        (changed(new=1), "run.json: new: extra inputs are not permitted"),
        (changed(stat="magic"), "run.json: stat: input should be 'frequentist' or 'bayesian'"),
        (changed_case(score=8), "run.json: cases.0.score: input should be less than or equal to 1"),
        (changed_case(score="0.5"), "run.json: cases.0.score: input should be a valid number"),
        (changed_case(score=True), "run.json: cases.0.score: input should be a valid number"),
        (
            changed_case(score=0.9),
            "run.json: its sessions do not follow from its cases, so it was changed or cut; write the run anew",
        ),
        (
            changed(cases=[]),
            "run.json: its sessions do not follow from its cases, so it was changed or cut; write the run anew",
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_what_is_no_stored_run_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_run(text, where="run.json")
    assert str(refused.value).startswith(told)
    assert len(str(refused.value)) < 300


def test_the_intervals_are_those_of_the_mode_it_was_written_with() -> None:
    for stat, width in (("frequentist", None), ("bayesian", BayesianMode().aggregate([0.5], [1.0]).low)):
        run = Run((one(),), stat=stat)  # type: ignore[arg-type]
        assert parse_run(run_json(report(run)), where="x")[1].sessions[0].low == width
