"""Data that changed between two attempts: rejected with both digests; the run is resumed once they are back."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from .command import Commands
from .evaluation import assert_same, requests

pytestmark = pytest.mark.thorough

FILES = {
    "train-en.tsv": "mnli/en.train.jsonl",
    "dev-en.tsv": "mnli/en.validation.jsonl",
    "test-en.tsv": "xnli/en.jsonl",
    "test-sw.tsv": "xnli/sw.jsonl",
}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def contents(folder: Path) -> dict[str, str]:
    """Return what a run holds, but for the lock that a killed command left."""
    files_of_run = [path for path in folder.rglob("*") if path.is_file() and path.name != "run.lock"]
    return {str(path.relative_to(folder)): digest(path) for path in files_of_run}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The sample as files of the published layout."""
    folder = tmp_path / "data"
    (folder / "xnli").mkdir(parents=True)
    with as_file(files("harness_task_specs") / "sample") as sample:
        for name, source in FILES.items():
            items = [json.loads(line) for line in (sample / source).read_text(encoding="utf-8").splitlines()]
            rows = ["\t".join(item[field] for field in ("premise", "hypothesis", "label")) for item in items]
            (folder / "xnli" / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def test_a_changed_file_is_rejected(
    commands: Commands, encoder_folder: Path, data: Path, tmp_path: Path
) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    given = ("eval", "--tasks", "xnli:en+sw", "--model", f"hf:{encoder_folder}", "--data", data)
    settings = ("--recipe", "quick", "--train-limit", "24")
    assert commands.run(*given, *settings, "--output", whole).wait() == 0

    attempt = commands.start(
        *given, *settings, "--output", run, faults={"pace": 0.05}, cache=tmp_path / "new"
    )
    attempt.until(lambda: "Fine-tuning" in attempt.err, "fine-tuning")
    attempt.kill()
    before = contents(run)
    for name in ("train-en.tsv", "test-sw.tsv"):
        file = data / "xnli" / name
        kept = file.read_bytes()
        file.write_bytes(kept.replace(b"a", b"e", 1))
        former, found = hashlib.sha256(kept).hexdigest(), digest(file)
        rejected = commands.run("eval", "--resume", run)
        file.write_bytes(kept)
        assert rejected.wait() == 1
        printed = rejected.err.splitlines()[-1]
        assert printed.startswith("Error: The data of ")
        assert former in printed
        assert found in printed
        assert contents(run) == before

    assert commands.run("eval", "--resume", run, cache=tmp_path / "new").wait() == 0
    assert_same(run, whole)
    assert requests(run)["planned"] == requests(whole)["planned"]
