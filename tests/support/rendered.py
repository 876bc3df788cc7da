"""What becomes of Markdown: rendered as GitHub does (cmark-gfm), and by another renderer (markdown-it)."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options
from markdown_it import MarkdownIt


def as_github(text: str) -> str:
    """HTML, with raw HTML let through, bare addresses linked, footnotes made."""
    options = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES
    return str(cmarkgfm.github_flavored_markdown_to_html(text, options))


def as_markdown_it(text: str) -> str:
    """HTML, with tables, strike-through, bare addresses linked and raw HTML let through."""
    return str(MarkdownIt("gfm-like", {"html": True}).render(text))


RENDERERS: tuple[Callable[[str], str], ...] = (as_github, as_markdown_it)


Page = list[tuple[str, str]]  # the tags and the texts of a page, in order


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: Page = []  # tags, text, and text within code

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = " ".join(
            f"{name}={value}"
            for name, value in attrs
            if (tag, name) not in {("th", "style"), ("td", "style"), ("th", "align"), ("td", "align")}
        )
        self.parts.append(("open", f"{tag} {named}".strip()))

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(("close", tag))

    def handle_data(self, data: str) -> None:
        self.parts.append(("code" if self.parts and self.parts[-1] == ("open", "code") else "text", data))

    def handle_comment(self, data: str) -> None:
        self.parts.append(("open", f"comment {data}"))

    def handle_decl(self, decl: str) -> None:
        self.parts.append(("open", f"declaration {decl}"))


def parts(html: str) -> Page:
    """The tags and the texts of a page, in order."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.parts


def content(page: Page) -> str:
    """The text of a page, as a browser shows it."""
    return "".join(text for kind, text in page if kind in ("text", "code"))


def skeleton(page: Page) -> list[str]:
    """What a page is made of, without what stands in code, and without the pipes and backticks that stand between two."""
    found: list[str] = []
    for kind, text in page:
        if kind == "code" or (kind, text) == ("close", "code"):
            continue
        told = (
            "CODE"
            if text == "code"
            else f"<{kind} {text}>"
            if kind != "text"
            else re.sub(r"[`|\s]+", " ", text).strip()
        )
        if told and not (told == "CODE" and found and found[-1] == "CODE"):
            found.append(told)
    return found


def columns(page: Page) -> list[int]:
    """How many cells each row of its tables has."""
    counts: list[int] = []
    for kind, text in page:
        if (kind, text) == ("open", "tr"):
            counts.append(0)
        elif kind == "open" and text.split()[0] in ("td", "th"):
            counts[-1] += 1
    return counts
