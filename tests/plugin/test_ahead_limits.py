"""What judging ahead must leave alone, and what it must survive."""

import os
import re
import signal
import threading
import time

import pytest
from support.llm_server import VERDICT, Fault, LLMServer
from support.suite import Suite, section

NAMED = "metrics=['context_awareness']"
CASE = f'context="Open 9 to 5.", query="When?", assistant="At 9.", {NAMED}'


def module(suite: Suite, tests: str, *, name: str = "test_it") -> None:
    source = f"""
import pytest
from pytest_ctxeval import assert_context_awareness

pytestmark = pytest.mark.ctxeval({CASE})

{tests}
"""
    (suite.path / f"{name}.py").write_text(source, encoding="utf-8")


def numbered(count: int, body: str = "assert_context_awareness(context_case)") -> str:
    """Tests with a case of their own each."""
    return "\n".join(
        f'@pytest.mark.ctxeval(query="When, {number}?")\ndef test_{number}(context_case, request):\n    {body}\n'
        for number in range(count)
    )


BY_FIXTURE = """
@pytest.fixture(scope="session", params=["one", "two"])
def name(request):
    return request.param

@pytest.fixture(scope="session")
def judge_model(name):
    return ChatOpenAI(model=name, base_url=os.environ["JUDGE_URL"], temperature=0.0)

@pytest.mark.parametrize("number", range(3))
def test_it(context_case, name, number):
    assert_context_awareness(context_case)
"""
INDIRECT = """
@pytest.fixture(scope="session")
def judge_model(request):
    return ChatOpenAI(model=request.param, base_url=os.environ["JUDGE_URL"], temperature=0.0)

@pytest.mark.parametrize("judge_model", ["one", "two"], indirect=True)
@pytest.mark.parametrize("number", range(3))
def test_it(context_case, judge_model, number):
    assert_context_awareness(context_case)
"""
DIRECT = """
def by(name):
    return ChatOpenAI(model=name, base_url=os.environ["JUDGE_URL"], temperature=0.0)

@pytest.mark.parametrize("judge_model", [by("one"), by("two")], ids=["one", "two"])
@pytest.mark.parametrize("number", range(3))
def test_it(context_case, judge_model, number):
    assert_context_awareness(context_case)
"""


@pytest.mark.parametrize("tests", [BY_FIXTURE, INDIRECT, DIRECT])
def test_a_judge_with_parameters_judges_its_own_tests(recorded: Suite, server: LLMServer, tests: str) -> None:
    module(recorded, f"import os\nfrom langchain_openai import ChatOpenAI\n{tests}")
    recorded.run(record="once").assert_outcomes(passed=6)
    assert sorted(request.body["model"] for request in server.requests) == ["one"] * 3 + ["two"] * 3
    for name, text in recorded.cassettes().items():
        assert re.findall(r"^ *judge: (\w+)", text, re.MULTILINE) == ["one" if "one" in name else "two"]


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=408), Fault("drop")])
def test_those_that_came_to_nothing_in_flight_are_asked_again_in_their_turn(
    recorded: Suite, server: LLMServer, fault: Fault
) -> None:
    module(recorded, numbered(6))
    server.fail_at(fault, {3, 4})
    result = recorded.run("--ctxeval-concurrency=3", record="once")
    result.assert_outcomes(passed=6)
    assert len(server.requests) == 8
    assert len(recorded.cassettes()) == 6
    assert "unscored" not in section(result)


def test_a_judge_that_asks_for_a_long_pause_is_left_alone(recorded: Suite, server: LLMServer) -> None:
    server.fail_always(Fault(status=429, headers={"Retry-After": "3600"}))
    module(recorded, numbered(20, body="pytest.skip('not now')"))
    result = recorded.run("--ctxeval-timeout=5", record="once")
    result.stdout.fnmatch_lines(
        ["*judging ahead was given up after 1 of 20 tests: the judge asks to be left alone for 3600 s*"]
    )
    assert len(server.requests) == 1


def test_a_dead_judge_is_not_asked_for_every_test(recorded: Suite, server: LLMServer) -> None:
    server.fail_always(Fault(status=500))
    module(recorded, numbered(20, body="pytest.skip('not now')"))
    result = recorded.run(record="once")
    result.stdout.fnmatch_lines(
        ["*judging ahead was given up after 2 of 20 tests: the judge m answered with HTTP 500*"]
    )
    assert len(server.requests) == 2


@pytest.mark.parametrize("option", ["-x", "--maxfail=3"])
def test_a_run_that_is_to_end_at_a_failure_asks_for_nothing_else_first(
    recorded: Suite, server: LLMServer, option: str
) -> None:
    server.answer = lambda prompt, _: VERDICT if "When, 0?" in prompt else "no verdict"
    module(recorded, numbered(10))
    result = recorded.run(option, record="once")
    failed = 3 if option == "--maxfail=3" else 1
    result.assert_outcomes(passed=1, failed=failed)
    assert len(server.requests) == 1 + 2 * failed


def test_what_was_paid_for_and_not_asked_for_is_told_at_the_end(recorded: Suite, server: LLMServer) -> None:
    (recorded.path / "pytest.ini").write_text("[pytest]", encoding="utf-8")
    module(recorded, numbered(3, body="pytest.exit('enough')"))
    told = section(recorded.run(record="once"))
    assert "judged ahead and not asked for by its test: 3 (" in told
    assert "3 recorded" in told
    assert len(server.requests) == 3


def test_a_damaged_cassette_stops_only_its_own_test(recorded: Suite, server: LLMServer) -> None:
    module(recorded, numbered(4))
    recorded.run(record="once")
    first, *others = sorted(recorded.path.rglob("*.yaml"))
    first.write_text("{not yaml", encoding="utf-8")
    for path in others:
        path.unlink()
    result = recorded.run(record="once")
    result.assert_outcomes(passed=3, failed=1)
    assert len(server.requests) == 4 + 3
    assert first.read_text(encoding="utf-8") == "{not yaml"


@pytest.mark.parametrize("marker", ["samples='three'", "session=3", "contxt='else'", "dataset='absent.json'"])
def test_a_wrong_marker_is_told_by_its_own_test(recorded: Suite, server: LLMServer, marker: str) -> None:
    module(recorded, numbered(3))
    module(
        recorded,
        f"@pytest.mark.ctxeval({marker})\ndef test_wrong(context_case):\n    assert_context_awareness(context_case)",
        name="test_wrong",
    )
    result = recorded.run("--continue-on-collection-errors", record="once")
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] == 3
    assert outcomes.get("failed", 0) + outcomes.get("error", 0) + outcomes.get("errors", 0) == 1
    assert len(server.requests) == 3


def test_a_marker_that_comes_late_counts(recorded: Suite, server: LLMServer) -> None:
    module(
        recorded,
        numbered(3)
        + """
@pytest.fixture(autouse=True)
def late(request):
    request.applymarker(pytest.mark.ctxeval(assistant="At noon."))
""",
    )
    (recorded.path / "pytest.ini").write_text("[pytest]", encoding="utf-8")
    result = recorded.run(record="once")
    result.assert_outcomes(passed=3, warnings=2)  # what was asked about the case as it was before is told
    assert len(server.requests) == 3 + 2
    assert all("At noon." in text for text in recorded.cassettes().values())


def test_one_that_was_recorded_is_no_proof_that_the_judge_answers(recorded: Suite, server: LLMServer) -> None:
    module(recorded, numbered(2))
    recorded.run(record="once")
    server.fail_always(Fault(status=401))
    module(recorded, numbered(30))
    result = recorded.run(record="new_episodes")
    result.assert_outcomes(passed=2, failed=1, skipped=27)
    assert len(server.requests) == 2 + 1


def test_a_fixture_may_judge(recorded: Suite, server: LLMServer) -> None:
    body = "assert judged.score == 0.9"
    module(
        recorded,
        numbered(3, body=body).replace("request)", "judged)")
        + """
@pytest.fixture
def judged(judge, context_case):
    return judge.assess("context_awareness", context_case)
""",
    )
    server.reply = '{"insight": "so", "score": 0.9}'
    recorded.run(record="once").assert_outcomes(passed=3)
    assert len(server.requests) == 3


def test_a_test_that_is_collected_twice_is_asked_for_once(recorded: Suite, server: LLMServer) -> None:
    module(recorded, numbered(3))
    recorded.run("--keep-duplicates", "test_it.py", "test_it.py", record="once").assert_outcomes(passed=6)
    assert len(server.requests) == 3


def test_a_case_of_the_users_own_fixture_is_asked_for_once(recorded: Suite, server: LLMServer) -> None:
    module(
        recorded,
        numbered(3)
        + """
@pytest.fixture
def context_case(context_case):
    return context_case(assistant="At noon.")
""",
    )
    recorded.run(record="once").assert_outcomes(passed=3)
    assert len(server.requests) == 3


def test_samples_are_in_order_on_disk_whichever_ends_first(recorded: Suite, server: LLMServer) -> None:
    lock = threading.Lock()
    seen: dict[str, int] = {}

    def answer(prompt: str, _: object) -> str:
        with lock:
            number = seen[prompt] = seen.get(prompt, 0) + 1
        time.sleep(0.05 * (5 - number))  # the first ends last
        return VERDICT

    server.answer = answer
    module(recorded, numbered(2).replace("ctxeval(", "ctxeval(samples=4, "))
    recorded.run("--ctxeval-concurrency=8", record="once").assert_outcomes(passed=2)
    for text in recorded.cassettes().values():
        found = re.findall(r"^ *sample: (\d+)", text, re.MULTILINE)
        assert found == sorted(found)
        assert len(found) == 4


def test_a_run_that_is_broken_off_in_the_middle_writes_beside_no_test(recorded: Suite, server: LLMServer) -> None:
    """An error out of a signal handler leaves the pool; what ends later is not saved over what the tests record."""
    late = threading.Event()

    def answer(prompt: str, _: object) -> str:
        if len(server.requests) == 4:
            os.kill(child.pid, signal.SIGUSR1)
        if "When, 0?" not in prompt:
            late.wait(0.5)
        return VERDICT

    server.answer = answer
    module(
        recorded,
        """
import signal

@pytest.fixture(scope="session", autouse=True)
def handler():
    def broken(*_):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        pytest.fail("broken off")
    signal.signal(signal.SIGUSR1, broken)
"""
        + numbered(8),
    )
    with recorded.started("--ctxeval-record=once", "--ctxeval-concurrency=3") as child:
        child.wait(60)
    assert len(recorded.cassettes()) >= 7
    recorded.run(record="once").assert_outcomes(passed=8)
    assert all("complete: true" in text for text in recorded.cassettes().values())
