"""Suites by name: those that ship with the harness, suite folders, and released template sheets."""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from harness import UnknownNameError, UsageError
from harness_checklist.suites.loading import load_suite
from harness_checklist.suites.suite import Suite

__all__ = ["find_suite", "open_suite", "shipped_suites"]


def shipped_suites() -> dict[str, Traversable]:
    """Return the folders of the suites that ship with the harness, by name."""
    folder = files("harness_checklist") / "suites"
    if not folder.is_dir():
        return {}
    return {item.name: item for item in folder.iterdir() if (item / "suite.yaml").is_file()}


def find_suite(name_or_path: str, languages: Collection[str] | None = None) -> Suite:
    """Return a suite by the name of a shipped one, a suite folder, or a released ``checklist_templates.tsv``.

    With `languages`, a folder is read for these alone. Raises `UnknownNameError`, `SpecError`, `UsageError`.
    """
    return open_suite(name_or_path, languages)[0]


def open_suite(name_or_path: str, languages: Collection[str] | None = None) -> tuple[Suite, tuple[str, ...]]:
    """Return a suite as `find_suite` does, and notices for the reader of a released sheet."""
    path = Path(name_or_path)
    if path.suffix == ".tsv":
        # Imported here so that a suite folder is read without the reader of sheets.
        from harness_checklist.released.importer import read_released

        imported = read_released(path)
        return imported.suite, imported.notices
    if path.is_dir():
        return load_suite(path, languages), ()
    shipped = shipped_suites()
    if name_or_path in shipped:
        return load_suite(shipped[name_or_path], languages), ()
    if path.exists():
        raise UsageError(f"{name_or_path!r} is no suite: expected a folder with suite.yaml, or a .tsv.")
    if len(path.parts) > 1:
        raise UsageError(f"There is no suite folder {name_or_path!r}.", hint=_hint(shipped))
    raise UnknownNameError("suite", name_or_path, shipped, hint="A suite folder or a .tsv also works.")


def _hint(shipped: Collection[str]) -> str:
    return f"Shipped suites: {', '.join(sorted(shipped))}." if shipped else "No suite is shipped."
