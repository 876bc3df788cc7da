"""The library without pytest, on a real model: programs as fair-forge, gaussia and agensight have them.

Only what the model said is on the cassette; everything else is done anew in each run.
"""

import pytest
from langchain_core.language_models import BaseChatModel

from pytest_ctxeval import Batch, BayesianMode, Dataset, FrequentistMode, ModelTestCase, Retriever
from pytest_ctxeval._plugin.assistant import AssistantCassette
from pytest_ctxeval.metrics import Context, ContextualRelevancyMetric

WEIGHTS = {"none": (None, None, None), "all": (0.5, 0.3, 0.2), "some": (0.5, None, None)}
SHARES = {"none": (1 / 3, 1 / 3, 1 / 3), "all": (0.5, 0.3, 0.2), "some": (0.5, 0.25, 0.25)}


class BikeShopRetriever(Retriever):
    """Three logged answers, the third one wrong. `weights` are their weights, in order."""

    def __init__(self, weights: tuple[float | None, ...]) -> None:
        self.weights = weights

    def load_dataset(self) -> list[Dataset]:
        context = """You answer for a shop that repairs and rents bicycles.
        What you know:
        - A repair takes two working days
        - The first hour of every rental is free
        - Open Tue-Sat 10am-6pm
        Be brief and friendly."""

        return [
            Dataset(
                session_id="context-eval-001",
                assistant_id="bike-shop-bot",
                language="english",
                context=context,
                conversation=[
                    Batch(
                        qa_id="q1",
                        query="How long does a repair take?",
                        assistant="A repair takes two working days.",
                        ground_truth_assistant="Two working days.",
                        weight=self.weights[0],
                    ),
                    Batch(
                        qa_id="q2",
                        query="Is the first hour of a rental free?",
                        assistant="Yes, the first hour of every rental is free.",
                        ground_truth_assistant="The first hour is free.",
                        weight=self.weights[1],
                    ),
                    Batch(
                        qa_id="q3",
                        query="When are you open?",
                        assistant="You can come by 24/7!",
                        ground_truth_assistant="Tue-Sat 10am-6pm.",
                        weight=self.weights[2],
                    ),
                ],
            )
        ]


@pytest.mark.parametrize("structured", [True, False], ids=["structured", "text"])
def test_the_context_program(
    ctxeval_cassette: AssistantCassette, assistant_model: BaseChatModel, *, structured: bool
) -> None:
    for given, weights in WEIGHTS.items():
        for mode in (FrequentistMode(), BayesianMode(mc_samples=5000, ci_level=0.95)):
            with ctxeval_cassette:
                (metric,) = Context.run(
                    BikeShopRetriever,
                    model=assistant_model,
                    statistical_mode=mode,
                    use_structured_output=structured,
                    weights=weights,
                )
            assert (metric.session_id, metric.n_interactions, metric.n_unscored) == ("context-eval-001", 3, 0)
            scores = [each.context_awareness for each in metric.interactions]
            assert [score is not None and score >= 0.8 for score in scores] == [True, True, False]
            mean = sum(share * (score or 0.0) for share, score in zip(SHARES[given], scores, strict=True))
            assert metric.context_awareness == pytest.approx(mean)
            if isinstance(mode, FrequentistMode):
                assert (metric.context_awareness_ci_low, metric.context_awareness_ci_high) == (None, None)
            else:
                assert metric.context_awareness_ci_low is not None
                assert metric.context_awareness_ci_high is not None
                assert metric.context_awareness_ci_low < mean < metric.context_awareness_ci_high


RENTAL = ModelTestCase(
    input="How do I cancel my rental?",
    actual_output="In the app, until an hour before it starts.",
    retrieval_context=[
        "Cancelling: rentals are cancelled in the app",
        "Deadline: a rental can be cancelled until one hour before it starts",
        "Refund: for a cancelled rental the whole price is paid back within a week",
        "Helmets: every rental comes with a helmet",
    ],
)


def test_the_relevancy_program(ctxeval_cassette: AssistantCassette, assistant_model: BaseChatModel) -> None:
    metric = ContextualRelevancyMetric(threshold=0.7, model=assistant_model, include_reason=True)
    strict = ContextualRelevancyMetric(threshold=0.7, model=assistant_model, strict_mode=True)
    with ctxeval_cassette:
        metric.measure(RENTAL)
        strict.measure(RENTAL)
    assert (metric.score, metric.is_successful()) == (0.75, True)
    assert (strict.score, strict.is_successful()) == (0.0, False)
    assert metric.reason is not None
    assert metric.reason.startswith("3 of 4 statements are relevant to the query; not relevant: chunk 4, ")
