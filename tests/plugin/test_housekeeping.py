"""`ctxeval cassettes` in the corners: links, folders, runs that are none, files that cannot be deleted."""

import shutil
from pathlib import Path

import pytest
from support.suite import THIRD, Suite, replaying, section

from pytest_ctxeval import cli
from pytest_ctxeval._plugin.cassettes import cassette_path

FIRST = "test_it.py::test_answers[shop-q1]"
PRUNE = "'ctxeval cassettes prune' deletes it"


def shown(node: str) -> str:
    return f"cassettes/{cassette_path(node).as_posix()}"


def recordings(suite: Suite) -> list[Path]:
    return sorted(suite.path.rglob("*.yaml"))


# A run that says nothing of what is needed: prune says why, and that it has deleted nothing.


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["-k", "nothing"], 1, "tests were left out"),
        (["-n", "2", "-k", "nothing"], 1, "tests were left out"),
        (["--setup-only"], 1, "tests were left out"),
        (["--setup-plan"], 1, "tests were left out"),
        (["--collect-only"], 1, "no test was run"),
        (["empty"], 1, "no test was found"),
        (["nowhere.py"], 2, "the run was broken off"),
    ],
    ids=["-k", "-n 2 -k", "setup only", "setup plan", "collect only", "empty folder", "no such file"],
)
def test_prune_says_that_it_has_deleted_nothing_where_there_was_no_run(
    shrunk: Suite, arguments: list[str], code: int, why: str
) -> None:
    (shrunk.path / "empty").mkdir()
    refused = shrunk.ctxeval("cassettes", "prune", *arguments)
    assert refused.returncode == code
    assert refused.stdout.endswith(f"\nnothing is deleted: {why}\n")
    assert len(recordings(shrunk)) == 3


@pytest.mark.parametrize(("command", "done"), [("prune", "deleted"), ("adopt", "adopted")])
def test_what_cannot_be_collected_is_why_nothing_is_done(shrunk: Suite, command: str, done: str) -> None:
    shrunk.module("import nowhere", name="test_broken")
    refused = shrunk.ctxeval("cassettes", command)
    assert refused.returncode == 1
    assert refused.stdout.endswith(f"\nnothing is {done}: not all tests could be collected\n")
    assert len(recordings(shrunk)) == 3


def test_a_red_run_deletes_nothing_and_says_so_after_the_failures(shrunk: Suite) -> None:
    shrunk.cassette(FIRST).unlink()
    refused = shrunk.ctxeval("cassettes", "prune")
    assert refused.returncode == 1
    assert f"FAILED {FIRST}" in refused.stdout
    assert refused.stdout.endswith("\nnothing is deleted: the run was red\n")
    assert shrunk.cassette(THIRD).exists()


def test_adopt_after_a_red_run_does_not_say_that_every_test_had_its_recordings(shrunk: Suite) -> None:
    shrunk.cassette(FIRST).unlink()
    assert shrunk.ctxeval("cassettes", "adopt").stdout.endswith(
        "\nnothing to adopt: no test found its recordings on the cassette of another one\n"
    )


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
def test_a_run_that_only_sets_tests_up_says_nothing_of_unused_cassettes(shrunk: Suite, option: str) -> None:
    result = shrunk.in_process(option, "--ctxeval-unused=fail", record="none")
    assert result.ret == 0
    assert "unused" not in section(result)


def test_workers_that_have_no_test_left_say_nothing_of_unused_cassettes(shrunk: Suite) -> None:
    result = shrunk.run("-n", "2", "-k", "nothing", "--ctxeval-unused=fail", record="none")
    assert result.ret == 5
    assert "unused" not in section(result)


# Tests that did not run, or did not pass.


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\npytest.skip('not here', allow_module_level=True)",
        "import pytest\npytest.importorskip('nowhere')",
    ],
    ids=["skip", "importorskip"],
)
def test_prune_deletes_nothing_where_a_file_was_skipped(shrunk: Suite, source: str) -> None:
    shrunk.module(source, name="test_windows")
    refused = shrunk.ctxeval("cassettes", "prune")
    assert refused.returncode == 1
    assert refused.stdout.endswith("\nnothing is deleted: test_windows.py was skipped\n")
    assert shrunk.cassette(THIRD).exists()


def test_prune_gives_no_advice_to_delete_what_a_skipped_file_needs(shrunk: Suite) -> None:
    source = (shrunk.path / "test_it.py").read_text(encoding="utf-8")
    shrunk.module(f"import pytest\npytest.skip('not here', allow_module_level=True)\n{source}")
    shrunk.module("def test_of_others():\n    pass", name="test_other")
    assert shrunk.ctxeval("cassettes", "prune").stdout.endswith("\nnothing is deleted: test_it.py was skipped\n")


def test_cassettes_of_a_file_that_conftest_ignores_are_kept(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.cases("one")
    recorded.cases("two", name="test_windows", session="windows")
    recorded.in_process(record="once").assert_outcomes(passed=2)
    recorded.append("conftest.py", "collect_ignore = ['test_windows.py']\n")
    replaying(monkeypatch)
    assert "unused" not in section(recorded.in_process(record="none"))
    assert recorded.ctxeval("cassettes", "check").stdout == "2 cassettes: in order\n"
    assert "nothing to delete: 1 test needs every recording\n" in recorded.ctxeval("cassettes", "prune").stdout
    assert len(recordings(recorded)) == 2


def test_prune_deletes_nothing_where_a_test_that_may_fail_has_no_cassette(shrunk: Suite) -> None:
    """Its recordings may be those of the test that is gone, under its old name."""
    shrunk.append("test_it.py", "test_answers = pytest.mark.xfail(test_answers)\n")
    shrunk.cassette(FIRST).unlink()
    refused = shrunk.ctxeval("cassettes", "prune")
    assert refused.returncode == 1
    assert " 1 xfailed, 1 xpassed in " in refused.stdout
    assert refused.stdout.endswith(f"\nnothing is deleted: {FIRST} did not pass and has no cassette of its own\n")
    assert shrunk.cassette(THIRD).exists()


def test_a_test_that_may_fail_and_has_a_cassette_keeps_nobody_from_pruning(shrunk: Suite) -> None:
    shrunk.append("test_it.py", "    if context_case.qa_id == 'q1':\n        pytest.xfail('known')\n")
    pruned = shrunk.ctxeval("cassettes", "prune")
    assert "1 xfailed" in pruned.stdout
    assert pruned.returncode == 0
    assert [path.name for path in recordings(shrunk)] == sorted(
        shrunk.cassette(f"test_it.py::test_answers[shop-q{number}]").name for number in (1, 2)
    )


# From a subfolder.


@pytest.fixture
def in_two_folders(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite of two folders, each of which has lost a case that was recorded."""
    for folder in ("inner", "outer"):
        (recorded.path / folder).mkdir()
    files = {"inner/test_in": "inside", "outer/test_out": "outside"}
    for kept in (("one", "two"), ("one",)):
        for name, session in files.items():
            recorded.cases(*kept, name=name, session=session)
            recorded.replace(f"{name}.py", f"{name}.json", Path(f"{name}.json").name)
        if len(kept) > 1:
            recorded.in_process(record="once").assert_outcomes(passed=4)
    replaying(monkeypatch)
    return recorded


INNER = "inner/test_in.py::test_answers[inside-q2]"
OUTER = "outer/test_out.py::test_answers[outside-q2]"


def test_check_in_a_subfolder_says_where_it_has_looked(in_two_folders: Suite) -> None:
    checked = in_two_folders.ctxeval("cassettes", "check", folder="inner")
    assert checked.stdout.splitlines() == [
        f"unused    {shown(INNER)}: its test is gone; {PRUNE}",
        "unused cassettes were looked for among those of inner alone",
        "4 cassettes: 1 to see to",
    ]
    whole = in_two_folders.ctxeval("cassettes", "check")
    assert whole.stdout.splitlines() == [
        f"unused    {shown(INNER)}: its test is gone; {PRUNE}",
        f"unused    {shown(OUTER)}: its test is gone; {PRUNE}",
        "4 cassettes: 2 to see to",
    ]


def test_prune_in_a_subfolder_deletes_what_is_of_its_tests_and_says_so(in_two_folders: Suite) -> None:
    pruned = in_two_folders.ctxeval("cassettes", "prune", folder="inner")
    assert pruned.returncode == 0
    assert pruned.stdout.endswith(
        f"\ndelete {shown(INNER)}: its test is gone\nunused cassettes were looked for among those of inner alone\n"
    )
    assert not in_two_folders.cassette(INNER).exists()
    assert in_two_folders.cassette(OUTER).exists()


def test_a_test_with_an_id_of_any_length_may_be_gone(recorded: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.cases("one", {"assistant": "two", "qa_id": "q" * 5_000})
    recorded.in_process(record="once").assert_outcomes(passed=2)
    recorded.cases("one")
    replaying(monkeypatch)
    gone = shown(f"test_it.py::test_answers[shop-{'q' * 5_000}]")
    assert recorded.ctxeval("cassettes", "check").stdout.splitlines() == [
        f"unused    {gone}: its test is gone; {PRUNE}",
        "2 cassettes: 1 to see to",
    ]


# Links and odd folders.


def test_prune_does_not_follow_a_link_to_a_folder(shrunk: Suite, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(shrunk.path / "cassettes", elsewhere)
    (shrunk.path / "cassettes/linked").symlink_to(elsewhere, target_is_directory=True)
    (shrunk.path / "cassettes/round").symlink_to(shrunk.path / "cassettes", target_is_directory=True)
    pruned = shrunk.ctxeval("cassettes", "prune")
    assert pruned.returncode == 0
    assert pruned.stdout.count("\ndelete ") == 1
    assert not shrunk.cassette(THIRD).exists()
    assert len(list(elsewhere.rglob("*.yaml"))) == 3
    assert shrunk.ctxeval("cassettes", "check").stdout == "2 cassettes: in order\n"


def test_prune_of_a_folder_that_is_itself_a_link_deletes_what_stands_in_it(shrunk: Suite, tmp_path: Path) -> None:
    (shrunk.path / "cassettes").rename(tmp_path / "shared")
    (shrunk.path / "cassettes").symlink_to(tmp_path / "shared", target_is_directory=True)
    assert f"\ndelete {shown(THIRD)}: its test is gone\n" in shrunk.ctxeval("cassettes", "prune").stdout
    assert len(list((tmp_path / "shared").rglob("*.yaml"))) == 2


def test_prune_deletes_a_link_and_not_the_file_it_leads_to(shrunk: Suite, tmp_path: Path) -> None:
    third, target = shrunk.cassette(THIRD), tmp_path / "kept.yaml"
    third.rename(target)
    third.symlink_to(target)
    assert shrunk.ctxeval("cassettes", "prune").returncode == 0
    assert (third.is_symlink(), target.exists()) == (False, True)


def test_a_link_that_leads_nowhere_is_listed_and_is_to_be_seen_to(shrunk: Suite) -> None:
    shrunk.cassette(THIRD).unlink()
    shrunk.cassette(THIRD).symlink_to("nowhere.yaml")
    checked = shrunk.ctxeval("cassettes", "check")
    assert checked.returncode == 1
    assert checked.stdout.splitlines() == [
        f"damaged   {shown(THIRD)}: a link that leads nowhere; restore what it leads to, or delete it",
        "3 cassettes: 1 to see to",
    ]
    assert f"{shown(THIRD)}\n    a link that leads nowhere\n" in shrunk.ctxeval("cassettes", "list").stdout
    pruned = shrunk.ctxeval("cassettes", "prune")
    assert "nothing to delete: 2 tests need every recording\n" in pruned.stdout
    assert shrunk.cassette(THIRD).is_symlink()


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("missing", "no cassettes in cassettes: there is no such folder"),
        ("empty", "no cassettes in the folder cassettes"),
        ("a file", "no cassettes in cassettes: it is a file, and no folder"),
    ],
)
def test_where_there_are_no_cassettes_check_and_list_say_where_they_have_looked(
    suite: Suite, kind: str, told: str
) -> None:
    suite.cases("SCORE=0.9")
    folder = suite.path / "cassettes"
    if kind == "a file":
        folder.write_text("not a folder", encoding="utf-8")
    elif kind == "empty":
        folder.mkdir()
    assert suite.ctxeval("cassettes", "list").stdout == f"{told}\n"
    checked = suite.ctxeval("cassettes", "check")
    seen_to = f"damaged   {told}\n0 cassettes: 1 to see to\n" if kind == "a file" else f"{told}\n"
    assert (checked.returncode, checked.stdout) == (int(kind == "a file"), seen_to)
    pruned = suite.ctxeval("cassettes", "prune")
    assert (pruned.returncode, pruned.stdout.splitlines()[-1]) == (1, "nothing is deleted: the run was red")


# What check says is to be done.


def test_check_names_both_cures_where_a_test_may_have_been_renamed(shrunk: Suite) -> None:
    shrunk.replace("test_it.py", "test_answers", "test_replies")
    checked = shrunk.ctxeval("cassettes", "check")
    told = f"its test is gone; if it was renamed, 'ctxeval cassettes adopt' moves it, else {PRUNE}"
    gone = [f"test_it.py::test_answers[shop-q{number}]" for number in (1, 2, 3)]
    assert checked.stdout.splitlines() == [
        *(f"unused    {shown(node)}: {told}" for node in gone),
        "3 cassettes: 3 to see to",
    ]
    shrunk.pytester.makefile(".ini", pytest="[pytest]\n")
    assert shrunk.ctxeval("cassettes", "adopt").returncode == 0
    assert shrunk.ctxeval("cassettes", "check").stdout.splitlines() == [
        f"unused    {shown(THIRD)}: its test is gone; {PRUNE}",
        "3 cassettes: 1 to see to",
    ]


def test_a_copy_of_a_cassette_is_said_to_be_one(shrunk: Suite) -> None:
    first = shrunk.cassette(FIRST)
    shutil.copy(first, first.with_name("test_answers-shop-copy.yaml"))
    folder = "cassettes/test_it"
    assert (
        f"unused    {folder}/test_answers-shop-copy.yaml: its test has {first.name}; {PRUNE}\n"
        in shrunk.ctxeval("cassettes", "check").stdout
    )
    assert f"delete {folder}/test_answers-shop-copy.yaml: its test has {first.name}\n" in (
        shrunk.ctxeval("cassettes", "prune").stdout
    )
    assert first.exists()


def test_prune_that_deletes_what_a_killed_run_left_does_not_say_that_there_was_nothing(shrunk: Suite) -> None:
    shrunk.cassette(THIRD).unlink()
    left = shrunk.path / "cassettes/test_it/.ctxeval-abcd1234.tmp"
    left.write_text("half", encoding="utf-8")
    pruned = shrunk.ctxeval("cassettes", "prune")
    assert pruned.stdout.endswith("\ndelete cassettes/test_it/.ctxeval-abcd1234.tmp: of a run that was killed\n")
    assert not left.exists()


# What cannot be deleted. Permissions do not hold the superuser back, so the system's own call is what fails.


def test_what_cannot_be_deleted_is_told_and_the_rest_is_done(
    shrunk: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = shrunk.path / "cassettes/test_it/.ctxeval-abcd1234.tmp"
    left.write_text("half", encoding="utf-8")
    unlink = Path.unlink

    def refuses(path: Path, *, missing_ok: bool = False) -> None:
        if path.name == shrunk.cassette(THIRD).name:
            raise PermissionError(13, "Permission denied", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuses)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    code = cli.main(["cassettes", "prune", "-p", "pytest_ctxeval.plugin", "-p", "no:cacheprovider"])
    assert code == 1
    assert capsys.readouterr().out.endswith(
        f"\nnot done: {shown(THIRD)}: it cannot be deleted: Permission denied\n"
        "delete cassettes/test_it/.ctxeval-abcd1234.tmp: of a run that was killed\n"
    )
    assert shrunk.cassette(THIRD).exists()
    assert not left.exists()


def test_an_empty_folder_that_stays_does_not_make_its_file_undeleted(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.cases("one")
    recorded.cases("two", name="test_gone", session="gone")
    recorded.in_process(record="once").assert_outcomes(passed=2)
    for file in recorded.path.glob("test_gone.*"):
        file.unlink()
    replaying(monkeypatch)

    def refuses(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "rmdir", refuses)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    code = cli.main(["cassettes", "prune", "-p", "pytest_ctxeval.plugin", "-p", "no:cacheprovider"])
    node = "test_gone.py::test_answers[gone-q1]"
    assert capsys.readouterr().out.endswith(f"\ndelete {shown(node)}: its test is gone\n")
    assert code == 0
    assert not recorded.cassette(node).exists()


@pytest.mark.parametrize("command", ["list", "check", "prune", "adopt"])
def test_a_plugin_that_is_switched_off_is_an_error_and_no_traceback(
    suite: Suite, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    done = suite.ctxeval_runs("cassettes", command)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr + done.stdout
    assert "plugin is switched off" in done.stderr + done.stdout or "--ctxeval-record" in done.stderr
