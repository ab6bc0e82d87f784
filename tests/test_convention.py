"""What a reviewer would otherwise have to repeat: names, sizes, exports, entry points, documented and tested hooks."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.hookspecs import HookSpecs
from tests.tree import ROOT, SOURCE_ROOTS, packages, pyproject

CODE = ("harness", *SOURCE_ROOTS, "tests", "benchmarks", "examples", "docs_site")
LONG_FILE = 600
LONGEST_FUNCTION = 60
LONG_FILES: dict[str, str] = {}
"""Files of more than 600 lines, each with its reason: a module owns one noun, and few nouns need that much."""
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc", "stuff", "tools"}
HOOKS = [name for name, _ in inspect.getmembers(HookSpecs, inspect.isfunction) if name.startswith("harness_")]


def _python_files(*folders: str) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if not {"__pycache__", "build", "dist"} & set(path.parts)
    )


def _module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts = parts[1:] if parts[0] in SOURCE_ROOTS else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SHIPPED = [path for path in _python_files("harness", *SOURCE_ROOTS) if path.name != "__main__.py"]


def test_every_package_is_a_plugin_with_an_entry_point() -> None:
    declared = set(pyproject()["project"]["entry-points"]["harness"].values())
    assert declared == {"harness.builtin", *(path.name for path in packages())}


def test_source_roots_hold_packages_of_the_harness_only() -> None:
    strangers = [
        path.name
        for root in SOURCE_ROOTS
        for path in (ROOT / root).iterdir()
        if path.is_dir() and not path.name.startswith(("harness_", "__pycache__", "."))
    ]
    assert strangers == []


def test_the_installed_entry_points_are_those_of_the_project() -> None:
    """A new entry point works only after ``make setup``."""
    distribution = importlib.metadata.distribution("multilingual-harness")
    project = pyproject()["project"]
    declared = {
        (group, name, value)
        for group, entries in project["entry-points"].items()
        for name, value in entries.items()
    } | {("console_scripts", name, value) for name, value in project["scripts"].items()}
    installed = {(item.group, item.name, item.value) for item in distribution.entry_points}
    assert installed == declared
    assert distribution.version == project["version"]


def test_packages_are_known_to_the_import_linter() -> None:
    names = {path.name for path in packages()}
    linter = pyproject()["tool"]["importlinter"]
    assert set(linter["root_packages"]) == {"harness", *names}
    for contract in linter["contracts"]:
        if contract["type"] == "independence":
            assert set(contract["modules"]) == names
        if contract["type"] == "forbidden":
            assert set(contract["forbidden_modules"]) == names


def test_names_say_what_they_own() -> None:
    names = {part.removesuffix(".py") for path in SHIPPED for part in path.relative_to(ROOT).parts}
    assert not names & VAGUE_NAMES


def test_long_files_have_a_reason() -> None:
    long = {
        str(path.relative_to(ROOT))
        for path in _python_files(*CODE)
        if len(path.read_text(encoding="utf-8").splitlines()) > LONG_FILE
    }
    assert sorted(long - set(LONG_FILES)) == [], (
        "split them by nouns, or add them to LONG_FILES with a reason"
    )
    assert sorted(set(LONG_FILES) - long) == [], "exceptions that are no longer needed"
    assert all(LONG_FILES.values())


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = _tree(path)
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.thorough
def test_no_test_measures_speed() -> None:
    """A busy machine must not fail a test; `benchmarks/` measures, and tests only wait with `time.monotonic`."""
    clocks = {"process_time", "perf_counter", "process_time_ns", "perf_counter_ns", "thread_time"}
    found = {
        str(path.relative_to(ROOT))
        for path in _python_files("tests", "harness/testing", "examples")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute) and node.attr in clocks
    }
    assert found == set()


@pytest.mark.thorough
def test_no_function_is_long() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in _python_files(*CODE)
        for node in _functions(path)
        if node.end_lineno is not None and node.end_lineno - node.lineno >= LONGEST_FUNCTION
    }
    assert long == {}


def _importable(path: Path) -> Any:
    """Return a module, or None where a package of others that it needs is not installed."""
    try:
        return importlib.import_module(_module_name(path))
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0].startswith("harness"):
            raise
        return None


def test_lists_of_exports_are_on_doors_alone() -> None:
    """Modules other than ``__init__.py`` have no ``__all__``: what is public is what a package's door exports."""
    modules = (path for path in _python_files(*CODE) if path.name != "__init__.py")
    assert [path for path in modules if "\n__all__" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented(hook: str) -> None:
    function = getattr(HookSpecs, hook)
    assert function.__doc__, f"{hook} has no docstring"
    assert "eturn" in function.__doc__ or "bserve" in function.__doc__


def test_every_hook_has_a_test() -> None:
    functions = {node.name for node in _functions(ROOT / "tests" / "test_hooks.py")}
    tested = {name.removeprefix("test_hook_") for name in functions if name.startswith("test_hook_")}
    assert tested == {hook.removeprefix("harness_") for hook in HOOKS}


@pytest.mark.parametrize("package", [path.name for path in packages()])
def test_a_plugin_imports_nothing_heavy_when_it_is_loaded(package: str) -> None:
    """Check the imports of the package's ``__init__``; tests/cli/test_imports.py checks them in a new process."""
    [path] = [path for path in packages() if path.name == package]
    tree = ast.parse((path / "__init__.py").read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    allowed = {"__future__", "collections.abc", "importlib.resources", "importlib.resources.abc", "typing"}
    assert {
        name
        for name in modules - allowed
        if name != "harness" and not name.startswith(("harness.", "pathlib"))
    } == set()
