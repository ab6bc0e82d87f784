"""A stranger's package, installed with pip, adds a task, a metric and a language; without it nothing is left of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def site(install: Callable[[Path, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("third-party")
    source = shutil.copytree(Path(__file__).with_name("third_party"), folder / "source")
    return install(source, folder / "site")


def test_it_is_listed(python: Run, site: Path) -> None:
    tasks = python("-m", "harness", "tasks", "list", path=(site,))
    assert tasks.returncode == 0, tasks.stderr
    assert "greetings sequence_classification 2: en sw" in " ".join(tasks.stdout.split())
    assert "qpf" in tasks.stdout
    plugins = python("-m", "harness", "plugins", path=(site,))
    assert plugins.returncode == 0
    [row] = [line for line in plugins.stdout.splitlines() if line.startswith("acme_greetings")]
    assert row.split() == ["acme_greetings", "acme-greetings", "0.3.0", "ok"]
    assert python("-m", "harness", "tasks", "validate", path=(site,)).returncode == 0


def test_its_task_its_metric_and_its_language_are_evaluated(python: Run, site: Path, tmp_path: Path) -> None:
    result = python(
        *("-m", "harness", "eval", "--tasks", "greetings,xnli:qpf+de", "--model", "baseline:char-ngram"),
        *("--data", "sample", "--recipe", "quick", "--train-limit", "60", "--output", str(tmp_path / "run")),
        path=(site,),
    )
    assert result.returncode == 0, result.stderr
    results = json.loads((tmp_path / "run/results.json").read_text(encoding="utf-8"))
    cells = {(cell["task"], cell["language"]): cell for cell in results["cells"]}
    assert {cell["status"] for cell in cells.values()} == {"ok"}
    assert cells.keys() == {("greetings", "en"), ("greetings", "sw"), ("xnli", "qpf"), ("xnli", "de")}
    assert cells["greetings", "en"]["metrics"]["rude_recall"]["value"] >= 0.5
    recall = cells["greetings", "en"]["metrics"]["rude_recall"]
    assert recall["ci"][0] <= recall["value"] <= recall["ci"][1], "a metric of counts is resampled"
    assert "bootstrap" in recall["ci_method"]
    assert cells["xnli", "qpf"]["n"] == 3
    manifest = json.loads((tmp_path / "run/manifest.json").read_text(encoding="utf-8"))
    assert manifest["plugins"]["acme_greetings"] == "acme-greetings 0.3.0"
    scored = python("-m", "harness", "score", str(tmp_path / "run"), "--metrics", "rude_recall", path=(site,))
    assert scored.returncode == 0, scored.stderr


def test_without_it_nothing_is_left_of_it(python: Run, site: Path) -> None:
    tasks = python("-m", "harness", "tasks", "list")
    assert tasks.returncode == 0
    assert "greetings" not in tasks.stdout
    assert "qpf" not in tasks.stdout
    assert "acme" not in python("-m", "harness", "plugins").stdout
    plan = python("-m", "harness", "plan", "--tasks", "greetings", "--model", "baseline:majority")
    assert (plan.returncode, plan.stderr.splitlines()[-1].split(".")[0]) == (
        2,
        "Error: No task or suite named 'greetings'",
    )
