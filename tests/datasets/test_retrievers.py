"""Datasets from Python: retrievers, dataset objects, and lists of them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ctxeval import Batch, ConfigError, Dataset
from pytest_ctxeval._datasets.load import from_retriever, load
from pytest_ctxeval.retriever import Retriever
from pytest_ctxeval.schemas import ContextCase


def dataset(session_id: str, *qa_ids: str, **fields: Any) -> Dataset:
    conversation = [Batch(qa_id=qa_id, query="?") for qa_id in qa_ids]
    return Dataset(
        session_id=session_id, assistant_id="bot", **{"context": "c", "conversation": conversation, **fields}
    )


SHOP, BANK = dataset("shop", "q1", "q2"), dataset("bank", "q1")


class ShopRetriever(Retriever):
    def load_dataset(self) -> list[Dataset]:
        return [SHOP, BANK]


class LazyRetriever(Retriever):
    def load_dataset(self) -> Iterator[Dataset]:
        yield SHOP
        yield BANK


class UnrelatedRetriever:
    def load_dataset(self) -> tuple[Dataset, ...]:
        return (SHOP, BANK)


class Configured(Retriever):
    def __init__(self, *datasets: Any) -> None:
        self.datasets = datasets

    def load_dataset(self) -> Iterable[Dataset]:
        return iter(self.datasets)


def loaded(source: object) -> list[Dataset]:
    return load(source, base=Path("nowhere"), defaults={"context": "not used", "session_id": "not used"})


def failure(source: object) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(source)
    return str(caught.value)


def giving(value: Any) -> Any:
    class OddRetriever(Retriever):
        def load_dataset(self) -> Any:
            if isinstance(value, BaseException):
                raise value
            return value

    return OddRetriever


@pytest.mark.parametrize(
    "source",
    [
        ShopRetriever,
        ShopRetriever(),
        LazyRetriever,
        UnrelatedRetriever,
        UnrelatedRetriever(),
        SimpleNamespace(load_dataset=lambda: [SHOP, BANK]),
        Configured(SHOP, BANK),
        [SHOP, BANK],
        (SHOP, giving(BANK)),
        iter([SHOP, [[BANK]]]),
        [giving([SHOP]), Configured(BANK)],
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_source_gives_its_datasets_in_order(source: object) -> None:
    assert loaded(source) == [SHOP, BANK]


def test_one_dataset_is_a_list_of_one() -> None:
    assert loaded(SHOP) == [SHOP]
    assert loaded(giving(SHOP)) == [SHOP]


@pytest.mark.parametrize("source", [[], (), iter(()), giving([]), giving(iter(())), [[], giving([])]])
def test_nothing_gives_no_dataset(source: object) -> None:
    assert loaded(source) == []


def test_a_dataset_without_a_conversation_stays() -> None:
    assert loaded([dataset("empty"), SHOP]) == [dataset("empty"), SHOP]


def test_a_session_in_several_datasets_becomes_one() -> None:
    assert loaded([SHOP, BANK, dataset("shop", "q3")]) == [dataset("shop", "q1", "q2", "q3"), BANK]


def test_a_retriever_is_read_as_far_as_it_is_asked() -> None:
    asked = []

    class Endless(Retriever):
        def load_dataset(self) -> Iterator[Dataset]:
            while True:
                asked.append(1)
                yield SHOP

    found = from_retriever(Endless)
    assert (next(found), next(found), len(asked)) == (SHOP, SHOP, 2)


def test_a_retriever_without_load_dataset_cannot_be_built() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Retriever()  # type: ignore[abstract]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "None; it must give an iterable of Dataset"),
        (3, "an object of type int; it must give an iterable of Dataset"),
        ("rows.jsonl", "an object of type str; it must give an iterable of Dataset"),
        ({"a": 1}, "an object of type dict; it must give an iterable of Dataset"),
        (Batch(qa_id="q", query="?"), "an object of type Batch; it must give an iterable of Dataset"),
        (Dataset, "the class Dataset; it must give an iterable of Dataset"),
        ([SHOP, {"session_id": "s"}], "an object of type dict as item 2; it must be a Dataset"),
        ([None], "None as item 1; it must be a Dataset"),
        ([[SHOP]], "an object of type list as item 1; it must be a Dataset"),
    ],
)
def test_a_retriever_that_gives_something_else_is_told(value: Any, told: str) -> None:
    assert failure(giving(value)) == f"OddRetriever: load_dataset gave {told}"


def test_a_retriever_that_raises_is_told_with_its_cause() -> None:
    cause = ConnectionError("no route to the database")
    with pytest.raises(ConfigError) as caught:
        loaded(giving(cause))
    assert str(caught.value) == "OddRetriever: load_dataset raised ConnectionError: no route to the database"
    assert caught.value.__cause__ is cause


def test_a_generator_that_raises_midway_is_told_with_its_cause() -> None:
    class Failing(Retriever):
        def load_dataset(self) -> Iterator[Dataset]:
            yield SHOP
            raise KeyError("sessions")

    with pytest.raises(ConfigError) as caught:
        loaded(Failing())
    assert str(caught.value) == "Failing: load_dataset raised KeyError: 'sessions'"
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_iterable_that_cannot_be_started_is_told() -> None:
    class Closed:
        def __iter__(self) -> Iterator[Dataset]:
            raise OSError("closed")

    assert failure(giving(Closed())) == "OddRetriever: load_dataset raised OSError: closed"


def test_a_retriever_class_that_needs_arguments_is_told() -> None:
    class Needy(Retriever):
        def __init__(self, url: str) -> None:
            self.url = url

        def load_dataset(self) -> list[Dataset]:
            return [dataset(self.url)]

    assert loaded(Needy("a")) == [dataset("a")]
    assert failure(Needy).startswith("Needy: building it without arguments raised TypeError: ")
    assert failure(Needy).endswith("missing 1 required positional argument: 'url'")


def test_a_skip_inside_a_retriever_stays_a_skip() -> None:
    with pytest.raises(pytest.skip.Exception):
        loaded(giving(pytest.skip.Exception("no database here")))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (None, "the dataset: None"),
        (3, "the dataset: an object of type int"),
        (b"rows.jsonl", "the dataset: an object of type bytes"),
        ({"session_id": "s"}, "the dataset: an object of type dict"),
        ({"a.jsonl", "b.jsonl"}, "the dataset: an object of type set"),
        (Batch(qa_id="q", query="?"), "the dataset: an object of type Batch"),
        (Dataset, "the dataset: the class Dataset"),
        ([SHOP, None], "dataset 2: None"),
        ([SHOP, ContextCase], "dataset 2: the class ContextCase"),
    ],
)
def test_what_is_no_dataset_is_told_with_what_would_be(source: object, told: str) -> None:
    assert failure(source) == (
        f"{told} is no dataset; use a Retriever class, a Dataset, a list of them, "
        "or the path of a file (.jsonl, .ndjson, .json, .yaml, .yml, .csv)"
    )


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            dataset("shop", "q1", "q2", "q1"),
            "the dataset, conversation.2: field 'qa_id': 'q1' stands already at the dataset, conversation.0",
        ),
        (
            [SHOP, BANK, dataset("shop", "q3", "q2")],
            "dataset 3, conversation.1: field 'qa_id': 'q2' stands already at dataset 1, conversation.1",
        ),
        (
            [ShopRetriever, giving([dataset("shop", "q1")])],
            (
                "OddRetriever, dataset 1, conversation.0: field 'qa_id': 'q1' stands already at "
                "ShopRetriever, dataset 1, conversation.0"
            ),
        ),
    ],
)
def test_a_qa_id_that_comes_twice_in_a_session_names_both_places(source: object, told: str) -> None:
    assert failure(source) == f"{told} in session 'shop'; each case of a session needs a qa_id of its own"


@pytest.mark.parametrize(("field", "value"), [("context", "other"), ("language", "german")])
def test_a_session_with_two_contexts_or_languages_names_both_places(field: str, value: str) -> None:
    assert failure([SHOP, Configured(BANK, dataset("shop", "q3", **{field: value}))]) == (
        f"Configured, dataset 2: field '{field}': session 'shop' has another {field} at dataset 1; "
        "repeat that one, or use another session_id"
    )


def test_the_homes_of_the_names_are_importable() -> None:
    from pytest_ctxeval import retriever, schemas, statistical

    assert retriever.__all__ == ["Retriever"]
    assert schemas.__all__ == [
        "Batch",
        "ContextCase",
        "ContextInteraction",
        "ContextMetric",
        "Dataset",
        "ModelTestCase",
    ]
    assert statistical.__all__ == ["BayesianMode", "FrequentistMode", "StatisticalMode"]
    assert all(hasattr(home, name) for home in (retriever, schemas, statistical) for name in home.__all__)
