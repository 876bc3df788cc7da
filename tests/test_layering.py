"""Who may import whom."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_ctxeval

ROOT = Path(pytest_ctxeval.__file__).parent
LIGHT = (
    "__init__",
    "plugin",
    "cli",
    "errors",
    "_plugin.options",
    "_plugin.collect",
    "_plugin.stash",
    "_judge.provider",
    "_core.run",
    "_core.text",
    "_core.verdict",
)
ALLOWED = {
    "errors": set(),
    "_core": {"errors"},
    "_metrics": {"_core", "errors"},
    "_datasets": {"_core", "errors"},
    "_report": {"_core", "errors"},
    "_judge": {"_metrics", "_core", "errors"},
    "_plugin": {"_judge", "_metrics", "_report", "_datasets", "_core", "errors"},
    "plugin": {"_plugin", "_judge", "_core", "errors"},
    "cli": {"_plugin", "errors"},
    "retriever": {"_datasets"},
    "schemas": {"_core"},
    "statistical": {"_core"},
    "metrics": {"_judge", "_metrics", "_datasets", "_core", "errors"},
}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path, *, at_run_time: bool = False) -> Iterator[str]:
    """The modules that a file imports, but for type checkers; `at_run_time` leaves out those inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = [node for node in tree.body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")]
    nodes = iter(body) if at_run_time else (each for node in body for each in ast.walk(node))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_every_import_points_down(path: Path) -> None:
    own = module_name(path).partition(".")[0]
    if own == "__init__":
        return
    used = {name.split(".")[1] for name in imports(path) if name.startswith("pytest_ctxeval.")}
    assert used - {own} <= ALLOWED[own]


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_pytest_and_vcrpy_are_imported_at_home_alone(path: Path) -> None:
    used = {name.partition(".")[0] for name in imports(path)}
    name = module_name(path)
    assert "pytest" not in used or name.startswith(("_plugin", "plugin"))
    assert "vcr" not in used or name.startswith("_judge.cassette")


@pytest.mark.parametrize("name", LIGHT)
def test_light_files_import_the_standard_library_and_pytest_alone(name: str) -> None:
    path = ROOT / Path(*name.split(".")).with_suffix(".py")
    used = {each.partition(".")[0] for each in imports(path, at_run_time=True)}
    assert not used & {"pydantic", "numpy", "langchain_core", "vcr", "yaml"}
