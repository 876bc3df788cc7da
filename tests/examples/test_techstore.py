"""Frozen answers of a shop's help desk, one of them wrong on purpose."""

import pytest

from pytest_ctxeval import Batch, ContextCase, Dataset, Retriever, ScoreTooLow, assert_context_awareness

POLICY = """\
You are the help desk assistant of TechStore. What you need to know:
- A product can be returned within 30 days, with the receipt.
- Orders above $50 ship free of charge.
- The help desk is open Monday to Friday, 9am to 5pm EST.
Be polite, and offer further help."""


class TechStoreRetriever(Retriever):
    """The conversation as it was logged."""

    def load_dataset(self) -> list[Dataset]:
        return [
            Dataset(
                session_id="techstore",
                assistant_id="help-desk",
                context=POLICY,
                conversation=[
                    Batch(
                        qa_id="returns",
                        query="Can I give a product back?",
                        assistant="Yes, within 30 days and with the receipt. Can I help you with anything else?",
                        ground_truth_assistant="Within 30 days, with the receipt.",
                    ),
                    Batch(
                        qa_id="shipping",
                        query="Is shipping free?",
                        assistant="Yes, shipping is free for orders above $50.",
                        ground_truth_assistant="Free above $50.",
                    ),
                    Batch(
                        qa_id="hours",
                        query="When can I reach the help desk?",
                        assistant="You can reach us 24/7!",
                        ground_truth_assistant="Monday to Friday, 9am to 5pm EST.",
                    ),
                ],
            )
        ]


@pytest.mark.ctxeval(dataset=TechStoreRetriever)
def test_answers(context_case: ContextCase, request: pytest.FixtureRequest) -> None:
    if context_case.qa_id == "hours":
        request.applymarker(pytest.mark.xfail(raises=ScoreTooLow, strict=True, reason="the answer is wrong on purpose"))
    assert_context_awareness(context_case, min=0.8)
