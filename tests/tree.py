"""The tree of the repository: its root, its packages and its project file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE_ROOTS = ("plugins", "model_adapters", "task_specs")


def packages() -> list[Path]:
    """Return the folders of the first-party packages, sorted."""
    return sorted(
        path
        for root in SOURCE_ROOTS
        for path in (ROOT / root).iterdir()
        if path.name.startswith("harness_") and any(path.rglob("*.py"))
    )


def pyproject() -> dict[str, Any]:
    """Return the content of ``pyproject.toml``."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
