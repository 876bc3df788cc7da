"""A key that a dataset, an id or a model gives away reaches no terminal, no report and no cassette."""

import pytest
from support.suite import Suite, section

SECRET = "planted-token-0123456789"
SHAPED = "sk-" + "Ab1" * 10


def test_no_key_is_printed_or_reported(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    suite.cases(
        {
            "assistant": f"SCORE=0.1\nREASON=says {SECRET}",
            "query": f"Is it\n{SHAPED}?",
            "ground_truth_assistant": SECRET,
        },
        {"assistant": f"RAISE=the key {SECRET} is wrong"},
    )
    result = suite.in_process("--ctxeval-report=run.json", "-v")
    told = result.stdout.str()
    assert "query      Is it [hidden]?" in told
    assert "reason     says [hidden]" in told
    assert "0.10  test_it.py::test_answers[shop-q1]  says [hidden]" in section(result)
    written = (suite.path / "run.json").read_text(encoding="utf-8")
    for text in (told, written):
        assert SECRET not in text
        assert SHAPED not in text
    assert suite.report()["cases"][0]["assistant"] == "SCORE=0.1\nREASON=says [hidden]"


def test_stars_and_dots_of_a_reason_are_left_as_they_are(suite: Suite) -> None:
    suite.cases("SCORE=0.9\nREASON=***very*** good ... key-... see")
    suite.in_process("--ctxeval-report=run.json")
    assert suite.report()["cases"][0]["reason"] == "***very*** good ... key-... see"


def test_a_variable_that_is_no_secret_takes_no_session_its_gate(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONAR_PROJECT_KEY", "techstore")
    suite.cases("SCORE=0.5", session="techstore", bar=0.0)
    result = suite.in_process("--ctxeval-gate=context_awareness@techstore:0.9")
    assert "techstore  context awareness  1  0.50" in section(result)
    assert "FAILED  0.50 < 0.90" in section(result)
    assert result.ret == 1


def test_no_key_of_a_test_that_broke_is_reported(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    suite.module(
        f"""
        import pytest

        @pytest.mark.ctxeval(context="C", query="Q")
        def test_it(context_case):
            raise RuntimeError("cannot log in with {SECRET}")
        """
    )
    result = suite.in_process("--ctxeval-report=run.json")
    assert suite.report()["cases"][0]["unscored"] == "not judged: RuntimeError: cannot log in with [hidden]"
    assert SECRET not in section(result)
