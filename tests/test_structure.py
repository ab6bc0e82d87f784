"""The shape of the tree: root modules and packages of the core, one way down through them, no import circles."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOT_MODULES = {
    "__init__",
    "__main__",
    "api",
    "builtin",
    "callbacks",
    "errors",
    "hookspecs",
    "progress",
    "table",
}
PACKAGES = (
    "languages",
    "storage",
    "models",
    "specs",
    "statistics",
    "metrics",
    "scores",
    "data",
    "prompts",
    "kinds",
    "registry",
    "checks",
    "planning",
    "running",
    "analysis",
    "reporting",
    "cli",
    "testing",
)
"""From the lowest to the highest: a package imports only those before it."""
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


def _linter() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    linter: dict[str, Any] = project["tool"]["importlinter"]
    return linter


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """All imports of the core and of the first-party packages; imports for types alone are excluded."""
    return grimp.build_graph(*_linter()["root_packages"], exclude_type_checking_imports=True, cache_dir=None)


def test_the_core_has_only_its_root_modules_and_packages() -> None:
    files = _core_files()
    assert {path.stem for path in files if len(path.parts) == 1} == ROOT_MODULES
    assert {path.parts[0] for path in files if len(path.parts) > 1} == set(PACKAGES)


def test_no_modules_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    circles = [sorted(group) for group in _strongly_connected(imports) if len(group) > 1]
    assert sorted(circles) == []


def test_packages_import_only_those_below_them(graph: grimp.ImportGraph) -> None:
    order = {package: number for number, package in enumerate(PACKAGES)}
    upward = sorted(
        f"{importer} -> {imported}"
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if (source := _package(importer)) and (target := _package(imported)) and order[target] > order[source]
    )
    assert upward == []


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
    contracts = [contract for contract in _linter()["contracts"] if contract["type"] == "layers"]
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


def _strongly_connected(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a directed graph, as Kosaraju finds them."""
    reversed_edges: dict[str, set[str]] = {node: set() for node in edges}
    for node, targets in edges.items():
        for target in targets:
            reversed_edges[target].add(node)
    order: list[str] = []
    seen: set[str] = set()
    for node in edges:
        order += _reached(node, edges, seen)
    seen = set()
    return [set(group) for node in reversed(order) if (group := _reached(node, reversed_edges, seen))]


def _reached(start: str, edges: dict[str, set[str]], seen: set[str]) -> list[str]:
    """Return the nodes newly reached from `start`, in the order in which a depth-first search leaves them."""
    if start in seen:
        return []
    seen.add(start)
    left: list[str] = []
    stack = [(start, iter(sorted(edges[start])))]
    while stack:
        node, targets = stack[-1]
        following = next((target for target in targets if target not in seen), None)
        if following is None:
            stack.pop()
            left.append(node)
        else:
            seen.add(following)
            stack.append((following, iter(sorted(edges[following]))))
    return left


def test_circles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"f"}}
    assert sorted(sorted(group) for group in _strongly_connected(edges)) == [
        ["a", "b", "c"],
        ["d"],
        ["e"],
        ["f"],
    ]
