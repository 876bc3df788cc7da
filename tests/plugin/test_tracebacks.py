"""A wrong use of the plugin is shown at the reader's own line, with no line of the plugin's own code."""

import pytest
from support.suite import Suite

HEAD = "import unittest\nimport pytest\nfrom pytest_ctxeval import assert_context_awareness\n"
WRONG = {
    "a marker on a class": (
        "@pytest.mark.ctxeval(samples=0)\nclass TestIt(unittest.TestCase):\n    def test_it(self): pass\n",
        "samples=0 is not a number of 1 or more",
    ),
    "a marker on a parameter": (
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.ctxeval(samples=0))])\ndef test_it(x, judge): 0\n",
        "samples=0 is not a number of 1 or more",
    ),
    "an assertion in a test of others": (
        "def test_it():\n    assert_context_awareness('x')\n",
        "assert_context_awareness was called outside of a test that uses the plugin",
    ),
    "a misspelt metric": (
        "def test_it(judge):\n    judge.assess('context_awarenes', None)\n",
        "'context_awarenes' is no metric; did you mean 'context_awareness'?",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_no_frame_of_the_plugin_is_shown(suite: Suite, name: str) -> None:
    code, message = WRONG[name]
    (suite.path / "test_wrong.py").write_text(HEAD + code)
    shown = suite.in_process("test_wrong.py").stdout.str()
    assert message in shown
    assert "pytest_ctxeval/" not in shown.replace("\\", "/")
