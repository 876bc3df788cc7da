"""The workflows of the documentation: they fit their CI's schema, and their commands do what the text says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.suite import Suite

from pytest_ctxeval._core.gate import parse_gate
from pytest_ctxeval._plugin.options import METRICS, OPTIONS

ROOT = Path(__file__).parents[1]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/ci.md")}
WORKFLOWS = [
    (str(kind), str(text))
    for page in PAGES.values()
    for kind, text in re.findall(r"<!-- workflow: (\w+) -->\n```yaml\n(.*?)```", page, re.DOTALL)
]
SCHEMAS = {"github": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}


def workflow(name: str) -> Any:
    return next(yaml.safe_load(text) for _, text in WORKFLOWS if text.startswith(f"# {name}\n"))


def step(loaded: Any, name: str) -> str:
    return str(
        next(each["run"] for job in loaded["jobs"].values() for each in job["steps"] if each.get("name") == name)
    )


@pytest.mark.parametrize(("kind", "text"), WORKFLOWS, ids=[text.splitlines()[0] for _, text in WORKFLOWS])
def test_a_workflow_fits_the_schema_of_its_ci(kind: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "workflow.yml"
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", SCHEMAS[kind], str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_workflows_to_check() -> None:
    assert len(WORKFLOWS) >= 5


@pytest.mark.parametrize("name", PAGES)
def test_every_option_and_gate_of_the_pages_exists(name: str) -> None:
    flags = {option.flag for option in OPTIONS}
    assert {*re.findall(r"--ctxeval-[a-z_-]+", PAGES[name])} <= flags
    gates = re.findall(r"--(?:ctxeval-)?gate=([^\s`'\"]+:[\d.]+)", PAGES[name])
    assert gates
    for text in gates:
        parse_gate(text, metrics=METRICS, required=True)


def shell(suite: Suite, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a step as a CI does."""
    plugins = "-p pytest_ctxeval.plugin -p no:cacheprovider"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CTXEVAL_", "PYTEST_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", "")])
    given = {"CI": "1", "CTXEVAL_RECORD": "off", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": plugins}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
        cwd=suite.path,
        env={**inherited, "PATH": path, **given, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_step_of_a_pull_request_gates_it_against_the_base_branch(suite: Suite) -> None:
    loaded = workflow(".github/workflows/evaluation.yml")
    replay, keep = step(loaded, "Replay and gate"), step(loaded, "Set this run aside for pull requests")
    suite.cases(*["SCORE=0.99"] * 6)
    first = shell(suite, replay)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "baseline" not in first.stdout
    assert shell(suite, keep).returncode == 0
    suite.cases(*["SCORE=0.9"] * 6)
    second = shell(suite, replay)
    assert second.returncode == 1
    assert "FAILED  fell by 0.09 > 0.05" in second.stdout
    assert (suite.path / "run" / "report.html").exists()


def test_the_job_of_gitlab_does_without_a_base_run(suite: Suite) -> None:
    script = str(workflow(".gitlab-ci.yml")["evaluation"]["script"][1])
    suite.cases("SCORE=0.9")
    nowhere = {
        "CI_API_V4_URL": "http://127.0.0.1:9",
        "CI_PROJECT_ID": "1",
        "CI_DEFAULT_BRANCH": "main",
        "CI_JOB_TOKEN": "x",
    }
    done = shell(suite, script, **nowhere)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (suite.path / "run" / "junit.xml").exists()


def test_the_shards_are_joined(suite: Suite) -> None:
    loaded = workflow(".github/workflows/shards.yml")
    run = next(each["run"] for each in loaded["jobs"]["replay"]["steps"] if "pytest" in each.get("run", ""))
    for name in loaded["jobs"]["replay"]["strategy"]["matrix"]["folder"]:
        (suite.path / "tests" / name).mkdir(parents=True)
        suite.cases("SCORE=0.9", session=name, name=f"test_{name}")
        for ending in ("py", "json"):
            (suite.path / f"test_{name}.{ending}").rename(suite.path / "tests" / name / f"test_{name}.{ending}")
        shard = shell(suite, run.replace("${{ matrix.folder }}", name))
        assert shard.returncode == 0, shard.stdout
    whole, told = (each["run"] for each in loaded["jobs"]["whole"]["steps"][-2:])
    assert shell(suite, whole).returncode == 0
    assert [row["session_id"] for row in suite.report()["sessions"]] == ["sales", "support"]
    assert shell(suite, told, GITHUB_STEP_SUMMARY="summary.md").returncode == 0
    assert "sales" in (suite.path / "summary.md").read_text(encoding="utf-8")
