"""The shape of the tree: root modules and packages of the core, one way down through them, no import circles."""

from __future__ import annotations

import re
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.tree import ROOT, pyproject

ROOT_MODULES = set("__init__ __main__ api builtin callbacks errors hookspecs progress table".split())
PACKAGES = tuple(
    "languages storage models specs statistics metrics scores data prompts kinds registry checks planning "
    "running analysis reporting cli testing".split()
)
"""From the lowest to the highest: a package imports only those before it, which ``lint-imports`` checks."""
IMPORTED_BY_TESTING = PACKAGES[: PACKAGES.index("running") + 1]
"""Plugin authors run `harness.testing` without the packages that analyse and print."""


def _core_files() -> list[Path]:
    """Return the tracked Python files of the core, relative to it; all files where there is no git."""
    core = ROOT / "harness"
    found = subprocess.run(
        ["git", "ls-files", "-z", "harness/*.py"], cwd=ROOT, capture_output=True, check=False, text=True
    )
    if found.returncode == 0 and found.stdout:
        names = [name for name in found.stdout.split("\0") if name]
        return [Path(name).relative_to("harness") for name in names if (ROOT / name).is_file()]
    return [path.relative_to(core) for path in core.rglob("*.py") if "__pycache__" not in path.parts]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """All imports of the core and of the first-party packages; imports for types alone are excluded."""
    return grimp.build_graph(
        *pyproject()["tool"]["importlinter"]["root_packages"],
        exclude_type_checking_imports=True,
        cache_dir=None,
    )


def test_the_core_has_only_its_root_modules_andpackages() -> None:
    files = _core_files()
    assert {path.stem for path in files if len(path.parts) == 1} == ROOT_MODULES
    assert {path.parts[0] for path in files if len(path.parts) > 1} == set(PACKAGES)


def test_no_modules_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError with the modules of a circle


def test_the_contract_suites_import_no_analysis(graph: grimp.ImportGraph) -> None:
    imported = {
        package
        for module in graph.modules
        if _package(module) == "testing"
        for name in graph.find_modules_directly_imported_by(module)
        if (package := _package(name))
    }
    assert imported <= {*IMPORTED_BY_TESTING, "testing"}


def test_the_import_linter_has_one_row_per_package() -> None:
    contracts = [
        contract
        for contract in pyproject()["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]
    orders = [
        [name.removeprefix("harness.") for row in contract["layers"] for name in re.findall(r"[\w.]+", row)]
        for contract in contracts
    ]
    [order] = [names for names in orders if set(names) & set(PACKAGES)]
    assert [name for name in order if name in PACKAGES[:-1]] == list(reversed(PACKAGES[:-1]))
    assert "testing" in order


def _package(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "harness" and len(parts) > 1 and parts[1] in PACKAGES else None
