"""Numbers as people read them, never so that two different ones look the same."""

from __future__ import annotations


def figure(number: float, digits: int = 0) -> str:
    """Give a number with `digits` places, and with no fewer than two, or than it takes to write it out."""
    return f"{number:.{digits or _places(number)}f}"


def below(value: float, bar: float) -> str:
    """Give "0.78 < 0.80", with as many digits as it takes to see that it is so."""
    digits = _places(bar)
    while float(figure(value, digits)) >= float(figure(bar, digits)):
        digits += 1
    return f"{figure(value, digits)} < {figure(bar, digits)}"


def above(value: float, bar: float) -> str:
    """Give "0.12 > 0.05", with as many digits as it takes to see that it is so."""
    digits = _places(bar)
    while float(figure(value, digits)) <= float(figure(bar, digits)):
        digits += 1
    return f"{figure(value, digits)} > {figure(bar, digits)}"


def arrow(old: float, new: float) -> str:
    """Give "0.90 -> 0.70", with as many digits as it takes to see that it is no standstill, where it is none."""
    digits = places_of(new - old)
    return f"{old:.{digits}f} -> {new:.{digits}f}"


def places_of(difference: float) -> int:
    """Give how many places a difference takes to be seen: two, and more where it would round to nothing."""
    return next((digits for digits in range(2, 9) if float(f"{difference:.{digits}f}")), 2)


def count(n: int, what: str) -> str:
    """Give "1 case", "2,000 cases"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _places(number: float) -> int:
    written = f"{number:.10f}".rstrip("0")
    return max(2, len(written.partition(".")[2]))
