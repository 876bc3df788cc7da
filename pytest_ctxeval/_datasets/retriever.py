"""The base class of what users write to fetch their datasets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from pytest_ctxeval._core.data import Dataset


class Retriever(ABC):
    """A source of datasets. A constructor may take what it likes; the marker builds a class without arguments."""

    @abstractmethod
    def load_dataset(self) -> Iterable[Dataset]:
        """Give the datasets: a list, or a generator, which is consumed one dataset at a time."""
