"""`ctxeval` where its output or its input is not what one would wish: no traceback, and an exit code that holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.suite import Suite

GATE = ("gate", "run.json", "--gate=context_awareness:0.5")
COMMAND = [sys.executable, "-m", "pytest_ctxeval.cli"]


@pytest.fixture
def stored(suite: Suite) -> Suite:
    """A stored run whose names stand in no ASCII, and that passes at 0.5 and not at 0.99."""
    suite.cases(*["SCORE=0.9"] * 40, session="\u65e5\u672c")
    suite.in_process("--ctxeval-report=run.json")
    return suite


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_letters_that_the_output_has_not_are_written_out(
    stored: Suite, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    told = stored.ctxeval_runs(*GATE)
    assert (told.returncode, told.stderr) == (0, "")
    assert "\\u65e5\\u672c     context awareness" in told.stdout
    assert stored.ctxeval_runs("gate", "run.json", "--gate=context_awareness:0.99").returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and /dev/full of another kind")
@pytest.mark.parametrize(("bar", "code"), [("0.5", 0), ("0.99", 1)])
def test_a_reader_that_has_seen_enough_changes_no_exit_code(stored: Suite, bar: str, code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "gate", "run.json", f"--gate=context_awareness:{bar}", "-v"],
        cwd=stored.path, stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", [GATE, ("cassettes", "list", "-p", "pytest_ctxeval.plugin")], ids=" ".join)
def test_an_output_that_is_full_is_an_error_of_one_line(stored: Suite, arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=stored.path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (2, ["ctxeval: No space left on device"])
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_an_output_of_errors_that_is_full_changes_no_exit_code(stored: Suite) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "gate", "no.json", "--gate=unscored:0"], cwd=stored.path, stderr=full, check=False
        )
    assert done.returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of another kind")
def test_no_output_at_all_is_no_error(stored: Suite) -> None:
    command = ["sh", "-c", " ".join(["exec", *COMMAND, *GATE, ">&-"])]
    done = subprocess.run(command, cwd=stored.path, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_report_that_cannot_be_written_leaves_nothing_beside_it(stored: Suite) -> None:
    (stored.path / "new.json").mkdir()
    before = {path.name for path in stored.path.iterdir()}
    told = stored.ctxeval_runs("combine", "run.json", "--output=new.json")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("ctxeval combine: new.json: ")
    assert {path.name for path in stored.path.iterdir()} == before


def test_a_message_names_the_file_with_its_folder(stored: Suite) -> None:
    for folder in ("a", "b"):
        (stored.path / folder).mkdir()
        (stored.path / folder / "run.json").write_text((stored.path / "run.json").read_text())
    (stored.path / "b" / "run.json").write_text("{")
    told = stored.ctxeval_runs("combine", "a/run.json", "b/run.json", "--output=whole.json")
    assert (told.returncode, told.stderr.startswith(f"ctxeval combine: {Path('b/run.json')}, line 1: ")) == (2, True)
    assert stored.ctxeval_runs("gate", ".", "--gate=unscored:0").stderr.startswith("ctxeval gate: .: ")


def test_a_byte_order_mark_before_a_stored_run_is_no_fault(stored: Suite) -> None:
    (stored.path / "run.json").write_text((stored.path / "run.json").read_text(), encoding="utf-8-sig")
    assert stored.ctxeval_runs(*GATE).returncode == 0


def test_a_run_of_no_case_says_so(stored: Suite) -> None:
    stored.in_process("-k", "nothing", "--ctxeval-report=empty.json")
    told = stored.ctxeval_runs("combine", "empty.json", "--output=whole.json")
    assert (told.returncode, told.stdout) == (0, "judged no case\n")
