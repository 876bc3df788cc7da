"""Keys must not reach a file, a terminal or a report."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote, quote_plus

_SECRET_NAME: Final = re.compile(r"(^|_)(KEY|APIKEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_ENDINGS: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD")  # the same, found faster
_SHORTEST: Final = 8  # shorter values ("test", "none") stand in ordinary text

# Anthropic, OpenAI and their like; Groq; Google; GitHub; Hugging Face; Slack; AWS; a bearer header.
_SHAPES: Final = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{20,}|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|(?:xai|pplx|glpat)-[A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|gsk_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,}|gh[pousr]_[A-Za-z0-9]{30,}"
    r"|github_pat_[A-Za-z0-9_]{30,}|hf_[A-Za-z0-9]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16})\b"
    r"|\bBearer +[A-Za-z0-9._~+/-]{20,}|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----",
)
# What each of these shapes holds, and few other texts do.
_MARKS: Final = (
    "sk-", "sk_", "rk_", "xai-", "pplx-", "glpat-", "eyJ", "AIza", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
    "github_pat_", "hf_", "xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "AKIA", "Bearer ", "PRIVATE KEY",
)  # fmt: skip
# A key that the provider has half hidden already ("sk-abc***xyz"): not a find in a file, yet nothing to print.
# An organization's id is no secret that opens anything, and still nobody else's business.
_MASKED: Final = re.compile(
    r"\b(?:sk|gsk|pk)[-_][\w-]{0,64}(?:\*{2,}|\.{3})[\w*-]*|(?<![\w*-])[\w-]{0,64}\*{4,}[\w*-]*|\borg-[A-Za-z0-9]{8,}\b"
)

PLACEHOLDER: Final = "ctxeval-placeholder-not-a-key"


def find_secret(text: str) -> tuple[str, int] | None:
    """Give what kind of secret stands in the text and on which line (from 1), or None. Never the secret."""
    for what, value in _known():
        at = text.find(value)
        if at >= 0:
            return what, text.count("\n", 0, at) + 1
    shape = _SHAPES.search(text)
    return ("something shaped like a key", text.count("\n", 0, shape.start()) + 1) if shape else None


def redact(text: str) -> str:
    """Hide every known or likely secret of a text that is to be shown."""
    for _, value in _known():
        text = text.replace(value, "[hidden]")
    return _MASKED.sub("[hidden]", _SHAPES.sub("[hidden]", text))


def may_hold_secrets(text: str) -> bool:
    """Whether a text, which may be that of many texts as JSON, is to be looked through: far cheaper than doing so."""
    return any(mark in text for mark in _MARKS) or any(form in text for _, form in _known())


def redacted(value: Any) -> Any:
    """Hide every key in the texts of a value of dicts and lists, and nothing else: a text stays what it was."""
    known = [form for _, form in _known()]

    def without(part: Any) -> Any:
        if isinstance(part, str):
            for form in known:
                part = part.replace(form, "[hidden]")
            return _SHAPES.sub("[hidden]", part)
        if isinstance(part, dict):
            return {name: without(item) for name, item in part.items()}
        return [without(item) for item in part] if isinstance(part, (list, tuple)) else part

    return without(value)


def unset_variables(names: Iterable[str]) -> list[str]:
    """Give those of the environment variables that are not set, are blank or hold the placeholder."""
    return [name for name in names if os.environ.get(name, "").strip() in ("", PLACEHOLDER)]


def _known() -> Iterator[tuple[str, str]]:
    """The values of secret environment variables, in each form in which a text may hold them; the longest first.

    One may be the beginning of another: if it were hidden first, the rest of the other would be shown.
    """
    likely = (name for name in os.environ if name.upper().endswith(_ENDINGS))
    named = [(name, os.environ.get(name, "")) for name in likely if _SECRET_NAME.search(name)]
    for name, value in sorted(named, key=lambda each: len(each[1]), reverse=True):
        if len(value) < _SHORTEST or value == PLACEHOLDER:
            continue
        for form in {
            value,
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            quote(value, safe=""),
            quote(value),
            quote_plus(value),
        }:
            yield f"the value of ${name}", form
