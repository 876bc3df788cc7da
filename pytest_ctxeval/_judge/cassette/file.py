"""A cassette as a file: vcrpy's format, with what we add under `ctxeval`.

Plain vcrpy loads these files: it reads `interactions` and passes over the rest.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_plus

import yaml

from pytest_ctxeval._judge.cassette.secrets import find_secret, redact
from pytest_ctxeval._judge.cassette.trim import Interaction
from pytest_ctxeval.errors import CassetteError, CassetteReadError

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SCALARS: Final[Mapping[str, Callable[[str], Any]]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: text.lower() in ("true", "yes", "on"),
    "null": lambda _: None,
    "binary": lambda text: base64.b64decode("".join(text.split()), validate=True),
    "timestamp": str,
}
_OTHER_BREAKS: Final = "\r\x85\u2028\u2029\ufeff"
LEFT_OVER: Final = ".ctxeval-"  # how a file begins that is being written
_ESCAPED: Final = re.compile(r"\\u00([2-7][0-9A-Fa-f])|\\/")  # what servers write in JSON in other ways than we do
_CONFLICT: Final = re.compile(r"\n(?:<<<<<<< |=======|>>>>>>> |\|\|\|\|\|\|\| )")  # far faster than from ^ on


@dataclass(frozen=True, slots=True)
class Recording:
    """All that one file holds. `complete` says that its test ran to the end when it was recorded."""

    node: str
    judge: str
    client: str
    complete: bool
    interactions: tuple[Interaction, ...]


class Written(NamedTuple):
    """A recording, and its text as it went into a file."""

    recording: Recording
    text: str


def read_recording(path: Path, *, shown: str) -> Recording | None:
    """Read a cassette; None where there is no such file. Raises `CassetteReadError` for anything damaged.

    `shown` is how messages call the file.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CassetteReadError(f"{shown}: it cannot be read: {_cause(path, error)}") from error
    text = _decoded(data, shown)
    try:
        found = _values(text)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise _damaged(shown, _line_of(error), _what(error)) from None
    return _recording(found, text, shown)


def write_recording(path: Path, recording: Recording, *, shown: str, last: Written | None = None) -> Written:
    """Write a cassette whole or not at all. Raises `CassetteError` where it holds a secret or cannot be written.

    `last` is what was written there before: where a test has only come to its end since, the text is that one again.
    """
    if last is not None and replace(last.recording, complete=True) == recording:
        text = last.text.replace("\n  complete: false\n", "\n  complete: true\n", 1)
    else:
        text = _checked_text(recording, shown)
    try:
        _replace(path, text)
    except OSError as error:
        raise CassetteError(
            f"{shown}: the recording cannot be written: {_cause(path, error)}; what stood there before is untouched"
        ) from error
    return Written(recording, text)


def _checked_text(recording: Recording, shown: str) -> str:
    for found in secrets_of(recording, shown):
        raise CassetteError(f"{found}, so nothing is written; take it out, and record again")
    text = dump(recording)
    if _recording(_values(text), text, shown) != recording:
        raise CassetteError(f"{shown}: the recording would not read back as it was made, so nothing is written")
    return text


def dump(recording: Recording) -> str:
    """Give the file's text: the same recording, the same text, with or without libyaml."""
    about = {
        "node": recording.node,
        "judge": recording.judge,
        "client": recording.client,
        "complete": recording.complete,
        "interactions": len(recording.interactions),
    }
    content = {
        "version": 1,
        "ctxeval": about,
        "interactions": [_to_dict(interaction) for interaction in recording.interactions],
    }
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31)
    return str(text)


class _Dumper(yaml.SafeDumper):
    """PyYAML's own emitter, not libyaml's, which escapes emoji; texts of several lines as literal blocks."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # PyYAML's signature
        return True


def _represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if any(mark in text for mark in _OTHER_BREAKS):  # YAML would read each of them as the end of a line
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_str)


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=LEFT_OVER, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _cause(path: Path, error: OSError) -> str:
    file = next((parent for parent in path.parents if parent.exists() and not parent.is_dir()), None)
    return f"{file.name} is a file, and no folder" if file else error.strerror or type(error).__name__


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def secrets_of(recording: Recording, shown: str) -> Iterator[str]:
    """Say where secrets stand in a recording, and of what kind they are: never the secret."""
    heads = {"id of the test": recording.node, "name of the judge": recording.judge}
    for name, text in heads.items():
        found = find_secret(text)
        if found:
            yield f"{redact(shown)}: {found[0]} stands in the {name}"
    for number, interaction in enumerate(recording.interactions, start=1):
        yield from (f"{shown}: interaction {number}, {found}" for found in _secrets(interaction))


def _secrets(interaction: Interaction) -> Iterator[str]:
    headers = "\n".join(
        [interaction.content_type, *(each for values in interaction.headers.values() for each in values)]
    )
    parts = {
        "address": interaction.uri,
        "headers": headers,
        "request": interaction.body,
        "answer's status": interaction.reason,
        "answer": interaction.answer,
    }
    for name, part in parts.items():
        text = part if isinstance(part, str) else part.decode("latin-1")
        plain = unquote_plus(text) if name in ("address", "headers", "request") else text
        unescaped = _ESCAPED.sub(lambda each: chr(int(each[1], 16)) if each[1] else "/", text)
        found = next(filter(None, map(find_secret, dict.fromkeys((text, plain, unescaped)))), None)
        if found:
            what, line = found
            yield f"{name}, line {line}: {what} stands there"


def _to_dict(interaction: Interaction) -> dict[str, Any]:
    return {
        "request": {
            "method": interaction.method,
            "uri": interaction.uri,
            "headers": {"content-type": [interaction.content_type]} if interaction.content_type else {},
            "body": interaction.body,
        },
        "response": {
            "status": {"code": interaction.status, "message": interaction.reason},
            "headers": {name: list(values) for name, values in interaction.headers.items()},
            "body": {"string": interaction.answer},
        },
        "ctxeval": {"sample": interaction.sample},
    }


def _recording(found: Any, text: str, shown: str) -> Recording:
    line, known = 1, dict[tuple[str, str], Interaction]()
    try:
        if found["version"] != 1:
            raise _damaged(shown, 1, f"its version is {str(found['version'])[:20]!r} and not 1")
        about = found["ctxeval"]
        node, judge, client = (_a(str, about[name]) for name in ("node", "judge", "client"))
        complete = _a(bool, about["complete"])
        for row, line in zip(_a(list, found["interactions"]), _lines_of_rows(text), strict=False):
            made = _interaction(row)
            if known.setdefault((made.key, made.origin), made) is not made:
                raise _damaged(shown, line, "it holds two answers to one request")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else "it has not the shape of a cassette"
        raise _damaged(shown, line, what) from None
    if len(known) != about.get("interactions"):
        told = f"it should hold {about.get('interactions')} interactions and holds {len(known)}: it was cut short"
        raise _damaged(shown, text.count("\n"), told)
    if not known:
        raise _damaged(shown, 1, "it holds no interactions")
    return Recording(node, judge, client, complete, tuple(known.values()))


def _lines_of_rows(text: str) -> Iterator[int]:
    """Give the line on which each interaction begins; 1 where the file was laid out by someone else."""
    line, at = 1, 0
    for row in re.finditer(r"^- ", text, re.MULTILINE):
        line += text.count("\n", at, row.start())
        at = row.start()
        yield line
    yield from repeat(1)


def _interaction(row: Mapping[str, Any]) -> Interaction:
    request, response = row["request"], row["response"]
    return Interaction(
        method=_a(str, request["method"]),
        uri=_a(str, request["uri"]),
        body=_body(request["body"]),
        status=_status(response["status"]["code"]),
        reason=_ascii(response["status"]["message"] or ""),
        headers=_headers(response["headers"]),
        answer=_body(response["body"]["string"]),
        sample=_a(int, row["ctxeval"]["sample"]),
        content_type=_headers(request["headers"]).get("content-type", [""])[0],
    )


def _status(found: Any) -> int:
    if _a(int, found) not in range(100, 600):
        raise ValueError(found)
    return int(found)


def _ascii(found: Any) -> str:
    text: str = _a(str, found)
    text.encode("ascii")  # as HTTP has it; a UnicodeEncodeError is a ValueError
    return text


def _headers(found: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {_a(str, name): [_a(str, value) for value in _a(list, values)] for name, values in found.items()}


def _body(found: Any) -> str | bytes:
    if not isinstance(found, (str, bytes)):
        raise TypeError(found)
    return found


def _a(kind: type, found: Any) -> Any:
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise TypeError(found)
    return found


def _decoded(data: bytes, shown: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _damaged(shown, data.count(b"\n", 0, error.start) + 1, "it is not UTF-8") from None
    if not text.strip():
        raise _damaged(shown, 1, "it is empty")
    mark = _CONFLICT.search(f"\n{text}")
    if mark:
        raise _damaged(shown, text.count("\n", 0, mark.start()) + 1, "it holds the marks of a merge conflict")
    return text.replace("\r\n", "\n")


def _values(text: str) -> Any:
    """Give what a YAML text says, which is of a few kinds; quicker than PyYAML's own constructor, and runs nothing."""
    seen: set[int] = set()

    def value(node: yaml.Node) -> Any:
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if isinstance(node, yaml.ScalarNode):
            if kind in _SCALARS:
                try:
                    return _SCALARS[kind](node.value)
                except ValueError:
                    told = f"{node.value[:20]!r} is no {kind}"
                raise yaml.MarkedYAMLError(problem=told, problem_mark=node.start_mark)
        elif kind in ("map", "seq") and id(node) not in seen:  # an alias may stand for more than any memory holds
            seen.add(id(node))
            if kind == "seq":
                return [value(each) for each in node.value]
            found = {value(name): value(item) for name, item in node.value}
            if len(found) == len(node.value):
                return found
            kind = "a name that stands twice"
        elif id(node) in seen:
            kind = "an alias"
        raise yaml.MarkedYAMLError(problem=f"{kind} has no place in a cassette", problem_mark=node.start_mark)

    node = yaml.compose(text, Loader=_Loader)
    return None if node is None else value(node)


def _line_of(error: Exception) -> int:
    mark = getattr(error, "problem_mark", None)
    return mark.line + 1 if mark is not None else 1


def _what(error: Exception) -> str:
    problem = getattr(error, "problem", None) or str(error)
    return f"it is not YAML that can be read: {' '.join(str(problem).split())[:200]}"


def _damaged(shown: str, line: int, what: str) -> CassetteReadError:
    return CassetteReadError(
        f"{shown}, line {line}: {what}; restore the file from version control, or delete it and record again with "
        "--ctxeval-record=all"
    )
