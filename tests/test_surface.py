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
from tests.docs.page import PAGES, blocks
from tests.tree import ROOT, packages

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


@pytest.mark.parametrize("package", packages(), ids=lambda path: path.name)
def test_first_party_packages_use_doors_alone(package: Path) -> None:
    modules = {module for file in package.rglob("*.py") for module in _imports(file)}
    assert modules - SURFACE == set()


def test_no_door_exports_an_unused_name() -> None:
    files = [
        path for package in packages() for path in package.rglob("*") if path.suffix in {".py", ".template"}
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


def test_examples_scaffolds_and_pages_use_the_surface_alone() -> None:
    """Code that a reader types or copies imports from public modules."""
    modules = {module for file in (ROOT / "examples").rglob("src/**/*.py") for module in _imports(file)}
    for page in PAGES:
        code = ["\n".join(block.lines) for block in blocks(page) if block.language == "python"]
        modules |= {module for text in code for module in _imported(text)}
    for file in (ROOT / "plugins" / "harness_scaffold" / "templates").rglob("*.py.template"):
        text = file.read_text(encoding="utf-8")
        modules |= set(re.findall(r"^\s*(?:from|import) (harness[.\w]*)", text, flags=re.MULTILINE))
    assert modules - SURFACE == set()


@pytest.mark.parametrize("door", doors())
def test_every_public_name_is_listed_and_defined_where_the_stub_says(door: str) -> None:
    package, page = importlib.import_module(door), surface_page()
    for module, names in surface_names()[door].items():
        for name in names:
            assert getattr(package, name) is getattr(importlib.import_module(module), name)
            assert f"| `{name}` |" in page
    assert all(hasattr(package, name) for name in dir(package))


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
