"""The drawings in ``docs/architecture.md``: packages of the core, their imports, and the doors that plugins use.

Write them anew with ``python -m docs_site.architecture``; a test compares them.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Mapping, Sequence, Set as AbstractSet
from pathlib import Path
from typing import Any

import grimp

from docs_site.markdown import prose, table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
MARK, EMPTY = "●", "·"


def packages() -> list[str]:
    """Return the packages of the core, the lowest first, as the import linter orders them."""
    [contract] = [contract for contract in _linter()["contracts"] if contract["type"] == "layers"]
    return [layer.removeprefix("harness.") for layer in reversed(contract["layers"])]


def package_table(names: Sequence[str]) -> str:
    """Return a table of the packages: number, name, and the first sentence of the docstring."""
    rows = []
    for number, name in enumerate(names, start=1):
        source = (ROOT / "harness" / name / "__init__.py").read_text(encoding="utf-8")
        summary = prose(ast.get_docstring(ast.parse(source))).partition("\n\n")[0]
        rows.append((str(number), f"`harness/{name}/`", summary))
    return table(["", "package", "what is in it"], rows)


def imports_by_package(names: Sequence[str]) -> tuple[Mapping[str, set[str]], Mapping[str, set[str]]]:
    """Return package -> imported packages of the core, and plugin -> its doors; imports for types are excluded."""
    graph = grimp.build_graph(*_linter()["root_packages"], exclude_type_checking_imports=True, cache_dir=None)
    core: dict[str, set[str]] = {name: set() for name in names}
    doors: dict[str, set[str]] = {}
    for module in graph.modules:
        importer = module.split(".")
        for imported in graph.find_modules_directly_imported_by(module):
            root, _, rest = imported.partition(".")
            package = rest.partition(".")[0]
            if root != "harness":
                continue
            if importer[0] != "harness":
                doors.setdefault(importer[0], set()).add(package if package in core else root)
            elif len(importer) > 1 and importer[1] in core and package in core:
                core[importer[1]].add(package)
    return {name: core[name] - {name} for name in names}, dict(sorted(doors.items()))


def import_drawing(names: Sequence[str], core: Mapping[str, AbstractSet[str]]) -> str:
    """Return a square drawing, the highest package first: a mark where the package of the row imports the column's."""
    rows = {f"{number:2} {name}": core[name] for number, name in enumerate(names, start=1)}
    return _drawing(names, dict(reversed(rows.items())))


def door_drawing(names: Sequence[str], doors: Mapping[str, AbstractSet[str]]) -> str:
    """Return a drawing with a row per first-party plugin: a mark where it imports the door of the column."""
    return _drawing(names, {name: imported for name, imported in doors.items() if imported})


def _drawing(columns: Sequence[str], rows: Mapping[str, AbstractSet[str]]) -> str:
    width = max(map(len, rows)) + 1
    lines = [" " * width + "".join(f"{number:3}" for number in range(1, len(columns) + 1))]
    for title, imported in rows.items():
        marks = "".join(f"{MARK if name in imported else EMPTY:>3}" for name in columns)
        lines.append(f"{title:<{width}}{marks}")
    return "\n".join(["```text", *lines, "```"])


def with_drawings(text: str) -> str:
    """Return the text of the page with current drawings; raises `ValueError` where it has no place for one."""
    names = packages()
    core, doors = imports_by_package(names)
    drawings = {
        "packages": package_table(names),
        "imports": import_drawing(names, core),
        "doors": door_drawing(names, doors),
    }
    for name, drawing in drawings.items():
        match = re.search(rf"<!-- {name}: [^\n]* -->\n\n(.*?)\n\n<!-- end -->", text, flags=re.DOTALL)
        if match is None:
            raise ValueError(f"the page has no place for {name!r}")
        text = f"{text[: match.start(1)]}{drawing}{text[match.end(1) :]}"
    return text


def _linter() -> Mapping[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    linter: Mapping[str, Any] = project["tool"]["importlinter"]
    return linter


if __name__ == "__main__":
    PAGE.write_text(with_drawings(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
