"""A step of GitHub Actions: its summary, its annotations, and what stands in its log (CASES E7)."""

import os
from pathlib import Path

import pytest
from support.suite import Suite, section

WAYS = pytest.mark.parametrize(
    "way", [(), ("-q",), ("-qq",), ("-v",), ("--color=yes",), ("-n", "2"), ("-p", "no:xdist")], ids=" ".join
)
ANNOTATION = (
    "::error file=app/test_it.py,line=5,title=context awareness of q2%3A 0.10 < 0.80"
    "::24/7 is 100%25 wrong%0Atest_it.py::test_answers[shop-q2]"
)


@pytest.fixture
def step(suite: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Suite:
    """A suite in a folder `app` of a repository, in a step of GitHub Actions. The step has a summary already."""
    app = suite.path / "app"
    app.mkdir()
    for path in [*suite.path.glob("*.py"), *suite.path.glob("*.ini")]:
        path.rename(app / path.name)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(suite.path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "summary.md").write_text("Built.\n", encoding="utf-8")
    monkeypatch.chdir(app)
    suite.path = app
    return suite


def commands(result: pytest.RunResult) -> list[str]:
    """The lines that GitHub's runner takes for commands, in what was printed and in errors."""
    return [line for line in [*result.outlines, *result.errlines] if line.lstrip().startswith("::") or "##[" in line]


def summary(tmp_path: Path) -> str:
    return (tmp_path / "summary.md").read_text(encoding="utf-8")


@WAYS
def test_a_failed_case_is_annotated_once_at_its_test(step: Suite, tmp_path: Path, way: tuple[str, ...]) -> None:
    step.cases("SCORE=0.9", "SCORE=0.1\nREASON=24/7 is 100% wrong")
    result = step.run("--ctxeval-github=yes", *way)
    assert commands(result) == [ANNOTATION]
    assert summary(tmp_path).startswith(
        "Built.\n\n### Context evaluation failed: 1 of 2 cases below its bar\n\n| session |"
    )
    assert summary(tmp_path).count("###") == 1
    assert result.ret == 1


def test_each_run_of_a_step_adds_to_its_summary(step: Suite, tmp_path: Path) -> None:
    step.cases("SCORE=0.9")
    for _ in range(2):
        assert step.in_process("--ctxeval-github=yes").ret == 0
    assert [line for line in summary(tmp_path).splitlines() if line.startswith("###")] == [
        "### Context evaluation passed: 1 case",
    ] * 2


def test_what_fails_or_got_worse_against_the_baseline_is_annotated(step: Suite) -> None:
    step.cases("SCORE=0.9", "SCORE=1.0")
    step.in_process("--ctxeval-report=main.json")
    step.cases("SCORE=0.85", "REPLY=nothing")
    result = step.in_process("--ctxeval-github=yes", "--ctxeval-baseline=main.json", "--ctxeval-gate=drop:0.05")
    gate, unscored, worse = commands(result)
    assert gate == "::error title=gate drop%3A0.05 failed::shop, context awareness: q2 unscored, not so before"
    assert unscored.startswith(
        "::error file=app/test_it.py,line=5,title=context awareness of q2%3A regressed 1.00 -> unscored::"
    )
    assert worse.startswith(
        "::warning file=app/test_it.py,line=5,title=context awareness of q1%3A regressed 0.90 -> 0.85::"
    )


@pytest.mark.parametrize("github", [{"GITHUB_ACTIONS": "true"}, {"CTXEVAL_GITHUB": "yes", "CI": "true"}], ids=str)
def test_nothing_is_told_unless_asked_for_on_github(
    step: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, github: dict[str, str]
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    for name, value in github.items():
        monkeypatch.setenv(name, value)
    step.cases("SCORE=0.1")
    assert commands(step.in_process()) == []
    assert summary(tmp_path) == "Built.\n"


def test_it_may_be_asked_for_in_the_ini_file_and_the_environment(step: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    step.cases("SCORE=0.1")
    monkeypatch.setenv("CTXEVAL_GITHUB", "yes")
    assert len(commands(step.in_process())) == 1
    monkeypatch.delenv("CTXEVAL_GITHUB")
    ini = (step.path / "pytest.ini").read_text(encoding="utf-8")
    (step.path / "pytest.ini").write_text(f"{ini}\nctxeval_github = yes\n", encoding="utf-8")
    assert len(commands(step.in_process())) == 1
    assert commands(step.in_process("--ctxeval-github=no")) == []


def test_a_run_that_judged_nothing_adds_nothing(step: Suite, tmp_path: Path) -> None:
    step.module("def test_it():\n    assert False")
    assert commands(step.in_process("--ctxeval-github=yes")) == []
    step.cases("SCORE=0.1")
    assert commands(step.in_process("--ctxeval-github=yes", "--collect-only")) == []
    assert summary(tmp_path) == "Built.\n"


@pytest.mark.parametrize("where", ["", "folder/that/is/not/there.md", "app"])
def test_a_summary_that_cannot_be_written_is_a_note_and_fails_nothing(
    step: Suite, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step.path.parent / where) if where else "")
    step.cases("SCORE=0.9")
    result = step.in_process("--ctxeval-github=yes")
    why = {"": "$GITHUB_STEP_SUMMARY is not set", "app": "Is a directory"}.get(where, "No such file or directory")
    assert f"note      the step summary could not be written: {why}\n" in section(result)
    assert result.ret == 0


@pytest.mark.parametrize(
    ("workspace", "file"), [("", "test_it.py"), ("app", "test_it.py"), ("elsewhere", "test_it.py"), (".", "app/test_it.py")]
)  # fmt: skip
def test_a_file_is_named_from_the_root_of_what_was_checked_out(
    step: Suite, monkeypatch: pytest.MonkeyPatch, workspace: str, file: str
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(step.path.parent / workspace) if workspace else "")
    step.cases("SCORE=0.1")
    (command,) = commands(step.in_process("--ctxeval-github=yes"))
    assert command.startswith(f"::error file={file},line=5,title=")


@pytest.mark.parametrize(
    "told", ["::error::gotcha", "x\\n::set-output name=a::b", "x\\r::error::y", "\\u001b[31m::error::z", "##[error]gotcha", "%0A::error::"]
)  # fmt: skip
@pytest.mark.parametrize("asked", ["yes", "no"])
def test_no_text_of_a_model_is_taken_for_a_command(step: Suite, told: str, asked: str) -> None:
    step.cases(f"SCORE=0.1\nREASON={told}", f"REPLY={told}", f"RAISE={told}")
    result = step.in_process(f"--ctxeval-github={asked}", "-v")
    ours = commands(result)
    assert len(ours) == (3 if asked == "yes" else 0)
    assert all(line.startswith("::error file=app/test_it.py,line=5,title=context awareness of q") for line in ours)
    assert "\x1b" not in result.stdout.str()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of another kind")
def test_a_summary_that_is_a_pipe_is_written(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = suite.path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pipe))
    suite.cases("SCORE=0.9")
    result = suite.in_process("--ctxeval-github=yes")
    assert "could not be written" not in section(result)
    assert os.read(reading, 100).startswith(b"### Context evaluation passed: 1 case")
    os.close(reading)
