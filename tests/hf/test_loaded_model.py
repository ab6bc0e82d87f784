"""A model that a program has loaded is evaluated like the folder that it is saved into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import harness
from harness import LoadedRun
from harness.errors import UsageError

from .conftest import wordpiece

pytestmark = pytest.mark.thorough

LABELS = dict(enumerate(("contradiction", "entailment", "neutral")))


@pytest.fixture
def loaded() -> tuple[Any, Any]:
    """A classifier of premises and hypotheses, and its tokenizer."""
    tokenizer = wordpiece()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        id2label=LABELS,
        label2id={name: place for place, name in LABELS.items()},
    )
    return BertForSequenceClassification(config), tokenizer


def _evaluate(model: Any, output: Path, **further: Any) -> LoadedRun:
    settings: dict[str, Any] = {"method": "head", "protocols": "frozen", "options": {"device": "cpu"}}
    return harness.evaluate("xnli:sw", model, data="sample", output=output, **{**settings, **further})


def test_a_loaded_model_is_its_folder(loaded: tuple[Any, Any], tmp_path: Path) -> None:
    model, tokenizer = loaded
    run = _evaluate(model, tmp_path / "run", tokenizer=tokenizer)
    assert [cell.status for cell in run.cells] == ["ok"]
    name = run.manifest.model
    assert name.endswith("/BertForSequenceClassification-loaded")
    assert not Path(name.removeprefix("hf:")).parent.exists()
    folder = tmp_path / "saved"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    same = _evaluate(f"hf:{folder}", tmp_path / "same", reuse=tmp_path / "run")
    assert same.manifest.identity == run.manifest.identity
    assert same.results.run.requests["asked"] == 0
    assert same.items().column("answer") == run.items().column("answer")


def test_models_of_one_architecture_are_not_confused(loaded: tuple[Any, Any], tmp_path: Path) -> None:
    model, tokenizer = loaded
    first = _evaluate(model, tmp_path / "first", tokenizer=tokenizer)
    with torch.no_grad():
        model.classifier.bias += torch.tensor([0.0, 9.0, 0.0])
    second = _evaluate(model, tmp_path / "second", tokenizer=tokenizer, reuse=tmp_path / "first")
    assert second.manifest.identity["weights"] != first.manifest.identity["weights"]
    assert second.results.run.requests["reused"] == 0
    assert set(second.items().column("answer").to_pylist()) == {"entailment"}


def test_what_cannot_be_evaluated(
    loaded: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = loaded
    with pytest.raises(UsageError, match="needs its tokenizer"):
        _evaluate(model, tmp_path)
    with pytest.raises(UsageError, match="'int'"):
        _evaluate(3, tmp_path)
    with pytest.raises(UsageError, match="brings its own"):
        _evaluate("hf:x", tmp_path, tokenizer=tokenizer)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="one process"):
        _evaluate(model, tmp_path, tokenizer=tokenizer)
