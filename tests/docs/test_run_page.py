"""The page on how a run works names functions and files that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(
    r"^\| .* \| `([\w.]+)` \| `(harness/[\w/]+\.py)` \|$",
    (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8"),
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
    parts = {"run": ["execute", "fit", "summarise"], "cell_run": ["predict", "score"]}
    for module, names in parts.items():
        path = f"harness/running/{module}.py"
        assert [name for name, file in ROWS[:8] if file == path] == names
        text = (ROOT / path).read_text(encoding="utf-8")
        places = [text.index(f"\ndef {name}(") for name in names]
        assert places == sorted(places)
