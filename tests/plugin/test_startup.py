"""Installed but unused: silent and light (CASES E1)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = "{'pydantic', 'numpy', 'langchain_core', 'vcr', 'yaml', 'httpx', 'httpx2', 'langchain_openai'}"


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as a project does that has the package installed, but for the plugins of others."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    settings = {**inherited, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("ini", ["", "ctxeval_gates = context_awareness:0.8\nctxeval_judge = openai:gpt-4o-mini\n"])
def test_an_unrelated_run_loads_nothing_heavy(tmp_path: Path, ini: str) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{ini}", encoding="utf-8")
    (tmp_path / "test_it.py").write_text(
        f"import sys\ndef test(): assert not {HEAVY} & sys.modules.keys()", encoding="utf-8"
    )
    result = run(tmp_path, "-p", "pytest_ctxeval.plugin", "-W", "error")
    assert result.returncode == 0, result.stdout


def test_an_unrelated_run_prints_and_writes_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import os, socket, threading\n"
        "BEFORE = dict(os.environ)\n"
        "def test():\n"
        "    assert socket.socket.__module__ == 'socket'\n"
        "    assert threading.active_count() == 1\n"
        "    assert {k: v for k, v in os.environ.items() if k != 'PYTEST_CURRENT_TEST'} =="
        " {k: v for k, v in BEFORE.items() if k != 'PYTEST_CURRENT_TEST'}\n",
        encoding="utf-8",
    )
    with_us = run(tmp_path, "-q", "-W", "error", "-p", "pytest_ctxeval.plugin")
    without = run(tmp_path, "-q", "-W", "error")
    assert with_us.returncode == without.returncode == 0
    assert with_us.stderr == without.stderr == ""
    assert with_us.stdout.split(" in ")[0] == without.stdout.split(" in ")[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test_it.py"]


def test_the_plugin_is_found_by_its_entry_point(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test(pytestconfig): assert pytestconfig.pluginmanager.get_plugin('ctxeval')", encoding="utf-8"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
