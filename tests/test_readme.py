"""The README is kept: its commands, its examples, its table, what it says a run prints."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.llm_server import LLMServer
from support.suite import Suite, section

from pytest_ctxeval._datasets.load import load
from pytest_ctxeval._plugin.options import OPTIONS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(mark: str) -> str:
    """The fenced block below a mark."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert found, mark
    return found[1]


def table() -> str:
    rows = [
        f"| {f'`{option.flag}={option.metavar}`' if option.flag else ''} | `{option.ini_name}` | `{option.variable}` | "
        f"{option.default} | {option.help.replace('|', chr(92) + '|')}{'; may be given again' if option.many else ''} |"
        for option in OPTIONS
    ]
    return "\n".join(rows)


def test_the_options_are_those_of_the_plugin() -> None:
    start = README.index("| --- | --- | --- | --- | --- |\n") + len("| --- | --- | --- | --- | --- |\n")
    assert README[start : README.index("\n\n", start)] == table()


def test_there_are_two_commands_and_each_is_one_line() -> None:
    for mark in ("main job", "all tests"):
        assert len(block(mark).splitlines()) == 1
    assert block("main job").strip().endswith("pytest -k context")


def test_ci_runs_the_second_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    pattern = re.search(r"sed -n '(.*?)' README.md", script)
    assert pattern
    told = subprocess.run(["sed", "-n", pattern[1], "README.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert block("all tests").strip() in told.stdout


def test_the_section_is_what_the_shipped_recordings_give() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CTXEVAL_", "PYTEST_"))}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-k",
        "context",
        "tests/examples",
        "--ctxeval-record=none",
    ]
    result = subprocess.run(
        command, cwd=ROOT, env={**environment, "COLUMNS": "120"}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
    told = result.stdout[result.stdout.index("context evaluation") :]
    told = told[told.index("\n") + 1 : told.rindex("\n====")]
    assert block("section").strip() == told.strip()


def test_the_first_test_works_as_it_is_written(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.pytester.makeconftest(block("example: conftest.py"))
    (suite.path / "test_shop.py").write_text(block("example: test_shop.py"), encoding="utf-8")
    with LLMServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "planted-0123456789")
        suite.run(record="").assert_outcomes(passed=1)
    (path,) = suite.path.rglob("*.yaml")
    assert path.parent == suite.path / "cassettes" / "test_shop"
    assert path.name.startswith("test_returns-")
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("CI", "true")
    again = suite.run(record="")
    again.assert_outcomes(passed=1)
    assert "1 replayed, 0 recorded, 0 live" in section(again)


def test_the_lines_of_a_dataset_are_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text(block("example: answers.jsonl"), encoding="utf-8")
    (dataset,) = load("answers.jsonl", base=tmp_path, defaults={})
    assert [batch.qa_id for batch in dataset.conversation] == ["returns", "late"]


def test_the_page_on_cassettes_shows_the_head_of_one_that_is_shipped() -> None:
    page = (ROOT / "docs" / "cassettes.md").read_text(encoding="utf-8")
    shown = page[page.index("<!-- head -->\n```yaml\n") + len("<!-- head -->\n```yaml\n") :]
    heads = [path.read_text(encoding="utf-8") for path in (ROOT / "cassettes").rglob("*techstore-shipping*.yaml")]
    assert [head.startswith(shown[: shown.index("```")]) for head in heads] == [True]


def test_the_commands_for_cassettes_are_those_of_their_help() -> None:
    from pytest_ctxeval.cli import CASSETTES

    for name, about in CASSETTES.items():
        first, _, rest = about.partition(" ")
        third_person = {"fail": "fails", "run": "runs", "show": "shows"}[first]
        told = f"{third_person} {rest}".replace(", and delete ", ", and deletes ").replace(
            ", and move ", ", and moves "
        )
        assert f"| `ctxeval cassettes {name}` | {told} |" in README


def test_every_python_example_is_python() -> None:
    for example in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        compile(textwrap.dedent(example), "README.md", "exec")
