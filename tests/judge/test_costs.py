"""What was spent is counted, whatever came of it; and what a form of asking costs when it is refused."""

import re
import warnings
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from support.bench import CASE, NOWHERE, Bench, chat, told
from support.clients import CLIENTS
from support.llm_server import WRONG_KEY, Fault, LLMServer, Reply

from pytest_ctxeval import CassetteMissError, CtxEvalWarning, JudgeReplyError, JudgeUnreachableError
from pytest_ctxeval._core.verdict import Calls, Cost
from pytest_ctxeval._judge.form import JudgeModel
from pytest_ctxeval._judge.judge import Judge, Judged
from pytest_ctxeval._metrics.context_awareness import CONTEXT_AWARENESS


def attempt(model: Any, bench: Bench | None = None, **settings: Any) -> Judged:
    judging = JudgeModel(model)
    tape = bench.tape("once") if bench else None
    judged = Judge(lambda: judging, tape=tape, **settings).attempt(CONTEXT_AWARENESS, CASE)
    if tape:
        tape.close("broken" if judged.error else "passed")
    return judged


@pytest.mark.parametrize("recorded", [True, False])
def test_the_calls_of_a_judging_that_failed_are_counted(server: LLMServer, bench: Bench, *, recorded: bool) -> None:
    tried = bench if recorded else None
    server.fail(WRONG_KEY)
    assert attempt(chat(server), tried).cost.calls == Calls(live=1)
    server.fail("hang")
    late = attempt(chat(server), tried, timeout_s=0.2)
    assert (type(late.error), late.cost.calls) == (JudgeUnreachableError, Calls(live=1))
    server.reply = Reply("no verdict", usage=(5, 2))
    unreadable = attempt(chat(server), tried)
    assert isinstance(unreadable.error, JudgeReplyError)
    assert unreadable.cost == Cost(Calls(live=2), tokens=14)
    assert not bench.path.exists()


def test_what_the_client_tried_in_vain_is_counted_beside_what_is_kept(server: LLMServer, bench: Bench) -> None:
    server.fail(Fault(status=429, headers={"retry-after-ms": "1"}))
    assert attempt(chat(server, max_retries=1), bench).cost.calls == Calls(recorded=1, live=1)


class Plain(ChatOpenAI):
    """A model that knows of no structured output."""

    def with_structured_output(self, *_: object, **__: object) -> Any:
        raise NotImplementedError


def test_a_model_without_structured_output_is_asked_for_text(server: LLMServer, bench: Bench) -> None:
    judge = Plain(base_url=server.openai_url, api_key="planted-0123456789", model="m", max_retries=0)  # type: ignore[arg-type]
    with told() as warned:
        assert bench.assess(judge, structured=True)[0].source == "recorded"
    assert warned == [
        "the judge m does not take json_schema (NotImplementedError); nor function_calling (NotImplementedError); asked for text instead"
    ]
    assert bench.assess(judge, structured=True, mode="none")[0].source == "replayed"
    with pytest.raises(CassetteMissError, match="stale"):
        bench.assess(judge, CASE(assistant="All day."), structured=True, mode="none")


def test_a_model_that_is_not_there_is_asked_once_and_its_forms_are_not_blamed(server: LLMServer, bench: Bench) -> None:
    server.fail_always(Fault(status=404))
    with told() as warned, pytest.raises(JudgeUnreachableError, match="HTTP 404"):
        bench.assess(chat(server), structured=True)
    assert warned == []
    assert len(server.requests) == 1


def test_forms_are_not_blamed_for_what_is_wrong_with_every_request(server: LLMServer, bench: Bench) -> None:
    server.fail_always(Fault(status=400, body={"error": {"message": "temperature is not supported"}}))
    with told() as warned, pytest.raises(JudgeUnreachableError, match="temperature is not supported"):
        bench.assess(chat(server), structured=True)
    assert warned == []


def test_the_verdict_is_recorded_before_a_warning_that_is_an_error(server: LLMServer, bench: Bench) -> None:
    server.reject_response_format = True
    with warnings.catch_warnings():
        warnings.simplefilter("error", CtxEvalWarning)
        with pytest.raises(CtxEvalWarning, match="does not take json_schema"):
            bench.assess(chat(server), structured=True, ending="asserted")
    assert bench.assess(chat(NOWHERE), structured=True, mode="none")[0].score == 0.9


@pytest.mark.parametrize("client", CLIENTS)
def test_a_page_of_html_is_no_verdict_and_is_shown(server: LLMServer, bench: Bench, client: str) -> None:
    server.fail_always("not json")
    judge = CLIENTS[client](server)
    with pytest.raises(JudgeReplyError) as failed:
        bench.assess(judge)
    assert re.sub(r"\(\w+\)", "(...)", str(failed.value)) == (
        f"the judge {JudgeModel(judge).name} answered with something that its client cannot read (...):\n\n"
        "<html>Sign in to the hotel's Wi-Fi</html>"
    )
    assert not bench.path.exists()


def test_a_recorded_reply_that_was_edited_is_told_and_not_called_stale(server: LLMServer, bench: Bench) -> None:
    bench.assess(chat(server))
    text = bench.path.read_text(encoding="utf-8")
    bench.path.write_text(text.replace('\\"score\\": 0.9', '\\"score\\": 9'), encoding="utf-8")
    with pytest.raises(JudgeReplyError) as unread:
        bench.assess(chat(NOWHERE), mode="none")
    assert str(unread.value) == (
        "the judge m gave no verdict in 1 reply; of the last one, score: input should be less than or equal to 1, "
        'not 9 (recorded in cassettes/a.yaml):\n\n{"insight": "agrees", "score": 9}'
    )


@pytest.mark.parametrize("client", ["openai", "groq"])  # the others are sent no text, but objects
def test_a_tool_called_with_a_name_twice_is_no_verdict(server: LLMServer, bench: Bench, client: str) -> None:
    server.reject_response_format = True
    server.reply = Reply(tool_arguments='{"insight": "x", "score": 0.1, "score": 0.9}')
    with told(), pytest.raises(JudgeReplyError, match="twice"):
        bench.assess(CLIENTS[client](server), structured=True)


def test_one_refused_prompt_does_not_cost_the_judge_its_form(server: LLMServer, bench: Bench) -> None:
    server.fail(Fault(status=400, body={"error": {"message": "stopped by the content filter"}}))
    judge = chat(server)
    with told() as warned, pytest.raises(JudgeUnreachableError, match="content filter"):
        bench.assess(judge, structured=True)
    assert bench.assess(judge, structured=True)[0].score == 0.9
    assert warned == []
    assert server.requests[-1].body["response_format"]["type"] == "json_schema"
