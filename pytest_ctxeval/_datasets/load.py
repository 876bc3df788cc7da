"""From whatever a user names as a dataset to datasets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pytest_ctxeval._core.data import Dataset
from pytest_ctxeval._datasets.files import READERS, read_file
from pytest_ctxeval._datasets.pieces import Piece, Seen, join, piece_of_dataset
from pytest_ctxeval.errors import ConfigError


def load(source: object, *, base: Path, defaults: Mapping[str, str]) -> list[Dataset]:
    """Give the datasets of a source, one per session.

    A source is a `Retriever` class or object, a `Dataset`, the path of a file relative to `base`, or an iterable
    of these. `defaults` are the fields of a session that a file may leave out. Raises `ConfigError` for
    whatever is wrong with it, naming the place.
    """
    return join(_pieces(source, "the dataset", base=base, defaults=defaults))


def from_retriever(retriever: object) -> Iterator[Dataset]:
    """Give a retriever's datasets as it makes them; a class is built without arguments.

    Raises `ConfigError`, naming the retriever and the cause, if it fails or gives what is no dataset.
    """
    yield from _datasets(retriever, _given(retriever, {}))


def stream(retriever: object, arguments: Mapping[str, Any]) -> Iterator[Dataset]:
    """Give a retriever's datasets as it makes them, each checked against those before; `arguments` build a class.

    What comes as a whole, as a list does, is checked as a whole before the first is given. Raises `ConfigError`.
    """
    given = _given(retriever, arguments)
    checked = _checked(retriever, given)
    yield from [*checked] if isinstance(given, Sequence) else checked


def _checked(retriever: object, given: Iterable[object]) -> Iterator[Dataset]:
    seen = Seen()
    for number, dataset in enumerate(_datasets(retriever, given), 1):
        seen.check(piece_of_dataset(dataset, f"{_name(retriever)}, dataset {number}"))
        yield dataset


def _given(retriever: object, arguments: Mapping[str, Any]) -> Iterable[object]:
    """What `load_dataset` gives, where that can be gone through; one dataset is a list of one."""
    name, built = _name(retriever), retriever
    if isinstance(retriever, type):
        with _telling(f"{name}: building it with{' ' + ', '.join(arguments) if arguments else 'out arguments'}"):
            built = retriever(**arguments)
    with _telling(f"{name}: load_dataset"):
        given = built.load_dataset()  # type: ignore[attr-defined]  # what has none is told so
    if isinstance(given, Dataset):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping | BaseModel):
        raise ConfigError(f"{name}: load_dataset gave {_kind(given)}; it must give an iterable of Dataset")
    return given


def _datasets(retriever: object, given: Iterable[object]) -> Iterator[Dataset]:
    name = _name(retriever)
    for number, dataset in enumerate(_each(given, name), 1):
        if not isinstance(dataset, Dataset):
            raise ConfigError(f"{name}: load_dataset gave {_kind(dataset)} as item {number}; it must be a Dataset")
        yield dataset


def _pieces(source: object, where: str, *, base: Path, defaults: Mapping[str, str]) -> Iterator[Piece]:
    if isinstance(source, Dataset):
        yield piece_of_dataset(source, where)
    elif isinstance(source, str | os.PathLike):
        yield from read_file(source, base=base, defaults=defaults)
    elif hasattr(source, "load_dataset"):
        for number, dataset in enumerate(from_retriever(source), 1):
            yield piece_of_dataset(dataset, f"{_name(source)}, dataset {number}")
    elif isinstance(source, Iterable) and not isinstance(source, bytes | Mapping | AbstractSet | BaseModel):
        for number, item in enumerate(source, 1):
            yield from _pieces(item, f"dataset {number}", base=base, defaults=defaults)
    else:
        raise ConfigError(
            f"{where}: {_kind(source)} is no dataset; use a Retriever class, a Dataset, a list of them, "
            f"or the path of a file ({', '.join(READERS)})"
        )


def _each(given: Iterable[object], name: str) -> Iterator[object]:
    end = object()
    with _telling(f"{name}: load_dataset"):
        items = iter(given)
    while True:
        with _telling(f"{name}: load_dataset"):
            item = next(items, end)
        if item is end:
            return
        yield item


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """Turn whatever a user's retriever raises into an error that names it."""
    try:
        yield
    except Exception as error:
        raise ConfigError(f"{what} raised {type(error).__name__}: {error}") from error


def _name(retriever: object) -> str:
    return retriever.__name__ if isinstance(retriever, type) else type(retriever).__name__


def _kind(value: object) -> str:
    if value is None:
        return "None"
    return f"the class {value.__name__}" if isinstance(value, type) else f"an object of type {type(value).__name__}"
