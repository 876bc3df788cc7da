"""What a miss says has changed: short, and the prompt before the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ctxeval._judge.cassette.file import Recording, write_recording
from pytest_ctxeval._judge.cassette.miss import miss_error
from pytest_ctxeval._judge.cassette.tape import Miss, Tape
from pytest_ctxeval._judge.cassette.trim import Interaction

URI = "https://api.example.com/v1/messages"
RULES, QUESTION = "Judge the answer.", "Is it open at 9?\nYes."
OLD, NEW = "langchain-anthropic 0.3.21", "langchain-anthropic 1.7.10"
SAME = f"the prompt is the same, the request is not ({OLD} -> 1.7.10)"

TOOL = {
    "name": "score",
    "input_schema": {"type": "object", "properties": {"score": {"type": "number", "description": "From 0 to 1."}}},
}
FORMAT = {"format": {"type": "json_schema", "schema": TOOL["input_schema"]}}


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def body(**settings: Any) -> dict[str, Any]:
    return {"model": "m", "system": RULES, "messages": [said("user", QUESTION)], **settings}


def told(tmp_path: Path, recorded: list[Any], asked: list[Any], *, client: str = NEW) -> list[str]:
    made = tuple(Interaction("POST", URI, json.dumps(each), 200, "OK", {}, "{}") for each in recorded)
    tape = Tape(tmp_path / "a.yaml", node="test_a.py::test", mode="none", shown="a.yaml")
    write_recording(tape.path, Recording("test_a.py::test", "m", OLD, complete=True, interactions=made), shown="a.yaml")
    misses = [Miss("POST", URI, each if isinstance(each, str) else json.dumps(each)) for each in asked]
    lines = str(miss_error(tape, misses, client=client)).split("\n\n")[1].splitlines()
    return [line.removeprefix("    ") for line in lines]


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        pytest.param(
            body(max_tokens=1024), body(max_tokens=64000), [SAME, "max_tokens: 1024 -> 64000"], id="a setting"
        ),
        pytest.param(
            body(tools=[TOOL]),
            body(output_config=FORMAT),
            [
                SAME,
                "output_config: nothing -> {'format': {'type': 'json_schema', 'schema': {'type': 'object', 'properties':...",
                "tools: [{'name': 'score', 'input_schema': {'type': 'object', 'properties': {'score':... -> nothing",
            ],
            id="a tool that has become a schema",
        ),
        pytest.param(
            body(tools=[TOOL]),
            body(tools=[TOOL, TOOL | {"name": "more"}]),
            [
                SAME,
                "tools[1]: nothing -> {'name': 'more', 'input_schema': {'type': 'object', 'properties': {'score': {...",
            ],
            id="one more tool",
        ),
        pytest.param(body(n=True), body(n=1), [SAME, "n: True -> 1"], id="true is not 1"),
        pytest.param(
            {"model": "m", "messages": [said("system", RULES), said("user", QUESTION)]},
            body(),
            [SAME, "messages[0].content: now at system", "messages[1].content: now at messages[0].content"],
            id="the system prompt elsewhere",
        ),
        pytest.param(
            body(),
            body(messages=[said("user", [{"type": "text", "text": QUESTION}])]),
            [SAME, "messages[0].content: now at messages[0].content[0].text"],
            id="a text in a block",
        ),
        pytest.param(
            {"model": "m", "messages": [said("system", RULES), said("user", QUESTION)]},
            body(messages=[said("user", "Is it open at 8?\nYes.")], stream=False),
            [
                "messages[0].content: now at system",
                "messages[1].content: now at messages[0].content",
                "  -Is it open at 9?",
                "  +Is it open at 8?",
                "stream: nothing -> False",
            ],
            id="elsewhere and another",
        ),
        pytest.param(
            {"messages": [said("system", RULES)]},
            {"messages": [said("developer", RULES)]},
            [SAME, "messages[0].role: 'system' -> 'developer'"],
            id="another role",
        ),
        pytest.param(
            {"messages": [said("user", "Hi"), said("assistant", "Hello")]},
            {"messages": [said("user", "Hello"), said("assistant", "Hi")]},
            ["messages[0].content:", "  -Hi", "  +Hello", "messages[1].content:", "  -Hello", "  +Hi"],
            id="the same words by others",
        ),
        pytest.param(
            body(),
            body(messages=[said("user", QUESTION), said("assistant", "Well.")]),
            ["messages[1]: nothing -> {'role': 'assistant', 'content': 'Well.'}"],
            id="a message more is another prompt",
        ),
        pytest.param(
            {"query": "open at nine", "limit": 5}, {"query": "open at nine", "limit": 6}, [SAME, "limit: 5 -> 6"],
            id="no chat",
        ),
        pytest.param(
            {"query": "open at nine"}, {"query": "open at ten"}, ["query:", "  -open at nine", "  +open at ten"],
            id="no chat, another text",
        ),
        pytest.param(
            body(), ["a"], ["body: {'model': 'm', 'system': 'Judge the answer.', 'messages': [{'role': 'user', '... -> ['a']"],
            id="no object",
        ),
        pytest.param(
            {f"s{number}": number for number in range(9)}, {f"s{number}": -1 for number in range(9)},
            [SAME, *(f"s{number}: {number} -> -1" for number in range(6)), "and 3 more"],
            id="many",
        ),
    ],
)  # fmt: skip
def test_what_has_changed(tmp_path: Path, before: Any, now: Any, lines: list[str]) -> None:
    assert told(tmp_path, [before], [now]) == lines


def tape_of(path: Path, *made: Interaction) -> Tape:
    write_recording(path, Recording("test_a.py::test", "m", OLD, complete=True, interactions=made), shown="a.yaml")
    return Tape(path, node="test_a.py::test", mode="none", shown="a.yaml")


@pytest.mark.parametrize(("recorded", "count"), [(1, "1 sample"), (2, "2 samples")])
def test_a_sample_that_is_missing_is_not_called_stale(tmp_path: Path, recorded: int, count: str) -> None:
    asked = json.dumps(body())
    made = [Interaction("POST", URI, asked, 200, "OK", {}, "{}", sample=number) for number in range(recorded)]
    other = Interaction("POST", URI, json.dumps(body(seed=1)), 200, "OK", {}, "{}", sample=7)
    error = miss_error(tape_of(tmp_path / "a.yaml", *made, other), [Miss("POST", URI, asked)])
    assert str(error) == (
        f"not recorded yet: the cassette a.yaml holds {count} of this request, and more are asked for (samples= of the "
        "marker, or --ctxeval-samples); what is there stays, and the others are recorded with\n\n"
        "    pytest test_a.py::test --ctxeval-record=new_episodes\n\n"
        "and with --ctxeval-samples, where it was given now"
    )


def test_a_request_to_one_more_server_of_a_host_is_stale(tmp_path: Path) -> None:
    asked = json.dumps(body())
    made = [Interaction("POST", f"http://a.example:{port}/v1", asked, 200, "OK", {}, "{}") for port in (1, 2)]
    error = miss_error(tape_of(tmp_path / "a.yaml", *made), [Miss("POST", "http://a.example:3/v1", asked)])
    assert str(error).startswith(
        "stale: the cassette a.yaml holds this request, asked of other servers of that host: http://a.example:1, "
        "http://a.example:2\n\nrecord this one test with"
    )


def test_a_long_change_of_a_text_is_cut(tmp_path: Path) -> None:
    longer = "\n".join([QUESTION, *map(str, range(9))])
    lines = told(tmp_path, [body()], [body(messages=[said("user", longer)])])
    assert lines == ["messages[0].content:", *(f"  +{number}" for number in range(6)), "  ... and 3 more lines"]


def test_a_body_that_is_no_json_is_told_as_it_is(tmp_path: Path) -> None:
    assert told(tmp_path, [{}], ["plain"]) == [SAME, "body: nothing -> 'plain'"]


@pytest.mark.parametrize(
    ("client", "versions"),
    [
        (OLD, ""),
        ("", ""),
        (NEW, f" ({OLD} -> 1.7.10)"),
        ("langchain-openai 1.7.4", f" ({OLD} -> langchain-openai 1.7.4)"),
        ("mine", f" ({OLD} -> mine)"),
    ],
)
def test_the_versions_are_told_where_they_differ(tmp_path: Path, client: str, versions: str) -> None:
    lines = told(tmp_path, [body(seed=1)], [body(seed=2)], client=client)
    assert lines == [f"the prompt is the same, the request is not{versions}", "seed: 1 -> 2"]


def test_told_is_the_form_and_the_recording_that_are_nearest_to_each_other(tmp_path: Path) -> None:
    asked = [body(output_config=FORMAT, max_tokens=64000), body(tools=[TOOL], max_tokens=64000), body(max_tokens=64000)]
    other = body(messages=[said("user", "Something else altogether.")], output_config=FORMAT, max_tokens=64000)
    recorded = [other, body(tools=[TOOL], max_tokens=1024)]
    assert told(tmp_path, recorded, asked) == [SAME, "max_tokens: 1024 -> 64000"]


def test_a_prompt_counts_for_more_than_all_that_stands_around_it(tmp_path: Path) -> None:
    as_text = body(messages=[said("user", f"{QUESTION}\nReply between marks.")])
    lines = told(tmp_path, [as_text | {"seed": 1, "n": 1, "stop": None}], [body(), as_text])
    assert lines == [SAME, "n: 1 -> nothing", "seed: 1 -> nothing", "stop: None -> nothing"]


LONG = "We are open every day of the week, and on most holidays, as you can see at our door and on our page. " * 3


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        (f"{LONG}From 9.", f"{LONG}From 8.", [f"-...{LONG[-35:]}From 9.", f"+...{LONG[-35:]}From 8."]),
        ("From 9.", "From 9. ", ["-'From 9.'", "+'From 9. '"]),
        ("from  9", "from 9", ["-'from  9'", "+'from 9'"]),
        ("at 9\r\nor 10", "at 9\nor 10", ["-'at 9\\r'", "+'at 9'"]),
        ("Caf\u00e9 at 9", "Cafe\u0301 at 9", ["-'Caf\\xe9 at 9'", "+'Cafe\\u0301 at 9'"]),
        ("at 9", "at\u200b 9", ["-'at 9'", "+'at\\u200b 9'"]),
        (f"{LONG}at 9", f"{LONG}at 9 ", [f"-...{f'{LONG[-36:]}at 9'!r}", f"+...{f'{LONG[-36:]}at 9 '!r}"]),
        ("a b\n-- 9\nc d", "a b\nc d", ["--- 9"]),
        ("a b\nc d", "a b\n++ 9\nc d", ["+++ 9"]),
        ("at 9 or\nat 10", "at 8 or", ["-at 9 or", "-at 10", "+at 8 or"]),
    ],
    ids=[
        "far to the right", "a space at the end", "two spaces", "line ends", "a letter in two parts", "no width",
        "far to the right, a space", "a line that begins as a diff does", "another one", "a line less",
    ],
)  # fmt: skip
def test_what_has_changed_in_a_text_is_seen(tmp_path: Path, before: str, now: str, lines: list[str]) -> None:
    shown = told(tmp_path, [body(messages=[said("user", before)])], [body(messages=[said("user", now)])], client=OLD)
    assert shown == ["messages[0].content:", *(f"  {line}" for line in lines)]
