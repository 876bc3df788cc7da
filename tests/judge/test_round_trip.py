"""Whatever is asked and answered comes back as it was: arbitrary texts through record and replay, dead contexts."""

import asyncio
import contextvars
import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bench import NOWHERE, Bench, chat
from support.llm_server import LLMServer, Reply

from pytest_ctxeval import CassetteMissError
from pytest_ctxeval._judge.cassette import file
from pytest_ctxeval._judge.cassette.tape import ACTIVE, Call, Tape

ANY = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY, lambda part: st.lists(part) | st.dictionaries(ANY, part)
)
LOADERS = [yaml.SafeLoader, *([yaml.CSafeLoader] if hasattr(yaml, "CSafeLoader") else [])]


@pytest.fixture(scope="module")
def provider() -> Iterator[LLMServer]:
    with LLMServer() as running:
        yield running


@pytest.fixture(params=LOADERS, ids=lambda loader: str(loader.__name__))
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "_Loader", request.param)


@pytest.mark.usefixtures("_loader")
@settings(max_examples=60, deadline=None)
@given(asked=ANY, answered=ANY)
def test_any_text_is_recorded_and_replayed_as_it_was(provider: LLMServer, asked: str, answered: str) -> None:
    provider.answer = lambda _prompt, _body: Reply(answered)
    with TemporaryDirectory() as folder:
        tape = Tape(Path(folder, "a.yaml"), node="n", mode="once", shown="a.yaml")
        with tape.call() as call:
            said = chat(provider).invoke(asked)
        assert said.content == answered
        tape.keep(call)
        tape.close("passed")
        again = Tape(Path(folder, "a.yaml"), node="n", mode="none", shown="a.yaml")
        with again.call() as call:
            assert chat(NOWHERE.replace(":9/", f":{httpx.URL(provider.url).port}/")).invoke(asked).content == answered
        assert (call.replayed, call.misses) == (1, [])


@settings(max_examples=60, deadline=None)
@given(body=JSON, answer=st.binary() | ANY.map(str.encode))
def test_any_body_is_found_again_and_any_bytes_come_back(body: Any, answer: bytes) -> None:
    """Straight at the transport, with a made-up service in the place of the network."""
    with TemporaryDirectory() as folder:
        tape = Tape(Path(folder, "a.yaml"), node="n", mode="once", shown="a.yaml")
        made = Tape(Path(folder, "a.yaml"), node="n", mode="none", shown="a.yaml")
        recorded = file.Recording(
            node="n", judge="", client="", complete=True, interactions=(_interaction(body, answer),)
        )
        file.write_recording(tape.path, recorded, shown="a.yaml")
        with made.call(), httpx.Client() as client:
            assert client.post("http://service.example/v1", json=body).content == answer


def _interaction(body: Any, answer: bytes) -> Any:
    from pytest_ctxeval._judge.cassette.trim import trim

    request = httpx.Request("POST", "http://service.example/v1", json=body)
    return trim(
        method="POST",
        uri=str(request.url),
        body=request.content,
        content_type="application/json",
        status=200,
        reason="OK",
        headers={"content-type": ["application/octet-stream"]},
        answer=answer,
        sample=0,
    )


def test_a_block_that_is_collected_as_garbage_elsewhere_ends_no_other_block(tmp_path: Path) -> None:
    """The rest of a generator that nobody exhausts runs in whatever context collects it."""

    def block(name: str) -> Iterator[Call]:
        with Tape(tmp_path / f"{name}.yaml", node="n", mode="none", shown=name).call() as call:
            yield call

    abandoned = block("abandoned")
    contextvars.copy_context().run(next, abandoned)
    with Tape(tmp_path / "mine.yaml", node="n", mode="none", shown="mine").call() as mine:
        del abandoned
        gc.collect()
        assert ACTIVE.get() is mine
        with httpx.Client() as client:
            assert client.get("http://127.0.0.1:9/").status_code == 400  # held back: nobody listens there
    assert len(mine.misses) == 1
    assert ACTIVE.get() is None


def test_contexts_that_died_leave_nothing_behind(server: LLMServer, bench: Bench) -> None:
    """A thousand blocks that are left open in contexts that are dropped: nothing of them stays, nothing goes out."""

    def left_open() -> None:
        bench.tape("none").call().__enter__()

    def alive() -> int:
        return sum(isinstance(each, Call) for each in gc.get_objects())

    before = alive()
    for _ in range(1000):
        contextvars.copy_context().run(left_open)

    async def stream() -> AsyncIterator[int]:
        with bench.tape("none").call():
            yield 1
            yield 2

    async def abandon() -> None:
        async for _ in stream():
            break

    asyncio.run(abandon())
    gc.collect()
    assert alive() <= before
    assert ACTIVE.get() is None
    with pytest.raises(CassetteMissError):
        bench.assess(chat(server), mode="none")
    assert server.requests == []
