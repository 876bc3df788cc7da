"""Arguments of the library, checked where they are given."""

from __future__ import annotations

from pytest_ctxeval.errors import ConfigError


def check_count(name: str, value: object) -> None:
    """Raise `ConfigError` for what is no whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name}={value!r} is not a number of 1 or more")


def check_flag(name: str, value: object) -> None:
    """Raise `ConfigError` for what is neither True nor False."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name}={value!r} is neither True nor False")


def check_seconds(name: str, value: object) -> None:
    """Raise `ConfigError` for what is no number of seconds above 0 and up to a day."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 86_400:
        raise ConfigError(f"{name}={value!r} is not a number of seconds above 0 and up to 86400")


def is_share(value: object) -> bool:
    """Whether this is a number from 0 to 1."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
