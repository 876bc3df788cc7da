"""Read rows from YAML, of which only what JSON can say as well is taken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from pytest_ctxeval._datasets.json_rows import Row, check_is_dataset
from pytest_ctxeval.errors import ConfigError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = frozenset(f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map"))
# What YAML refuses, and the two that it turns into a line feed: U+0085 and a lone carriage return.
_NOT_KEPT: Final = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\r(?!\n)")
_SEPARATOR: Final = re.compile("[\u2028\u2029]")


def parse_yaml(text: str, file: str) -> Iterator[Row]:
    """Read the items of a list, or the one dataset that the file is."""
    if found := _NOT_KEPT.search(text):
        raise ConfigError(f"{file}, line {_line(text, found.start())}: {_not_kept(found[0])}")
    loader = _Loader(text)
    try:
        yield from _parse(loader, text, file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{file}, line {_line(text, mark.index)}" if mark else file
        raise ConfigError(f"{place}: its YAML is broken: {error.problem}") from None
    except RecursionError:
        raise ConfigError(f"{file}: its YAML is nested too deeply") from None
    finally:
        loader.dispose()


def _parse(loader: Any, text: str, file: str) -> Iterator[Row]:
    root = loader.get_single_node()
    if root is None:
        return
    _check_is_plain(root, text, file)
    if not isinstance(root, yaml.SequenceNode):
        value = _value(loader, root, file)
        check_is_dataset(value, file)
        yield Row(file, value)
        return
    line, counted = 1, 0
    for number, node in enumerate(root.value, 1):
        at = node.start_mark.index
        line, counted = line + text.count("\n", counted, at), at
        where = f"{file}, item {number}, line {line}"
        yield Row(where, _value(loader, node, where))


def _value(loader: Any, node: yaml.Node, where: str) -> Any:
    try:
        return loader.construct_document(node)
    except (ValueError, KeyError) as error:
        raise ConfigError(f"{where}: a value does not fit its type: {error}") from None


def _check_is_plain(root: yaml.Node, text: str, file: str) -> None:
    pending, seen = [(root, "")], set()
    while pending:
        node, field = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if problem := _problem(node, text):
            named = f"field {field!r}: " if field else ""
            raise ConfigError(f"{file}, line {_line(text, node.start_mark.index)}: {named}{problem}")
        pending += reversed(_children(node, field))


def _children(node: yaml.Node, field: str) -> list[tuple[yaml.Node, str]]:
    if isinstance(node, yaml.MappingNode):
        return [(value, key.value) for key, value in node.value]
    return [(value, field) for value in node.value] if isinstance(node, yaml.SequenceNode) else []


def _problem(node: yaml.Node, text: str) -> str:
    """Say what makes a node more, or less, than JSON can say; empty where it is plain."""
    written = text[node.start_mark.index : node.end_mark.index]
    if node.tag == f"{_TAG}timestamp":
        return f"{written} is a date in YAML; quote it"
    if node.tag not in _PLAIN:
        return f"{node.tag.removeprefix(_TAG)!r} is not taken; a dataset is text, numbers, lists and mappings"
    if isinstance(node, yaml.MappingNode):
        return _problem_of_keys(node, text)
    if node.tag == f"{_TAG}float" and written.lower().endswith((".nan", ".inf")):
        return f"{written} is not a number that a dataset can hold"
    if getattr(node, "style", None) == '"' and (found := _SEPARATOR.search(written)):
        return _not_kept(found[0])
    return ""


def _problem_of_keys(node: yaml.MappingNode, text: str) -> str:
    names: set[str] = set()
    for key, _ in node.value:
        if key.tag == f"{_TAG}merge":
            continue
        if key.tag != f"{_TAG}str":
            return f"the key {text[key.start_mark.index : key.end_mark.index]} is not text; quote it"
        if key.value in names:
            return f"field {key.value!r} stands there twice"
        names.add(key.value)
    return ""


def _not_kept(character: str) -> str:
    code = ord(character)
    escape = f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    return f'U+{code:04X} is not kept by YAML as it stands; write it as "{escape}" in double quotes'


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
