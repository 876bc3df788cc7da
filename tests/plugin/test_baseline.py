"""A run against a stored one, from the options to the section, the gates and the exit code (CASES E10, E11)."""

import json
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from support.suite import Suite, section

from pytest_ctxeval._core.baseline import paired_interval

OLD = ("SCORE=0.9", "SCORE=0.9", "SCORE=0.85", "SCORE=0.8")
NEW = ("SCORE=0.7\nREASON=promises a refund", "SCORE=0.9", "SCORE=0.95", "SCORE=0.8")

WAYS = pytest.mark.parametrize("way", [("-n", "0"), ("-n", "2"), ("-p", "no:xdist")], ids=" ".join)


@pytest.fixture
def changed(suite: Suite) -> Suite:
    """A suite with the stored run `main.json`, that has changed since: one worse, one better, one gone, one new."""
    suite.cases(*OLD, {"assistant": "SCORE=1.0", "qa_id": "gone"})
    suite.in_process("--ctxeval-report=main.json").assert_outcomes(passed=5)
    suite.cases(*NEW, {"assistant": "SCORE=1.0", "qa_id": "fresh"})
    return suite


@WAYS
def test_what_has_changed_stands_in_the_section(changed: Suite, way: tuple[str, ...]) -> None:
    result = changed.run("--ctxeval-baseline=main.json", *way, columns=120)
    mean, low, high = paired_interval([0.7 - 0.9, 0, 0.95 - 0.85, 0], [1 / 5] * 4)
    change = f"{mean:+.2f}  {low:+.2f} ... {high:+.2f}"
    _, row, *rest = section(result).splitlines()
    assert re.sub(r"  +\d\.\d\d \.\.\. \d\.\d\d  +", " | ", row) == f"shop     context awareness  5  0.87 | {change}"
    assert rest == [
        "baseline  main.json: 1 regressed, 1 missing, 1 improved, 2 same, 1 new",
        "regressed 0.90 -> 0.70, 0.70 < 0.80  test_it.py::test_answers[shop-q1]  promises a refund",
        "missing   shop-gone",
        "judge     scripted: 0 replayed, 0 recorded, 5 live, 35 tokens, record=off",
    ]
    assert result.ret == 1  # by the assertion alone


@WAYS
def test_a_drop_turns_a_run_red_though_every_test_passed(suite: Suite, way: tuple[str, ...]) -> None:
    suite.cases(*["SCORE=0.9"] * 6, bar=0.1)
    suite.in_process("--ctxeval-report=main.json")
    suite.cases(*["SCORE=0.8"] * 6, bar=0.1)
    red = suite.run("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05", *way, columns=120)
    red.assert_outcomes(passed=6)
    assert red.ret == 1
    assert section(red).splitlines()[1].endswith("FAILED  fell by 0.10 > 0.05")
    green = suite.run("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.1", *way, columns=120)
    assert green.ret == 0
    assert section(green).splitlines()[1].endswith("passed  drop <= 0.10")


def test_a_missing_case_fails_the_drop_gate_and_missing_says_how_many_may(changed: Suite) -> None:
    changed.cases(*OLD)
    red = changed.in_process("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05")
    assert red.ret == 1
    assert "FAILED  gone missing" in section(red)
    green = changed.in_process("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05", "--ctxeval-gate=missing:1")
    assert green.ret == 0
    assert "gate      missing:1  passed  1 missing, 1 allowed" in section(green)


@pytest.mark.parametrize(
    "selection",
    [
        ("-k", "shop-q2"),
        ("test_it.py::test_answers[shop-q2]",),
        ("--deselect", "test_it.py::test_answers[shop-q2]"),
        ("--lf",),
    ],
    ids=" ".join,
)
def test_what_a_selection_leaves_out_is_not_missing(changed: Suite, selection: tuple[str, ...]) -> None:
    whole = (*OLD, {"assistant": "SCORE=1.0", "qa_id": "gone"})
    if "--lf" in selection:
        changed.cases("SCORE=0.1", *whole[1:])
        changed.in_process(*selection)
    changed.cases(*whole)
    result = changed.in_process("--ctxeval-baseline=main.json", *selection)
    assert result.ret == 0
    assert "left out" in section(result)
    assert "missing" not in section(result)


SELECTIONS = {
    "keyword": ("-k", "not q2"),
    "mark": ("-m", "not slow"),
    "deselect": ("--deselect", "test_it.py::test_answers[shop-q2]"),
    "ignore": ("--ignore", "test_other.py"),
    "pattern": ("--ignore-glob", "*_oth*"),
    "file": ("test_it.py",),
    "test": ("test_it.py::test_answers",),
    "hook": (),
    "stepwise": ("--stepwise",),
}


@pytest.mark.parametrize("way", [("-n", "0"), ("-n", "2")], ids=" ".join)
@pytest.mark.parametrize("name", SELECTIONS)
def test_a_case_that_is_gone_is_missing_whatever_else_was_left_out(
    changed: Suite, name: str, way: tuple[str, ...]
) -> None:
    """Of the five stored cases `gone` is gone, q2 or the other file is left out, and the rest is judged."""
    changed.cases(*OLD, name="test_other", session="other")
    changed.cases(*OLD)
    if name == "hook":
        with (changed.path / "conftest.py").open("a") as conftest:
            conftest.write(
                "\ndef pytest_collection_modifyitems(items):\n    items[:] = [each for each in items if 'q2' not in each.name]\n"
            )
    if name == "stepwise":
        changed.cases(*OLD[:1], "SCORE=0.1", *OLD[2:])
        changed.in_process(*SELECTIONS[name])
        changed.cases(*OLD)
    result = changed.run("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05", *SELECTIONS[name], *way)
    assert result.ret == 1
    assert "gone missing" in section(result)
    assert "missing   shop-gone" in section(result).splitlines()


@pytest.fixture
def outside(changed: Suite) -> Suite:
    """The same, with its tests beside the folder of its ini file."""
    (changed.path / "ci").mkdir()
    (changed.path / "pytest.ini").rename(changed.path / "ci" / "pytest.ini")
    changed.cases(*OLD, {"assistant": "SCORE=1.0", "qa_id": "gone"})
    changed.in_process("-c", "ci/pytest.ini", ".", "--ctxeval-report=main.json")
    return changed


def test_a_case_that_is_gone_is_missing_where_the_tests_are_outside_of_the_project(outside: Suite) -> None:
    outside.cases(*OLD)
    arguments = ("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05", "-c", "ci/pytest.ini")
    for place in (".", "test_it.py"):
        result = outside.in_process(*arguments, place)
        assert (result.ret, "FAILED  gone missing" in section(result)) == (1, True)


def test_a_case_that_is_gone_is_missing_where_its_folder_is_gone_from_the_projects_tests(suite: Suite) -> None:
    suite.ini(testpaths="first second")
    for name in ("first", "second"):
        (suite.path / name).mkdir()
        suite.cases("SCORE=0.9", name=f"{name}/test_{name}", session=name)
        (suite.path / name / f"test_{name}.py").write_text(
            (suite.path / name / f"test_{name}.py").read_text().replace(f"{name}/test", "test")
        )
    suite.in_process("--ctxeval-report=main.json").assert_outcomes(passed=2)
    (suite.path / "second" / "test_second.py").unlink()
    suite.ini(testpaths="first")
    result = suite.in_process("--ctxeval-baseline=main.json", "--ctxeval-gate=missing:0")
    assert (result.ret, "FAILED  1 missing, 0 allowed" in section(result)) == (1, True)


@pytest.mark.skipif(sys.platform == "win32", reason="links want rights there")
def test_a_case_that_is_gone_is_missing_where_the_run_goes_through_a_link(changed: Suite) -> None:
    changed.cases(*OLD)
    (changed.path / "link.py").symlink_to("test_it.py")
    (changed.path / "linked").symlink_to(".")
    for place in ("link.py", "linked/test_it.py"):
        result = changed.in_process("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05", place)
        assert (result.ret, "FAILED  gone missing" in section(result)) == (1, True)


def test_a_gate_on_what_has_changed_fails_where_nothing_was_judged(changed: Suite) -> None:
    changed.cases(*OLD, {"assistant": "SCORE=1.0", "qa_id": "gone"})
    gates = ("--ctxeval-gate=drop:0.05", "--ctxeval-gate=missing:0")
    result = changed.in_process("--ctxeval-baseline=main.json", *gates, "-k", "typo", "--ctxeval-report=part.json")
    told = (
        "gate      drop:0.05  FAILED  no case was judged that the baseline has",
        "gate      missing:0  FAILED  no case was judged that the baseline has",
    )
    assert result.ret == 1
    assert set(told) <= set(section(result).splitlines())
    stored = changed.ctxeval_runs("gate", "part.json", "--baseline=main.json", "--gate=drop:0.05", "--gate=missing:0")
    assert (stored.returncode, set(told) <= set(stored.stdout.splitlines())) == (1, True)


def test_a_baseline_of_some_tests_or_broken_off_is_said_before_any_number(changed: Suite) -> None:
    changed.cases(*OLD)
    changed.in_process("--ctxeval-report=part.json", "-k", "q2 or q3")
    result = changed.in_process("--ctxeval-baseline=part.json")
    assert section(result).splitlines()[0] == "baseline  left out 2 cases of this run, which count as new"
    changed.module("def test_stop():\n    raise KeyboardInterrupt", name="test_stop")
    changed.run("--ctxeval-report=broken.json", "test_it.py", "test_stop.py")
    (changed.path / "test_stop.py").unlink()
    result = changed.in_process("--ctxeval-baseline=broken.json")
    assert section(result).splitlines()[0] == "baseline  was broken off: what it did not come to counts as new"


def test_a_bar_that_was_lowered_is_said_before_any_number(suite: Suite) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.9")
    suite.in_process("--ctxeval-report=main.json")
    suite.cases("SCORE=0.3", "SCORE=0.9", bar=0.1)
    result = suite.in_process("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05")
    assert section(result).splitlines()[0] == "baseline  bar 0.80 -> 0.10"
    assert "fell by 0.30 > 0.05, within the noise of 2 cases" in section(result)


def test_the_files_of_the_ini_file_are_in_the_project_wherever_pytest_is_started(
    changed: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed.ini(ctxeval_baseline="main.json", ctxeval_reports=["stored/run.json"])
    (changed.path / "deep").mkdir()
    monkeypatch.chdir(changed.path / "deep")
    result = changed.in_process("..")
    assert "baseline  main.json: 1 regressed, 1 missing, 1 improved, 2 same, 1 new" in section(result)
    assert len(changed.report("stored/run.json")["cases"]) == 5
    result = changed.in_process("..", "--ctxeval-baseline=main.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_of_a_folder_that_was_not_asked_for_nothing_is_missing(suite: Suite) -> None:
    suite.cases("SCORE=0.9")
    suite.cases("SCORE=0.9", session="other", name="test_other")
    suite.in_process("--ctxeval-report=main.json")
    result = suite.in_process("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05", "test_it.py")
    assert (result.ret, "1 left out" in section(result)) == (0, True)
    (suite.path / "test_other.py").unlink()
    result = suite.in_process("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05")
    assert result.ret == 1
    assert "other, context awareness: q1 missing" in section(result)


def test_the_keyword_context_leaves_no_judged_case_out(changed: Suite) -> None:
    (changed.path / "test_plain.py").write_text("def test_of_others(): pass\n")
    result = changed.in_process("--ctxeval-baseline=main.json", "-k", "context")
    assert "missing   shop-gone" in section(result)


def test_e11_another_judge_is_said_before_any_number(changed: Suite) -> None:
    conftest = (changed.path / "conftest.py").read_text()
    (changed.path / "conftest.py").write_text(conftest.replace("ScriptedJudge()", "ScriptedJudge(model_name='other')"))
    changed.cases(*OLD)
    result = changed.in_process("--ctxeval-baseline=main.json")
    assert section(result).splitlines()[0] == "baseline  judge scripted -> other"


def test_the_temperature_of_the_judge_is_stored(suite: Suite) -> None:
    suite.cases("SCORE=0.9")
    suite.in_process("--ctxeval-report=main.json")
    assert suite.report("main.json")["cases"][0]["temperature"] is None  # a model that does not tell


def test_the_line_of_a_test_is_stored(suite: Suite) -> None:
    suite.cases("SCORE=0.9")
    suite.in_process("--ctxeval-report=main.json")
    source = (suite.path / "test_it.py").read_text().splitlines()
    line = suite.report("main.json")["cases"][0]["line"]
    assert line in {at for at, text in enumerate(source, start=1) if text.startswith(("def test_", "@pytest"))}


def test_more_lines_than_few_are_counted(suite: Suite) -> None:
    suite.cases(*["SCORE=0.9"] * 12)
    suite.in_process("--ctxeval-report=main.json")
    suite.cases(*["SCORE=0.1"] * 6)
    told = section(suite.in_process("--ctxeval-baseline=main.json"))
    assert told.count("regressed 0.90 -> 0.10") == 3
    assert "          and 3 more regressed" in told
    assert "missing   shop-q7, shop-q8, shop-q9 and 3 more" in told


def test_c10_a_thousand_cases_against_a_baseline_stay_within_twenty_lines(suite: Suite) -> None:
    scores = ["SCORE=0.9"] * 1000
    suite.cases(*scores)
    suite.run("--ctxeval-report=main.json", "-q")
    suite.cases(*scores[:900], *["SCORE=0.1"] * 50, *["REPLY=no verdict"] * 10)
    told = section(suite.run("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05", "-q"))
    assert len(told.splitlines()) <= 20
    every = section(suite.run("--ctxeval-baseline=main.json", "-v"))
    assert every.count("case ") == 960


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            None,
            "--ctxeval-baseline: 'main.json' is not there; --ctxeval-report=run.json writes a run that can be compared with",
        ),
        ("{}", "--ctxeval-baseline: main.json: not a stored run; --ctxeval-report=run.json writes one"),
        (
            "<<<<<<< HEAD",
            (
                "--ctxeval-baseline: main.json, line 1: not a stored run, which is JSON: Expecting value; "
                "--ctxeval-report=run.json writes one"
            ),
        ),
    ],
    ids=["none", "empty", "conflict"],
)
def test_a_baseline_that_cannot_be_read_is_refused_before_anything_runs(
    suite: Suite, content: str | None, told: str
) -> None:
    suite.module("raise RuntimeError('collected')")
    if content is not None:
        (suite.path / "main.json").write_text(content)
    result = suite.in_process("--ctxeval-baseline=main.json")
    assert result.ret == 4
    assert [line for line in result.errlines if line] == [f"ERROR: {told}"]


def test_the_gates_of_the_ini_file_wait_for_a_baseline(suite: Suite) -> None:
    suite.ini(ctxeval_gates=["drop:0.05", "missing:0"])
    suite.cases("SCORE=0.9")
    result = suite.in_process()
    assert result.ret == 0
    assert "gate      drop:0.05  not checked  there is no baseline" in section(result)


def test_a_run_that_was_broken_off_is_not_checked_and_says_so_in_its_file(changed: Suite) -> None:
    result = changed.in_process(
        "--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05", "--ctxeval-report=run.json", "-x"
    )
    assert "gate      drop:0.05  not checked  the run was broken off" in section(result)
    assert changed.report()["broken_off"]
    gated = changed.ctxeval_runs("gate", "run.json", "--gate=context_awareness:0")
    assert gated.returncode == 1
    assert "FAILED  not checked, since the run was broken off" in gated.stdout


def test_a_run_without_a_judged_test_and_a_baseline_tells_nothing(suite: Suite, changed: Suite) -> None:
    suite.module("def test_of_others(): pass")
    (suite.path / "test_it.json").unlink()
    result = suite.in_process("--ctxeval-baseline=main.json")
    assert result.ret == 0
    assert section(result) == ""


def test_an_empty_baseline_makes_every_case_new(suite: Suite) -> None:
    suite.module("def test_of_others(): pass")
    suite.in_process("--ctxeval-report=main.json")
    suite.cases("SCORE=0.9", name="test_more")
    result = suite.in_process("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05")
    assert "baseline  main.json: 1 new" in section(result)
    assert "gate      drop:0.05  FAILED  the baseline has no case" in section(result)


def test_the_whole_of_a_run_is_in_its_file(changed: Suite) -> None:
    changed.in_process("--ctxeval-report=run.json", "--ctxeval-samples=2")
    stored = changed.report()
    assert {name: stored[name] for name in ("schema", "record", "stat", "partial", "broken_off")} == {
        "schema": 1,
        "record": "off",
        "stat": "bayesian",
        "partial": None,
        "broken_off": False,
    }
    case = stored["cases"][0]
    assert [each["score"] for each in case["samples"]] == [0.7, 0.7]
    assert case["spread"] == [0.7, 0.7]
    assert (case["min"], case["context"], case["prompt_version"]) == (0.8, "Open 9 to 5.", "1")
    changed.in_process("--ctxeval-report=part.json", "-k", "q1")
    assert changed.report("part.json")["partial"] == "tests were left out"


def runs(suite: Suite) -> list[str]:
    """Three shards of a run by case, and the whole of it, stored."""
    names = []
    for number, part in enumerate(("q1 or q2", "q3", "fresh or q4"), start=1):
        names.append(f"shard-{number}.json")
        suite.in_process(f"--ctxeval-report={names[-1]}", "-k", part)
    suite.in_process("--ctxeval-report=whole.json")
    return names


def test_combined_shards_are_the_whole_run(changed: Suite) -> None:
    shards = runs(changed)
    done = changed.ctxeval_runs("combine", *reversed(shards), "--output=run.json", "--gate=context_awareness:0.8")
    assert done.returncode == 0, done.stderr
    whole = changed.ctxeval_runs("gate", "whole.json", "--gate=context_awareness:0.8")
    assert done.stdout == whole.stdout
    combined, stored = changed.report("run.json"), changed.report("whole.json")
    assert combined["cases"] == stored["cases"]
    assert combined["sessions"] == stored["sessions"]
    assert combined["partial"] is None


def test_overlapping_shards_are_an_error_that_names_the_cases(changed: Suite) -> None:
    shards = runs(changed)
    done = changed.ctxeval_runs("combine", *shards, "whole.json", "--output=run.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[:2] == [
        "ctxeval combine: the same case stands in two shards:",
        "    test_it.py::test_answers[shop-fresh] in shard-3.json and whole.json",
    ]
    assert not (changed.path / "run.json").exists()


def test_combined_shards_are_gated_and_compared(changed: Suite) -> None:
    done = changed.ctxeval_runs(
        "combine", *runs(changed), "--output=run.json", "--baseline=main.json", "--gate=drop:0.05", "--gate=missing:1"
    )
    assert done.returncode == 1
    assert "FAILED  q1 fell below its bar" in done.stdout
    assert "gate      missing:1  passed  1 missing, 1 allowed" in done.stdout


def test_e10_a_stored_run_is_gated_anew_without_a_judge(changed: Suite) -> None:
    changed.in_process("--ctxeval-report=run.json")
    (changed.path / "conftest.py").write_text("raise RuntimeError('no judge is needed')")
    good = changed.ctxeval_runs("gate", "run.json", "--gate=context_awareness:0.8", "--gate=unscored:0")
    assert (good.returncode, good.stderr) == (0, "")
    assert "passed  >= 0.80" in good.stdout
    bad = changed.ctxeval_runs("gate", "run.json", "--gate=context_awareness:0.9")
    assert bad.returncode == 1
    assert "FAILED  0.87 < 0.90" in bad.stdout


def test_e10_two_stored_runs_are_compared(changed: Suite) -> None:
    changed.in_process("--ctxeval-report=run.json")
    told = changed.ctxeval_runs("compare", "main.json", "run.json")
    assert told.returncode == 0
    assert "baseline  main.json: 1 regressed, 1 missing, 1 improved, 2 same, 1 new" in told.stdout
    assert "regressed 0.90 -> 0.70, 0.70 < 0.80  test_it.py::test_answers[shop-q1]  promises a refund" in told.stdout
    red = changed.ctxeval_runs("compare", "main.json", "run.json", "--gate=drop:0.05", "--report=again.json")
    assert red.returncode == 1
    assert "FAILED  q1 fell below its bar; gone missing" in red.stdout
    assert changed.report("again.json")["gates"][0]["status"] == "failed"
    every = changed.ctxeval_runs("compare", "main.json", "run.json", "-v")
    assert every.stdout.count("\ncase ") == 5


def test_what_a_stored_part_of_a_run_has_left_out_is_not_missing(changed: Suite) -> None:
    changed.in_process("--ctxeval-report=part.json", "-k", "q2")
    told = changed.ctxeval_runs("compare", "main.json", "part.json", "--gate=drop:0.05")
    assert told.returncode == 1
    assert "baseline  main.json: 1 missing, 1 same, 3 left out" in told.stdout
    assert "FAILED  gone missing" in told.stdout
    told = changed.ctxeval_runs("compare", "main.json", "part.json", "--gate=drop:0.05", "--gate=missing:1")
    assert told.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("gate", "main.json"), "ctxeval gate: nothing to check; give a bar, for example --gate=context_awareness:0.8"),
        (("gate", "none.json", "--gate=unscored:0"), "ctxeval gate: none.json: No such file or directory"),
        (
            ("gate", "test_it.py", "--gate=unscored:0"),
            "ctxeval gate: test_it.py, line 2: not a stored run, which is JSON: Expecting value",
        ),
        (
            ("gate", "main.json", "--gate=bleu:1"),
            (
                "ctxeval gate: --gate: 'bleu:1': 'bleu' is no metric; write METRIC:BAR, for example context_awareness:0.8; "
                "known are context_awareness, contextual_relevancy, unscored, missing, drop"
            ),
        ),
        (
            ("gate", "main.json", "--gate=drop:0.05"),
            "ctxeval gate: --gate: 'drop:0.05' needs a stored run to compare with; name it with --baseline=FILE",
        ),
        (
            ("compare", "main.json", "main.json", "--report=x.pdf"),
            "ctxeval compare: 'x.pdf' is no kind of report; use a name that ends in .json, .md or .html",
        ),
        (("combine", "main.json", "main.json", "-o", "x.json"), "ctxeval combine: main.json is given twice"),
        (("combine", "main.json", "-o", "none/../.."), "ctxeval combine: 'none/../..' is no kind of report; "),
        (("compare", "main.json"), "usage: ctxeval compare"),
        (("compare", "main.json", "main.json", "--gaet=x"), "usage: ctxeval "),
        ((), "usage: ctxeval"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_command_exits_with_2_and_says_why(changed: Suite, arguments: tuple[str, ...], told: str) -> None:
    done = changed.ctxeval_runs(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(told)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("area", [(), ("cassettes",)], ids=["alone", "cassettes"])
def test_a_command_that_is_missing_shows_what_there_is(suite: Suite, area: tuple[str, ...]) -> None:
    helped = suite.ctxeval_runs(*area, "--help")
    alone = suite.ctxeval_runs(*area)
    assert (alone.returncode, alone.stdout, alone.stderr) == (2, "", helped.stdout)


def test_the_command_tells_its_version(suite: Suite) -> None:
    done = suite.ctxeval_runs("--version")
    assert (done.returncode, done.stdout) == (0, f"pytest-ctxeval {metadata.version('pytest-ctxeval')}\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<html>", "wrong.json, line 1: not a stored run, which is JSON: Expecting value; --ctxeval-report=run.json writes one"),
        ("{}", "wrong.json: not a stored run; --ctxeval-report=run.json writes one"),
        ('{"schema": 1}', "wrong.json: record: field required; write the run anew"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["option", "environment", "ini"])
def test_a_baseline_that_is_no_stored_run_names_where_it_was_given(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, text: str, told: str, place: str
) -> None:
    (suite.path / "wrong.json").write_text(text, encoding="utf-8")
    if place == "environment":
        monkeypatch.setenv("CTXEVAL_BASELINE", "wrong.json")
    if place == "ini":
        suite.ini(ctxeval_baseline="wrong.json")
    result = suite.in_process(*(["--ctxeval-baseline=wrong.json"] if place == "option" else []))
    where = {"option": "--ctxeval-baseline", "environment": "$CTXEVAL_BASELINE", "ini": "ini ctxeval_baseline"}
    assert result.ret == 4
    assert result.errlines[0] == f"ERROR: {where[place]}: {told}"


def test_a_low_end_needs_an_interval_in_a_stored_run_too(suite: Suite) -> None:
    suite.cases("SCORE=0.9")
    suite.in_process("--ctxeval-report=run.json", "--ctxeval-stat=frequentist")
    done = suite.ctxeval_runs("gate", "run.json", "--gate=context_awareness.low:0.5")
    assert done.returncode == 2
    assert "needs an interval, and the frequentist mode gives none" in done.stderr


def test_the_commands_write_every_kind_of_report_whole_or_not_at_all(changed: Suite) -> None:
    (changed.path / "there.json").mkdir()
    done = changed.ctxeval_runs("compare", "main.json", "main.json", "--report=there.json")
    assert done.returncode == 2
    assert done.stderr == "ctxeval compare: there.json: Is a directory\n"
    done = changed.ctxeval_runs("compare", "main.json", "main.json", "--report=new/folder/again.json")
    assert done.returncode == 0
    stored = json.loads((changed.path / "new/folder/again.json").read_text())
    assert len(stored["cases"]) == 5


@pytest.mark.parametrize("command", [(), ("compare",), ("gate",), ("combine",), ("cassettes",), ("cassettes", "check")])
def test_every_help_tells_the_exit_codes(suite: Suite, command: tuple[str, ...]) -> None:
    done = suite.ctxeval_runs(*command, "--help")
    assert done.returncode == 0
    assert (
        "exit codes: 0 fine; 1 a gate failed, or something to see to; 2 a wrong command, file or option" in done.stdout
    )


def test_hostile_ids_do_no_harm_in_a_comparison(suite: Suite, tmp_path: Path) -> None:
    suite.cases({"assistant": "SCORE=0.9", "qa_id": "a\x1b[31m\n::error::b"}, session="s\x1b[2J\n##[error]")
    suite.in_process("--ctxeval-report=main.json")
    suite.cases({"assistant": "SCORE=0.9", "qa_id": "other"}, session="s\x1b[2J\n##[error]")
    told = section(suite.in_process("--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0"))
    assert "\x1b" not in told
    assert not re.search(r"^\s*(::|##\[)", told, re.MULTILINE)
    assert "missing" in told
