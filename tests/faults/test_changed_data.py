"""Data that changed between two attempts, and memory that is too small."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from .command import Commands
from .evaluation import assert_same, read_results, requests
from .saved_models import save_encoder

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


ROWS = 3


@pytest.fixture(scope="module")
def without_dropout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT whose training does not depend on how a step is cut into micro-batches, but for rounding."""
    folder = tmp_path_factory.mktemp("models") / "bert"
    return save_encoder(folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def assert_survives(
    commands: Commands, tmp_path: Path, *arguments: str, parts_shown: tuple[str, ...]
) -> None:
    """A run with too little memory ends as one with enough, and says what it did."""
    given = ("eval", *arguments, "--data", "sample")
    enough = commands.run(*given, "--output", tmp_path / "enough", cache=tmp_path / "one")
    assert enough.wait() == 0, enough.err
    little = commands.run(
        *given, "--output", tmp_path / "little", cache=tmp_path / "other", faults={"rows": ROWS}
    )
    assert little.wait() == 0, little.err
    assert_same(tmp_path / "little", tmp_path / "enough")
    first, second = (read_results(tmp_path / name)["notes"] for name in ("enough", "little"))
    new = [note for note in second if note not in first]
    assert len(new) == len(parts_shown)
    for part in parts_shown:
        (note,) = [note for note in new if part in note]
        assert "ut of memory" in note


def test_fitting_and_classifying(commands: Commands, tmp_path: Path, without_dropout: Path) -> None:
    arguments = ("--tasks", "xnli:en+sw", "--recipe", "quick", "--train-limit", "48")
    parts_shown = ("Fine-tuning ran out of memory at", "(classify)")
    assert_survives(
        commands, tmp_path, *arguments, "--model", f"hf:{without_dropout}", parts_shown=parts_shown
    )


@pytest.mark.parametrize(
    ("tasks", "model", "ability"),
    [
        (("xnli:en",), "decoder_folder", "loglikelihood"),
        (("xquad:en",), "decoder_folder", "generate"),
        (("tatoeba:de", "--protocol", "frozen"), "encoder_folder", "embed"),
    ],
)
def test_ranking_generating_and_embedding(
    request: pytest.FixtureRequest,
    commands: Commands,
    tmp_path: Path,
    tasks: tuple[str, ...],
    model: str,
    ability: str,
) -> None:
    arguments = ("--tasks", *tasks, "--model", f"hf:{request.getfixturevalue(model)}")
    assert_survives(commands, tmp_path, *arguments, parts_shown=(f"({ability})",))
