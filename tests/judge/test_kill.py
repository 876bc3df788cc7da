"""Killed while saving: the old file whole, or the new one whole (CASES D8)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 200

# Each child writes versions of a cassette until it is killed, at a moment that the seed decides. It writes texts that
# were made before (`_replace` is what writes), so that the kills fall on the writing and not on the making of YAML.
DRIVER = """
import json, os, random, signal, sys, time
from pathlib import Path
from pytest_ctxeval._judge.cassette import file, shelf
from pytest_ctxeval._judge.cassette.trim import Interaction

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
made = [
    file.Recording(node=f"version {number}", judge="m", client="c", complete=True, interactions=(
        Interaction(method="POST", uri="http://h/v1", body="{}", status=200, reason="OK", headers={}, answer="x" * 500_000),
    ))
    for number in range(2)
]
texts = {each.node: file.dump(each) for each in made}
path, moments = folder / "a.yaml", random.Random(7)
file.write_recording(path, made[0], shown="a.yaml")
seen = {"version 0": 0, "version 1": 0, "left over": 0}
for _ in range(kills):
    child = os.fork()
    if not child:
        while True:
            for text in texts.values():
                file._replace(path, text)
    time.sleep(moments.uniform(0.001, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    text = path.read_text(encoding="utf-8")
    seen[next(node for node, whole in texts.items() if whole == text)] += 1
    for each in shelf.left_overs(folder):
        seen["left over"] += 1
        each.unlink()
    assert [each.name for each in folder.iterdir()] == ["a.yaml"]
print(json.dumps(seen))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_file_is_whole_whenever_its_writer_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DRIVER, str(tmp_path), str(KILLS)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    seen = json.loads(run.stdout)
    assert seen["version 0"] + seen["version 1"] == KILLS
    assert min(seen.values()) > 0, seen  # both versions were met, and writers were killed in the midst of it
