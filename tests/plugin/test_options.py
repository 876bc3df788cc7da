"""Options: where they come from, which one wins, and what a wrong one says."""

import pytest
from support.suite import Suite, section

from pytest_ctxeval._plugin.options import OPTIONS, on_ci

WRONG = [
    ("--ctxeval-record=replay", "--ctxeval-record: 'replay' is not a mode; use none, once, new_episodes, all or off"),
    ("--ctxeval-stat=bayes", "--ctxeval-stat: 'bayes' is not a mode; use frequentist or bayesian"),
    ("--ctxeval-judge=gpt-4o", "--ctxeval-judge: 'gpt-4o' names no judge: 'gpt-4o' is no provider; known are openai, groq, anthropic, ollama"),
    ("--ctxeval-judge=opena:gpt-4o", "--ctxeval-judge: 'opena:gpt-4o' names no judge: 'opena' is no provider; did you mean 'openai'?"),
    ("--ctxeval-judge=openai:", "--ctxeval-judge: 'openai:' names no judge: the model is missing; for instance openai:NAME"),
    ("--ctxeval-samples=0", "--ctxeval-samples: '0' is not a number of 1 or more"),
    ("--ctxeval-samples=two", "--ctxeval-samples: 'two' is not a number of 1 or more"),
    ("--ctxeval-concurrency=-1", "--ctxeval-concurrency: '-1' is not a number of 1 or more"),
    ("--ctxeval-timeout=0", "--ctxeval-timeout: '0' is not a number of seconds above 0 and up to 86400"),
    ("--ctxeval-timeout=nan", "--ctxeval-timeout: 'nan' is not a number of seconds above 0 and up to 86400"),
    ("--ctxeval-structured=maybe", "--ctxeval-structured: 'maybe' is neither yes nor no"),
    ("--ctxeval-timeout=1e10", "--ctxeval-timeout: '1e10' is not a number of seconds above 0 and up to 86400"),
    ("--ctxeval-samples=1234567890", "--ctxeval-samples: '1234567890' is not a number of 1 or more"),
    ("--ctxeval-gate=unscored:1234567890", "--ctxeval-gate: 'unscored:1234567890': '1234567890' is not a number of cases; use an integer from 0, as unscored:0"),
    ("--ctxeval-report=run.docx", "--ctxeval-report: 'run.docx' is no kind of report; use a name that ends in .json, .md or .html"),
    ("--ctxeval-gate=context_awarenes:0.8", "--ctxeval-gate: 'context_awarenes:0.8': 'context_awarenes' is no metric; write METRIC:BAR, for example context_awareness:0.8; did you mean 'context_awareness'?"),
    ("--ctxeval-gate=context_awareness:8", "--ctxeval-gate: 'context_awareness:8': the bar '8' is not a number from 0 to 1; for example context_awareness:0.8"),
    ("--ctxeval-gate=0.8", "--ctxeval-gate: '0.8' names no metric; write METRIC:BAR, for example context_awareness:0.8"),
    ("--ctxeval-baseline=none.json", "--ctxeval-baseline: 'none.json' is not there; --ctxeval-report=run.json writes a run that can be compared with"),
    ("--ctxeval-gate=drop:0.05", "--ctxeval-gate: 'drop:0.05' needs a stored run to compare with; name it with --ctxeval-baseline=FILE"),
]  # fmt: skip


@pytest.mark.parametrize(("option", "told"), WRONG, ids=[option for option, _ in WRONG])
def test_a_wrong_option_is_refused_before_anything_runs(suite: Suite, option: str, told: str) -> None:
    suite.module("raise RuntimeError('collected')")
    result = suite.in_process(option, record="")
    assert [line for line in result.errlines if line] == [f"ERROR: {told}"]
    assert result.ret == 4


def test_a_wrong_value_of_the_ini_file_is_named_by_its_key(suite: Suite) -> None:
    suite.ini(ctxeval_record="replay")
    assert suite.in_process(record="").errlines[0] == (
        "ERROR: ini ctxeval_record: 'replay' is not a mode; use none, once, new_episodes, all or off"
    )


def test_a_wrong_value_of_the_environment_is_named_by_its_variable(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXEVAL_GATE", "context_awareness:0.8 nonsense")
    assert suite.in_process().errlines[0].startswith("ERROR: $CTXEVAL_GATE: 'nonsense' has no bar")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CTXEVAL_RECROD", "CTXEVAL_RECORD"),
        ("CTXEVAL_GATES", "CTXEVAL_GATE"),
        ("CTXEVAL_BASE_LINE", "CTXEVAL_BASELINE"),
        ("CTXEVAL_SAMPLE", "CTXEVAL_SAMPLES"),
    ],
)
def test_a_misspelt_variable_is_told(suite: Suite, monkeypatch: pytest.MonkeyPatch, name: str, meant: str) -> None:
    suite.module("raise RuntimeError('collected')")
    monkeypatch.setenv(name, "1")
    result = suite.in_process(record="")
    told = f"ERROR: ${name} is no setting of pytest-ctxeval; did you mean '${meant}'?"
    assert [line for line in result.errlines if line] == [told]
    assert result.ret == 4


@pytest.mark.parametrize("name", ["CTXEVAL_EXAMPLES_URL", "CTXEVAL_JUDGE_URL", "CTXEVAL_"])
def test_a_variable_of_the_project_is_its_own(suite: Suite, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    suite.cases("SCORE=0.9")
    monkeypatch.setenv(name, "1")
    suite.in_process().assert_outcomes(passed=1)


def test_a_misspelt_key_of_the_ini_file_is_told_by_pytest(suite: Suite) -> None:
    suite.cases("SCORE=0.9")
    (suite.path / "pytest.ini").write_text("[pytest]\nctxeval_gate = unscored:0\n", encoding="utf-8")
    assert "Unknown config option: ctxeval_gate" in suite.in_process().stdout.str()
    assert suite.in_process("--strict-config").ret == 4


def test_a_list_of_the_environment_is_split_as_a_shell_does(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.cases("SCORE=0.9")
    monkeypatch.setenv("CTXEVAL_REPORT", "'my run.json' other.json")
    suite.in_process().assert_outcomes(passed=1)
    assert len(suite.report("my run.json")["cases"]) == len(suite.report("other.json")["cases"]) == 1
    monkeypatch.setenv("CTXEVAL_REPORT", "'my run.json")
    assert suite.in_process().errlines[0] == ('ERROR: $CTXEVAL_REPORT: "\'my run.json" has a quote that is not closed')


def test_a_gate_on_a_low_end_needs_intervals(suite: Suite) -> None:
    result = suite.in_process("--ctxeval-gate=context_awareness.low:0.5", "--ctxeval-stat=frequentist")
    assert result.errlines[0] == (
        "ERROR: --ctxeval-gate: 'context_awareness.low:0.5' needs an interval, and the frequentist mode gives none; "
        "use the bayesian mode or the gate 'context_awareness:0.5'"
    )


def test_the_command_line_beats_the_environment_beats_the_ini_file_beats_the_default(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.cases("SCORE=0.9")

    def mode(option: str = "") -> str:
        told = section(suite.in_process(record=option))
        return told.rpartition("record=")[2]

    suite.ini(ctxeval_record="off")
    assert mode() == "off"
    suite.ini(ctxeval_record="all")
    monkeypatch.setenv("CTXEVAL_RECORD", "off")
    assert mode() == "off"
    monkeypatch.setenv("CTXEVAL_RECORD", "all")
    assert mode("off") == "off"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"CI": ""}, False),
        ({"CI": "false"}, False),
        ({"CI": "0"}, False),
        ({"CI": "true"}, True),
        ({"CI": "1"}, True),
        ({"GITHUB_ACTIONS": "true"}, True),
        ({"JENKINS_URL": "http://j"}, True),
        ({"TF_BUILD": "True"}, True),
    ],
)
def test_a_ci_is_known_by_its_variables(environment: dict[str, str], expected: bool) -> None:
    assert on_ci(environment) is expected


def test_on_a_ci_nothing_is_recorded(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    suite.cases("SCORE=0.9")
    suite.pytester.makeconftest(
        """
        import pytest
        from langchain_openai import ChatOpenAI

        @pytest.fixture(scope="session")
        def judge_model():
            return ChatOpenAI(model="m", base_url="http://127.0.0.1:9/v1")
        """
    )
    result = suite.run(record="")
    result.assert_outcomes(failed=1)
    assert "no recording: there is no cassette cassettes/test_it/test_answers-shop-q1-" in result.stdout.str()
    assert "Connection error" not in result.stdout.str()
    assert not (suite.path / "cassettes").exists()


def test_the_help_lists_every_option_with_its_ini_key_its_variable_and_its_default(suite: Suite) -> None:
    told = " ".join(suite.run("--help", record="").stdout.str().split())
    for option in OPTIONS:
        if option.flag:
            assert f"{option.flag}={option.metavar}" in told
            assert f"(default: {option.default}; ini {option.ini_name}, environment {option.variable})" in told
        assert f"{option.ini_name} (" in told


@pytest.mark.parametrize("file", ["pytest.ini", "pyproject.toml"])
def test_options_may_stand_in_any_ini_file(suite: Suite, file: str) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.5", bar=0)
    (suite.path / "pytest.ini").unlink()
    content = {
        "pytest.ini": "[pytest]\nctxeval_record = off\nctxeval_gates =\n    context_awareness:0.8\n    unscored:0\n",
        "pyproject.toml": '[tool.pytest.ini_options]\nctxeval_record = "off"\nctxeval_gates = ["context_awareness:0.8", "unscored:0"]\n',
    }
    (suite.path / file).write_text(content[file], encoding="utf-8")
    told = section(suite.in_process(record=""))
    assert "FAILED  0.70 < 0.80" in told
    assert "gate      unscored:0  passed  0 unscored, 0 allowed" in told


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="[tool.pytest] is of pytest 9")
def test_options_may_stand_in_the_native_table_of_pytest_9(suite: Suite) -> None:
    suite.cases("SCORE=0.9", "SCORE=0.5", bar=0)
    (suite.path / "pytest.ini").unlink()
    suite.pytester.makepyprojecttoml(
        '[tool.pytest]\nctxeval_record = "off"\nctxeval_samples = "1"\nctxeval_gates = ["context_awareness:0.8"]\n'
    )
    assert "FAILED  0.70 < 0.80" in section(suite.in_process(record=""))


def test_a_report_stands_where_the_command_was_given(suite: Suite) -> None:
    suite.cases("SCORE=0.9")
    suite.in_process("--ctxeval-report=deep/run.json", "--ctxeval-report=other.json")
    assert suite.report("deep/run.json") == suite.report("other.json")
