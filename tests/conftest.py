"""What all tests share: a clean environment, and suites that are judged by a script."""

import os
from pathlib import Path

import langchain_openai  # noqa: F401  # pytester forgets what a run in this process imported, and numpy loads but once
import numpy as np  # noqa: F401  # likewise
import pytest
from support.suite import Suite

import pytest_ctxeval._plugin.item_judge
import pytest_ctxeval._plugin.session  # noqa: F401  # likewise

pytest_plugins = ["pytester"]

_CI = (
    "CI", "GITHUB_ACTIONS", "GITLAB_CI", "JENKINS_URL", "BUILDKITE", "CIRCLECI", "TF_BUILD", "TEAMCITY_VERSION", "TRAVIS",
    "BITBUCKET_BUILD_NUMBER", "APPVEYOR", "DRONE", "CODEBUILD_BUILD_ID", "BUILD_NUMBER",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """No test depends on whether it runs on a CI, or on what keys there are; the examples do as their user does."""
    if "examples" in Path(str(request.node.path)).parts:
        return
    for name in (*_CI, "OPENAI_API_KEY", "GROQ_API_KEY", "ANTHROPIC_API_KEY", "PYTEST_ADDOPTS", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith(("CTXEVAL_", "LANGSMITH_", "LANGCHAIN_"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A project of its own, judged by a script: an answer that holds SCORE=0.9 gets 0.9."""
    return Suite(pytester, monkeypatch)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let `pytest -k context` mean the judged tests here too, where names and ids of unit tests hold the word as well."""
    if config.getoption("keyword") == "context":
        others = [item for item in items if item.get_closest_marker("ctxeval") is None]
        items[:] = [item for item in items if item.get_closest_marker("ctxeval") is not None]
        config.hook.pytest_deselected(items=others)
