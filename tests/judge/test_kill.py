"""Killed while saving: the old file whole, or the new one whole (CASES D8)."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from pytest_ctxeval._judge.cassette.file import read_recording

WRITER = """
import sys
from pathlib import Path
from pytest_ctxeval._judge.cassette.file import Recording, write_recording
from pytest_ctxeval._judge.cassette.trim import Interaction

path = Path(sys.argv[1])
print("ready", flush=True)
for number in range(10_000):
    made = [
        Interaction(method="POST", uri="http://h/v1", body=f'{{"n": {number}}}', status=200, reason="OK", headers={}, answer="x" * 200_000)
    ]
    node = f"version {number}"
    write_recording(path, Recording(node=node, judge="m", client="c", complete=True, interactions=tuple(made)), shown="a.yaml")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("delay_ms", range(0, 60, 6))
def test_a_file_is_whole_whenever_its_writer_is_killed(tmp_path: Path, delay_ms: int) -> None:
    path = tmp_path / "a.yaml"
    writer = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITER), str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with writer.stdout:
        writer.stdout.readline()
        while not path.exists():
            time.sleep(0.001)
        time.sleep(delay_ms / 1000)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    found = read_recording(path, shown="a.yaml")
    assert found is not None
    assert len(found.interactions) == 1
    assert len(found.interactions[0].answer) == 200_000
    assert {file.suffix for file in tmp_path.iterdir()} <= {".yaml", ".tmp"}
