"""Text from a model or a dataset is hostile until it is made harmless."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Final

# CSI, OSC and the other escape sequences of terminals, in their 7-bit and 8-bit forms.
_ANSI: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b[ -/]*[0-~]?"
)
# Control characters but newline and tab, marks that turn the direction of writing, lone surrogates, line separators.
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
_COMMAND: Final = re.compile(r"^(\s*):(?=:)", re.MULTILINE)  # of GitHub
_MARKED: Final = re.compile(r"##(?=\[|vso\[|teamcity\[)", re.IGNORECASE)  # of Azure, of TeamCity


def harmless(text: str) -> str:
    """Make text safe to print: no control or escape sequence acts, no CI takes a line of it for a command."""
    if not (_CONTROL.search(text) or "::" in text or "##" in text):  # most is, and one look is cheaper than three
        return text
    text = _CONTROL.sub(lambda found: ascii(found[0])[1:-1], _ANSI.sub("", text.replace("\r\n", "\n")))
    return _MARKED.sub("## ", _COMMAND.sub(r"\1: ", text))


def one_line(text: str, width: int = 0) -> str:
    """Make text safe and fit it on one line, of at most `width` columns where that is not 0."""
    text = harmless(" ".join(text.split()))
    if not width or (len(text) <= width and (text.isascii() or columns(text) <= width)):
        return text
    text = text[: max(width - 3, 0)]
    while columns(text) > max(width - 3, 0):
        text = text[:-1]
    return f"{text.rstrip()}..."


def columns(text: str) -> int:
    """Give how many columns of a terminal text takes: two for wide characters, none for those that join the last."""
    if text.isascii():
        return len(text)
    marks = sum(unicodedata.category(each) in ("Mn", "Me", "Cf") for each in text)
    return len(text) - marks + sum(unicodedata.east_asian_width(each) in "WF" for each in text)


def shown_path(path: Path) -> str:
    """Name a file for a message: from the folder that the reader is in, where it is there."""
    return one_line(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path), 200)


def nearest(name: str, known: Iterable[str]) -> str:
    """Give "did you mean 'x'?" where a known name is close to `name`, else list the known names."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(names)}"
