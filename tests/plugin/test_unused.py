"""Recordings that nobody needs any more (CASES D18): listed after a run of all tests, and only then; pruned on request."""

import re
import textwrap

import pytest
from support.llm_server import LLMServer
from support.suite import THIRD, Suite, replaying, section

from pytest_ctxeval._plugin.cassettes import cassette_path

GONE = "unused    1 cassette whose test is gone; 'ctxeval cassettes prune' deletes them"

TWO_QUESTIONS = """
    import pytest
    from pytest_ctxeval import assert_context_awareness

    @pytest.mark.ctxeval(session_id="shop", context="Open 9 to 5.")
    def test_it(context_case):
        for answer in ("From 9.", "Till 5."):
            assert_context_awareness(context_case(query="When?", assistant=answer))
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "-n 2"])
def test_a_cassette_whose_test_is_gone_is_listed(shrunk: Suite, workers: list[str]) -> None:
    result = shrunk.run(*workers, record="none")
    assert result.ret == 0
    assert f"{GONE}\n          cassettes/{cassette_path(THIRD).as_posix()}\n" in section(result)
    assert shrunk.cassette(THIRD).exists()


@pytest.mark.parametrize(("how", "code"), [("ignore", 0), ("warn", 0), ("fail", 1)])
def test_what_is_done_about_it_is_an_option(shrunk: Suite, how: str, code: int) -> None:
    result = shrunk.in_process(f"--ctxeval-unused={how}", record="none")
    assert result.ret == code
    result.assert_outcomes(passed=2)
    assert (GONE in section(result)) is (how != "ignore")


def test_a_wrong_option_lists_the_choices(shrunk: Suite) -> None:
    result = shrunk.in_process("--ctxeval-unused=delete", record="none")
    assert result.ret == 4
    assert "--ctxeval-unused: 'delete' is not a mode; use ignore, warn or fail" in result.stderr.str()


def test_a_recording_that_its_test_no_longer_asks_for_is_listed(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.module(TWO_QUESTIONS)
    recorded.in_process(record="once").assert_outcomes(passed=1)
    recorded.module(TWO_QUESTIONS.replace(', "Till 5."', ","))
    replaying(monkeypatch)
    assert "unused    1 recording that no test asks for; 'ctxeval cassettes prune'" in section(
        recorded.in_process(record="none")
    )


@pytest.mark.parametrize(
    "change",
    [
        ('"Till 5."', '"Till 6."'),  # it fails at a miss, and would have asked for more
        ("    for answer", "    pytest.skip('today')\n        for answer"),
        ("    for answer", "    assert not 'yet'\n        for answer"),
    ],
    ids=["missed", "skipped", "failed"],
)
def test_a_test_that_did_not_pass_says_nothing_of_its_recordings(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str]
) -> None:
    recorded.module(TWO_QUESTIONS)
    recorded.in_process(record="once").assert_outcomes(passed=1)
    recorded.module(TWO_QUESTIONS.replace(*change))
    replaying(monkeypatch)
    assert "unused" not in section(recorded.in_process(record="none"))


def test_a_test_that_asks_for_nothing_any_more_leaves_all_of_its_recordings(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.cases("good", name="test_other")
    recorded.module(TWO_QUESTIONS)
    recorded.in_process(record="once").assert_outcomes(passed=2)
    recorded.module(TWO_QUESTIONS.replace('("From 9.", "Till 5.")', "()"))
    replaying(monkeypatch)
    assert "unused    2 recordings that no test asks for" in section(recorded.in_process(record="none"))


@pytest.mark.parametrize(
    "selection",
    [
        ["-k", "q1"],
        ["test_it.py::test_answers[shop-q1]"],
        ["--deselect", "test_it.py::test_answers[shop-q1]"],
        ["--ignore-glob", "*other*"],
        ["--maxfail=1", "test_broken.py", "test_it.py"],
    ],
    ids=" ".join,
)
def test_a_run_of_some_tests_says_nothing(shrunk: Suite, selection: list[str]) -> None:
    shrunk.module("def test_broken():\n    assert False", name="test_broken")
    assert "unused" not in section(shrunk.in_process(*selection, record="none"))


def test_a_run_of_the_last_failures_says_nothing(shrunk: Suite) -> None:
    shrunk.module("def test_broken():\n    assert False", name="test_broken")
    shrunk.in_process("-p", "cacheprovider", record="none")
    assert "unused" not in section(shrunk.in_process("--lf", "-p", "cacheprovider", record="none"))


def test_a_file_that_cannot_be_collected_says_nothing(shrunk: Suite) -> None:
    shrunk.module("import nowhere", name="test_broken")
    assert "unused" not in section(shrunk.in_process("--continue-on-collection-errors", record="none"))


def test_a_worker_that_crashes_says_nothing(shrunk: Suite) -> None:
    shrunk.module("import os\ndef test_crash():\n    os._exit(1)", name="test_crash")
    result = shrunk.run("-n", "2", record="none")
    result.assert_outcomes(passed=2, failed=1)
    assert "unused" not in section(result)


def test_a_run_of_every_judged_test_is_enough(shrunk: Suite) -> None:
    shrunk.module("def test_of_others():\n    pass", name="test_other")
    result = shrunk.in_process("-k", "context", record="none")
    result.assert_outcomes(passed=2, deselected=1)
    assert GONE in section(result)


def test_only_the_folder_that_was_run_is_told_of(shrunk: Suite) -> None:
    (shrunk.path / "elsewhere").mkdir()
    shrunk.cases("one", name="elsewhere/test_more", session="more")
    shrunk.module(
        (shrunk.path / "elsewhere/test_more.py").read_text().replace("elsewhere/", ""), name="elsewhere/test_more"
    )
    result = shrunk.in_process("elsewhere", record="none")
    assert "unused" not in section(result)


def test_a_file_of_tests_that_could_not_run_here_keeps_its_cassettes(shrunk: Suite) -> None:
    shrunk.cases("four", name="test_windows", session="windows")
    (shrunk.path / "cassettes/test_windows").mkdir()
    text = shrunk.cassette(THIRD).read_text(encoding="utf-8").replace("test_it.py", "test_windows.py")
    (shrunk.path / "cassettes/test_windows/test_answers-windows-q1-00000000.yaml").write_text(text, encoding="utf-8")
    shrunk.module("import pytest\npytest.skip('not here', allow_module_level=True)", name="test_windows")
    assert section(shrunk.in_process(record="none")).count(".yaml") == 1


def test_cassettes_of_other_tools_are_left_alone(shrunk: Suite) -> None:
    other = shrunk.path / "cassettes/test_it/test_other.yaml"
    other.write_text("interactions: []\nversion: 1\n", encoding="utf-8")
    assert "1 cassette whose test is gone" in section(shrunk.in_process(record="none"))
    assert shrunk.ctxeval("cassettes", "prune").returncode == 0
    assert other.exists()
    assert not shrunk.cassette(THIRD).exists()


def test_many_are_told_in_few_lines(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.cases(*(f"answer {number}" for number in range(9)))
    recorded.in_process(record="once").assert_outcomes(passed=9)
    recorded.cases("answer 0")
    replaying(monkeypatch)
    told = section(recorded.in_process(record="none"))
    assert "unused    8 cassettes whose tests are gone; 'ctxeval cassettes prune' deletes them\n" in told
    assert told.count("          cassettes/") == 3
    assert "          and 5 more files\n" in told


# ctxeval cassettes prune


def test_prune_deletes_what_no_test_needs_and_says_so(shrunk: Suite) -> None:
    tried = shrunk.ctxeval("cassettes", "prune", "--dry-run")
    assert f"would delete cassettes/{cassette_path(THIRD).as_posix()}: its test is gone" in tried.stdout
    assert shrunk.cassette(THIRD).exists()
    pruned = shrunk.ctxeval("cassettes", "prune", "-n", "2")
    assert pruned.returncode == 0
    assert f"\ndelete cassettes/{cassette_path(THIRD).as_posix()}: its test is gone\n" in pruned.stdout
    assert not shrunk.cassette(THIRD).exists()
    assert "unused" not in section(shrunk.in_process(record="none"))
    assert "nothing to delete: 2 tests need every recording" in shrunk.ctxeval("cassettes", "prune").stdout


def test_prune_takes_out_single_recordings(recorded: Suite, monkeypatch: pytest.MonkeyPatch, server: LLMServer) -> None:
    recorded.module(TWO_QUESTIONS)
    recorded.in_process(record="once").assert_outcomes(passed=1)
    recorded.module(TWO_QUESTIONS.replace(', "Till 5."', ","))
    replaying(monkeypatch)
    pruned = recorded.ctxeval("cassettes", "prune")
    assert re.search(r"^cut cassettes/.*\.yaml: 1 not asked for$", pruned.stdout, re.MULTILINE)
    (path,) = recorded.path.rglob("*.yaml")
    assert path.read_text(encoding="utf-8").count("Till 5.") == 0
    result = recorded.in_process(record="none")
    result.assert_outcomes(passed=1)
    assert "unused" not in section(result)


@pytest.mark.parametrize(
    ("source", "arguments", "why"),
    [
        ("", ["-k", "q1"], "tests were left out"),
        ("", ["test_it.py::test_answers"], "tests were left out"),
        ("def test_broken():\n    assert False", [], "the run was red"),
        (
            "import pytest\n@pytest.mark.skip\ndef test_later(context_case):\n    pass",
            [],
            "test_more.py::test_later was skipped",
        ),
        ("import os\ndef test_crash():\n    os._exit(1)", ["-n", "2"], "a worker crashed"),
        ("", ["-k", "nothing"], None),
    ],
    ids=["-k", "one function", "failure", "skip", "crash", "nothing selected"],
)
def test_prune_refuses_where_the_run_cannot_tell(
    shrunk: Suite, source: str, arguments: list[str], why: str | None
) -> None:
    shrunk.module(source, name="test_more")
    refused = shrunk.ctxeval("cassettes", "prune", *arguments)
    assert refused.returncode != 0
    assert why is None or f"nothing is deleted: {why}\n" in refused.stdout
    assert shrunk.cassette(THIRD).exists()


def test_prune_deletes_nothing_where_no_test_uses_the_plugin(shrunk: Suite) -> None:
    shrunk.module("def test_it():\n    pass")
    refused = shrunk.ctxeval("cassettes", "prune")
    assert refused.returncode == 1
    assert refused.stdout.endswith(
        "\nnothing is deleted: no test used a cassette; where none is to be judged any more, delete the folder cassettes\n"
    )
    told = "its test is gone; no test is judged any more, so delete it\n"
    assert shrunk.ctxeval("cassettes", "check").stdout.count(told) == 3
    assert len(list(shrunk.path.rglob("*.yaml"))) == 3


# ctxeval cassettes check and list


def test_check_is_content_with_cassettes_that_are_in_order(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch, server: LLMServer
) -> None:
    recorded.cases("one", "two")
    recorded.in_process(record="once").assert_outcomes(passed=2)
    replaying(monkeypatch)
    asked = len(server.requests)
    checked = recorded.ctxeval("cassettes", "check")
    assert (checked.returncode, checked.stdout) == (0, "2 cassettes: in order\n")
    assert len(server.requests) == asked


def test_check_names_what_is_damaged_unused_left_over_or_holds_a_key(shrunk: Suite) -> None:
    first, second = (shrunk.cassette(f"test_it.py::test_answers[shop-q{number}]") for number in (1, 2))
    first.write_text("", encoding="utf-8")
    planted = "sk-" + "x" * 30
    second.write_text(second.read_text(encoding="utf-8").replace(" two ", f" {planted} ", 1), encoding="utf-8")
    (first.parent / ".ctxeval-abcd1234.tmp").write_text("half", encoding="utf-8")
    checked = shrunk.ctxeval("cassettes", "check")
    assert checked.returncode == 1
    folder = "cassettes/test_it"
    cure = "restore the file from version control, or delete it and record again with --ctxeval-record=all"
    prune = "'ctxeval cassettes prune' deletes it"
    revoke = "revoke it, and record the test again without it"
    assert re.sub(r"line \d+: something", "line N: something", checked.stdout).splitlines() == [
        f"damaged   {folder}/{first.name}, line 1: it is empty; {cure}",
        f"secret    {folder}/{second.name}: interaction 1, request, line N: something shaped like a key stands there; "
        + revoke,
        f"unused    {folder}/{shrunk.cassette(THIRD).name}: its test is gone; {prune}",
        f"left over {folder}/.ctxeval-abcd1234.tmp: of a run that was killed; {prune}",
        "3 cassettes: 4 to see to",
    ]
    assert planted not in checked.stdout + checked.stderr


def test_check_of_some_tests_says_that_it_has_not_looked(shrunk: Suite) -> None:
    checked = shrunk.ctxeval("cassettes", "check", "-k", "q1")
    assert checked.returncode == 0
    assert checked.stdout == "unused cassettes were not looked for: tests were left out\n3 cassettes: in order\n"


def test_check_shows_what_keeps_the_tests_from_being_collected(shrunk: Suite) -> None:
    shrunk.module("import nowhere", name="test_broken")
    checked = shrunk.ctxeval("cassettes", "check")
    assert checked.returncode == 1
    assert "No module named 'nowhere'" in checked.stdout


def test_list_tells_whose_each_cassette_is(shrunk: Suite) -> None:
    shrunk.cassette(THIRD).write_text("ctxeval: [", encoding="utf-8")
    listed = shrunk.ctxeval("cassettes", "list").stdout.splitlines()
    first = shrunk.cassette("test_it.py::test_answers[shop-q1]")
    assert listed[:3] == [
        f"cassettes/test_it/{first.name}",
        "    test_it.py::test_answers[shop-q1]",
        f"    m, 1 recording, {first.stat().st_size:,} bytes",
    ]
    assert listed[6] == f"cassettes/test_it/{shrunk.cassette(THIRD).name}"
    assert listed[7].startswith(f"    damaged: cassettes/test_it/{shrunk.cassette(THIRD).name}, line 2: it is not YAML")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["cassettes", "clean"], "invalid choice: 'clean'"),
        (["cassettes", "list", "--ctxeval-record=never"], "--ctxeval-record: 'never' is not a mode"),
        (["cassettes", "check", "--no-such-option"], "unrecognized arguments: --no-such-option"),
    ],
    ids=["command", "setting", "option"],
)
def test_a_wrong_command_line_is_told(shrunk: Suite, arguments: list[str], told: str) -> None:
    wrong = shrunk.ctxeval(*arguments)
    assert wrong.returncode not in (0, 1)
    assert told in wrong.stdout + wrong.stderr
    assert "Traceback" not in wrong.stdout + wrong.stderr


# What a run cannot know.


def hooked(suite: Suite, body: str) -> None:
    conftest = suite.path / "conftest.py"
    hook = f"def pytest_collection_modifyitems(config, items):\n    {body}\n"
    conftest.write_text(f"{textwrap.dedent(conftest.read_text(encoding='utf-8'))}\n\n{hook}", encoding="utf-8")


@pytest.mark.parametrize(
    "body",
    [
        "items[:] = [item for item in items if 'q2' not in item.nodeid]",
        "config.hook.pytest_deselected(items=[items.pop()])",
    ],
    ids=["dropped without a word", "deselected"],
)
def test_tests_that_a_hook_leaves_out_are_needed_all_the_same(recorded: Suite, server: LLMServer, body: str) -> None:
    recorded.cases("one", "two")
    recorded.in_process(record="once").assert_outcomes(passed=2)
    hooked(recorded, body)
    assert "unused" not in section(recorded.in_process(record="none"))
    pruned = recorded.ctxeval("cassettes", "prune")
    assert "nothing is deleted: tests were left out" in pruned.stdout
    assert len(list(recorded.path.rglob("*.yaml"))) == 2


def test_a_test_file_that_moved_out_of_the_folder_that_is_run_is_not_called_gone(shrunk: Suite) -> None:
    for name in ("unit", "integ"):
        (shrunk.path / name).mkdir()
    shrunk.module(
        (shrunk.path / "test_it.py").read_text(encoding="utf-8").replace("test_it.json", "../test_it.json"),
        name="unit/test_it",
    )
    (shrunk.path / "test_it.py").unlink()
    (shrunk.path / "cassettes/test_it").rename(shrunk.path / "cassettes/moved")
    shrunk.module("def test_other():\n    pass", name="integ/test_other")
    assert "unused" not in section(shrunk.in_process("unit", record="none"))


def test_recordings_of_more_samples_are_not_called_unused(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.cases("one")
    recorded.in_process("--ctxeval-samples=3", record="once").assert_outcomes(passed=1)
    replaying(monkeypatch)
    assert "unused" not in section(recorded.in_process(record="none"))
    assert "nothing to delete" in recorded.ctxeval("cassettes", "prune").stdout
    recorded.in_process("--ctxeval-samples=3", record="none").assert_outcomes(passed=1)


def test_what_another_test_was_lent_is_not_called_unused(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.ini()
    recorded.pytester.makefile(".ini", pytest="[pytest]\nfilterwarnings = default")
    recorded.module(TWO_QUESTIONS)
    recorded.in_process(record="once").assert_outcomes(passed=1)
    second = TWO_QUESTIONS.replace("import pytest\n    from pytest_ctxeval import assert_context_awareness\n", "")
    recorded.module(
        TWO_QUESTIONS.replace('"From 9.", "Till 5."', '"From 9.",')
        + second.replace('"From 9.", "Till 5."', '"Till 5.",')
        .replace("context_case(query", "context_case(qa_id='test_it', query")
        .replace("def test_it", "def test_two")
    )
    replaying(monkeypatch)
    result = recorded.in_process("--ctxeval-unused=fail", record="none")
    result.assert_outcomes(passed=2, warnings=1)
    assert result.ret == 0


def test_a_file_of_another_tool_may_be_named_as_ours_are(shrunk: Suite) -> None:
    (shrunk.path / "cassettes/test_it/release-20240101.yaml").write_text(
        "interactions: []\nversion: 1\n", encoding="utf-8"
    )
    assert "release" not in shrunk.ctxeval("cassettes", "check").stdout + shrunk.ctxeval("cassettes", "list").stdout


def test_what_must_not_be_written_is_told_and_the_rest_is_done(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.module(TWO_QUESTIONS)
    recorded.in_process(record="once").assert_outcomes(passed=1)
    recorded.module(TWO_QUESTIONS.replace(', "Till 5."', ","))
    replaying(monkeypatch)
    (path,) = recorded.path.rglob("*.yaml")
    monkeypatch.setenv("SHOP_TOKEN", "an assistant's answer keeps")
    before = path.read_bytes()
    pruned = recorded.ctxeval("cassettes", "prune")
    assert pruned.returncode == 1
    assert "not done: cassettes/" in pruned.stdout
    assert "cut " not in pruned.stdout
    assert "Traceback" not in pruned.stdout + pruned.stderr
    assert path.read_bytes() == before


def test_a_key_in_an_id_is_not_listed(shrunk: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "answers[shop-q1]")
    listed = shrunk.ctxeval("cassettes", "list").stdout
    assert "answers[shop-q1]" not in listed
    assert "test_it.py::test_[hidden]" in listed


def test_cassettes_are_unused_where_no_judged_test_is_left(recorded: Suite) -> None:
    recorded.module(TWO_QUESTIONS)
    recorded.in_process(record="once").assert_outcomes(passed=1)
    (recorded.path / "test_it.py").unlink()
    recorded.module("def test_of_others():\n    pass\n", name="test_plain")
    result = recorded.in_process("--ctxeval-unused=fail", record="none")
    assert result.ret == 1
    assert "1 cassette whose test is gone" in section(result)
    assert recorded.in_process("--ctxeval-unused=fail", "test_plain.py", record="none").ret == 0
