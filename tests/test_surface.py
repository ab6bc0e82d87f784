"""The public surface: what plugins, adapters, examples and scaffolds import of the core."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness
from docs_site.capability_reference import capability_page
from docs_site.surface_reference import doors, surface_names, surface_page
from tests.docs.page import PAGES, blocks, page_name

ROOT = Path(__file__).resolve().parents[1]
SURFACE = {*doors(), "harness.callbacks", "harness.testing"}


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules of the core that a file imports, those for types alone too."""
    yield from _imported(path.read_text(encoding="utf-8"))


def _imported(code: str) -> Iterator[str]:
    """Yield the modules of the core that code imports."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.module.split(".")[0] == "harness":
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "harness")


def _packages() -> list[Path]:
    return sorted(
        path
        for root in ("plugins", "model_adapters", "task_specs")
        for path in (ROOT / root).iterdir()
        if path.name.startswith("harness_")
    )


@pytest.mark.parametrize("package", _packages(), ids=lambda path: path.name)
def test_first_party_packages_use_doors_alone(package: Path) -> None:
    modules = {module for file in package.rglob("*.py") for module in _imports(file)}
    assert modules - SURFACE == set()


def test_no_door_exports_an_unused_name() -> None:
    files = [
        path for package in _packages() for path in package.rglob("*") if path.suffix in {".py", ".template"}
    ]
    files += [
        *(ROOT / "examples").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "tests").rglob("*.py"),
    ]
    words = {word for path in files for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    exported = {
        f"{door}.{name}"
        for door, modules in surface_names().items()
        for names in modules.values()
        for name in names
    }
    assert {name for name in exported if name.rpartition(".")[2] not in words} == set()


def test_no_name_of_a_door_is_that_of_a_module_behind_it() -> None:
    """Importing a module sets it as an attribute of its package, where the name of the door would be."""
    for door, modules in surface_names().items():
        folder = ROOT / door.replace(".", "/")
        names = {name for exported in modules.values() for name in exported}
        assert names & {path.stem for path in folder.glob("[!_]*")} == set(), door


@pytest.mark.parametrize("file", sorted((ROOT / "examples").rglob("src/**/*.py")), ids=lambda path: path.name)
def test_examples_use_the_surface_alone(file: Path) -> None:
    assert set(_imports(file)) <= SURFACE


@pytest.mark.parametrize(
    "file",
    sorted((ROOT / "plugins" / "harness_scaffold" / "templates").rglob("*.py.template")),
    ids=lambda path: path.name,
)
def test_scaffolds_use_the_surface_alone(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    found = {match[1] for line in lines if (match := re.match(r"\s*(?:from|import) (harness[.\w]*)", line))}
    assert found <= SURFACE


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_documentation_uses_the_surface_alone(page: Path) -> None:
    """Code that a reader types imports from public modules."""
    code = ["\n".join(block.lines) for block in blocks(page) if block.language == "python"]
    assert {module for text in code for module in _imported(text)} <= SURFACE


@pytest.mark.parametrize("door", doors())
def test_every_public_name_is_defined_where_the_stub_says(door: str) -> None:
    package = importlib.import_module(door)
    for module, names in surface_names()[door].items():
        for name in names:
            assert getattr(package, name) is getattr(importlib.import_module(module), name)
    assert all(hasattr(package, name) for name in dir(package))


def test_the_page_lists_every_public_name() -> None:
    page = surface_page()
    for modules in surface_names().values():
        for names in modules.values():
            for name in names:
                assert f"| `{name}` |" in page


def test_the_page_of_capabilities_says_what_each_is_for() -> None:
    page = capability_page()
    for method in harness.open_session().registry.methods:
        section = page.partition(f"\n## {method.requires}\n")[2].partition("\n## ")[0]
        assert f"the method `{method.name}` of" in section, method.name
        assert f"`{method.kind}`" in section, method.kind


def test_importing_the_harness_imports_no_module_of_the_core() -> None:
    script = "import sys, harness; print([name for name in sys.modules if name.startswith('harness.')])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
