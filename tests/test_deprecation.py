"""Old names of the public surface warn with the new one, on the command line too, and are removed when they said."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.version import Version

import harness
from harness.errors import DeprecatedNameWarning
from tests.conftest import InstallPlugin
from tests.tree import ROOT, pyproject

COMMAND = """
import typer
from harness import warn_deprecated

app = typer.Typer()

def renamed(value: str | None) -> str | None:
    if value is not None:
        warn_deprecated("--tongue", "--language", removal="9.9")
    return value

@app.command()
def greet(language: str = "en", tongue: str = typer.Option(None, hidden=True, callback=renamed)) -> None:
    print("greets in", tongue or language)
"""


def test_a_module_attribute_warns_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("renaming")

    def attribute(name: str) -> Any:
        if name != "Old":
            raise AttributeError(name)
        harness.warn_deprecated("renaming.Old", "renaming.New", removal="9.9")
        return int

    module.__getattr__ = attribute  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "renaming", module)
    with pytest.warns(DeprecationWarning, match=r"^renaming\.Old .* 9\.9 .*; use renaming\.New\.$") as caught:
        from renaming import Old  # type: ignore[import-not-found]
    assert Old is int
    assert {warning.filename for warning in caught} <= {__file__, "<frozen importlib._bootstrap>"}
    assert not hasattr(module, "Older")


def test_a_function_argument_names_the_line_of_its_caller() -> None:
    def count(items: list[int], entries: list[int] | None = None) -> int:
        if entries is not None:
            harness.warn_deprecated("count(entries=...)", "count(items=...)", removal="9.9")
            items = entries
        return len(items)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert count([1, 2]) == 2
        assert caught == []
        assert count([], entries=[1, 2]) == 2
    [warning] = caught
    assert issubclass(warning.category, DeprecatedNameWarning)
    assert warning.filename == __file__
    assert (
        Path(__file__)
        .read_text(encoding="utf-8")
        .splitlines()[warning.lineno - 1]
        .strip()
        .startswith("assert count([], entries")
    )


def test_a_flag_of_a_command_is_reported_to_its_user(install_plugin: InstallPlugin) -> None:
    entry_points = "[harness.commands]\ngreet = greeting:app\n"
    folder = install_plugin("greeting", COMMAND, entry_points=entry_points)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path}
    for flag, reported in (("--tongue", True), ("--language", False)):
        finished = subprocess.run(
            [sys.executable, "-m", "harness", "greet", flag, "sw"],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert (finished.returncode, finished.stdout) == (0, "greets in sw\n"), finished.stderr
        assert ("--tongue is deprecated" in finished.stderr) is reported, finished.stderr


def _removals() -> Iterator[tuple[str, str]]:
    """Yield (place, version) for every call of the helper in the code of the project."""
    for folder in ("harness", "plugins", "model_adapters", "task_specs"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn_deprecated"):
                    [removal] = [word.value for word in node.keywords if word.arg == "removal"]
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", ast.literal_eval(removal)


@pytest.mark.thorough
def test_names_are_removed_in_the_version_that_they_said() -> None:
    project = pyproject()["project"]
    assert [place for place, version in _removals() if Version(version) <= Version(project["version"])] == []
