"""What is public is promised."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_ctxeval

PUBLIC = [
    "CONTEXTUAL_RELEVANCY", "CONTEXT_AWARENESS", "Batch", "BayesianMode", "CassetteError", "CassetteMissError",
    "CassetteReadError", "ConfigError", "ContextAwarenessTemplate", "ContextCase", "ContextInteraction", "ContextMetric",
    "ContextualRelevancyTemplate", "CtxEvalError", "CtxEvalWarning", "Dataset", "FrequentistMode", "Judge", "JudgeError",
    "JudgeReplyError", "JudgeUnreachableError", "Metric", "ModelTestCase", "Retriever", "ScoreTooLow", "Statement",
    "Verdict", "assert_context_awareness", "assert_contextual_relevancy", "context_awareness", "contextual_relevancy",
    "enclose",
]  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert pytest_ctxeval.__all__ == PUBLIC
    assert set(PUBLIC) <= set(dir(pytest_ctxeval))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_explains_itself(name: str) -> None:
    found = getattr(pytest_ctxeval, name)
    assert found.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'pytest_ctxeval' has no attribute 'assert_context_awarenes'"):
        _ = pytest_ctxeval.assert_context_awarenes


@pytest.mark.parametrize("module", ["retriever", "schemas", "statistical"])
def test_the_seeds_import_homes_only_name_what_is_elsewhere(module: str) -> None:
    home = importlib.import_module(f"pytest_ctxeval.{module}")
    for name in home.__all__:
        assert getattr(home, name).__module__ != home.__name__


def test_the_metrics_without_pytest_are_these() -> None:
    from pytest_ctxeval import metrics

    assert metrics.__all__ == ["Context", "ContextualRelevancyMetric", "ModelTestCase"]
    assert all(getattr(metrics, name).__doc__ for name in metrics.__all__)
    assert set(metrics.__all__) <= set(dir(metrics))
    with pytest.raises(AttributeError, match=r"module 'pytest_ctxeval\.metrics' has no attribute 'Contxt'"):
        _ = metrics.Contxt


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, pytest_ctxeval, pytest_ctxeval.metrics; heavy = {'pydantic', 'numpy', 'langchain_core', 'vcr', 'yaml', 'pytest'} & "
        "sys.modules.keys(); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_readme_names_every_helper() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    for name in (
        "assert_context_awareness", "assert_contextual_relevancy", "judge_model", "context_case", "ctxeval_cassette",
        "judge.assess", "Context.run", "ContextualRelevancyMetric", "ContextAwarenessTemplate",
        "ContextualRelevancyTemplate", "enclose",
    ):  # fmt: skip
        assert name in readme
