"""Cassettes as files: what is written can be read, by us and by plain vcrpy, and what is damaged is said to be."""

import os
import stat
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vcr.persisters.filesystem import FilesystemPersister
from vcr.serializers import yamlserializer

from pytest_ctxeval import CassetteError, CassetteReadError
from pytest_ctxeval._judge.cassette.file import Recording, dump, read_recording, write_recording
from pytest_ctxeval._judge.cassette.trim import Interaction

ANSWER = '{\n  "choices": [],\n  "said": "naïve ✓ 😀"\n}'


def interaction(
    body: str | bytes = '{\n  "model": "m"\n}', answer: str | bytes = ANSWER, sample: int = 0
) -> Interaction:
    return Interaction(
        method="POST",
        uri="http://127.0.0.1:1/v1/chat/completions",
        body=body,
        status=200,
        reason="OK",
        headers={"content-type": ["application/json"]},
        answer=answer,
        sample=sample,
    )


def recording(*interactions: Interaction, complete: bool = True) -> Recording:
    return Recording(node="test_a.py::test", judge="m", client="c 1", complete=complete, interactions=interactions)


def test_a_cassette_reads_like_this(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "one.yaml"
    write_recording(path, recording(interaction()), shown="one.yaml")
    assert (
        path.read_text(encoding="utf-8")
        == """\
version: 1
ctxeval:
  node: test_a.py::test
  judge: m
  client: c 1
  complete: true
  interactions: 1
interactions:
- request:
    method: POST
    uri: http://127.0.0.1:1/v1/chat/completions
    headers:
      content-type:
      - application/json
    body: |-
      {
        "model": "m"
      }
  response:
    status:
      code: 200
      message: OK
    headers:
      content-type:
      - application/json
    body:
      string: |-
        {
          "choices": [],
          "said": "naïve ✓ 😀"
        }
  ctxeval:
    sample: 0
"""
    )
    assert [file.name for file in path.parent.iterdir()] == ["one.yaml"]


def test_plain_vcrpy_loads_it(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    write_recording(path, recording(interaction(), interaction(sample=1)), shown="one.yaml")
    requests, responses, *_ = FilesystemPersister.load_cassette(path, yamlserializer)
    assert [request.body for request in requests] == [b'{\n  "model": "m"\n}'] * 2
    assert [response["body"]["string"] for response in responses] == [ANSWER.encode()] * 2


texts = st.text(st.characters(exclude_categories=["Cs"]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(body=texts | st.binary(), answer=texts | st.binary(), node=texts)
def test_any_text_and_any_bytes_come_back_as_they_were(
    tmp_path: Path, body: str | bytes, answer: str | bytes, node: str
) -> None:
    made = Recording(node=node, judge="m", client="c", complete=True, interactions=(interaction(body, answer),))
    path = tmp_path / "any.yaml"
    write_recording(path, made, shown="any.yaml")
    assert read_recording(path, shown="any.yaml") == made


@pytest.mark.parametrize(
    "text",
    [
        "a\u2028b\nc",
        "a\x85b\nc",
        "a\rb\nc",
        "a\r\nb",
        " lead\ntrail \n",
        "\n\n",
        "\ttab\n",
        "# x\n",
        "---\n...\n",
        "- a\n- b",
        "😀\n",
        "\x00\n",
        "\ufeff\n",
    ],
)
def test_texts_that_yaml_finds_hard_come_back_as_they_were(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hard.yaml"
    made = recording(interaction(text, text))
    write_recording(path, made, shown="hard.yaml")
    assert read_recording(path, shown="hard.yaml") == made
    assert yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader) == yaml.load(
        path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    )


def test_a_file_with_windows_line_ends_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    made = recording(interaction(answer="a\r\nb\n"))
    write_recording(path, made, shown="one.yaml")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_recording(path, shown="one.yaml") == made


def test_no_file_is_no_recording(tmp_path: Path) -> None:
    assert read_recording(tmp_path / "none.yaml", shown="none.yaml") is None


def _line(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


GOOD = dump(recording(interaction(), interaction('{"b": 1}')))
FIRST = _line(GOOD, "- request:")
SECOND = FIRST + GOOD[GOOD.index("- request:") : GOOD.rindex("- request:")].count("\n")


def _second(text: str, before: str, now: str) -> bytes:
    """The text with a change in its second interaction."""
    at = text.rindex("- request:")
    return f"{text[:at]}{text[at:].replace(before, now)}".encode()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "line 1: it is empty"),
        (b" \n\n", "line 1: it is empty"),
        (b"version: 1\ninteractions: null\n", "line 1: 'ctxeval' is missing"),
        (b"- 1\n- 2\n", "line 1: it has not the shape of a cassette"),
        (b"just text", "line 1: it has not the shape of a cassette"),
        (GOOD.replace("✓", "é").encode("latin-1", "replace"), f"line {_line(GOOD, 'naïve')}: it is not UTF-8"),
        (b"version: 1\n<<<<<<< ours\nctxeval: 1\n=======\n>>>>>>> theirs\n", "line 2: it holds the marks of a merge conflict"),
        (GOOD.replace("version: 1", "version: [1").encode(), "line 2: it is not YAML that can be read: did not find expected ',' or ']'"),
        (b"version: 1\nx: !!python/object/apply:os.system ['echo hacked > hacked']\n", "line 2: it is not YAML that can be read: python/object/apply:os.system has no place in a cassette"),
        (b"a: &a [x, x]\nb: &b [*a, *a]\nversion: 1\n", "line 1: it is not YAML that can be read: an alias has no place in a cassette"),
        (GOOD.replace("version: 1", "version: 1\nversion: 1").encode(), "line 1: it is not YAML that can be read: a name that stands twice has no place in a cassette"),
        (b"? [a]\n: 1\n", "line 1: it is not YAML that can be read: unhashable type: 'list'"),
        (GOOD.replace("version: 1", "version: !!set {1}").encode(), "line 1: it is not YAML that can be read: set has no place in a cassette"),
        (GOOD.replace("interactions: 2", "interactions: null").encode(), f"line {GOOD.count(chr(10))}: it should hold None interactions and holds 2: it was cut short"),
        (GOOD.replace("code: 200", "code: true").encode(), f"line {FIRST}: it has not the shape of a cassette"),
        (GOOD.replace("sample: 0", "sample: zero").encode(), f"line {FIRST}: it has not the shape of a cassette"),
        (GOOD.replace("    method: POST\n", "", 1).encode(), f"line {FIRST}: 'method' is missing"),
        (_second(GOOD, "    method: POST\n", ""), f"line {SECOND}: 'method' is missing"),
        (_second(GOOD, "code: 200", f"code: {'9' * 5_000}"), f"line {_line(_second(GOOD, 'code: 200', 'cod').decode(), 'cod' + chr(10))}: it is not YAML that can be read: '99999999999999999999' is no int"),
        (_second(GOOD, "code: 200", "code: 3:20"), f"line {_line(_second(GOOD, 'code: 200', 'cod').decode(), 'cod' + chr(10))}: it is not YAML that can be read: '3:20' is no int"),
        (_second(GOOD, "message: OK", "message: !!binary '%%%'"), f"line {_line(_second(GOOD, 'message: OK', 'mes').decode(), 'mes' + chr(10))}: it is not YAML that can be read: '%%%' is no binary"),
        (_second(GOOD, '{"b": 1}', '{"model": "m"}'), f"line {SECOND}: it holds two answers to one request"),
        (GOOD.replace("version: 1", "version: 2").encode(), "line 1: its version is '2' and not 1"),
        (GOOD.replace("version: 1", "").encode(), "line 1: 'version' is missing"),
        (GOOD[: GOOD.index("interactions:\n")].replace("interactions: 2", "interactions: 0").encode() + b"interactions: []\n", "line 1: it holds no interactions"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_and_left_as_it_is(
    tmp_path: Path, content: bytes, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(CassetteReadError) as refused:
        read_recording(path, shown="cassettes/bad.yaml")
    assert str(refused.value) == (
        f"cassettes/bad.yaml, {told}; restore the file from version control, or delete it and record again with "
        "--ctxeval-record=all"
    )
    assert path.read_bytes() == content
    assert not Path("hacked").exists()


@pytest.mark.parametrize("lines", range(1, GOOD.count("\n")))
def test_a_file_cut_at_any_line_is_damaged(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "cut.yaml"
    path.write_text("".join(GOOD.splitlines(keepends=True)[:lines]), encoding="utf-8")
    with pytest.raises(CassetteReadError):
        read_recording(path, shown="cut.yaml")


def test_a_read_only_folder_is_told_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.yaml"
    write_recording(path, recording(interaction()), shown="one.yaml")
    before = path.read_bytes()

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(CassetteError) as refused:
        write_recording(path, recording(interaction("{}")), shown="cassettes/one.yaml")
    assert str(refused.value) == (
        "cassettes/one.yaml: the recording cannot be written: Permission denied; what stood there before is untouched"
    )
    assert path.read_bytes() == before


def test_a_text_whose_test_has_ended_is_the_one_that_would_be_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    early = replace(recording(interaction()), node="test_a.py::test[\n  complete: false\n]", complete=False)
    last = write_recording(path, early, shown="one.yaml")
    write_recording(path, replace(early, complete=True), shown="one.yaml", last=last)
    assert path.read_text(encoding="utf-8") == dump(replace(early, complete=True))
    other = replace(early, complete=True, interactions=(interaction("{}"),))
    write_recording(path, other, shown="one.yaml", last=last)
    assert read_recording(path, shown="one.yaml") == other


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.yaml"
    write_recording(path, recording(interaction()), shown="one.yaml")
    before = path.read_bytes()

    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(CassetteError, match="No space left on device"):
        write_recording(path, recording(interaction("{}")), shown="one.yaml")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["one.yaml"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
def test_a_file_can_be_read_by_others_as_any_new_file_can(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_recording(tmp_path / "one.yaml", recording(interaction()), shown="one.yaml")
    assert stat.S_IMODE((tmp_path / "one.yaml").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


KEY = "planted-secret-0123456789"


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (interaction(body=f'{{\n  "a": 1,\n  "prompt": "my key is {KEY}"\n}}'), "interaction 2, request, line 3: the value of $PLANTED_API_KEY stands there"),
        (interaction(answer=f'{{"said": "{KEY}"}}'), "interaction 2, answer, line 1: the value of $PLANTED_API_KEY stands there"),
        (interaction(answer=KEY.encode()), "interaction 2, answer, line 1: the value of $PLANTED_API_KEY stands there"),
        (interaction(answer='{"said": "pl\\u0061nted-secret-\\u0030123456789"}'), "interaction 2, answer, line 1: the value of $PLANTED_API_KEY stands there"),
        (replace(interaction(), reason=f"OK {KEY}"), "interaction 2, answer's status, line 1: the value of $PLANTED_API_KEY stands there"),
        (interaction(body="sk-proj-abcdefghijklmnopqrstuvwxyz0123"), "interaction 2, request, line 1: something shaped like a key stands there"),
    ],
)  # fmt: skip
def test_a_secret_refuses_the_write_and_is_not_told(
    tmp_path: Path, made: Interaction, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", KEY)
    path = tmp_path / "one.yaml"
    with pytest.raises(CassetteError) as refused:
        write_recording(path, recording(interaction("{}", "{}"), made), shown="one.yaml")
    assert str(refused.value) == (f"one.yaml: {where}, so nothing is written; take it out, and record again")
    assert not list(tmp_path.iterdir())


def test_a_key_with_a_slash_is_found_as_servers_escape_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", "planted/secret+0123456789")
    answers = (r'{"a": "planted\/secret+0123456789"}', r'{"a": "planted\/secret\u002B0123456789"}')
    for number, answer in enumerate(answers):
        with pytest.raises(CassetteError, match=r"the value of \$PLANTED_API_KEY stands there"):
            write_recording(tmp_path / f"{number}.yaml", recording(interaction(answer=answer)), shown="one.yaml")
    assert not list(tmp_path.iterdir())


def test_reading_and_writing_warn_of_nothing(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_recording(tmp_path / "one.yaml", recording(interaction()), shown="one.yaml")
        assert read_recording(tmp_path / "one.yaml", shown="one.yaml") is not None


@pytest.mark.parametrize(
    ("field", "told"), [("node", "id of the test"), ("judge", "name of the judge")], ids=["node", "judge"]
)
def test_a_secret_in_the_name_of_a_test_or_a_judge_refuses_the_write(tmp_path: Path, field: str, told: str) -> None:
    key = "sk-" + "Ab1" * 10
    made = replace(recording(interaction()), **{field: f"test_a.py::test[{key}]"})  # type: ignore[arg-type]  # both are str
    with pytest.raises(CassetteError) as refused:
        write_recording(tmp_path / "a.yaml", made, shown=f"cassettes/{key}.yaml")
    assert str(refused.value) == (
        f"cassettes/[hidden].yaml: something shaped like a key stands in the {told}, so nothing is written; take it out, "
        "and record again"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("status", "damaged"),
    [
        *(("message: OK", f"message: {message}") for message in ("D'accord é", "[1]", "{a: b}")),
        *(("code: 200", f"code: {code}") for code in (-1, 0, 99, 600, 99999)),
    ],
)
def test_a_status_that_no_server_can_have_sent_is_damage(tmp_path: Path, status: str, damaged: str) -> None:
    path = tmp_path / "a.yaml"
    write_recording(path, recording(interaction()), shown="a.yaml")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(status, damaged), encoding="utf-8")
    with pytest.raises(CassetteReadError, match=f"line {_line(text, '- request')}: it has not the shape of a cassette"):
        read_recording(path, shown="a.yaml")
