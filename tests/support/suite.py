"""Projects that use the plugin, in a folder of their own."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from pytest_ctxeval._plugin.cassettes import cassette_path

REPLAY = "http://127.0.0.1:9/v1"  # where nobody listens
THIRD = "test_it.py::test_answers[shop-q3]"  # the test that is gone from the suite `shrunk`

CONFTEST = """
    import sys
    sys.path.insert(0, {tests!r})

    import pytest
    from support.scripted import ScriptedJudge


    @pytest.fixture(scope="session")
    def judge_model():
        return ScriptedJudge()
"""


class Suite:
    """One such project."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pytester = pytester
        self.monkeypatch = monkeypatch
        self.path = pytester.path
        tests = str(Path(__file__).parent.parent)
        pytester.makeconftest(textwrap.dedent(CONFTEST).format(tests=tests))
        self.ini()

    def ini(self, **values: str | list[str]) -> None:
        """Write the ini file: warnings are errors, and what is given."""
        lines = ["[pytest]", "filterwarnings = error"]
        for name, value in values.items():
            lines.append(f"{name} =" if isinstance(value, list) else f"{name} = {value}")
            lines += [f"    {each}" for each in value] if isinstance(value, list) else []
        self.pytester.makefile(".ini", pytest="\n".join(lines))

    def cases(
        self, *answers: str | dict[str, Any], session: str = "shop", bar: float = 0.8, name: str = "test_it"
    ) -> None:
        """Write one test module with a dataset; an answer is its text, or the fields of its batch."""
        rows = [{"assistant": each} if isinstance(each, str) else each for each in answers]
        batches = [{"qa_id": f"q{number}", "query": "When?", **row} for number, row in enumerate(rows, start=1)]
        dataset = {"session_id": session, "assistant_id": "bot", "context": "Open 9 to 5.", "conversation": batches}
        (self.path / f"{name}.json").write_text(json.dumps(dataset), encoding="utf-8")
        self.module(
            f"""
            import pytest
            from pytest_ctxeval import assert_context_awareness

            @pytest.mark.ctxeval(dataset={f"{name}.json"!r})
            def test_answers(context_case):
                assert_context_awareness(context_case, min={bar})
            """,
            name=name,
        )

    def module(self, source: str, *, name: str = "test_it") -> None:
        """Write one test module."""
        (self.path / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")

    def run(self, *arguments: str, record: str = "off", columns: int = 100) -> pytest.RunResult:
        """Run the project in a process of its own."""
        return self.pytester.runpytest_subprocess(*self._prepared(arguments, record, columns))

    def in_process(self, *arguments: str, record: str = "off", columns: int = 100) -> pytest.RunResult:
        """Run the project in this process, which is faster and says nothing of start-up or signals."""
        return self.pytester.runpytest_inprocess(*self._prepared(arguments, record, columns))

    def started(self, *arguments: str, output: int | None = None, **environment: str) -> subprocess.Popen[bytes]:
        """Start the project in a process of its own, to be looked at or ended while it runs."""
        known = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": "", **environment}
        command = [sys.executable, "-m", "pytest", "-p", "pytest_ctxeval.plugin", *arguments]
        return subprocess.Popen(command, cwd=self.path, env=known, stdout=output, stderr=output)

    def append(self, name: str, text: str) -> None:
        """Add lines to a file."""
        path = self.path / name
        path.write_text(f"{textwrap.dedent(path.read_text(encoding='utf-8'))}\n{text}", encoding="utf-8")

    def replace(self, name: str, before: str, now: str) -> None:
        """Put one text in the place of another in a file."""
        path = self.path / name
        path.write_text(path.read_text(encoding="utf-8").replace(before, now), encoding="utf-8")

    def ctxeval(self, *arguments: str, folder: str = "") -> subprocess.CompletedProcess[str]:
        """Run `ctxeval` in the project's folder, or one in it, in a process of its own."""
        self.monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        plugins = ["pytest_ctxeval.plugin", *(["xdist.plugin"] if "-n" in arguments else [])]
        loaded = [part for plugin in plugins for part in ("-p", plugin)]
        command = [sys.executable, "-m", "pytest_ctxeval.cli", *arguments, *loaded, "-p", "no:cacheprovider"]
        return subprocess.run(command, cwd=self.path / folder, capture_output=True, text=True, check=False)

    def ctxeval_runs(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `ctxeval` on stored runs: no pytest in it."""
        self.monkeypatch.setenv("COLUMNS", "120")
        command = [sys.executable, "-m", "pytest_ctxeval.cli", *arguments]
        return subprocess.run(command, cwd=self.path, capture_output=True, text=True, check=False)

    def _prepared(self, arguments: tuple[str, ...], record: str, columns: int) -> list[str]:
        """Load the plugins that a run needs and no other that happens to be installed."""
        self.monkeypatch.setenv("COLUMNS", str(columns))
        self.monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        plugins = ["pytest_ctxeval.plugin"]
        plugins += ["xdist.plugin", "xdist.looponfail"] if "-n" in arguments else []
        plugins += ["pytest_rerunfailures"] if "--reruns" in arguments else []
        plugins += ["pytest_asyncio.plugin"] if "--asyncio-mode=auto" in arguments else []
        plugins += [] if {"--lf", "--stepwise"} & {*arguments} else ["no:cacheprovider"]
        given = [part for plugin in plugins for part in ("-p", plugin)]
        return [*given, *([f"--ctxeval-record={record}"] if record else []), *arguments]

    def cassette(self, node: str) -> Path:
        """Give the cassette of a test by its id."""
        return self.path / "cassettes" / cassette_path(node)

    def cassettes(self) -> dict[str, str]:
        """What the cassettes hold, by name."""
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(self.path.rglob("*.yaml"))}

    def report(self, name: str = "run.json") -> Any:
        """What a JSON report holds."""
        return json.loads((self.path / name).read_text(encoding="utf-8"))


def section(result: pytest.RunResult) -> str:
    """The section at the end, without its title."""
    lines = result.outlines
    start = next((at for at, line in enumerate(lines) if re.fullmatch(r"=+ context evaluation =+", line)), None)
    if start is None:
        return ""
    end = next(at for at in range(start + 1, len(lines)) if lines[at].startswith("===="))
    return "\n".join(lines[start + 1 : end])


def replaying(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no server."""
    monkeypatch.setenv("JUDGE_URL", REPLAY)
    monkeypatch.delenv("OPENAI_API_KEY")
