"""Judging with a real client against a server on this machine, as often as one likes."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from pytest_ctxeval import ContextCase, CtxEvalWarning, Verdict
from pytest_ctxeval._judge.cassette.tape import Ending, RecordMode, Tape
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._judge.judge import Judge
from pytest_ctxeval._metrics.context_awareness import CONTEXT_AWARENESS
from support.llm_server import LLMServer

CASE = ContextCase(qa_id="q", session_id="s", context="Open 9 to 5.", query="When?", assistant="From 9 to 5.")
KEY = "planted-key-0123456789abcdef"


def chat(server: LLMServer | str, **settings: Any) -> Any:
    from langchain_openai import ChatOpenAI

    url = server if isinstance(server, str) else server.openai_url
    return ChatOpenAI(
        **{"base_url": url, "api_key": KEY, "model": "m", "temperature": 0.0, "max_retries": 0, **settings}
    )


class Bench:
    """One test's worth of judging, as often as one likes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def assess(
        self,
        model: Any,
        *cases: ContextCase,
        mode: RecordMode = "once",
        ending: Ending = "passed",
        structured: bool = False,
        **settings: Any,
    ) -> list[Verdict]:
        tape = None if mode == "off" else self.tape(mode)
        judging = JudgeModel(model, use_structured_output=structured)
        judge = Judge(lambda: judging, tape=tape, **settings)
        try:
            return [judge.assess(CONTEXT_AWARENESS, case) for case in cases or (CASE,)]
        except BaseException:
            ending = "broken" if ending == "passed" else ending
            raise
        finally:
            if tape:
                tape.close(ending)

    def tape(self, mode: RecordMode) -> Tape:
        return Tape(self.path, node="test_a.py::test_b[x y]", mode=mode, shown="cassettes/a.yaml")

    @property
    def interactions(self) -> list[Any]:
        return list(yaml.safe_load(self.path.read_text(encoding="utf-8"))["interactions"])


@contextmanager
def told() -> Iterator[list[str]]:
    """What our own warnings say; langchain-openai has one of its own for the same."""
    ours: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield ours
    ours += [str(each.message) for each in caught if each.category is CtxEvalWarning]


NOWHERE = "http://127.0.0.1:9/v1"  # the discard port: nothing listens there
