"""The output of ``harness new`` is installed with pip and listed, and its own tests pass unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import run_command
from harness_scaffold.scaffold import LAYERS

pytestmark = pytest.mark.packaging

MADE = {
    "acme-plugin": ("plugin", "acme-plugin"),
    "acme-task": ("task", "acme-task"),
    "acme-adapter": ("adapter", "acme_adapter"),
    "acme-metric": ("metric", "acme-metric"),
    "xnli-qpf": (
        *("language", "qpf", "--provenance", "native"),
        *("--name", "Palatine German", "--script", "Latn", "--family", "Indo-European"),
    ),
}
PIP = (
    *("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"),
    *("--no-compile", "--disable-pip-version-check", "--target"),
)


def _python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(folder / "site"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "HARNESS_CACHE": str(folder / "cache"),
    }
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        timeout=300,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of each sort, all of them installed below ``site``."""
    folder = tmp_path_factory.mktemp("scaffold")
    for name, command in MADE.items():
        assert run_command(["new", *command, "--output", str(folder / name)]) == 0
    installed = _python(*PIP, str(folder / "site"), *(f"./{name}" for name in MADE), folder=folder)
    assert installed.returncode == 0, installed.stderr
    return folder


def test_there_is_one_of_each_sort() -> None:
    # Packages with data are made from a table (test_data_package.py).
    assert sorted(command[0] for command in MADE.values()) == sorted(LAYERS.keys() - {"data"})


def test_installed_they_appear(folder: Path) -> None:
    listed = _python("-m", "harness", "plugins", folder=folder)
    assert listed.returncode == 0, listed.stderr
    rows = [line.split() for line in listed.stdout.splitlines()]
    for name in MADE:
        assert [name.replace("-", "_"), name, "0.1.0", "ok"] in rows
    assert _python("-m", "harness", "tasks", "list", "--json", "tasks.json", folder=folder).returncode == 0
    tasks = {row["task"]: row for row in json.loads((folder / "tasks.json").read_text(encoding="utf-8"))}
    assert tasks["acme_task"]["languages"] == tasks["acme_plugin"]["languages"] == ["en", "es", "hi"]
    assert tasks["acme_task"]["plugin"] == "acme_task"
    assert "qpf" in tasks["xnli"]["languages"]
    assert "acme_adapter" in _python("-m", "harness", "models", folder=folder).stdout


def test_their_specs_and_prompts_are_valid(folder: Path) -> None:
    reported = _python(
        "-m", "harness", "tasks", "validate", "acme_task", "acme_plugin", "xnli", folder=folder
    )
    assert reported.returncode == 0, reported.stdout + reported.stderr
    shown = _python("-m", "harness", "tasks", "show", "acme_task", "--render", "hi", folder=folder)
    assert "मैं खुश हूँ।" in shown.stdout, shown.stderr


def test_ruff_finds_nothing_in_them(folder: Path) -> None:
    rules = ("--isolated", "--no-cache", "--line-length", "110", "--select", "ANN,B,E,F,I,RUF,UP,W")
    own = f"src = {[f'{name}/src' for name in MADE]}"  # whose imports are sorted apart
    reported = _python("-m", "ruff", "check", *rules, "--config", own, *MADE, folder=folder)
    assert reported.returncode == 0, reported.stdout


@pytest.mark.parametrize("name", MADE)
def test_their_own_tests_pass_unchanged(folder: Path, name: str) -> None:
    reported = _python(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", f"{name}/pyproject.toml", f"{name}/tests"),
        folder=folder,
    )
    if MADE[name][0] == "language":  # its texts are those of English until someone translates them
        assert "1 failed" in reported.stdout
        assert "test_no_language_is_an_untranslated_copy" in reported.stdout
    else:
        assert reported.returncode == 0, reported.stdout + reported.stderr
    assert " passed" in reported.stdout


def test_their_tests_can_fail(folder: Path) -> None:
    """A label that the spec does not have, in the sample that was installed."""
    sample = folder / "site/acme_task/specs/sample/acme_task/hi.jsonl"
    right = sample.read_text(encoding="utf-8")
    sample.write_text(right.replace("pleased", "plesed", 1), encoding="utf-8")
    try:
        reported = _python(
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "labelled", "acme-task/tests"),
            folder=folder,
        )
    finally:
        sample.write_text(right, encoding="utf-8")
    assert reported.returncode == 1
    assert "plesed" in reported.stdout
