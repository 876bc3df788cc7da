"""Prompts of one's own: what a template must have, and how it is told from another."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, Protocol, TypeVar

from pytest_ctxeval.errors import ConfigError

STANDARD_VERSION: Final = "1"


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


def checked_template(given: object, standard: type[T], probe: Mapping[str, Any]) -> T:
    """Give the template, built where `given` is a class, once it has answered for a case made up for the purpose.

    Raises `ConfigError` that names what it lacks or what it does wrong.
    """
    name = given.__name__ if isinstance(given, type) else type(given).__name__
    cure = f"give a class or an object with the methods of {standard.__name__}"
    try:
        template: Any = given() if isinstance(given, type) else given
    except TypeError as error:
        raise ConfigError(f"the template {name} cannot be built without arguments: {error}; {cure}") from None
    missing = [f"{method}()" for method in ("system", "user") if not callable(getattr(template, method, None))]
    if missing:
        raise ConfigError(f"the template {name} has no {' and no '.join(missing)}; {cure}")
    for method, arguments in (("system", {}), ("user", probe)):
        try:
            text = getattr(template, method)(**arguments)
        except Exception as error:
            raise ConfigError(f"the template {name}: {method}() raised {type(error).__name__}: {error}") from error
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"the template {name}: {method}() gave {text!r}, and no text")
    return template  # type: ignore[no-any-return]  # it has the methods of one


def prompt_version(template: Template, standard: Template, probe: Mapping[str, Any]) -> str:
    """Tell by what it says of the case made up whether a template is the standard one; else name it by a hash."""
    said = _said(template, probe)
    return STANDARD_VERSION if said == _said(standard, probe) else f"custom-{sha256(said).hexdigest()[:8]}"


def _said(template: Template, probe: Mapping[str, Any]) -> bytes:
    return f"{template.system()}\0{template.user(**probe)}".encode("utf-8", "surrogatepass")
