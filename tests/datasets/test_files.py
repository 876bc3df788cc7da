"""Datasets from files: what arrives, and what is said about a file that is wrong."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ctxeval import Batch, ConfigError, Dataset
from pytest_ctxeval._datasets import yaml_rows
from pytest_ctxeval._datasets.csv_rows import JSON_COLUMNS
from pytest_ctxeval._datasets.load import load

Rows = list[dict[str, Any]]
CONTEXT = "Returns within 30 days. Support hours: Mon-Fri 9am-5pm EST."
ROW: dict[str, Any] = {"qa_id": "q1", "query": "When?", "context": CONTEXT}
ROW_JSON = json.dumps(ROW)
HARD_TEXTS = {
    "pipes, semicolons, commas": "a|b;c,d\te",
    "quotes": '"double" \'single\' `back` \\ "',
    "newlines": "\none\n\ntwo\r\nthree\n",
    "a lone carriage return": "one\rtwo\r",
    "line separators": "a\u2028b \u2029 c\x85d\x0b\x0c\x1c\x1d\x1ee",
    "NUL and controls": "a\x00b\x01\x7f\x1b[31m",
    "emoji": "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f",
    "right to left": "\u0645\u0631\u062d\u0628\u0627 \u202e\u05e9\u05dc\u05d5\u05dd\u202c",
    "a byte order mark inside": "\ufeffa\ufeffb\ufffe\uffff",
    "no text to YAML": "yes",
    "a number": "1e5",
    "a date": "2024-01-01",
    "null": "null",
    "spaces around": "  a  ",
    "braces": "{0.__class__} {{x}} %s ${y} [1, 2",
    "a comment": "# no comment: - x",
    "long": "long \u2028 \U0001f600 " * 10_000,
}


def to_jsonl(rows: Rows) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def to_jsonl_unescaped(rows: Rows) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows)


def to_json(rows: Rows) -> str:
    return json.dumps(rows, indent=1, ensure_ascii=False)


def to_yaml(rows: Rows) -> str:
    return yaml.safe_dump(rows, sort_keys=False)


def to_csv(rows: Rows) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names, restval="")
    writer.writeheader()
    writer.writerows(
        {name: json.dumps(value) if isinstance(value, list | dict) else value for name, value in row.items()}
        for row in rows
    )
    return text.getvalue()


FORMATS: Mapping[str, Callable[[Rows], str]] = {
    "rows.jsonl": to_jsonl,
    "rows.ndjson": to_jsonl_unescaped,
    "rows.json": to_json,
    "rows.yaml": to_yaml,
    "rows.yml": to_yaml,
    "rows.csv": to_csv,
}
each_format = pytest.mark.parametrize("name", FORMATS)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def loaded(folder: Path, name: str, content: str | bytes, **defaults: str) -> list[Dataset]:
    write(folder, name, content)
    return load(name, base=folder, defaults=defaults)


def failure(folder: Path, name: str, content: str | bytes, **defaults: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, name, content, **defaults)
    return str(caught.value)


# What arrives


@each_format
def test_the_same_rows_give_the_same_datasets_in_every_format(tmp_path: Path, name: str) -> None:
    rows: Rows = [
        {
            "qa_id": "q1", "query": "Returns?", "assistant": "30 days.", "ground_truth_assistant": "30 days.",
            "observation": "polite", "retrieval_context": ["chunk, 1", 'chunk "2"\n', ""], "weight": 0.5,
            "metadata": {"tags": ["a"], "n": 1, "none": None}, "logprobs": {"x": -0.5}, "agentic": {"tool": {"y": True}},
            "ground_truth_agentic": {"z": []}, "session_id": "s1", "assistant_id": "bot", "context": CONTEXT,
            "language": "spanish",
        },
        {"qa_id": "q1", "query": "Hours?", "session_id": "s2", "context": "Other."},
        {"qa_id": "q2", "query": "Shipping?", "session_id": "s1", "retrieval_context": []},
        {"qa_id": "q3", "query": "Repeated?", "session_id": "s1", "context": CONTEXT, "assistant_id": "bot"},
    ]  # fmt: skip
    session = {"session_id", "assistant_id", "context", "language"}
    batches = [Batch(**{field: value for field, value in row.items() if field not in session}) for row in rows]
    assert loaded(tmp_path, name, FORMATS[name](rows)) == [
        Dataset(
            session_id="s1", assistant_id="bot", context=CONTEXT, language="spanish",
            conversation=[batches[0], batches[2], batches[3]],
        ),
        Dataset(session_id="s2", assistant_id="assistant", context="Other.", conversation=[batches[1]]),
    ]  # fmt: skip


@each_format
@pytest.mark.parametrize("text", HARD_TEXTS.values(), ids=HARD_TEXTS)
def test_hard_text_arrives_unchanged(tmp_path: Path, name: str, text: str) -> None:
    row = {"qa_id": text, "query": text, "context": text, "retrieval_context": [text], "metadata": {text: text}}
    (dataset,) = loaded(tmp_path, name, FORMATS[name]([row]))
    (batch,) = dataset.conversation
    assert (dataset.context, batch.qa_id, batch.query) == (text, text, text)
    assert (batch.retrieval_context, batch.metadata) == ([text], {text: text})


@each_format
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, unique=True))
def test_any_text_arrives_unchanged(tmp_path: Path, name: str, texts: list[str]) -> None:
    rows = [{"qa_id": text, "query": text, "context": texts[0], "retrieval_context": texts} for text in texts]
    (dataset,) = loaded(tmp_path, name, FORMATS[name](rows))
    assert dataset.context == texts[0]
    assert [batch.qa_id for batch in dataset.conversation] == texts
    assert [batch.query for batch in dataset.conversation] == texts
    assert all(batch.retrieval_context == texts for batch in dataset.conversation)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x85"), min_size=1))
def test_yaml_written_with_its_characters_unescaped_arrives_unchanged(tmp_path: Path, text: str) -> None:
    content = yaml.safe_dump([{**ROW, "query": text}], allow_unicode=True)
    assert loaded(tmp_path, "rows.yaml", content)[0].conversation[0].query == text


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(st.sampled_from("a \t\r\n\x85\u2028\u2029\ufeff\x00\x7f\xa0\U0001f600'\"\\:#-|>{[&*!%@`,?")))
def test_text_that_yaml_cannot_keep_is_refused_and_never_changed(tmp_path: Path, text: str) -> None:
    content = json.dumps([{**ROW, "query": text}], ensure_ascii=False)
    if set(text) & set("\x7f\x85\u2028\u2029"):
        assert "is not kept by YAML as it stands" in failure(tmp_path, "rows.yaml", content)
    else:
        assert loaded(tmp_path, "rows.yaml", content)[0].conversation[0].query == text


@each_format
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, name: str, encoding: str) -> None:
    assert loaded(tmp_path, name, FORMATS[name]([ROW]).encode(encoding))[0].conversation[0].qa_id == "q1"


@each_format
def test_line_ends_of_windows_are_line_ends(tmp_path: Path, name: str) -> None:
    text = FORMATS[name]([ROW, {"qa_id": "q2", "query": "Who?"}]).replace("\r\n", "\n").replace("\n", "\r\n")
    assert [batch.query for batch in loaded(tmp_path, name, text)[0].conversation] == ["When?", "Who?"]


@each_format
def test_a_file_without_rows_is_no_dataset(tmp_path: Path, name: str) -> None:
    assert loaded(tmp_path, name, "") == []
    assert loaded(tmp_path, name, "\ufeff \r\n\n") == []
    assert loaded(tmp_path, name, FORMATS[name]([])) == []


@pytest.mark.parametrize(
    ("name", "content"), [("rows.yaml", "# nothing yet\n"), ("rows.csv", "qa_id,query\r\n"), ("rows.csv", "qa_id\n,\n")]
)
def test_a_file_with_a_comment_or_a_header_alone_is_no_dataset(tmp_path: Path, name: str, content: str) -> None:
    assert loaded(tmp_path, name, content) == []


@each_format
def test_the_session_is_named_by_the_file_where_nothing_else_names_it(tmp_path: Path, name: str) -> None:
    (dataset,) = loaded(tmp_path, f"data/{name}", FORMATS[name]([ROW]))
    assert (dataset.session_id, dataset.assistant_id, dataset.language) == ("rows", "assistant", "english")


@each_format
def test_defaults_hold_where_a_row_says_nothing(tmp_path: Path, name: str) -> None:
    rows = [{"qa_id": "q1", "query": "When?"}, {"qa_id": "q2", "query": "Who?", "session_id": "own", "context": "Own."}]
    shop, own = loaded(
        tmp_path, name, FORMATS[name](rows), session_id="shop", assistant_id="bot", context=CONTEXT, language="german"
    )
    assert (shop.session_id, shop.context, own.session_id, own.context) == ("shop", CONTEXT, "own", "Own.")
    assert {(each.assistant_id, each.language) for each in (shop, own)} == {("bot", "german")}


WHOLE = {
    "session_id": "s",
    "assistant_id": "bot",
    "context": CONTEXT,
    "conversation": [{"qa_id": "q1", "query": "Eh?"}],
}


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.yaml"])
def test_a_row_may_be_a_whole_dataset(tmp_path: Path, name: str) -> None:
    rows: Rows = [WHOLE, {**ROW, "session_id": "flat"}, {**WHOLE, "session_id": "t", "conversation": []}]
    assert loaded(tmp_path, name, FORMATS[name](rows)) == [
        Dataset.model_validate(WHOLE),
        Dataset(session_id="flat", assistant_id="assistant", context=CONTEXT, conversation=[Batch(qa_id="q1", query="When?")]),
        Dataset(session_id="t", assistant_id="bot", context=CONTEXT, conversation=[]),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "dump"), [("rows.json", json.dumps), ("rows.yaml", yaml.safe_dump)])
def test_a_file_may_be_one_dataset(tmp_path: Path, name: str, dump: Callable[[Any], str]) -> None:
    assert loaded(tmp_path, name, dump(WHOLE)) == [Dataset.model_validate(WHOLE)]


def test_defaults_fill_what_a_whole_dataset_leaves_out(tmp_path: Path) -> None:
    (dataset,) = loaded(
        tmp_path, "rows.json", '{"conversation": []}', session_id="s", assistant_id="bot", context=CONTEXT
    )
    assert dataset == Dataset(session_id="s", assistant_id="bot", context=CONTEXT, conversation=[])


def test_a_whole_dataset_takes_no_session_from_the_file_name(tmp_path: Path) -> None:
    assert failure(tmp_path, "rows.json", '[\n{"context": "c", "conversation": []}]') == (
        "rows.json, item 1, line 2: field 'session_id' is missing\n"
        "rows.json, item 1, line 2: field 'assistant_id' is missing"
    )


def test_pieces_of_one_session_in_several_files_become_one_dataset(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", to_jsonl([{**ROW, "session_id": "s"}]))
    write(tmp_path, "b.csv", to_csv([{"qa_id": "q2", "query": "Who?", "session_id": "s"}]))
    other = Dataset(
        session_id="s", assistant_id="assistant", context=CONTEXT, conversation=[Batch(qa_id="q3", query="")]
    )
    (dataset,) = load(["a.jsonl", Path("b.csv"), other], base=tmp_path, defaults={})
    assert [batch.qa_id for batch in dataset.conversation] == ["q1", "q2", "q3"]


def test_anchors_and_merges_of_yaml_are_followed(tmp_path: Path) -> None:
    content = (
        "- &first {qa_id: q1, query: When?, context: &policy Closed on Sundays., metadata: {<<: {a: 1}, a: 2}}\n"
        "- {<<: *first, qa_id: q2, context: *policy}\n"
        "- {<<: [*first], qa_id: q3}\n"
    )
    (dataset,) = loaded(tmp_path, "rows.yaml", content)
    assert dataset.context == "Closed on Sundays."
    assert [(batch.qa_id, batch.query, batch.metadata) for batch in dataset.conversation] == [
        (qa_id, "When?", {"a": 2}) for qa_id in ("q1", "q2", "q3")
    ]


def test_a_csv_whose_lines_end_in_carriage_returns_alone_is_read(tmp_path: Path) -> None:
    assert [batch.qa_id for batch in loaded(tmp_path, "rows.csv", "qa_id,query,context\rq1,a,c\rq2,b,\r")[0].conversation] == [
        "q1", "q2",
    ]  # fmt: skip


def test_reading_a_csv_leaves_the_limit_of_the_csv_module_as_it_was(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    loaded(tmp_path, "rows.csv", to_csv([{**ROW, "query": "x" * (before + 1)}]))
    failure(tmp_path, "rows.csv", 'qa_id\n"')
    assert csv.field_size_limit() == before


def test_the_columns_of_a_csv_that_hold_json_are_the_lists_and_dicts_of_a_batch() -> None:
    texts = {"qa_id", "query", "assistant", "ground_truth_assistant", "observation"}
    assert Batch.model_fields.keys() - texts - {"weight"} == JSON_COLUMNS


def test_an_absolute_path_and_capitals_in_a_suffix_are_fine(tmp_path: Path) -> None:
    path = write(tmp_path, "ROWS.JSONL", to_jsonl([ROW]))
    assert load(path, base=tmp_path / "elsewhere", defaults={})[0].session_id == "ROWS"


# What is said about rows that are wrong

PLACES = {
    "rows.jsonl": "rows.jsonl, line {item}",
    "rows.json": "rows.json, item {item}, line {line}",
    "rows.yaml": "rows.yaml, item {item}, line {item}",
    "rows.csv": "rows.csv, line {after_header}",
}
each_place = pytest.mark.parametrize("name", PLACES)


def place(name: str, item: int) -> str:
    return PLACES[name].format(item=item, line=item + 1, after_header=item + 1)


def content_of(name: str, rows: Rows) -> str:
    """The rows, one a line."""
    if name == "rows.json":
        return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"
    if name == "rows.yaml":
        return "".join(f"- {json.dumps(row)}\n" for row in rows)
    return FORMATS[name](rows)


@each_place
def test_an_unknown_field_is_named_with_the_nearest_known_one(tmp_path: Path, name: str) -> None:
    first = "rows.csv, line 1" if name == "rows.csv" else place(name, 2)
    assert failure(tmp_path, name, content_of(name, [ROW, {"qa_id": "q2", "query": "x", "asistant": "y"}])) == (
        f"{first}: unknown field 'asistant'; did you mean 'assistant'?"
    )


@each_place
def test_a_missing_field_is_named(tmp_path: Path, name: str) -> None:
    assert (
        failure(tmp_path, name, content_of(name, [ROW, {"qa_id": "q2"}]))
        == f"{place(name, 2)}: field 'query' is missing"
    )


@each_place
def test_every_wrong_field_of_a_row_is_told_at_once(tmp_path: Path, name: str) -> None:
    row = {**ROW, "qa_id": "q2", "retrieval_context": {"a": 1}, "weight": -1.0, "metadata": [1]}
    assert failure(tmp_path, name, content_of(name, [ROW, row])) == (
        f"{place(name, 2)}: field 'retrieval_context': input should be a valid list, not {{'a': 1}}\n"
        f"{place(name, 2)}: field 'weight': input should be greater than or equal to 0, not -1.0\n"
        f"{place(name, 2)}: field 'metadata': input should be a valid dictionary, not [1]"
    )


@each_place
def test_the_first_row_of_a_session_gives_its_context(tmp_path: Path, name: str) -> None:
    rows = [ROW, {"qa_id": "q2", "query": "x", "session_id": "other"}]
    assert failure(tmp_path, name, content_of(name, rows)) == (
        f"{place(name, 2)}: field 'context' is missing; the first row of session 'other' must give it, "
        "or the marker: context=..."
    )


@each_place
@pytest.mark.parametrize(("field", "was"), [("context", CONTEXT), ("assistant_id", "bot"), ("language", "german")])
def test_a_session_with_two_of_what_it_has_once_names_both_places(
    tmp_path: Path, name: str, field: str, was: str
) -> None:
    rows = [ROW | {field: was}, {"qa_id": "q2", "query": "x"}, {"qa_id": "q3", "query": "x", field: "another"}]
    assert failure(tmp_path, name, content_of(name, rows)) == (
        f"{place(name, 3)}: field '{field}': session 'rows' has another {field} at {place(name, 1)}; "
        "repeat that one, or use another session_id"
    )


@each_place
def test_a_qa_id_that_comes_twice_names_both_places(tmp_path: Path, name: str) -> None:
    rows = [ROW, {"qa_id": "q2", "query": "x"}, {"qa_id": "q1", "query": "x"}]
    assert failure(tmp_path, name, content_of(name, rows)) == (
        f"{place(name, 3)}: field 'qa_id': 'q1' stands already at {place(name, 1)} in session 'rows'; "
        "each case of a session needs a qa_id of its own"
    )


def test_a_qa_id_that_comes_twice_in_two_files_names_both(tmp_path: Path) -> None:
    write(tmp_path, "a/rows.jsonl", to_jsonl([ROW]))
    write(tmp_path, "b/rows.json", json.dumps([{**WHOLE, "session_id": "rows", "assistant_id": "assistant"}]))
    with pytest.raises(ConfigError) as caught:
        load(["a/rows.jsonl", "b/rows.json"], base=tmp_path, defaults={})
    assert str(caught.value) == (
        "b/rows.json, item 1, line 1, conversation.0: field 'qa_id': 'q1' stands already at a/rows.jsonl, line 1 "
        "in session 'rows'; each case of a session needs a qa_id of its own"
    )


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.yaml"])
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"qa_id": 1}, "field 'qa_id': input should be a valid string, not 1; quote it"),
        ({"query": True}, "field 'query': input should be a valid string, not True; quote it"),
        ({"query": None}, "field 'query': input should be a valid string, not None"),
        ({"context": None}, "field 'context': input should be a valid string, not None"),
        ({"qa_id": ""}, "field 'qa_id': string should have at least 1 character, not ''"),
        ({"session_id": ""}, "field 'session_id': string should have at least 1 character, not ''"),
        ({"weight": True}, "field 'weight': input should be a valid number, not True"),
        ({"weight": "0.5"}, "field 'weight': input should be a valid number, not '0.5'"),
        ({"retrieval_context": "one chunk"}, "field 'retrieval_context': input should be a valid list, not 'one chunk'"),
        ({"retrieval_context": ["a", 1]}, "field 'retrieval_context.1': input should be a valid string, not 1; quote it"),
        ({"assistant": ["x" * 99]}, f"field 'assistant': input should be a valid string, not ['{'x' * 55}..."),
    ],
)  # fmt: skip
def test_a_wrong_type_is_named(tmp_path: Path, name: str, value: dict[str, Any], told: str) -> None:
    assert failure(tmp_path, name, content_of(name, [ROW | value])) == f"{place(name, 1)}: {told}"


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.yaml"])
def test_a_wrong_field_inside_a_whole_dataset_is_named_with_its_path(tmp_path: Path, name: str) -> None:
    whole = {**WHOLE, "conversation": [{"qa_id": "q1", "qury": "x", "query": "x"}], "contxt": "y"}
    assert failure(tmp_path, name, content_of(name, [ROW, whole])) == (
        f"{place(name, 2)}: unknown field 'conversation.0.qury'; did you mean 'query'?\n"
        f"{place(name, 2)}: unknown field 'contxt'; did you mean 'context'?"
    )


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.yaml"])
def test_a_row_that_is_no_object_is_named(tmp_path: Path, name: str) -> None:
    assert failure(tmp_path, name, content_of(name, [ROW, ["q2"]])) == (  # type: ignore[list-item]
        f"{place(name, 2)}: a row is an object of fields, not list"
    )


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.yaml"])
def test_a_field_that_stands_twice_is_named(tmp_path: Path, name: str) -> None:
    content = content_of(name, [{"metadata": {"a": 1, "b": 2}}]).replace('"b"', '"a"')
    assert failure(tmp_path, name, content) == (
        "rows.yaml, line 1: field 'metadata': field 'a' stands there twice"
        if name == "rows.yaml"
        else f"{place(name, 1)}: field 'a' stands there twice"
    )


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("NaN", "NaN is not a number in JSON"),
        ("Infinity", "Infinity is not a number in JSON"),
        ("-Infinity", "-Infinity is not a number in JSON"),
        ("1e400", "1e400 is too large a number"),
        ('"\\ud83d"', "\\ud83d is half of a character"),
        ('{"\\uDE00": 1}', "\\ude00 is half of a character"),
        ("[" * 100_000, "its JSON is nested too deeply"),
    ],
)
def test_what_json_cannot_carry_is_refused_by_name(tmp_path: Path, name: str, value: str, told: str) -> None:
    content = content_of(name, [{**ROW, "metadata": {"a": "HERE"}}]).replace('"HERE"', value)
    assert failure(tmp_path, name, content) == f"{place(name, 1)}: {told}"


def test_an_integer_of_five_thousand_digits_is_refused(tmp_path: Path) -> None:
    assert failure(tmp_path, "rows.jsonl", f'{{"weight": {"1" * 5000}}}').startswith(
        "rows.jsonl, line 1: Exceeds the limit"
    )


def test_half_of_a_character_may_stand_escaped_beside_its_other_half(tmp_path: Path) -> None:
    (dataset,) = loaded(tmp_path, "rows.jsonl", json.dumps({**ROW, "query": "\U0001f600 \\ud83d"}))
    assert dataset.conversation[0].query == "\U0001f600 \\ud83d"


# What is said about files that are broken


def test_the_broken_line_of_many_is_named(tmp_path: Path) -> None:
    lines = [
        json.dumps({**ROW, "qa_id": f"q{number}", "query": "\u2028\x85"}, ensure_ascii=False) for number in range(2000)
    ]
    lines[1233] = lines[1233].removesuffix('"}')
    lines[7] = "  \t\r"
    assert failure(tmp_path, "rows.jsonl", "\n".join(lines)) == (
        "rows.jsonl, line 1234: its JSON is broken at column 46: Unterminated string starting at"
    )


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("rows.jsonl", "{'qa_id': 1}", ", line 1: its JSON is broken at column 2: Expecting property name enclosed in double quotes"),
        ("rows.jsonl", '\n{"a": 1} {}', ", line 2: its JSON is broken at column 10: Extra data"),
        ("rows.jsonl", '{"a": "\tx"}', ", line 1: its JSON is broken at column 8: Invalid control character at"),
        ("rows.jsonl", '{"a": "x\ry"}', ", line 1: its JSON is broken at column 9: Invalid control character at"),
        ("rows.json", "[", ", item 1, line 1: its JSON is broken at column 2: Expecting value"),
        ("rows.json", f"[\n{ROW_JSON}\n {{}}]", ", line 3: its JSON is broken at column 2: Expecting ',' delimiter"),
        ("rows.json", f'[\n{ROW_JSON},\n{{"a"\n: x}}]', ", item 2, line 4: its JSON is broken at column 3: Expecting value"),
        ("rows.json", f"[\n{ROW_JSON}", f", line 2: its JSON is broken at column {len(ROW_JSON) + 1}: Expecting ',' delimiter"),
        ("rows.json", "[]\n]", ", line 2: its JSON is broken at column 1: Extra data"),
        ("rows.json", '{"a": 1}\n{"a": 2}', ", line 2: its JSON is broken at column 1: Extra data; a file with one object a line is named .jsonl"),
        ("rows.json", '{"a": NaN}', ": NaN is not a number in JSON"),
        ("rows.json", "nope", ", line 1: its JSON is broken at column 1: Expecting value"),
        ("rows.json", '"x"', ": it holds str and no 'conversation'; it must be a list of rows, or one dataset with its 'conversation'"),
        ("rows.json", '{"rows": []}', ": it holds dict and no 'conversation'; it must be a list of rows, or one dataset with its 'conversation'"),
        ("rows.yaml", "qa_id: q1", ": it holds dict and no 'conversation'; it must be a list of rows, or one dataset with its 'conversation'"),
        ("rows.yaml", "null", ": it holds NoneType and no 'conversation'; it must be a list of rows, or one dataset with its 'conversation'"),
        ("rows.yaml", "- a: 1\n  b: [\n", ", line 3: its YAML is broken: did not find expected node content"),
        ("rows.yaml", "- a: \U0001f600\u2028\n- a: *x\n", ", line 2: its YAML is broken: found undefined alias"),
        ("rows.yaml", "- a: 1\n---\n- b: 1\n", ", line 2: its YAML is broken: but found another document"),
        ("rows.yaml", "- ? [a]\n  : b\n", ", line 1: the key [a] is not text; quote it"),
        ("rows.yaml", "- qa_id: q1\n  yes: b\n", ", line 1: the key yes is not text; quote it"),
        ("rows.yaml", "- a: 1\n- query: 2024-01-01\n", ", line 2: field 'query': 2024-01-01 is a date in YAML; quote it"),
        ("rows.yaml", "- retrieval_context:\n  - 2024-99-99\n", ", line 2: field 'retrieval_context': 2024-99-99 is a date in YAML; quote it"),
        ("rows.yaml", "- query: yes\n  qa_id: 007\n  context: c", ", item 1, line 1: field 'qa_id': input should be a valid string, not 7; quote it\nrows.yaml, item 1, line 1: field 'query': input should be a valid string, not True; quote it"),
        ("rows.yaml", "- weight: .NaN\n", ", line 1: field 'weight': .NaN is not a number that a dataset can hold"),
        ("rows.yaml", "- metadata: {a: -.inf}\n", ", line 1: field 'a': -.inf is not a number that a dataset can hold"),
        ("rows.yaml", "- weight: 0x_\n", ", item 1, line 1: a value does not fit its type: invalid literal for int() with base 16: ''"),
        ("rows.yaml", "- weight: !!bool x\n", ", item 1, line 1: a value does not fit its type: 'x'"),
        ("rows.yaml", "- query: !!python/object/apply:os.system [x]\n", ", line 1: field 'query': 'python/object/apply:os.system' is not taken; a dataset is text, numbers, lists and mappings"),
        ("rows.yaml", "- query: !!binary aGk=\n", ", line 1: field 'query': 'binary' is not taken; a dataset is text, numbers, lists and mappings"),
        ("rows.yaml", "- metadata: !!set {a, b}\n", ", line 1: field 'metadata': 'set' is not taken; a dataset is text, numbers, lists and mappings"),
        ("rows.yaml", "- query: !!str [a]\n", ", line 1: its YAML is broken: expected a scalar node, but found sequence"),
        ("rows.yaml", "- query: a\x85b\n", ', line 1: U+0085 is not kept by YAML as it stands; write it as "\\x85" in double quotes'),
        ("rows.yaml", "-\n  query: a\x00b\n", ', line 2: U+0000 is not kept by YAML as it stands; write it as "\\x00" in double quotes'),
        ("rows.yaml", "-\r\n  query: a\rb\r\n", ', line 2: U+000D is not kept by YAML as it stands; write it as "\\x0d" in double quotes'),
        ("rows.yaml", '- query: "a \u2028 b"\n', ', line 1: field \'query\': U+2028 is not kept by YAML as it stands; write it as "\\u2028" in double quotes'),
        ("rows.csv", "qa_id;query\nq1;a\n", ", line 1: unknown field 'qa_id;query'; its cells must be parted by commas"),
        ("rows.csv", "qa_id,qury\nq1,a\n", ", line 1: unknown field 'qury'; did you mean 'query'?"),
        ("rows.csv", "qa_id,conversation\nq1,[]\n", ", line 1: unknown field 'conversation'; did you mean 'observation'?"),
        ("rows.csv", "qa_id,,query\nq1,,a\n", ", line 1: column 2 has no name"),
        ("rows.csv", "qa_id,query,query\nq1,a,b\n", ", line 1: field 'query' stands there twice"),
        ("rows.csv", '\nqa_id,query,context\nq1,"a\n\nb",c\nq2,a,b,c\n', ", line 6: the header has 3 cells, this row 4; a cell with a comma, a quote or a newline stands in double quotes"),
        ("rows.csv", "qa_id,query\nq1\n", ", line 2: the header has 2 cells, this row 1; a cell with a comma, a quote or a newline stands in double quotes"),
        ("rows.csv", 'qa_id,query\nq1,"a\nb', ", line 2: its CSV is broken: unexpected end of data"),
        ("rows.csv", 'qa_id,query\nq1,"a" b\n', ", line 2: its CSV is broken: ',' expected after '\"'"),
        ("rows.csv", "qa_id,query\nq1,a\rb\n", ", line 2: its CSV is broken: new-line character seen in unquoted field"),
        ("rows.csv", 'qa_id,query,weight\nq1,a,"0,5"\n', ", line 2: field 'weight': input should be a valid number, not '0,5'"),
        ("rows.csv", "qa_id,query,weight\nq1,a,nan\n", ", line 2: field 'weight': input should be a finite number, not nan"),
        ("rows.csv", "qa_id,query,retrieval_context\nq1,a,one chunk\n", ", line 2: field 'retrieval_context': its JSON is broken at column 1: Expecting value; lists and objects are written as JSON"),
    ],
)  # fmt: skip
def test_a_broken_file_is_told_with_its_place(tmp_path: Path, name: str, content: str, told: str) -> None:
    assert failure(tmp_path, name, content) == name + told


@pytest.mark.parametrize("opening", ["[", "- "])
def test_yaml_that_is_nested_too_deeply_is_told(tmp_path: Path, opening: str) -> None:
    assert failure(tmp_path, "rows.yaml", opening * 5000) == (
        "rows.yaml, line 1: its YAML is broken: exceeded maximum nesting depth"
    )


# PyYAML may be built without its C loader: reaching inside is the only way to take that away.


@pytest.fixture
def no_c_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_rows, "_Loader", yaml.SafeLoader)


@pytest.mark.usefixtures("no_c_loader")
@pytest.mark.parametrize("text", HARD_TEXTS.values(), ids=HARD_TEXTS)
def test_hard_text_arrives_unchanged_without_the_c_loader(tmp_path: Path, text: str) -> None:
    assert loaded(tmp_path, "rows.yaml", to_yaml([{**ROW, "query": text}]))[0].conversation[0].query == text


@pytest.mark.usefixtures("no_c_loader")
def test_broken_yaml_is_told_without_the_c_loader(tmp_path: Path) -> None:
    assert failure(tmp_path, "rows.yaml", "- a: \U0001f600\u2028\n- a: *x\n") == (
        "rows.yaml, line 2: its YAML is broken: found undefined alias 'x'"
    )
    assert failure(tmp_path, "rows.yaml", "[" * 5000) == "rows.yaml: its YAML is nested too deeply"


@each_format
def test_a_file_that_is_not_utf_8_is_named_with_the_line(tmp_path: Path, name: str) -> None:
    content = b"\xef\xbb\xbf# caf\xc3\xa9\n\ncaf\xe9\n"
    assert failure(tmp_path, name, content) == f"{name}, line 3: byte 0xe9 is not UTF-8; save the file as UTF-8"


def test_a_missing_file_is_told_with_what_is_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("rows.jsonl", "rows2.csv", "rows.txt", "unlike.json"):
        write(tmp_path, f"tests/data/{name}", "")
    with pytest.raises(ConfigError) as caught:
        load("data/./rwos.jsonl", base=tmp_path / "tests", defaults={})
    assert str(caught.value) == ("data/rwos.jsonl: no such file: tests/data/rwos.jsonl; did you mean 'rows.jsonl'?")


def test_a_missing_file_outside_the_working_folder_is_told_in_full(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load("../x.jsonl", base=tmp_path / "tests", defaults={})
    assert str(caught.value) == f"../x.jsonl: no such file: {tmp_path.as_posix()}/x.jsonl"


def test_a_missing_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load("data/rows.jsonl", base=tmp_path, defaults={})
    assert str(caught.value) == "data/rows.jsonl: no such file; the folder data does not exist"


def test_a_path_with_nul_in_it_names_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load("a\0.jsonl", base=tmp_path, defaults={})


@pytest.mark.parametrize("name", ["rows.parquet", "rows", "rows.jsonl.gz"])
def test_an_unknown_suffix_is_told_with_the_known_ones(tmp_path: Path, name: str) -> None:
    assert failure(tmp_path, name, b"PAR1\xff") == (
        f"{name}: {Path(name).suffix!r} is not a dataset's suffix; use .jsonl, .ndjson, .json, .yaml, .yml, .csv"
    )


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(ConfigError) as caught:
        load("data", base=tmp_path, defaults={})
    assert str(caught.value) == "data: it cannot be read: Is a directory"


def test_an_absolute_path_is_told_relative_to_the_base(tmp_path: Path) -> None:
    path = write(tmp_path, "data/rows.jsonl", "x")
    with pytest.raises(ConfigError, match=r"^data/rows\.jsonl, line 1: its JSON is broken"):
        load(path, base=tmp_path, defaults={})
    with pytest.raises(ConfigError, match=rf"^{path.as_posix()}, line 1: its JSON is broken"):
        load(path, base=tmp_path / "tests", defaults={})
