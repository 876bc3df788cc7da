"""Tests that were renamed, or whose ids have changed: found by content, warned of, adopted on request (CASES D17)."""

import shutil

import pytest
import yaml
from support.llm_server import LLMServer
from support.suite import Suite, replaying, section

from pytest_ctxeval._plugin.cassettes import cassette_path

WARNED = "CtxEvalWarning: replayed from the cassette of another test, which may have been renamed"
OLD = "test_it.py::test_answers[shop-q1]"


@pytest.fixture
def recording(recorded: Suite) -> Suite:
    """A suite of two cases that were recorded; its ini lets warnings be warnings."""
    recorded.pytester.makefile(".ini", pytest="[pytest]\nfilterwarnings = default")
    recorded.cases("one", "two")
    recorded.in_process(record="once").assert_outcomes(passed=2)
    return recorded


def rename_function(suite: Suite) -> str:
    module = suite.path / "test_it.py"
    module.write_text(module.read_text(encoding="utf-8").replace("test_answers", "test_replies"), encoding="utf-8")
    return "test_it.py::test_replies[shop-q1]"


def change_ids(suite: Suite) -> str:
    suite.cases({"assistant": "one", "qa_id": "first"}, {"assistant": "two", "qa_id": "second"})
    return "test_it.py::test_answers[shop-first]"


def rename_file(suite: Suite) -> str:
    (suite.path / "test_it.py").rename(suite.path / "test_that.py")
    return "test_that.py::test_answers[shop-q1]"


def move_file(suite: Suite) -> str:
    (suite.path / "unit").mkdir()
    for name in ("test_it.py", "test_it.json"):
        (suite.path / name).rename(suite.path / "unit" / name)
    return "unit/test_it.py::test_answers[shop-q1]"


CHANGES = pytest.mark.parametrize("change", [rename_function, change_ids, rename_file, move_file])


@CHANGES
@pytest.mark.parametrize("record", ["none", "once", "new_episodes"])
def test_a_moved_test_is_replayed_with_a_warning(
    recording: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch, change: object, record: str
) -> None:
    assert callable(change)
    change(recording)
    replaying(monkeypatch)
    before = sorted(recording.path.rglob("*.yaml"))
    moved = recording.in_process(record=record)
    moved.assert_outcomes(passed=2, warnings=2)
    assert moved.stdout.str().count(WARNED) == 1  # pytest tells a message once, with every test that it is about
    assert "judge     m: 2 replayed, 0 recorded, 0 live" in section(moved)
    assert "unused" not in section(moved)
    assert sorted(recording.path.rglob("*.yaml")) == before
    assert len(server.requests) == 2


def test_the_warning_obeys_the_users_filters(recording: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    rename_function(recording)
    replaying(monkeypatch)
    moved = recording.in_process("-W", "error", record="none")
    moved.assert_outcomes(passed=2, errors=2)
    assert "judge     m: 2 replayed" in section(moved)


def test_a_failure_names_the_cassette_that_gave_the_verdict(
    recording: Suite, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.reply = '{"insight": "no", "score": 0.1}'
    recording.in_process(record="all").assert_outcomes(failed=2)
    rename_function(recording)
    replaying(monkeypatch)
    told = recording.in_process(record="none").stdout.str()
    assert f"judged by m, replayed from cassettes/{cassette_path(OLD).as_posix()}" in told


@CHANGES
def test_adopt_moves_the_recordings_to_the_test_that_uses_them(
    recording: Suite, monkeypatch: pytest.MonkeyPatch, change: object
) -> None:
    old = yaml.safe_load(recording.cassette(OLD).read_text(encoding="utf-8"))
    assert callable(change)
    node = change(recording)
    replaying(monkeypatch)
    told = f"adopt cassettes/{cassette_path(node).as_posix()}: from cassettes/{cassette_path(OLD).as_posix()}\n"
    assert f"would {told}" in recording.ctxeval("cassettes", "adopt", "--dry-run").stdout
    assert recording.cassette(OLD).exists()
    refused = recording.ctxeval("cassettes", "prune")
    assert "uses the cassette of another test; adopt it first" in refused.stdout
    adopted = recording.ctxeval("cassettes", "adopt")
    assert (adopted.returncode, told in adopted.stdout) == (0, True)
    new = yaml.safe_load(recording.cassette(node).read_text(encoding="utf-8"))
    assert new == {**old, "ctxeval": {**old["ctxeval"], "node": node}}
    assert len(list(recording.path.rglob("*.yaml"))) == 2
    assert not recording.cassette(OLD).exists()
    recording.in_process("-W", "error", record="none").assert_outcomes(passed=2)
    assert "nothing to adopt" in recording.ctxeval("cassettes", "adopt").stdout


def test_adopt_works_with_workers(recording: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    node = rename_function(recording)
    replaying(monkeypatch)
    assert recording.ctxeval("cassettes", "adopt", "-n", "2").returncode == 0
    assert recording.cassette(node).exists()
    assert not recording.cassette(OLD).exists()


def test_adopt_of_some_tests_leaves_the_old_place_as_it_is(recording: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    node = rename_function(recording)
    replaying(monkeypatch)
    adopted = recording.ctxeval("cassettes", "adopt", node)
    assert "the recordings stay at their old place as well: tests were left out" in adopted.stdout
    assert recording.cassette(node).exists()
    assert len(list(recording.path.rglob("*.yaml"))) == 3


def test_a_test_that_is_copied_is_replayed_from_the_first_and_adopt_leaves_that_one_its_own(
    recording: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In `none` the same request has the same answer; the first test goes on needing it."""
    shutil.copy(recording.path / "test_it.py", recording.path / "copied.py")
    module = (recording.path / "test_it.py").read_text(encoding="utf-8")
    (recording.path / "test_it.py").write_text(f"{module}\n\ntest_copied = test_answers\n", encoding="utf-8")
    replaying(monkeypatch)
    recording.in_process(record="none").assert_outcomes(passed=4, warnings=2)
    assert recording.ctxeval("cassettes", "adopt").returncode == 0
    assert len(list(recording.path.rglob("*.yaml"))) == 4
    recording.in_process("-W", "error", record="none").assert_outcomes(passed=4)


def test_a_new_test_is_recorded_though_another_one_has_asked_the_same(recording: Suite, server: LLMServer) -> None:
    module = (recording.path / "test_it.py").read_text(encoding="utf-8")
    (recording.path / "test_it.py").write_text(f"{module}\n\ntest_copied = test_answers\n", encoding="utf-8")
    recording.in_process("-W", "error", record="once").assert_outcomes(passed=4)
    assert len(server.requests) == 4


def test_what_is_recorded_beside_a_loan_makes_a_whole_cassette(recording: Suite, server: LLMServer) -> None:
    recording.module(
        """
        import pytest
        from pytest_ctxeval import assert_context_awareness

        @pytest.mark.ctxeval(session_id="shop", assistant_id="bot", context="Open 9 to 5.")
        def test_both(context_case):
            for answer in ("one", "three"):
                assert_context_awareness(context_case(qa_id="q1", query="When?", assistant=answer))
        """
    )
    recording.in_process("-W", "error", record="once").assert_outcomes(passed=1)
    assert len(server.requests) == 3
    whole = yaml.safe_load(recording.cassette("test_it.py::test_both").read_text(encoding="utf-8"))
    assert whole["ctxeval"]["interactions"] == 2
    recording.cassette(OLD).unlink()
    recording.in_process("-W", "error", record="none").assert_outcomes(passed=1)


def test_recording_all_anew_borrows_nothing(recording: Suite, server: LLMServer) -> None:
    rename_function(recording)
    recording.in_process("-W", "error", record="all").assert_outcomes(passed=2)
    assert len(server.requests) == 4


def test_a_damaged_neighbour_is_passed_over(recording: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    recording.cassette(OLD).write_text("<<<<<<< HEAD\n", encoding="utf-8")
    rename_function(recording)
    replaying(monkeypatch)
    result = recording.in_process(record="none")
    result.assert_outcomes(passed=1, failed=1, warnings=1)
    assert "no recording: there is no cassette" in result.stdout.str()
    assert recording.cassette(OLD).read_text(encoding="utf-8") == "<<<<<<< HEAD\n"


def test_adopt_leaves_the_old_place_where_a_test_was_skipped(recording: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    rename_file(recording)
    recording.module("import pytest\n\n@pytest.mark.skip\ndef test_later(context_case):\n    pass", name="test_later")
    replaying(monkeypatch)
    adopted = recording.ctxeval("cassettes", "adopt")
    assert "stay at their old place as well: test_later.py::test_later was skipped" in adopted.stdout
    assert recording.cassette(OLD).exists()


def test_adopt_calls_no_cassette_whole_whose_test_asked_for_more(
    recording: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = (recording.path / "test_it.py").read_text(encoding="utf-8").replace("test_answers", "test_replies")
    more = "    assert_context_awareness(context_case(assistant='more'))\n"
    (recording.path / "test_it.py").write_text(module.rstrip() + "\n" + more, encoding="utf-8")
    replaying(monkeypatch)
    recording.ctxeval("cassettes", "adopt")
    adopted = yaml.safe_load(recording.cassette("test_it.py::test_replies[shop-q1]").read_text(encoding="utf-8"))
    assert (adopted["ctxeval"]["complete"], adopted["ctxeval"]["interactions"]) == (False, 1)
