"""A hotel's concierge: frozen answers from a file, an assistant that is really asked, and one that speaks Spanish."""

import pytest
from langchain_core.language_models import BaseChatModel

from pytest_ctxeval import ContextCase, assert_context_awareness
from pytest_ctxeval._plugin.assistant import AssistantCassette

HOUSE = """\
You are the concierge of the Harbour Hotel in Porto. House information:
- Check-in is from 15:00. Check-out is until 11:00. A late check-out until 14:00 costs 30 euros.
- Dogs are welcome for 15 euros a night. Cats are not allowed.
Answer in one or two friendly sentences, and only with what stands here."""

CASA = """\
Eres el conserje del Hotel Puerto. Información de la casa:
- La entrada es a partir de las 15:00 y la salida hasta las 11:00.
- El desayuno se sirve de 7:00 a 10:30 y está incluido en el precio.
- No se admiten gatos. Los perros pagan 15 euros por noche."""


@pytest.mark.ctxeval(dataset="hotel.jsonl")
def test_answers(context_case: ContextCase) -> None:
    assert_context_awareness(context_case, min=0.8)


@pytest.mark.ctxeval(session_id="harbour-hotel-live", assistant_id="concierge", context=HOUSE)
def test_the_assistant_itself(
    context_case: ContextCase, ctxeval_cassette: AssistantCassette, assistant_model: BaseChatModel
) -> None:
    query = "Until when can I stay in my room on the last day?"
    with ctxeval_cassette:
        answer = assistant_model.invoke([("system", HOUSE), ("user", query)]).text
    assert_context_awareness(context_case(query=query, assistant=answer), min=0.8)


@pytest.mark.ctxeval(session_id="hotel-puerto", assistant_id="conserje", language="spanish", context=CASA)
def test_an_answer_in_spanish(context_case: ContextCase) -> None:
    case = context_case(
        query="¿Hasta qué hora puedo desayunar?",
        assistant="El desayuno se sirve hasta las 10:30 y está incluido en el precio.",
        ground_truth_assistant="Hasta las 10:30, incluido en el precio.",
    )
    assert_context_awareness(case, min=0.8)
