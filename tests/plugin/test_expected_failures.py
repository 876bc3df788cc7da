"""A case that did not pass in a test that is not red for it: it is told, and is no fault of the run."""

import pytest
from support.suite import Suite, section

MODULE = """
    import pytest
    from pytest_ctxeval import ScoreTooLow, assert_context_awareness

    def low(context_case, qa_id):
        assert_context_awareness(context_case(qa_id=qa_id, query="When?", context="Open.", assistant="SCORE=0.2"), min=0.8)

    @pytest.mark.xfail
    def test_is_known_to_fail(context_case):
        low(context_case, "marked")

    def test_asks_for_the_failure(context_case):
        with pytest.raises(ScoreTooLow):
            low(context_case, "asked")

    @pytest.mark.xfail
    def test_cannot_be_judged(context_case):
        assert_context_awareness(context_case(qa_id="broken", query="?", context="c", assistant="REPLY=what"), min=0.8)
"""
RED = """
    def test_fails(context_case):
        low(context_case, "red")

    def test_fails_otherwise(context_case):
        with pytest.raises(ScoreTooLow):
            low(context_case, "otherwise")
        assert False
"""
SKIPPED = """
    def test_is_skipped(context_case):
        with pytest.raises(ScoreTooLow):
            low(context_case, "skipped")
        pytest.skip()
"""
WAYS = pytest.mark.parametrize("way", [("-n", "0"), ("-n", "2")], ids=" ".join)


@pytest.fixture(autouse=True)
def _on_github(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(suite.path / "summary.md"))


@WAYS
def test_a_green_run_is_reported_as_green(suite: Suite, way: tuple[str, ...]) -> None:
    suite.module(MODULE)
    result = suite.run("--ctxeval-report=run.json", "--ctxeval-report=run.md", "--ctxeval-github=yes", *way)
    assert result.ret == 0
    assert [line[:9] for line in section(result).splitlines()[2:5]] == ["expected "] * 3
    assert not [line for line in result.outlines if line.startswith(("::error", "::warning"))]
    assert (
        (suite.path / "run.md")
        .read_text()
        .startswith("### Context evaluation passed: 3 cases, 3 of them expected to fail")
    )
    assert [each["expected"] for each in suite.report()["cases"]] == [True, True, True]
    stored = suite.ctxeval_runs("gate", "run.json", "--gate=context_awareness:0.1", "--gate=unscored:1")
    assert stored.returncode == 0
    assert stored.stdout.count("\nexpected ") == 3


@WAYS
def test_a_red_test_is_red_though_others_were_to_fail(suite: Suite, way: tuple[str, ...]) -> None:
    suite.module(MODULE + RED)
    result = suite.run("--ctxeval-report=run.json", "--ctxeval-report=run.md", "--ctxeval-github=yes", *way)
    assert result.ret == 1
    assert len([line for line in result.outlines if line.startswith("::error")]) == 2
    assert (
        (suite.path / "run.md")
        .read_text()
        .startswith("### Context evaluation failed: 2 of 5 cases below their bar, 3 expected to fail")
    )
    assert {each["qa_id"]: each["expected"] for each in suite.report()["cases"]} == {
        "marked": True, "asked": True, "broken": True, "red": False, "otherwise": False,
    }  # fmt: skip


def test_a_gate_looks_at_a_case_that_was_to_fail_as_at_any_other(suite: Suite) -> None:
    suite.module(MODULE)
    result = suite.in_process("--ctxeval-gate=context_awareness:0.8")
    assert result.ret == 1
    assert "FAILED" in section(result)


def test_a_case_whose_test_was_interrupted_is_not_called_expected(suite: Suite) -> None:
    suite.module(MODULE.replace("@pytest.mark.xfail", "") + """
    def test_is_interrupted(context_case, judge):
        with pytest.raises(ScoreTooLow):
            low(context_case, "interrupted")
        raise KeyboardInterrupt
""")  # fmt: skip
    suite.run("--ctxeval-report=run.json")
    assert {each["qa_id"]: each["expected"] for each in suite.report()["cases"]}["interrupted"] is False


def test_a_case_that_a_refused_key_left_unjudged_is_not_called_expected(suite: Suite) -> None:
    suite.cases("SCORE=0.9", "REFUSE", "SCORE=0.9", "SCORE=0.9")
    result = suite.in_process("--ctxeval-report=run.json", "--ctxeval-report=run.md")
    assert result.ret == 1
    cases = suite.report()["cases"]
    assert [each["score"] for each in cases] == [0.9, None, None, None]
    assert not any(each["expected"] for each in cases)
    assert "3 of 4 cases unscored" in (suite.path / "run.md").read_text()


def test_a_case_of_a_test_that_was_skipped_after_it_is_not_called_expected(suite: Suite) -> None:
    suite.module(MODULE + SKIPPED)
    suite.in_process("--ctxeval-report=run.json")
    assert {each["qa_id"]: each["expected"] for each in suite.report()["cases"]}["skipped"] is False
