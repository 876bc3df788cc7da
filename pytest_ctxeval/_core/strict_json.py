"""Hooks for the standard library's JSON reader, so that nothing ambiguous is read as if it were clear."""

from __future__ import annotations

import math
from typing import Any, NoReturn


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raise `ValueError` for a key that stands twice in an object (`object_pairs_hook`)."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return found


def no_constant(name: str) -> NoReturn:
    """Raise `ValueError` for NaN and the infinities (`parse_constant`)."""
    raise ValueError(f"{name} is not a number in JSON")


def finite(digits: str) -> float:
    """Raise `ValueError` for a number that no float can hold (`parse_float`)."""
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is too large a number")
    return number
