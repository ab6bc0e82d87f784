"""Encoder inference: our classifier against a bare transformers loop over length-sorted batches.

The same weights, tokenizer, items and number of threads; both give the same logits. The limit is 0.9 of the bare
loop's items a second. Run: make bench, or
python -m benchmarks.encoder_inference --data DIR [--items N] [--threads N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from benchmarks.measuring import alternate, show
from harness.models.adapters import ModelReference
from harness.models.capabilities import Classifies, TextInput
from harness.planning.planner import resolve_model
from harness.registry.discovery import discover
from harness.registry.registry import Registry

__all__ = ["main", "save_headed"]

LABELS = ("contradiction", "entailment", "neutral")
BARE_BATCH = 32


def bare_loop(
    model: Any, tokenizer: Any, pairs: list[tuple[str, str]], max_length: int
) -> npt.NDArray[np.float32]:
    """Return the logits of the loop that a careful user would write."""
    encoded = tokenizer(
        [first for first, _ in pairs],
        [second for _, second in pairs],
        truncation="longest_first",
        max_length=max_length,
    )
    order = sorted(range(len(pairs)), key=lambda index: len(encoded["input_ids"][index]))
    logits = np.empty((len(pairs), len(LABELS)), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(order), BARE_BATCH):
            rows = order[start : start + BARE_BATCH]
            batch = tokenizer.pad(
                {"input_ids": [encoded["input_ids"][row] for row in rows]}, return_tensors="pt"
            )
            logits[rows] = model(**batch).logits.numpy()
    return logits


def save_headed(folder: Path, target: Path) -> None:
    """Save the encoder with a fresh classification head, so that both sides open the same weights."""
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder,
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        label2id={label: index for index, label in enumerate(LABELS)},
        dtype=torch.float32,
    )
    model.save_pretrained(target)
    AutoTokenizer.from_pretrained(folder).save_pretrained(target)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with xnli/test-en.tsv")
    parser.add_argument("--model", type=Path, default=Path("models/e5-small"))
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-length", type=int, default=128)
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    lines = (given.data / "xnli" / "test-en.tsv").read_text(encoding="utf-8").splitlines()[: given.items]
    pairs = [(line.split("\t")[0], line.split("\t")[1]) for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        save_headed(given.model, target)
        model = AutoModelForSequenceClassification.from_pretrained(target, dtype=torch.float32).eval()
        tokenizer = AutoTokenizer.from_pretrained(target)
        reference = ModelReference(scheme="hf-encoder", ref=str(target))
        described = resolve_model(
            Registry(discover()).adapters,
            str(reference),
            {"max_length": str(given.max_length), "device": "cpu"},
        )
        adapter = described.entry.open(described.description, described.options)
        assert isinstance(adapter, Classifies)
        items = [TextInput(text=first, text_pair=second) for first, second in pairs]
        ours = adapter.classify(items[:64], LABELS)
        theirs = bare_loop(model, tokenizer, pairs[:64], given.max_length)
        print(
            f"Largest difference of the logits of 64 items: {np.abs(_centred(ours) - _centred(theirs)).max():.2g}"
        )
        seconds = alternate(
            {
                "harness": lambda: _done(adapter.classify(items, LABELS)),
                "bare loop": lambda: _done(bare_loop(model, tokenizer, pairs, given.max_length)),
            },
            rounds=given.rounds,
        )
    show(f"{given.items} XNLI pairs, {given.threads} thread(s)", seconds)
    ratio = statistics.median(seconds["bare loop"]) / statistics.median(seconds["harness"])
    print(f"harness reaches {ratio:.2f} of the bare loop's items/s (limit 0.90)")


def _done(scores: npt.NDArray[np.float32]) -> None:
    assert np.isfinite(scores).all()


def _centred(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return scores without what is the same for all labels: logits and log-probabilities then agree."""
    centred: npt.NDArray[np.float32] = scores - scores.mean(axis=1, keepdims=True)
    return centred


if __name__ == "__main__":
    main()
