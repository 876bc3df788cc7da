from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ctxeval._core.gate import Gate, GateCheck, Kind, check_gates, check_needs, parse_gate
from pytest_ctxeval._core.statistics import BayesianMode
from pytest_ctxeval._core.summary import SessionSummary, Summary, summarise
from pytest_ctxeval._core.verdict import CaseResult
from pytest_ctxeval.errors import ConfigError

METRICS = ("context_awareness", "contextual_relevancy")
STEADY = settings(deadline=None, derandomize=True, database=None)


def parsed(text: str, *, required: bool = True) -> Gate:
    return parse_gate(text, metrics=METRICS, required=required)


def row(mean: float | None = 0.9, low: float | None = 0.7, **fields: Any) -> SessionSummary:
    given = {
        "session_id": "techstore",
        "assistant_id": "bot",
        "metric": "context_awareness",
        "n": 10,
        "n_unscored": 0,
        "high": None if low is None else 1.0,
        "note": None,
    }
    return SessionSummary(mean=mean, low=low, **{**given, **fields})


def checked(*texts: str, rows: tuple[SessionSummary, ...], required: bool = True) -> list[tuple[str | None, str, str]]:
    checks = check_gates([parsed(text, required=required) for text in texts], Summary(rows, ()))
    return [(check.session.session_id if check.session else None, check.status, check.text) for check in checks]


@pytest.mark.parametrize(
    ("text", "metric", "bar", "kind", "session_id"),
    [
        ("context_awareness:0.8", "context_awareness", 0.8, "mean", None),
        ("contextual_relevancy:1", "contextual_relevancy", 1.0, "mean", None),
        ("context_awareness:0", "context_awareness", 0.0, "mean", None),
        ("context_awareness.low:0.6", "context_awareness", 0.6, "low", None),
        ("context_awareness@techstore:0.9", "context_awareness", 0.9, "mean", "techstore"),
        ("context_awareness.low@techstore:.9", "context_awareness", 0.9, "low", "techstore"),
        ("context_awareness@a:b@c.low:0.5:0.9", "context_awareness", 0.9, "mean", "a:b@c.low:0.5"),
        ("context_awareness@tests/test_bot.py:0.9", "context_awareness", 0.9, "mean", "tests/test_bot.py"),
        ("unscored:0", None, 0, "unscored", None),
        ("unscored:12", None, 12, "unscored", None),
        ("missing:2", None, 2, "missing", None),
        ("drop:0.05", None, 0.05, "drop", None),
        ("drop@techstore:0.05", None, 0.05, "drop", "techstore"),
        ("context_awareness.drop:0", "context_awareness", 0.0, "drop", None),
        ("contextual_relevancy.drop@a:b:0.1", "contextual_relevancy", 0.1, "drop", "a:b"),
        ("  context_awareness : 0.8 \n", "context_awareness", 0.8, "mean", None),
    ],
)
def test_a_gate_is_read(text: str, metric: str | None, bar: float, kind: Kind, session_id: str | None) -> None:
    gate = Gate(text.strip(), kind, bar, metric, session_id, required=False)

    assert parsed(text, required=False) == gate
    assert parsed(text).required


@STEADY
@given(st.text(min_size=1).filter(str.strip))
def test_any_session_can_be_named(session_id: str) -> None:
    assert parsed(f"context_awareness@{session_id}:0.9").session_id == session_id


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' has no bar; write METRIC:BAR, for example context_awareness:0.8"),
        ("0.8", "'0.8' names no metric; write METRIC:BAR, for example context_awareness:0.8"),
        (":0.8", "':0.8' names no metric; write METRIC:BAR, for example context_awareness:0.8"),
        (
            "context_awareness@my",
            (
                "'context_awareness@my' has no bar; write METRIC:BAR, for example context_awareness:0.8, and put the "
                "whole in quotes where the session holds a space"
            ),
        ),
        *(
            (
                text,
                (
                    f"{text!r} is more than one gate; give each by itself: an option, a line of the ini file or, "
                    "between spaces, a word of the variable"
                ),
            )
            for text in (
                "context_awareness:0.8;unscored:0",
                "context_awareness:0.8, unscored:0",
                "context_awareness:0.8 | contextual_relevancy:0.8",
                "context_awareness:0.8 unscored:0",
                "context_awareness@shop:0.8;drop@shop:0.05",
            )
        ),
        (
            "context_awareness>=0.8",
            "'context_awareness>=0.8' has no bar; write METRIC:BAR, for example context_awareness:0.8",
        ),
        (
            "context_awarness:0.8",
            (
                "'context_awarness:0.8': 'context_awarness' is no metric; write METRIC:BAR, "
                "for example context_awareness:0.8; did you mean 'context_awareness'?"
            ),
        ),
        (
            "bleu:0.8",
            (
                "'bleu:0.8': 'bleu' is no metric; write METRIC:BAR, "
                "for example context_awareness:0.8; known are context_awareness, contextual_relevancy, "
                "unscored, missing, drop"
            ),
        ),
        (
            "unscord:0",
            (
                "'unscord:0': 'unscord' is no metric; write METRIC:BAR, "
                "for example context_awareness:0.8; did you mean 'unscored'?"
            ),
        ),
        (
            "context_awareness.high:0.8",
            (
                "'context_awareness.high:0.8': 'context_awareness.high' is no metric; write METRIC:BAR, "
                "for example context_awareness:0.8; did you mean 'context_awareness.low'?"
            ),
        ),
        (
            "context_awareness.drp:0.8",
            (
                "'context_awareness.drp:0.8': 'context_awareness.drp' is no metric; write METRIC:BAR, "
                "for example context_awareness:0.8; did you mean 'context_awareness.drop'?"
            ),
        ),
        (
            "context_awareness:80",
            "'context_awareness:80': the bar '80' is not a number from 0 to 1; for example context_awareness:0.8",
        ),
        (
            "context_awareness:80%",
            "'context_awareness:80%': the bar '80%' is not a number from 0 to 1; for example context_awareness:0.8",
        ),
        (
            "context_awareness:nan",
            "'context_awareness:nan': the bar 'nan' is not a number from 0 to 1; for example context_awareness:0.8",
        ),
        (
            "context_awareness:-0.1",
            "'context_awareness:-0.1': the bar '-0.1' is not a number from 0 to 1; for example context_awareness:0.8",
        ),
        (
            "context_awareness:",
            "'context_awareness:': the bar '' is not a number from 0 to 1; for example context_awareness:0.8",
        ),
        (
            "context_awareness@:0.8",
            "'context_awareness@:0.8' names no session behind the '@'; for example context_awareness@SESSION:0.8",
        ),
        ("unscored:-1", "'unscored:-1': '-1' is not a number of cases; use an integer from 0, as unscored:0"),
        (
            "unscored:0.5",
            "'unscored:0.5': '0.5' is not a number of cases; use an integer from 0, as unscored:0",
        ),
        ("unscored:²", "'unscored:²': '²' is not a number of cases; use an integer from 0, as unscored:0"),
        (
            "unscored@techstore:0",
            "'unscored@techstore:0': unscored cases are counted over all sessions; use unscored:0",
        ),
        (
            "drop:5",
            "'drop:5': the bar '5' is not a number from 0 to 1; for example drop:0.05",
        ),
    ],
)
def test_a_gate_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parsed(text)

    assert str(refused.value) == message


def test_a_low_end_needs_an_interval() -> None:
    gates = [parsed("context_awareness:0.8"), parsed("context_awareness.low@a.low:0.6")]
    with pytest.raises(ConfigError) as refused:
        check_needs(gates, intervals=False)

    assert str(refused.value) == (
        "'context_awareness.low@a.low:0.6' needs an interval, and the frequentist mode gives none; "
        "use the bayesian mode or the gate 'context_awareness@a.low:0.6'"
    )


def test_a_low_end_is_there_in_bayesian_mode_and_a_mean_in_every_mode() -> None:
    check_needs([parsed("context_awareness.low:0.6")], intervals=True)
    check_needs([parsed("context_awareness:0.6"), parsed("unscored:0")], intervals=False)


@pytest.mark.parametrize(
    ("mean", "text", "status", "told"),
    [
        (0.78, "context_awareness:0.8", "failed", "0.78 < 0.80"),
        (0.75, "context_awareness:0.7", "passed", ">= 0.70"),
        (0.8, "context_awareness:0.8", "passed", ">= 0.80"),
        (0.7999999999999999, "context_awareness:0.8", "passed", ">= 0.80"),
        (0.7994, "context_awareness:0.8", "failed", "0.799 < 0.800"),
        (0.7999, "context_awareness:0.8", "failed", "0.7999 < 0.8000"),
        (0.799999998, "context_awareness:0.8", "failed", "0.799999998 < 0.800000000"),
        (0.82, "context_awareness:0.825", "failed", "0.820 < 0.825"),
        (0.83, "context_awareness:0.825", "passed", ">= 0.825"),
        (1.0, "context_awareness:1", "passed", ">= 1.00"),
        (0.0, "context_awareness:0", "passed", ">= 0.00"),
    ],
)
def test_a_mean_is_told_against_its_bar(mean: float, text: str, status: str, told: str) -> None:
    assert checked(text, rows=(row(mean),)) == [("techstore", status, told)]


@STEADY
@given(st.floats(0, 1), st.floats(0, 1))
def test_a_failed_check_never_looks_passed(mean: float, bar: float) -> None:
    ((_, status, told),) = checked(f"context_awareness:{bar:.12f}", rows=(row(mean),))

    if status == "failed":
        shown, shown_bar = (float(figure) for figure in told.split(" < "))
        assert shown < shown_bar


def test_a_low_end_is_checked_and_named() -> None:
    assert checked("context_awareness.low:0.8", "context_awareness.low:0.6", rows=(row(0.9, low=0.7),)) == [
        ("techstore", "failed", "low 0.70 < 0.80"),
        ("techstore", "passed", "low >= 0.60"),
    ]


def test_a_low_end_fails_where_a_mode_gave_no_interval() -> None:
    assert checked("context_awareness.low:0.6", rows=(row(0.9, low=None),)) == [("techstore", "failed", "no interval")]


def test_a_gate_without_a_session_is_checked_in_every_session_of_its_metric() -> None:
    rows = (row(0.9, session_id="a"), row(0.2, metric="contextual_relevancy"), row(0.7, session_id="b"))

    assert checked("context_awareness:0.8", rows=rows) == [
        ("a", "passed", ">= 0.80"),
        ("b", "failed", "0.70 < 0.80"),
    ]


def test_a_gate_with_a_session_is_checked_in_that_session_alone() -> None:
    rows = (row(0.9, session_id="a"), row(0.7, session_id="b"))

    assert checked("context_awareness@a:0.8", rows=rows) == [("a", "passed", ">= 0.80")]


def test_checks_stand_in_the_order_of_the_gates() -> None:
    gates = [parsed("unscored:0"), parsed("context_awareness:0.8")]
    session = row(0.9)

    assert check_gates(gates, Summary((session,), ())) == (
        GateCheck(gates[0], None, "passed", "0 unscored, 0 allowed"),
        GateCheck(gates[1], session, "passed", ">= 0.80"),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("context_awareness:0.8", "no case was judged for context_awareness"),
        (
            "context_awareness@shop:0.8",
            "no case was judged for context_awareness in session 'shop'; there are techstore",
        ),
    ],
)
def test_a_gate_that_finds_no_case_fails_only_where_it_is_required(text: str, told: str) -> None:
    rows = (row(metric="contextual_relevancy"),)

    assert checked(text, rows=rows, required=True) == [(None, "failed", told)]
    assert checked(text, rows=rows, required=False) == [(None, "not checked", told)]


@pytest.mark.parametrize(
    ("named", "known", "told"),
    [
        ("tecstore", ["techstore", "bank"], "; did you mean 'techstore'?"),
        ('"my shop"', ["my shop"], "; did you mean 'my shop'?"),
        ("x", ["b", "a"], "; there are a, b"),
        ("x", ["d", "b", "a", "c"], "; there are a, b, c and 1 more"),
        ("x", ["\x1b[31m::error::\n"], "; there are : :error::"),
        ("x", [], ""),
    ],
)
def test_an_unknown_session_names_those_there_are(named: str, known: list[str], told: str) -> None:
    rows = tuple(row(session_id=session) for session in known)

    assert checked(f"context_awareness@{named}:0.8", rows=rows) == [
        (None, "failed", f"no case was judged for context_awareness in session {named!r}{told}")
    ]


def test_a_count_of_unscored_cases_needs_a_case_too() -> None:
    assert checked("unscored:0", rows=(), required=True) == [(None, "failed", "no case was judged")]
    assert checked("unscored:0", rows=(), required=False) == [(None, "not checked", "no case was judged")]


@pytest.mark.parametrize("required", [True, False])
def test_a_gate_with_cases_but_no_scores_fails(required: bool) -> None:
    rows = (row(None, None, n=3, n_unscored=3),)

    assert checked("context_awareness:0", rows=rows, required=required) == [
        ("techstore", "failed", "no score; 3 of 3 unscored")
    ]
    assert checked("context_awareness.low:0", "unscored:3", rows=rows, required=required) == [
        ("techstore", "failed", "no score; 3 of 3 unscored"),
        (None, "passed", "3 unscored, 3 allowed"),
    ]


def test_a_mean_over_some_of_the_cases_does_not_pass_for_all() -> None:
    assert checked("context_awareness:0.8", rows=(row(0.9, n_unscored=5),)) == [
        ("techstore", "failed", "5 of 10 unscored")
    ]
    assert checked("context_awareness:0.8", rows=(row(0.7, n_unscored=5),)) == [
        ("techstore", "failed", "0.70 < 0.80; 5 of 10 unscored")
    ]


def test_unscored_cases_that_are_allowed_leave_the_mean_to_its_bar() -> None:
    rows = (row(0.9, n_unscored=2), row(0.7, n_unscored=1, session_id="shop"))

    assert checked("context_awareness:0.8", "unscored:3", rows=rows) == [
        ("techstore", "passed", ">= 0.80"),
        ("shop", "failed", "0.70 < 0.80"),
        (None, "passed", "3 unscored, 3 allowed"),
    ]


def test_unscored_cases_are_counted_over_all_rows() -> None:
    rows = (row(n_unscored=1), row(n_unscored=2, metric="contextual_relevancy"))

    assert checked("unscored:2", rows=rows) == [(None, "failed", "3 unscored, 2 allowed")]


def test_one_bad_session_of_five_fails_its_gate_though_the_mean_of_all_would_pass() -> None:
    results = [
        CaseResult(
            node_id=f"test[{n}]",
            position=n,
            session_id=f"s{n // 20}",
            assistant_id="bot",
            qa_id=f"q{n}",
            metric="context_awareness",
            score=0.0 if n // 20 == 3 else 1.0,
        )
        for n in range(100)
    ]
    checks = check_gates([parsed("context_awareness:0.8")], summarise(results, BayesianMode()))

    assert [check.status for check in checks] == ["passed", "passed", "passed", "failed", "passed"]
    assert checks[3].text == "0.00 < 0.80"


def test_a_worker_that_crashed_leaves_an_unscored_case_that_fails_the_gate() -> None:
    rows = (row(0.9, n=20, n_unscored=1),)

    assert checked("unscored:0", rows=rows) == [(None, "failed", "1 unscored, 0 allowed")]
