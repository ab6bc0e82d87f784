"""The page on the code names functions and files that exist, and its drawings are those of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from docs_site.architecture import PAGE, import_drawing, packages, with_drawings

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(
    r"^\| .* \| `([\w.]+)` \| `(harness/[\w/]+\.py)` \|$",
    (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)


def _names(file: Path) -> set[str]:
    """Return the functions and classes of a module, and the methods of its classes as ``Class.method``."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    found = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    return found | {
        f"{node.name}.{own.name}" for node in classes for own in node.body if isinstance(own, ast.FunctionDef)
    }


@pytest.mark.parametrize(("name", "file"), ROWS, ids=[name for name, _ in ROWS])
def test_every_named_function_is_in_its_file(name: str, file: str) -> None:
    assert name in _names(ROOT / file)


def test_the_steps_are_in_the_order_of_the_file() -> None:
    assert len(ROWS) == 8
    parts = {"run": ["execute", "fit", "summarise"], "cell_run": ["predict"]}
    for module, names in parts.items():
        path = f"harness/running/{module}.py"
        assert [name for name, file in ROWS[:8] if file == path] == names
        text = (ROOT / path).read_text(encoding="utf-8")
        places = [text.index(f"\ndef {name}(") for name in names]
        assert places == sorted(places)


def test_the_drawings_are_those_of_the_code() -> None:
    """Write them anew with python -m docs_site.architecture."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_drawings(text) == text
    with pytest.raises(ValueError, match="no place for 'imports'"):
        with_drawings(text.replace("<!-- imports:", "<!--"))
    names = packages()
    assert (names[0], names[-1]) == ("languages", "testing")
    drawing = import_drawing(["low", "high"], {"low": set(), "high": {"low"}}).splitlines()
    rows = [line.split() for line in drawing[1:-1]]
    assert rows == [["1", "2"], ["2", "high", "●", "·"], ["1", "low", "·", "·"]]
