"""Which tests a run was to have: of those that are gone nobody else knows."""

import pytest

from pytest_ctxeval._core.selection import Selection

TESTS = (
    "tests/shop/test_it.py::test_answers[shop-q1]",
    "tests/shop/test_it.py::TestDesk::test_more[a::b/c[1]]",
    "tests/shop/test_it.py::TestDesk::test_plain",
    "tests/test_more.py::test_answers",
    "test_[x].py::test_answers",
)


@pytest.mark.parametrize(
    ("selection", "had"),
    [
        (Selection(), TESTS),
        (Selection(()), ()),
        (Selection(("tests",)), TESTS[:4]),
        (Selection(("tes",)), ()),
        (Selection(("tests/shop", "test_[x].py")), (*TESTS[:3], TESTS[4])),
        (Selection(("tests/shop/test_it.py",)), TESTS[:3]),
        (Selection(("tests/shop/test_it.py::test_answers",)), TESTS[:1]),
        (Selection(("tests/shop/test_it.py::test_answers[shop-q1]",)), TESTS[:1]),
        (Selection(("tests/shop/test_it.py::test_answers[shop-q]",)), ()),
        (Selection(("tests/shop/test_it.py::TestDesk",)), TESTS[1:3]),
        (Selection(("tests/shop/test_it.py::TestDesk::test_more",)), TESTS[1:2]),
        (Selection(ignored=("tests/shop",)), TESTS[3:]),
        (Selection(ignored=("*_more.py",)), (*TESTS[:3], TESTS[4])),
        (Selection(ignored=("test_[[]x].py",)), TESTS[:4]),
        (Selection(ignored=("*answers",)), TESTS),  # a pattern is of files, not of tests
        (Selection(deselected=TESTS[:2]), TESTS[2:]),
        (Selection(("tests",), ("*/shop",), TESTS[3:4]), ()),
    ],
)
def test_a_run_has_what_is_in_its_paths_and_not_left_out(selection: Selection, had: tuple[str, ...]) -> None:
    assert tuple(test for test in TESTS if not selection.leaves_out(test)) == had
