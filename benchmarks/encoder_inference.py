"""Encoder inference: our classifier against a bare transformers loop over length-sorted batches.

The same weights, tokenizer, items and number of threads; both give the same logits. Three lengths: XNLI pairs cut at
32 pieces, and pairs of several premises joined, cut at 128 and 384. The share of padding is that of the positions the
network reads. The limit is 0.95 of the bare loop's items per second, at every length. Run: make bench, or
python -m benchmarks.encoder_inference --data DIR [--items N] [--lengths N ...] [--threads N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from benchmarks.measuring import alternate, record, show
from harness.models.adapters import ModelReference
from harness.models.capabilities import Classifies, TextInput
from harness.planning.planner import resolve_model
from harness.registry.discovery import discover
from harness.registry.registry import Registry
from harness_hf.inference.pieces import length_sorted_batches

LABELS = ("contradiction", "entailment", "neutral")
BARE_BATCH = 32
JOINED = {32: 1, 128: 4, 384: 12}
"""Premises that make the first text of a pair, by the length that it is cut at."""


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


def make_pairs(file: Path, count: int, joined: int) -> list[tuple[str, str]]:
    """Return pairs whose first text is a number of premises in a row; they vary in length as premises do."""
    rows = [line.split("\t")[:2] for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        (" ".join(rows[(number + further) % len(rows)][0] for further in range(joined)), rows[number][1])
        for number in range(0, min(count, len(rows)))
    ]


def padding(lengths: list[int], batches: Iterable[list[int]]) -> float:
    """Return the share of positions of the batches that hold no piece."""
    read = sum(len(batch) * max(lengths[row] for row in batch) for batch in batches)
    return 1 - sum(lengths) / read


def bare_batches(lengths: list[int]) -> list[list[int]]:
    """Return the batches of the bare loop."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [order[start : start + BARE_BATCH] for start in range(0, len(order), BARE_BATCH)]


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("HARNESS_DATA"), help="folder with xnli")
    parser.add_argument("--model", type=Path, default=Path("models/e5-small"))
    parser.add_argument(
        "--items", type=int, default=1000, help="pairs of length 32; fewer of the longer ones"
    )
    parser.add_argument("--lengths", type=int, nargs="+", choices=JOINED, default=list(JOINED))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    from benchmarks.run_overhead import write_pairs  # which imports this module

    torch.set_num_threads(given.threads)
    with tempfile.TemporaryDirectory() as folder:
        write_pairs(Path(folder), given.items, given.data)
        save_headed(given.model, Path(folder))
        for max_length in given.lengths:
            joined = JOINED[max_length]
            count = max(BARE_BATCH, given.items // joined)
            pairs = make_pairs(Path(folder) / "xnli" / "test-en.tsv", count, joined)
            measure(Path(folder), pairs, max_length, given)


def measure(target: Path, pairs: list[tuple[str, str]], max_length: int, given: argparse.Namespace) -> None:
    """Measure and print one length."""
    model = AutoModelForSequenceClassification.from_pretrained(target, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(target)
    adapter = open_adapter(target, max_length)
    items = [TextInput(text=first, text_pair=second) for first, second in pairs]
    ours = adapter.classify(items[:64], LABELS)
    theirs = bare_loop(model, tokenizer, pairs[:64], max_length)
    difference = np.abs(_centred(ours) - _centred(theirs)).max()
    seconds = alternate(
        {
            "harness": lambda: _done(adapter.classify(items, LABELS)),
            "bare loop": lambda: _done(bare_loop(model, tokenizer, pairs, max_length)),
        },
        rounds=given.rounds,
    )
    session: Any = adapter
    encoded = session._session.encode([one for one, _ in pairs], [two for _, two in pairs], max_length)
    lengths = [len(one) for one in encoded]
    own = padding(lengths, length_sorted_batches(lengths, session._session.budget.initial))
    bare = padding(lengths, bare_batches(lengths))
    show(f"{len(pairs)} pairs cut at {max_length} pieces, {given.threads} thread(s)", seconds)
    # The median of the rounds' own ratios: what slows the machine slows both sides of a round.
    rounds = zip(seconds["bare loop"], seconds["harness"], strict=True)
    ratio = statistics.median(theirs / ours for theirs, ours in rounds)
    print(
        f"length {max_length}: padding {own:.1%}, bare "
        f"loop {bare:.1%}; mean length {np.mean(lengths):.0f}; largest difference of logits {difference:.2g}"
    )
    record(f"encoder, {max_length} pieces: items/s of a bare loop's", ratio, 0.95, least=True)


def open_adapter(target: Path, max_length: int) -> Classifies:
    """Return the harness's classifier of a folder."""
    described = resolve_model(
        Registry(discover()).adapters,
        str(ModelReference(scheme="hf-encoder", ref=str(target))),
        {"max_length": str(max_length), "device": "cpu"},
    )
    adapter = described.entry.open(described.description, described.options)
    assert isinstance(adapter, Classifies)
    return adapter


def _done(scores: npt.NDArray[np.float32]) -> None:
    assert np.isfinite(scores).all()


def _centred(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return scores without what is the same for all labels: logits and log-probabilities then agree."""
    centred: npt.NDArray[np.float32] = scores - scores.mean(axis=1, keepdims=True)
    return centred


if __name__ == "__main__":
    main()
