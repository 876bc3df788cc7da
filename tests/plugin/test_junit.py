"""What pytest's own `--junitxml` holds of a judged test (CASES E5)."""

import re
import xml.etree.ElementTree as ET

import pytest
from support.suite import Suite


def properties_in(suite: Suite) -> list[tuple[str, dict[str, str]]]:
    """The name of each test case of a file, and its properties; no two of them have the same name."""
    found = []
    for element in ET.fromstring((suite.path / "run.xml").read_bytes()).iter("testcase"):  # noqa: S314  # it is ours
        pairs = [(each.attrib["name"], each.attrib["value"]) for each in element.iter("property")]
        assert len(dict(pairs)) == len(pairs)
        found.append((element.attrib["name"], dict(pairs)))
    return found


@pytest.mark.parametrize("way", [(), ("-n", "2"), ("-p", "no:xdist")], ids=" ".join)
def test_each_test_has_what_its_verdict_says(suite: Suite, way: tuple[str, ...]) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.05\nREASON=contradicts the hours", "RAISE=no route")
    suite.run("--junitxml=run.xml", *way)
    written = (suite.path / "run.xml").read_text(encoding="utf-8")
    (suite.path / "run.xml").write_text(re.sub(r"after \d+\.\d s", "after 0.0 s", written), encoding="utf-8")
    about = {f"ctxeval.context_awareness.{name}": value for name, value in {"session": "shop", "min": "0.80"}.items()}
    assert sorted(properties_in(suite)) == [
        ("test_answers[shop-q1]", {
            **about, "ctxeval.context_awareness.case": "q1", "ctxeval.context_awareness.score": "0.90",
            "ctxeval.context_awareness.reason": "because", "ctxeval.context_awareness.judge": "scripted",
        }),
        ("test_answers[shop-q2]", {
            **about, "ctxeval.context_awareness.case": "q2", "ctxeval.context_awareness.score": "0.05",
            "ctxeval.context_awareness.reason": "contradicts the hours", "ctxeval.context_awareness.judge": "scripted",
        }),
        ("test_answers[shop-q3]", {
            **about, "ctxeval.context_awareness.case": "q3",
            "ctxeval.context_awareness.unscored": "the judge scripted could not be reached, given up after 0.0 s: no route",
        }),
    ]  # fmt: skip


SEVERAL = """
    import pytest
    from pytest_ctxeval import assert_context_awareness, assert_contextual_relevancy

    @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?", samples=2)
    def test_it(context_case):
        for qa_id in ("q10", "q9"):
            assert_context_awareness(context_case(qa_id=qa_id, assistant=f"SCORE=0.8 {qa_id}"), min=0.5)
        assert_contextual_relevancy(context_case(qa_id="q1", retrieval_context=["It opens at 9."]), min=0.5)
"""


def test_several_verdicts_of_a_test_are_numbered_in_the_order_of_their_cases(suite: Suite) -> None:
    suite.module(SEVERAL)
    suite.in_process("--junitxml=run.xml")
    ((_, properties),) = properties_in(suite)
    assert {name: value for name, value in properties.items() if name.endswith((".case", ".samples"))} == {
        "ctxeval.context_awareness.case": "q9",
        "ctxeval.context_awareness.samples": "0.80 0.80",
        "ctxeval.context_awareness.2.case": "q10",
        "ctxeval.context_awareness.2.samples": "0.80 0.80",
        "ctxeval.contextual_relevancy.case": "q1",
        "ctxeval.contextual_relevancy.samples": "1.00 1.00",
    }
    assert properties["ctxeval.context_awareness.2.score"] == "0.80"


@pytest.mark.parametrize("way", [("-n", "2"), ("-p", "no:xdist")], ids=" ".join)
def test_the_last_attempt_counts(suite: Suite, way: tuple[str, ...]) -> None:
    suite.cases("SCORE=0.1/0.2/0.9")
    suite.run("--reruns", "3", "--junitxml=run.xml", *way)
    scores = [found.get("ctxeval.context_awareness.score") for _, found in properties_in(suite)]
    assert [score for score in scores if score] == ["0.90"]


def test_a_test_whose_worker_crashed_costs_no_other_its_properties(suite: Suite) -> None:
    suite.module(
        """
        import os
        import pytest
        from pytest_ctxeval import Batch, Dataset, assert_context_awareness

        SHOP = Dataset(session_id="shop", assistant_id="bot", context="Open 9 to 5.",
                       conversation=[Batch(qa_id=f"q{n}", query="When?", assistant="SCORE=0.9") for n in range(6)])

        @pytest.mark.ctxeval(dataset=SHOP)
        def test_answers(context_case):
            if context_case.qa_id == "q3":
                os._exit(1)
            assert_context_awareness(context_case)
        """
    )
    suite.run("-n", "2", "--junitxml=run.xml")
    found = dict(properties_in(suite))
    assert found.pop("test_answers[shop-q3]") == {}
    assert [each["ctxeval.context_awareness.score"] for each in found.values()] == ["0.90"] * 5


def test_a_test_that_broke_before_it_was_judged_says_why(suite: Suite) -> None:
    suite.module(
        """
        import pytest

        @pytest.mark.ctxeval(context="Open 9 to 5.", query="When?")
        def test_it(context_case):
            raise RuntimeError("the bot is down")

        def test_of_others():
            pass
        """
    )
    suite.in_process("--junitxml=run.xml")
    assert properties_in(suite) == [
        ("test_it", {"ctxeval.unscored": "not judged: RuntimeError: the bot is down"}),
        ("test_of_others", {}),
    ]


def test_verdicts_of_setups_and_teardowns_are_shown_and_beside_the_properties_of_others(suite: Suite) -> None:
    suite.module(
        """
        import pytest
        from pytest_ctxeval import assert_context_awareness

        @pytest.fixture
        def around(context_case):
            assert_context_awareness(context_case(qa_id="before", assistant="SCORE=0.9"))
            yield
            assert_context_awareness(context_case(qa_id="after", assistant="SCORE=0.1"))

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_it(context_case, around, request):
            request.node.user_properties.append(("mine", 1))
            assert_context_awareness(context_case(qa_id="call", assistant="SCORE=0.2"))
        """
    )
    suite.in_process("--junitxml=run.xml")
    failure, error = (found for _, found in properties_in(suite))  # pytest makes two of a test that fails twice
    assert failure["mine"] == error["mine"] == "1"
    cases = [[value for name, value in found.items() if name.endswith(".case")] for found in (failure, error)]
    assert cases == [["before", "call"], ["after", "before", "call"]]


HOSTILE = [
    "\\u001b[31mred\\u001b[0m", "a\\u0007b\\u0000c", "]]>", "<b>&amp;\\\"'", "\\ud83d", "\\uffff \\ufffe", "a\\u2028b\\u0085c", "\\u202e",
    "::error::x", "\\n\\n",
]  # fmt: skip


@pytest.mark.parametrize("way", [("-p", "no:xdist"), ("-n", "2")], ids=" ".join)
def test_no_text_of_a_judge_or_a_dataset_breaks_the_file(suite: Suite, way: tuple[str, ...]) -> None:
    ids = ["]]>", "<b>", "\u202e", "\ufffe", "\x1b[31m", "&", '"', "a\x07b", "x", "y"]
    suite.cases(
        *[{"assistant": f"SCORE=0.1\nREASON={told} end", "qa_id": f"q{at}{ids[at]}"} for at, told in enumerate(HOSTILE)]
    )
    suite.run("--junitxml=run.xml", *way)
    text = (suite.path / "run.xml").read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ufffe\uffff]|\x1b", text)
    found = {
        each["ctxeval.context_awareness.case"][:2]: each["ctxeval.context_awareness.reason"]
        for _, each in properties_in(suite)
    }
    assert len(found) == len(HOSTILE)
    assert found["q0"] == "red end"
    assert found["q1"] == "a\\x07b\\x00c end"
    assert found["q2"] == "]]> end"
    assert found["q3"] == "<b>&amp;\"' end"
    assert found["q4"] == "\\ud83d end"


def test_no_key_stands_in_the_file(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "planted-token-0123456789")
    suite.cases("SCORE=0.1\nREASON=says planted-token-0123456789", "RAISE=planted-token-0123456789 is wrong")
    suite.module(
        """
        import pytest

        @pytest.mark.ctxeval(context="C", query="Q")
        def test_it(context_case):
            raise RuntimeError("cannot log in with " + "planted-token-" + "0123456789")
        """,
        name="test_broken",
    )
    suite.in_process("--junitxml=run.xml", "--tb=no", "-o", "junit_logging=all")
    found = dict(properties_in(suite))
    assert found["test_answers[shop-q1]"]["ctxeval.context_awareness.reason"] == "says [hidden]"
    properties = [value for each in found.values() for value in each.values()]
    assert len(properties) == 11
    assert not [value for value in properties if "planted-token" in value]


def test_a_score_that_was_only_asked_for_has_no_bar(suite: Suite) -> None:
    suite.module(
        """
        import pytest

        @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.", query="When?")
        def test_it(context_case, judge):
            judge.assess("context_awareness", context_case(assistant="SCORE=0.123456"))
        """
    )
    suite.in_process("--junitxml=run.xml")
    ((_, properties),) = properties_in(suite)
    assert properties["ctxeval.context_awareness.score"] == "0.123456"
    assert "ctxeval.context_awareness.min" not in properties


def test_without_the_file_no_report_has_properties(suite: Suite) -> None:
    conftest = (suite.path / "conftest.py").read_text(encoding="utf-8")
    hook = "\ndef pytest_runtest_logreport(report):\n    assert not report.user_properties\n"
    (suite.path / "conftest.py").write_text(conftest + hook, encoding="utf-8")
    suite.cases("SCORE=0.9")
    assert suite.in_process().ret == 0
    assert suite.in_process("-p", "no:junitxml").ret == 0
