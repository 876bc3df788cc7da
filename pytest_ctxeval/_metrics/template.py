"""Prompts of one's own: what a template must have, and how it is told from another."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Protocol, TypeVar

from pytest_ctxeval._metrics.prompt import check_sendable
from pytest_ctxeval.errors import ConfigError

STANDARD_VERSION: Final = "1"

_METHODS: Final = ("system", "user")


class Template(Protocol):
    """What every template has; the keywords of `user` are those of the metric's own template."""

    def system(self) -> str:
        """Give the instructions."""
        ...

    @property
    def user(self) -> Any:
        """The method that gives the text for one case."""
        ...


T = TypeVar("T", bound=Template)


def read_template(given: object, standard: type[T], probes: Sequence[Mapping[str, Any]]) -> tuple[T, str]:
    """Give the template, built where `given` is a class, and its version.

    It is asked for its text of `probes`, cases made up for the purpose; it need not know the language of all of them.
    Raises `ConfigError` that names what it lacks or what it does wrong.
    """
    template = _built(given, standard)
    said = [text_of(template, "system")]
    failures: list[ConfigError] = []
    for probe in probes:
        try:
            said.append(text_of(template, "user", **probe))
        except ConfigError as error:
            if not isinstance(error.__cause__, Exception):
                raise
            failures.append(error)
            said.append("")
    if len(failures) == len(probes):
        raise failures[0]
    return template, _version(template, standard, said)


def text_of(template: Template, method: str, *, where: str = "", **arguments: Any) -> str:
    """Give what a method of a template says. Raises `ConfigError` where it raises, or gives no text."""
    who = f"{where}the template {type(template).__name__}: {method}()"
    try:
        text = getattr(template, method)(**arguments)
    except Exception as error:
        raise ConfigError(f"{who} raised {type(error).__name__}: {error}") from error
    if inspect.iscoroutine(text):
        text.close()
        raise ConfigError(f"{who} is a coroutine; write it without 'async'")
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f"{who} gave {text!r}, and no text")
    check_sendable(text, f"{who}: the text")
    return text


def _built(given: object, standard: type[T]) -> T:
    name = given.__name__ if isinstance(given, type) else type(given).__name__
    cure = f"give a class or an object with the methods of {standard.__name__}"
    try:
        template: Any = given() if isinstance(given, type) else given
    except Exception as error:
        told = f"the template {name} cannot be built without arguments: {type(error).__name__}: {error}"
        raise ConfigError(f"{told}; {cure}") from error
    missing = [f"{method}()" for method in _METHODS if not _has(template, method)]
    if missing:
        raise ConfigError(f"the template {name} has no {' and no '.join(missing)}; {cure}")
    return template  # type: ignore[no-any-return]  # it has the methods of one


def _has(template: object, method: str) -> bool:
    try:
        return callable(getattr(template, method, None))
    except Exception:  # of a property
        return False


def _version(template: Template, standard: type[Template], said: Sequence[str]) -> str:
    """Name a template that is not the standard one by a hash of all that can be known of it.

    What it says of the cases made up is not enough: it may say something else of others. So its source counts where
    there is one, but for comments, and the plain values that it holds.
    """
    kind, own = type(template), getattr(template, "__dict__", {})
    if all(method not in own and getattr(kind, method) is getattr(standard, method, None) for method in _METHODS):
        return STANDARD_VERSION
    known = [*said, *_sources(kind, standard), _plain(own)]
    return f"custom-{sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:8]}"


def _sources(kind: type, standard: type) -> Iterator[str]:
    for each in kind.__mro__:
        if each in (standard, object):
            continue
        try:
            lines = inspect.getsource(each).splitlines()
        except (OSError, TypeError):  # made in a console, or in C
            continue
        yield "\n".join(line.rstrip() for line in lines if line.strip() and not line.lstrip().startswith("#"))


def _plain(value: Any) -> Any:
    """Give the values that are the same in every process; of others their type."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
