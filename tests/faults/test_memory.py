"""Out of memory above so many rows: batches become smaller, the answers stay, and the run says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from ..hf.conftest import FAMILIES, sizes
from .command import Commands
from .evaluation import assert_same

pytestmark = pytest.mark.thorough

ROWS = 3


@pytest.fixture(scope="module")
def without_dropout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT whose training does not depend on how a step is cut into micro-batches, but for rounding."""
    folder = tmp_path_factory.mktemp("models") / "bert"
    config_class, model_class, make_tokenizer, positions = FAMILIES["bert"]
    tokenizer = make_tokenizer()
    shape = {**sizes(tokenizer, positions), "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    torch.manual_seed(0)
    model_class(config_class(**shape)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


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
    first, second = (
        json.loads((tmp_path / name / "results.json").read_text(encoding="utf-8"))["notes"]
        for name in ("enough", "little")
    )
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


@pytest.mark.parametrize(("task", "ability"), [("xnli:en", "loglikelihood"), ("xquad:en", "generate")])
def test_ranking_and_generating(
    commands: Commands, tmp_path: Path, decoder_folder: Path, task: str, ability: str
) -> None:
    arguments = ("--tasks", task, "--model", f"hf:{decoder_folder}")
    assert_survives(commands, tmp_path, *arguments, parts_shown=(f"({ability})",))


def test_embedding(commands: Commands, tmp_path: Path, encoder_folder: Path) -> None:
    arguments = ("--tasks", "tatoeba:de", "--protocol", "frozen", "--model", f"hf:{encoder_folder}")
    assert_survives(commands, tmp_path, *arguments, parts_shown=("(embed)",))
