"""Text of a model or a dataset does nothing where it is printed."""

import pytest

from pytest_ctxeval._core.text import columns, harmless, one_line


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("::error::owned", ": :error::owned"),
        ("a\n  ::set-output name=x::y", "a\n  : :set-output name=x::y"),
        ("##[error]owned", "## [error]owned"),
        ("##vso[task.setvariable variable=x]y", "## vso[task.setvariable variable=x]y"),
        ("say ##VSO[task.complete]", "say ## VSO[task.complete]"),
        ("##teamcity[buildStatus text='x']", "## teamcity[buildStatus text='x']"),
        ("## a heading, and C::D", "## a heading, and C::D"),
    ],
)
def test_no_ci_takes_it_for_a_command(text: str, printed: str) -> None:
    assert harmless(text) == printed
    assert harmless(harmless(text)) == printed


@pytest.mark.parametrize(
    ("text", "n"), [("abc", 3), ("\u65e5\u672c", 4), ("e\u0301", 1), ("caf\u00e9", 4), ("\uff21", 2), ("\U0001f600", 2)]
)
def test_the_columns_of_a_terminal_are_counted(text: str, n: int) -> None:
    assert columns(text) == n


def test_a_line_is_cut_at_a_width_in_columns() -> None:
    assert one_line("\u65e5" * 10, 10) == "\u65e5" * 3 + "..."
    assert one_line("\u65e5" * 5, 10) == "\u65e5" * 5
    assert one_line("a" * 11, 10) == "a" * 7 + "..."
