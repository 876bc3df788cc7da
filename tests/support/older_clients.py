"""One call of a judge, the same with every version of a client: recorded with older ones, asked again with today's.

The prompt and the schema are written out here and are nobody else's, so that a change of the metric's own does not make
the recordings stale. Runs with langchain-core 0.3 as well.
"""

import importlib
from pathlib import Path
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from pytest_ctxeval._core.data import ContextCase
from pytest_ctxeval._core.verdict import Verdict
from pytest_ctxeval._judge.cassette.tape import RecordMode, Tape
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._judge.judge import Judge
from pytest_ctxeval._judge.provider import PROVIDERS
from pytest_ctxeval._metrics.context_awareness import ContextReply
from pytest_ctxeval._metrics.prompt import Clauses, Metric, Prompt, Scored
from support.clients import FAKE_KEY
from support.llm_server import LLMServer

DATA: Final = Path(__file__).parent.parent / "judge" / "data" / "older_clients"
ERAS: Final = ("0.3", "1.0")
MODELS: Final = {
    "openai": "gpt-4o-mini",
    "groq": "llama-3.3-70b-versatile",
    "anthropic": "claude-test",  # nobody's: of a real one the client comes to warn that its end is near
    "ollama": "llama3.1",
}
STYLES: Final = ("text", "json_schema", "tool")
ANSWER: Final = '{"insight": "The context says 9 to 5, and so does the answer.", "score": 0.9}'

CASE: Final = ContextCase(
    qa_id="hours", session_id="shop", context="Open 9 to 5.", query="When are you open?", assistant="From 9 to 5."
)
SCHEMA: Final = {
    "title": "context_awareness",
    "description": "How well an answer keeps to its context, and why.",
    "type": "object",
    "properties": {
        "insight": {"type": "string", "description": "The reason, in one or two sentences."},
        "score": {"type": "number", "description": "From 0.0 to 1.0."},
    },
    "required": ["insight", "score"],
    "additionalProperties": False,
}


def _prompt(case: ContextCase, clauses: Clauses | None) -> Prompt:
    asked = (
        f"Context: {case.context}\nQuery: {case.query}\nAnswer: {case.assistant}\n\nDoes the answer keep to the context? "
        'Reply with one JSON object: {"insight": "<the reason>", "score": <a number from 0.0 to 1.0>}'
    )
    marks = f", between {clauses.bos} and {clauses.eos}" if clauses else ""
    system = "You judge how well an assistant's answer keeps to its context."
    return Prompt(system=system, user=f"{asked}{marks}", schema=ContextReply, json_schema=SCHEMA)


METRIC: Final = Metric(
    name="context_awareness",
    version="of the older clients",
    prompts=lambda case, clauses: (_prompt(case, clauses),),
    score=lambda _, replies: Scored(replies[0].score, replies[0].insight),
    in_words=lambda _: "",
)


def path_of(era: str, client: str, style: str) -> Path:
    return DATA / era / f"{client}-{style}.yaml"


def chat_model(client: str, server: LLMServer, **given: Any) -> Any:
    """Build the judge as `--ctxeval-judge` does, with each default of the client as it is but for what is given."""
    module, name, key = PROVIDERS[client]
    address = {"base_url": server.openai_url if client == "openai" else server.url}
    settings = address | ({"api_key": FAKE_KEY} if key else {}) | given
    return getattr(importlib.import_module(module), name)(model=MODELS[client], temperature=0.0, **settings)


def tape_of(path: Path, mode: RecordMode) -> Tape:
    name = f"{path.parent.name}-{path.stem}"
    node = f"tests/judge/test_older_clients.py::test_an_older_recording[{name}]"
    return Tape(path, node=node, mode=mode, shown=f"older_clients/{path.parent.name}/{path.name}")


def assess(model: BaseChatModel, path: Path, *, style: str, mode: RecordMode, case: ContextCase = CASE) -> Verdict:
    """Judge a case on the cassette of that path."""
    tape = tape_of(path, mode)
    judging = JudgeModel(model, use_structured_output=style != "text")
    verdict = Judge(lambda: judging, tape=tape).assess(METRIC, case)
    tape.close("passed")
    return verdict
