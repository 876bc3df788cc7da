"""Text of others within Markdown.

It stands in code spans, and in `<code>` within HTML: GitHub finds no mention, reference, link, emoji or formula there,
and no renderer takes it for markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import islice
from typing import Final, NamedTuple

from pytest_ctxeval._core.text import one_line

NAME: Final = 60  # characters of a session, a gate, a baseline
LINE: Final = 120  # of a test's id, of what came of a gate
TEXT: Final = 400  # of a query, an answer, a reason


class Limit(NamedTuple):
    """How many blocks there may be, and how many characters they may have together."""

    blocks: int
    characters: int


def code(text: str, width: int = NAME) -> str:
    """Put text in a code span, on one line, of at most `width` characters.

    A span cannot hold a backtick among others, nor, in a table, a pipe: they stand between two spans.
    """
    parts = re.split(r"([`|])", one_line(text, width))
    return "".join(f"&#{ord(part)};" if part in ("`", "|") else _span(part) for part in parts if part) or "(nothing)"


def quoted(text: str) -> str:
    """Put a text in a code span, and say so if it was cut."""
    whole = len(one_line(text))
    return code(text, TEXT) + (f" (cut, {whole:,} characters in all)" if whole > TEXT else "")


def html_code(text: str) -> str:
    """Do for a line of HTML what `code` does for Markdown."""
    return f"<code>{escape(one_line(text, LINE))}</code>"


def words(text: str, otherwise: Callable[[str], str]) -> str:
    """Leave two plain words as they are, as the title of a metric."""
    return text if re.fullmatch(r"[a-z]+ [a-z]+", text) else otherwise(text)


def within(limit: Limit, blocks: Iterable[str]) -> list[str]:
    """Give the first blocks, as many as the limit allows; no more than one further is made."""
    shown: list[str] = []
    room = limit.characters
    for block in islice(blocks, limit.blocks):
        room -= len(block)
        if room < 0:
            break
        shown.append(block)
    return shown


def bullets(limit: Limit, items: Sequence[str]) -> str:
    """Make a list of the items that the limit allows, which ends in how many more there are."""
    shown = within(limit, (f"- {item}" for item in items))
    more = [f"- ... and {len(items) - len(shown)} more"] if len(shown) < len(items) else []
    return "\n".join([*shown, *more])


def _span(text: str) -> str:
    """A renderer takes one space off both ends, where both have one."""
    return f"` {text} `" if text.startswith(" ") and text.endswith(" ") and text.strip() else f"`{text}`"
