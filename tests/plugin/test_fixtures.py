"""What a user writes, and what it does."""

import pytest
from support.suite import Suite, section


def outcomes(suite: Suite, source: str, *arguments: str, **expected: int) -> pytest.RunResult:
    suite.module(source)
    result = suite.in_process(*arguments)
    result.assert_outcomes(**expected)
    return result


def test_the_keyword_and_the_marker_select_every_test_that_uses_the_plugin(suite: Suite) -> None:
    source = """
        import pytest

        def test_with_a_judge(judge): pass
        def test_with_a_case(context_case): pass
        def test_with_a_tape(ctxeval_cassette): pass
        @pytest.mark.ctxeval(session_id="s")
        def test_marked(): pass
        def test_unrelated(): pass
        class TestThings:
            def test_inside(self, judge): pass
    """
    outcomes(suite, source, "-k", "context", passed=5, deselected=1)
    outcomes(suite, source, "-m", "ctxeval", passed=5, deselected=1)
    outcomes(suite, source, "-k", "not context", passed=1, deselected=5)


def test_a_fixture_of_the_same_name_in_a_project_is_the_projects_own(suite: Suite) -> None:
    source = """
        import pytest

        @pytest.fixture
        def judge(): return "mine"

        def test_theirs(judge): assert judge == "mine"
    """
    outcomes(suite, source, "-k", "context", deselected=1)
    assert section(outcomes(suite, source, passed=1)) == ""


def test_a_case_without_a_dataset_starts_with_what_the_marker_gives(suite: Suite) -> None:
    outcomes(
        suite,
        """
        import pytest

        pytestmark = pytest.mark.ctxeval(session_id="module", language="spanish", context="C")

        @pytest.mark.ctxeval(session_id="nearest", weight=0.5)
        def test_it(context_case):
            assert context_case.qa_id == "test_it"
            assert (context_case.session_id, context_case.language, context_case.context) == ("nearest", "spanish", "C")
            assert context_case.weight == 0.5
            assert context_case.assistant == ""
            filled = context_case(assistant="A", query="Q")
            assert (filled.assistant, filled.query, filled.session_id) == ("A", "Q", "nearest")
            assert context_case.assistant == ""

        class TestThings:
            def test_inside(self, context_case):
                assert context_case.qa_id == "TestThings.test_inside"
        """,
        passed=2,
    )
    outcomes(suite, "def test_it(context_case):\n    assert context_case.session_id == 'test_it.py'", passed=1)


def test_a_field_that_is_not_known_is_named_with_the_nearest(suite: Suite) -> None:
    result = outcomes(suite, "def test_it(context_case):\n    context_case(asistant='x')", failed=1)
    result.stdout.fnmatch_lines(
        ["E *pytest_ctxeval.ConfigError: case 'test_it': unknown field 'asistant'; did you mean 'assistant'?"]
    )


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ("datset='x.json'", "unknown argument 'datset'; did you mean 'dataset'?"),
        ("'x.json'", "'x.json' has no name; for instance dataset='x.json'"),
        ("samples=0", "samples=0 is not a number of 1 or more"),
        ("samples=True", "samples=True is not a number of 1 or more"),
        ("context=3", "context=3 is no str"),
        ("weight=-1", "field 'weight': input should be greater than or equal to 0, not -1"),
    ],
)
def test_a_wrong_marker_is_refused_at_collection(suite: Suite, marker: str, told: str) -> None:
    suite.module(f"import pytest\n@pytest.mark.ctxeval({marker})\ndef test_it(context_case): pass")
    result = suite.in_process()
    assert f"@pytest.mark.ctxeval of test_it.py::test_it: {told}" in result.stdout.str()
    assert "Traceback" not in result.stdout.str()
    assert "_execution.py" not in result.stdout.str()
    assert result.ret == 2


def test_a_dataset_needs_a_test_that_takes_the_case(suite: Suite) -> None:
    suite.cases("SCORE=0.9")
    suite.module("import pytest\n@pytest.mark.ctxeval(dataset='test_it.json')\ndef test_it(): pass")
    result = suite.in_process()
    assert "it names a dataset, so the test must take the fixture context_case" in result.stdout.str()
    assert result.ret == 2


def test_a_broken_dataset_is_refused_before_any_judge_call(suite: Suite) -> None:
    suite.module(
        "import pytest\n@pytest.mark.ctxeval(dataset='rows.jsonl')\ndef test_it(context_case): raise AssertionError"
    )
    row = '{"session_id": "s", "context": "c", "qa_id": "q%d", "query": "?"}\n'
    rows = "".join(row % number for number in range(1, 1234))
    (suite.path / "rows.jsonl").write_text(rows + '{"session_id": "s", "qa_id": "q", "qery": "?"}\n', encoding="utf-8")
    result = suite.in_process()
    assert "rows.jsonl, line 1234" in result.stdout.str()
    assert "did you mean 'query'?" in result.stdout.str()
    assert result.ret == 2


@pytest.mark.parametrize("kind", ["class", "object", "list", "path"])
def test_every_kind_of_dataset_makes_one_test_of_each_case(suite: Suite, kind: str) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.9")
    source = {"class": "Shop", "object": "SHOP", "list": "[SHOP, OTHER]", "path": "'test_it.json'"}[kind]
    suite.module(
        f"""
        import pytest
        from pytest_ctxeval import Batch, Dataset, Retriever, assert_context_awareness

        BATCHES = [Batch(qa_id="q1", query="?", assistant="SCORE=0.9"), Batch(qa_id="q2", query="?", assistant="SCORE=0.9")]
        SHOP = Dataset(session_id="shop", assistant_id="bot", context="C", conversation=BATCHES)
        OTHER = Dataset(session_id="other", assistant_id="bot", context="C", conversation=BATCHES)

        class Shop(Retriever):
            def load_dataset(self):
                yield SHOP

        @pytest.mark.ctxeval(dataset={source})
        def test_it(context_case):
            assert_context_awareness(context_case)
        """
    )
    result = suite.in_process("-v", "--no-header")
    names = [line.split()[0] for line in result.outlines if "PASSED" in line]
    expected = ["shop-q1", "shop-q2", *(["other-q1", "other-q2"] if kind == "list" else [])]
    assert names == [f"test_it.py::test_it[{name}]" for name in expected]


def test_an_empty_dataset_is_a_skipped_test_and_gates_are_not_checked(suite: Suite) -> None:
    suite.ini(ctxeval_gates=["context_awareness:0.8"])
    suite.cases()
    result = suite.in_process()
    result.assert_outcomes(skipped=1)
    assert "not checked" in section(result)


def test_asserting_twice_judges_once_and_the_higher_bar_counts(suite: Suite) -> None:
    result = outcomes(
        suite,
        """
        import pytest
        from pytest_ctxeval import ScoreTooLow, assert_context_awareness

        @pytest.mark.ctxeval(context="C", query="Q", assistant="SCORE=0.7")
        def test_it(context_case):
            first = assert_context_awareness(context_case, min=0.5)
            with pytest.raises(ScoreTooLow) as low:
                assert_context_awareness(context_case, min=0.9)
            assert low.value.verdict == first
            assert low.value.min == 0.9
        """,
        "--ctxeval-report=run.json",
        passed=1,
    )
    assert "1 live" in section(result)
    assert [case["min"] for case in suite.report()["cases"]] == [0.9]


def test_the_judge_gives_a_verdict_without_an_assertion(suite: Suite) -> None:
    result = outcomes(
        suite,
        """
        from pytest_ctxeval import CONTEXT_AWARENESS, Judge

        def test_it(judge, context_case):
            assert isinstance(judge, Judge)
            case = context_case(context="C", query="Q", assistant="SCORE=0.1")
            verdict = judge.assess("context_awareness", case)
            assert (verdict.score, verdict.reason, verdict.judge, verdict.source) == (0.1, "because", "scripted", "live")
            assert judge.assess(CONTEXT_AWARENESS, case) is verdict
        """,
        passed=1,
    )
    assert "  1  0.10  " in section(result)


def test_an_unknown_metric_is_named_with_the_nearest(suite: Suite) -> None:
    result = outcomes(
        suite, "def test_it(judge, context_case):\n    judge.assess('context_awarenes', context_case)", failed=1
    )
    assert "'context_awarenes' is no metric; did you mean 'context_awareness'?" in result.stdout.str()


def test_a_batch_may_be_judged_with_its_context(suite: Suite) -> None:
    result = outcomes(
        suite,
        """
        import pytest
        from pytest_ctxeval import Batch, ConfigError, assert_context_awareness

        BATCH = Batch(qa_id="mine", query="Q", assistant="SCORE=0.9")

        @pytest.mark.ctxeval(session_id="batches")
        def test_it():
            assert assert_context_awareness(BATCH, context="C").score == 0.9
            with pytest.raises(ConfigError, match="a Batch has no context of its own; give it with context="):
                assert_context_awareness(BATCH)
            with pytest.raises(ConfigError, match="a str is no case; give a ContextCase, or a Batch with context="):
                assert_context_awareness("text")
        """,
        "--ctxeval-report=run.json",
        passed=1,
    )
    assert section(result).startswith("session  metric")
    (case,) = suite.report()["cases"]
    assert (case["session_id"], case["qa_id"]) == ("batches", "mine")


@pytest.mark.parametrize("bar", ["1.1", "-0.1", "True", "'0.8'", "float('nan')", "None"])
def test_a_bar_that_is_none_is_refused(suite: Suite, bar: str) -> None:
    source = f"""
        from pytest_ctxeval import assert_context_awareness

        def test_it(context_case):
            assert_context_awareness(context_case(context="C", query="Q", assistant="A"), min={bar})
    """
    assert "is no bar; give a number from 0 to 1" in outcomes(suite, source, failed=1).stdout.str()


def test_a_helper_outside_of_such_a_test_says_what_to_do(suite: Suite) -> None:
    source = """
        from pytest_ctxeval import ContextCase, assert_context_awareness

        def test_it():
            assert_context_awareness(ContextCase(qa_id="q", session_id="s", context="C", query="Q", assistant="A"))
    """
    told = outcomes(suite, source, failed=1).stdout.str()
    assert (
        "assert_context_awareness was called outside of a test that uses the plugin; take the fixture context_case or judge, "
        "or mark the test with @pytest.mark.ctxeval"
    ) in told


def test_no_judge_at_all_shows_both_ways(suite: Suite) -> None:
    suite.cases("SCORE=0.9")
    suite.pytester.makeconftest("")
    told = suite.in_process().stdout.str()
    assert "pytest_ctxeval.ConfigError: no judge is set; name one on the command line or in the ini file" in told
    assert "pytest --ctxeval-judge=openai:gpt-4o-mini" in told
    assert 'return ChatOpenAI(model="gpt-4o-mini", temperature=0.0)' in told


def test_a_judge_that_is_none_is_refused(suite: Suite) -> None:
    suite.cases("SCORE=0.9")
    suite.pytester.makeconftest("import pytest\n@pytest.fixture(scope='session')\ndef judge_model():\n    return 3")
    assert (
        "judge_model gave a int, which is neither a LangChain chat model nor a 'provider:name'"
        in suite.in_process().stdout.str()
    )


def test_a_missing_client_package_says_what_to_install(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.cases("SCORE=0.9")
    suite.pytester.makeconftest("import sys\nsys.modules['langchain_groq'] = None")
    told = suite.run("--ctxeval-judge=groq:llama").stdout.str()
    assert (
        "the judge 'groq:llama' needs langchain-groq, which is not installed; pip install 'pytest-ctxeval[groq]'"
        in told
    )


@pytest.mark.parametrize("provider", ["openai", "groq", "anthropic", "ollama"])
def test_every_provider_is_built_from_its_name(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_ctxeval._judge.model import model_from_name, model_name
    from pytest_ctxeval._judge.placeholder import placeholder_keys

    with placeholder_keys():
        model = model_from_name(f"{provider}:some-model")
    assert model_name(model) == "some-model"
    assert getattr(model, "temperature", None) == pytest.approx(0.0, abs=1e-6)  # ChatGroq sends 1e-8 for 0


def test_async_tests_call_the_same_helpers(suite: Suite) -> None:
    suite.module(
        """
        import asyncio
        from pytest_ctxeval import assert_context_awareness

        async def test_it(context_case):
            case = context_case(context="C", query="Q", assistant="SCORE=0.9")
            assert_context_awareness(case)
            assert (await asyncio.to_thread(assert_context_awareness, case)).score == 0.9
        """
    )
    suite.ini(asyncio_default_fixture_loop_scope="function")
    result = suite.run("--asyncio-mode=auto")
    result.assert_outcomes(passed=1)


def test_subtests_lose_no_case(suite: Suite) -> None:
    if pytest.version_tuple < (9, 0):
        pytest.skip("subtests are of pytest 9")
    suite.module(
        """
        from pytest_ctxeval import assert_context_awareness

        def test_it(context_case, subtests):
            for score in ("0.9", "0.1", "0.8"):
                with subtests.test(score):
                    assert_context_awareness(context_case(qa_id=score, context="C", query="Q", assistant=f"SCORE={score}"))
        """
    )
    assert "context awareness  3  0.60" in section(suite.in_process())


def test_a_case_judged_in_a_fixture_counts(suite: Suite) -> None:
    result = outcomes(
        suite,
        """
        import pytest

        @pytest.fixture
        def judged(judge, context_case):
            case = context_case(context="C", query="Q", assistant="SCORE=0.9")
            judge.assess("context_awareness", case)
            yield
            judge.assess("context_awareness", case(qa_id="later", assistant="SCORE=0.5"))

        def test_it(judged): pass
        """,
        passed=1,
    )
    assert "context awareness  2  0.70" in section(result)


@pytest.mark.parametrize("field", ["context", "query", "assistant"])
def test_a_blank_field_is_refused_and_the_case_unscored(suite: Suite, field: str) -> None:
    fields = {"context": "C", "query": "Q", "assistant": "SCORE=0.9", field: " "}
    result = outcomes(
        suite,
        f"""
        from pytest_ctxeval import assert_context_awareness

        def test_it(context_case):
            assert_context_awareness(context_case(**{fields!r}))
        """,
        failed=1,
    )
    assert f"ConfigError: case 'test_it': context awareness needs {field}=, and it is blank" in result.stdout.str()
    assert "0/1  no score" in section(result)


def test_what_the_judge_and_the_data_say_is_made_harmless(suite: Suite) -> None:
    suite.cases(
        {
            "qa_id": "q\x1b[31m\r",
            "query": "\x1b]0;title\x07?",
            "assistant": "SCORE=0.1\nREASON=\x1b[31mred\x1b[0m ::error::no\u202e",
        }
    )
    told = suite.in_process("-rA", "-v").stdout.str()
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert not [line for line in told.splitlines() if line.lstrip().startswith("::")]


def test_a_method_of_a_test_case_is_judged_and_its_wrong_marker_breaks_it_alone(suite: Suite) -> None:
    result = outcomes(
        suite,
        """
        import unittest
        import pytest
        from pytest_ctxeval import Batch, assert_context_awareness

        class TestIt(unittest.TestCase):
            @pytest.mark.ctxeval(session_id="s")
            def test_good(self):
                assert_context_awareness(Batch(qa_id="q", query="Q", assistant="SCORE=0.9"), context="C")

            @pytest.mark.ctxeval(dataset="x.json")
            def test_with_a_dataset(self): pass

            @pytest.mark.ctxeval(samples="x")
            def test_with_odd_samples(self): pass
        """,
        passed=1,
        errors=2,
    )
    told = result.stdout.str()
    assert "test_with_a_dataset: a dataset needs a test function that takes the fixture context_case" in told
    assert "samples='x' is not a number of 1 or more" in told
    assert "  0.90  " in section(result)


def test_two_judges_are_two_runs_of_a_test_that_names_them(suite: Suite) -> None:
    conftest = (suite.path / "conftest.py").read_text(encoding="utf-8")
    suite.pytester.makeconftest(
        conftest.replace(
            '@pytest.fixture(scope="session")\ndef judge_model():',
            '@pytest.fixture(params=["a", "b"])\ndef judge_model(request):',
        ).replace("ScriptedJudge()", "ScriptedJudge(model_name=request.param)")
    )
    result = outcomes(
        suite,
        """
        import pytest
        from pytest_ctxeval import assert_context_awareness

        pytestmark = pytest.mark.ctxeval(context="C", query="Q", assistant="SCORE=0.9")

        def test_named(context_case, judge_model):
            assert assert_context_awareness(context_case).judge == judge_model.model_name

        def test_not_named(context_case):
            assert_context_awareness(context_case)
        """,
        passed=2,
        failed=1,
    )
    assert (
        "ConfigError: judge_model could not be set up; where it has params, the test must name it"
        in result.stdout.str()
    )


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ("sesion_id='s'", "unknown argument 'sesion_id'; did you mean 'session_id'?"),
        ("samples='x'", "samples='x' is not a number of 1 or more"),
        ("dataset='a.json'", "a dataset needs a test function that takes the fixture context_case"),
    ],
)
def test_a_wrong_marker_on_a_parameter_breaks_that_test_alone(suite: Suite, marker: str, told: str) -> None:
    suite.module(
        f"""
        import pytest
        @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.ctxeval({marker}))])
        def test_it(context_case, n): pass
        """
    )
    result = suite.in_process()
    result.assert_outcomes(passed=1, errors=1)
    assert told in result.stdout.str()


def test_a_fixture_asked_for_while_a_test_runs_is_told_to_be_named_before(suite: Suite) -> None:
    suite.module("def test_it(request):\n    request.getfixturevalue('context_case')")
    told = suite.in_process().stdout.str()
    assert "pytest_ctxeval.ConfigError: test_it.py::test_it asks for a fixture of pytest-ctxeval by" in told


@pytest.mark.parametrize("given", ["None", "Batch(qa_id='q', query='When?')"])
def test_what_is_no_case_is_refused_by_its_type(suite: Suite, given: str) -> None:
    suite.module(
        f"""
        from pytest_ctxeval import Batch
        def test_it(judge):
            judge.assess("context_awareness", {given})
        """
    )
    name = given.partition("(")[0].replace("None", "NoneType")
    told = suite.in_process().stdout.str()
    assert f"pytest_ctxeval.ConfigError: judge.assess: a {name} is no case; give a ContextCase" in told
