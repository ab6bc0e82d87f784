"""Probing a real network, tiny and random, on the sample and on two tasks that share their sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel

from harness.api import evaluate
from harness_probing.settings import PRESETS
from tests.hf.conftest import PIECE_LIMIT, sizes, wordpiece
from tests.probing.toy_tasks import rows, write_rows, write_tasks

pytestmark = pytest.mark.thorough


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A saved encoder."""
    torch.set_num_threads(1)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    quick = {name: replace(own, max_epochs=2, fractions=()) for name, own in PRESETS.items()}
    monkeypatch.setattr("harness_probing.settings.PRESETS", quick)
    tokenizer = wordpiece()
    tokenizer.add_tokens(list("0123456789"))  # the words of the toy tasks have numbers
    torch.manual_seed(0)
    BertModel(BertConfig(**sizes(tokenizer, PIECE_LIMIT))).save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def _run(folder: Path, *tasks: str, **settings: Any) -> list[Any]:
    finished = evaluate(
        list(tasks), f"hf:{folder}", **{"seeds": (0,), "output": folder.parent / "run", **settings}
    )
    assert [cell.status for cell in finished.cells] == ["ok"] * len(finished.cells)
    return list(finished.cells)


def test_the_sample_can_be_probed(folder: Path) -> None:
    (cell,) = _run(folder, "udpos:hi", data="sample", method="probe", limit=5, train_limit=20)
    assert (cell.view, cell.n) == ({"probe_train": "en"}, 5)
    found = cell.details["probing"]
    assert found["train"]["language"] == "en"
    assert [layer["layer"] for layer in found["problem"]["layers"]] == [0, 1, 2, 3, 4]
    assert found["random_encoder"]["layers"][0]["layer"] == 0
    assert found["problem"]["headline"]["accuracy"]["value"] == pytest.approx(
        cell.metrics["token_accuracy"].value
    )


@pytest.mark.parametrize("batch_tokens", [64, 2048])
def test_words_and_sentences_are_read_together(folder: Path, tmp_path: Path, batch_tokens: int) -> None:
    write_tasks(tmp_path / "specs")
    for split, count in (("train", 30), ("dev", 10), ("test", 10)):
        write_rows(tmp_path / "data" / "toy" / f"hi.{split}.jsonl", rows(count, seed=count))
    settings = {"data": tmp_path / "data", "tasks_from": [tmp_path / "specs"], "languages": ["hi"]}
    cells = _run(folder, "toy_pos", "toy_first", options={"batch_tokens": batch_tokens}, **settings)
    levels = [cell.details["probing"]["level"] for cell in cells]
    assert levels == ["word", "sentence"]
    assert len(list((tmp_path / "cache" / "probing").glob("*/0.npy"))) == 4
