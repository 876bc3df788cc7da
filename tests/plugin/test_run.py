"""A run from its cases to its section, its gates and its exit code (CASES C and E)."""

import pytest
from support.suite import Suite, section

from pytest_ctxeval._core.statistics import BayesianMode

WAYS = pytest.mark.parametrize(
    "way", [("-n", "0"), ("-n", "2"), ("-n", "4", "--dist", "loadfile"), ("-p", "no:xdist")], ids=" ".join
)


def interval(*scores: float) -> str:
    _, low, high = BayesianMode().aggregate(scores, [1 / len(scores)] * len(scores))
    assert low is not None
    assert high is not None
    return f"{low:.2f} ... {high:.2f}"


def test_the_section_tells_sessions_gates_the_lowest_case_and_the_calls(suite: Suite) -> None:
    suite.cases("SCORE=1.0", "SCORE=0.9", "SCORE=0.05\nREASON=contradicts the hours")
    result = suite.in_process("--ctxeval-gate=context_awareness:0.8", "--ctxeval-gate=context_awareness.low:0.1")
    low = BayesianMode().aggregate([1.0, 0.9, 0.05], [1 / 3] * 3)[1]
    assert low is not None
    assert (
        section(result)
        == f"""\
session  metric             n  mean  95% interval   gate
shop     context awareness  3  0.65  {interval(1.0, 0.9, 0.05)}  FAILED  0.65 < 0.80, passed  low >= 0.10
lowest    0.05  test_it.py::test_answers[shop-q3]  contradicts the hours
judge     scripted: 0 replayed, 0 recorded, 3 live, 21 tokens, record=off"""
    )
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == 1


@WAYS
def test_every_way_of_running_tells_the_same(suite: Suite, way: tuple[str, ...]) -> None:
    suite.cases(*[f"SCORE=0.{number}5" for number in range(8)], {"assistant": "SCORE=1.0", "weight": 0.5}, bar=0.2)
    suite.cases("SCORE=0.7", "REPLY=no verdict", session="other", name="test_other")
    gates = ("--ctxeval-gate=context_awareness:0.6", "--ctxeval-gate=unscored:0", "--ctxeval-report=run.json")
    plain = section(suite.run(*gates, "-p", "no:xdist"))
    report = suite.report()
    again = suite.run(*gates, *way)
    assert section(again) == plain
    assert "shop     context awareness    9" in plain
    assert "other    context awareness  1/2" in plain
    assert suite.report() == report
    assert again.ret == 1


def test_a_random_order_tells_the_same(suite: Suite) -> None:
    suite.cases("SCORE=0.1", "SCORE=0.9", "SCORE=0.5", "SCORE=0.7", bar=0)
    plain = section(suite.in_process())
    suite.pytester.makeconftest(
        (suite.path / "conftest.py").read_text(encoding="utf-8")
        + "\n\ndef pytest_collection_modifyitems(items):\n    items.reverse()\n"
    )
    assert section(suite.run()) == plain


def test_a_gate_turns_the_run_red_though_every_test_passed(suite: Suite) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.5", bar=0.5)
    result = suite.in_process("--ctxeval-gate=context_awareness:0.8")
    result.assert_outcomes(passed=2)
    assert result.ret == 1
    assert suite.in_process("--ctxeval-gate=context_awareness:0.7").ret == 0


@pytest.mark.parametrize("bad", [["SCORE=0.0"] * 5, ["REPLY=nothing"] * 5])
def test_one_session_fails_the_gate_though_the_overall_mean_passes(suite: Suite, bad: list[str]) -> None:
    for number in range(4):
        suite.cases(*["SCORE=1.0"] * 5, session=f"good-{number}", name=f"test_{number}", bar=0)
    suite.cases(*bad, session="bad", name="test_bad", bar=0)
    result = suite.in_process("--ctxeval-gate=context_awareness:0.7")
    assert result.ret == 1
    failed = [line for line in section(result).splitlines() if "FAILED" in line]
    assert len(failed) == 1
    assert failed[0].startswith("bad ")


def test_a_judge_that_dies_on_half_of_the_cases_is_counted(suite: Suite) -> None:
    suite.cases(*["SCORE=0.9"] * 5, *["RAISE=no route to host"] * 5)
    result = suite.in_process("--ctxeval-gate=context_awareness:0.8", "--ctxeval-gate=unscored:0")
    assert section(result).splitlines() == [
        "session  metric                n  mean  95% interval   gate",
        f"shop     context awareness  5/10  0.90  {interval(*[0.9] * 5)}  passed  >= 0.80",
        "lowest    0.90  test_it.py::test_answers[shop-q1]  because",
        "unscored  test_it.py::test_answers[shop-q6]  the judge scripted could not be reached, given up a...",
        "unscored  test_it.py::test_answers[shop-q7]  the judge scripted could not be reached, given up a...",
        "unscored  test_it.py::test_answers[shop-q8]  the judge scripted could not be reached, given up a...",
        "          and 2 more, 5 in all",
        "gate      unscored:0  FAILED  5 unscored, 0 allowed",
        "judge     scripted: 0 replayed, 0 recorded, 10 live, 35 tokens, record=off",
    ]
    assert result.ret == 1


def test_a_session_without_a_readable_reply_has_no_score(suite: Suite) -> None:
    suite.cases("REPLY=nothing", "REPLY=nothing at all")
    result = suite.in_process("--ctxeval-gate=context_awareness:0")
    assert "0/2  no score                FAILED  no score; 2 of 2 unscored" in section(result)
    result.assert_outcomes(failed=2)
    assert result.ret == 1


def test_a_rerun_counts_once_and_is_noted(suite: Suite) -> None:
    suite.cases("SCORE=0.1/0.9", "SCORE=1.0")
    result = suite.run("--reruns", "1", "-p", "no:xdist", "--ctxeval-report=run.json")
    result.assert_outcomes(passed=2)
    assert f"shop     context awareness  2  0.95  {interval(0.9, 1.0)}" in section(result)
    assert "reruns    1: test_it.py::test_answers[shop-q1]" in section(result)
    assert [case["reruns"] for case in suite.report()["cases"]] == [1, 0]


CRASHING = """
    import os
    import pytest
    from pytest_ctxeval import Batch, Dataset, assert_context_awareness

    SHOP = Dataset(session_id="shop", assistant_id="bot", context="Open 9 to 5.",
                   conversation=[Batch(qa_id=f"q{n}", query="When?", assistant="SCORE=0.9") for n in range(20)])

    @pytest.fixture
    def risky(context_case):
        if context_case.qa_id == "q7" and WHERE == "setup":
            os._exit(1)

    @pytest.mark.ctxeval(dataset=SHOP)
    def test_answers(context_case, risky):
        if context_case.qa_id == "q7":
            os._exit(1)
        assert_context_awareness(context_case)
"""


@pytest.mark.parametrize("where", ["call", "setup"])
def test_a_crashed_worker_loses_one_case_and_says_so(suite: Suite, where: str) -> None:
    suite.module(CRASHING + f"\n    WHERE = {where!r}\n")
    result = suite.run("-n", "2", "--ctxeval-gate=unscored:0")
    told = section(result)
    assert "shop     context awareness  19/20  0.90" in told
    assert "unscored  test_it.py::test_answers[shop-q7]  worker crashed" in told
    assert "gate      unscored:0  FAILED  1 unscored, 0 allowed" in told
    assert result.ret == 1


def test_a_test_that_breaks_before_it_is_judged_is_unscored(suite: Suite) -> None:
    suite.module(
        """
        import pytest
        from pytest_ctxeval import assert_context_awareness

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_good(context_case):
            assert_context_awareness(context_case(assistant="SCORE=0.9"))

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_broken(context_case):
            raise RuntimeError("the bot is down")

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_skipped(context_case):
            pytest.skip("not today")
        """
    )
    result = suite.in_process()
    assert "shop     context awareness  1/2  0.90" in section(result)
    assert "unscored  test_it.py::test_broken  not judged: RuntimeError: the bot is down" in section(result)


def test_a_gate_of_the_command_line_that_finds_nothing_fails(suite: Suite) -> None:
    suite.module("def test_unrelated(): pass")
    result = suite.in_process("--ctxeval-gate=context_awareness:0.8")
    assert section(result) == "gate      context_awareness:0.8  FAILED  no case was judged for context_awareness"
    result.assert_outcomes(passed=1)
    assert result.ret == 1


def test_a_gate_of_the_ini_file_that_finds_nothing_is_not_checked(suite: Suite) -> None:
    suite.ini(ctxeval_gates=["context_awareness:0.8", "unscored:0"])
    suite.module("def test_unrelated(): pass")
    result = suite.in_process()
    assert section(result) == (
        "gate      context_awareness:0.8  not checked  no case was judged for context_awareness\n"
        "gate      unscored:0  not checked  no case was judged"
    )
    assert result.ret == 0


def test_no_test_at_all_and_a_gate_of_the_command_line_fails(suite: Suite) -> None:
    assert suite.in_process("--ctxeval-gate=context_awareness:0.8", "-k", "nothing").ret == 1


@pytest.mark.parametrize("arguments", [("-x",), ("--maxfail=1",), ("-x", "-n", "2")], ids=" ".join)
def test_a_run_that_is_broken_off_checks_no_gate(suite: Suite, arguments: tuple[str, ...]) -> None:
    suite.cases("SCORE=0.1", *["SCORE=0.9"] * 30)
    result = suite.run("--ctxeval-gate=context_awareness:0.99", *arguments)
    assert "gate      context_awareness:0.99  not checked  the run was broken off" in section(result)
    assert "lowest    0.10  test_it.py::test_answers[shop-q1]" in section(result)


def test_collecting_alone_checks_no_gate(suite: Suite) -> None:
    suite.cases("SCORE=0.1")
    result = suite.in_process("--collect-only", "--ctxeval-gate=context_awareness:0.99")
    assert section(result) == "gate      context_awareness:0.99  not checked  nothing was run"
    assert result.ret == 0


def test_an_interrupted_run_tells_what_it_has(suite: Suite) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.9")
    suite.module("def test_stop():\n    raise KeyboardInterrupt", name="test_stop")
    result = suite.run("--ctxeval-gate=context_awareness:0.99", "test_it.py", "test_stop.py")
    assert "shop     context awareness  2  0.90" in section(result)
    assert "gate      context_awareness:0.99  not checked  the run was broken off" in section(result)
    assert result.ret == 2


def test_the_printed_mean_is_that_of_the_report(suite: Suite) -> None:
    suite.cases(
        {"assistant": "SCORE=0.123", "weight": 0.5}, {"assistant": "SCORE=0.77", "weight": 0.3}, {"assistant": "SCORE=0.9", "weight": 0.2}, bar=0
    )  # fmt: skip
    told = section(suite.in_process("--ctxeval-report=run.json"))
    cases = suite.report()["cases"]
    mean = sum(case["weight"] * case["score"] for case in cases) / sum(case["weight"] for case in cases)
    assert f"  3  {mean:.2f}  " in told
    assert suite.report()["sessions"][0]["mean"] == pytest.approx(mean, abs=1e-12)


def test_weights_that_do_not_sum_to_one_are_noted(suite: Suite) -> None:
    suite.cases({"assistant": "SCORE=1.0", "weight": 3}, {"assistant": "SCORE=0.5", "weight": 1}, bar=0)
    told = section(suite.in_process())
    assert "  2  0.75  " in told
    assert "note      shop: the weights sum to 4, not 1: every case counts the same" in told


def test_a_score_at_the_bar_passes(suite: Suite) -> None:
    suite.cases("SCORE=0.8", "SCORE=0.7999999999999999", bar=0.8)
    result = suite.in_process("--ctxeval-gate=context_awareness:0.8")
    result.assert_outcomes(passed=2)
    assert result.ret == 0


def test_a_judge_that_does_not_tell_its_tokens_says_so(suite: Suite) -> None:
    suite.pytester.makeconftest(
        (suite.path / "conftest.py")
        .read_text(encoding="utf-8")
        .replace("ScriptedJudge()", "ScriptedJudge(tokens=None)")
    )
    suite.cases("SCORE=0.9")
    assert "1 live, tokens unknown, record=off" in section(suite.run())


def test_a_thousand_cases_fit_in_twenty_lines(suite: Suite) -> None:
    scores = ["SCORE=0.9"] * 997 + ["SCORE=0.1", "SCORE=0.2", "SCORE=0.3"]
    for number in range(20):
        suite.cases(*scores[number * 50 : number * 50 + 50], session=f"s{number}", name=f"test_{number:02}")
    told = section(suite.in_process()).splitlines()
    assert len(told) <= 20
    assert [line.split()[1:3] for line in told if line.startswith("lowest")] == [
        ["0.10", "test_19.py::test_answers[s19-q48]"],
        ["0.20", "test_19.py::test_answers[s19-q49]"],
        ["0.30", "test_19.py::test_answers[s19-q50]"],
    ]
    assert told[1].startswith("s19 ")
    assert "... and 13 more, means 0.90 to 0.90" in told


def test_every_case_is_listed_when_asked_for(suite: Suite) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.2", "REPLY=nothing")
    told = section(suite.in_process("-v")).splitlines()
    assert [line for line in told if line.startswith("case")] == [
        "case      0.90  test_it.py::test_answers[shop-q1]  because",
        "case      0.20  test_it.py::test_answers[shop-q2]  because",
        "case       -    test_it.py::test_answers[shop-q3]  the judge scripted gave no verdict in 2 repli...",
    ]


def test_a_report_that_cannot_be_written_is_told_and_fails_nothing(suite: Suite) -> None:
    suite.cases("SCORE=0.9")
    (suite.path / "file").touch()
    result = suite.in_process("--ctxeval-report=file/run.json")
    assert "note      the report file/run.json could not be written: " in section(result)
    assert result.ret == 0


def test_frequentist_statistics_give_means_alone(suite: Suite) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.7", bar=0)
    assert section(suite.in_process("--ctxeval-stat=frequentist")).splitlines()[:2] == [
        "session  metric             n  mean  gate",
        "shop     context awareness  2  0.80",
    ]


def test_a_run_is_written_as_markdown(suite: Suite) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.1\nREASON=@someone says | <script>")
    result = suite.run("--ctxeval-report=deep/run.md", "-n", "2", "--ctxeval-gate=context_awareness:0.8")
    told = (suite.path / "deep" / "run.md").read_text(encoding="utf-8")
    assert told.startswith("### Context evaluation failed: 1 of 2 cases below its bar, 1 gate failed\n")
    assert "- reason: `@someone says `&#124;` <script>`\n" in told
    assert result.ret == 1
