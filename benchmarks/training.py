"""Fine-tuning: our training against a bare accelerate loop and transformers' Trainer, in optimiser steps per second.

The same weights, examples, batches, optimiser and number of threads, in float32 and one process. The harness is
measured as it is, where a CPU takes a batch in four parts, and with the whole batch at once as the others take it;
the limit is for the latter: 0.95 of the faster of the two others.
Run: python -m benchmarks.training [--model DIR] [--steps N] [--threads N]
"""

from __future__ import annotations

import argparse
import copy
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments
from transformers.optimization import get_linear_schedule_with_warmup

from benchmarks.measuring import alternate, record, show
from harness.models.capabilities import FitOptions, TrainingSettings
from harness_hf.inference.pieces import Encoded, pad_batch
from harness_hf.options import EncoderOptions
from harness_hf.training.batches import Feature, HeadTraining, collate_with
from harness_hf.training.engine import TrainingProcesses
from harness_hf.training.loop import train_network

LIMIT = 0.95
RATE = 2e-5
WORDS = ["language", "evaluation", "river", "house", "seven", "quickly", "maison", "Sprache"]


def make_data(tokenizer: Any, count: int, length: int) -> HeadTraining:
    """Return texts of exactly `length` pieces, so that no contender pads."""
    features = []
    for number in range(count):
        text = " ".join(WORDS[(number * 7 + place * 3) % len(WORDS)] for place in range(length))
        ids = tokenizer(text, truncation=True, max_length=length)["input_ids"]
        features.append(Feature((Encoded(ids),), {"labels": number % 3}))
    pad = partial(pad_batch, pad_id=tokenizer.pad_token_id, names=("input_ids", "attention_mask"))
    return HeadTraining(
        train=features,
        validation=[],
        collate=collate_with(pad, ("labels",)),
        label_names=("labels",),
        decide=lambda logits, _: logits,
        score=lambda logits, _: 0.0,
        metric="accuracy",
    )


def train_ours(network: Any, data: HeadTraining, given: argparse.Namespace, parts: int | None) -> None:
    """Take the steps with the harness."""
    settings = TrainingSettings(
        learning_rate=RATE, epochs=1, batch_size=given.batch, max_length=given.length, max_steps=given.steps
    )
    with tempfile.TemporaryDirectory() as folder:
        outcome = train_network(
            lambda: copy.deepcopy(network),
            data,
            FitOptions(directory=Path(folder) / "fit", settings=settings, seed=1),
            encoder_options=EncoderOptions(device="cpu", train_parts=parts),
            processes=TrainingProcesses(torch.device("cpu")),
            title="benchmark",
            digest="",
        )
    assert outcome.state.step == given.steps


def train_bare(network: Any, data: HeadTraining, given: argparse.Namespace) -> None:
    """Take the steps with the loop of accelerate's documentation."""
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(cpu=True)
    network = copy.deepcopy(network).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE)
    make: Any = get_linear_schedule_with_warmup
    examples: Any = list(data.train)
    loader: Any = torch.utils.data.DataLoader(
        examples, batch_size=given.batch, shuffle=True, collate_fn=data.collate
    )
    network, optimizer, loader, schedule = accelerator.prepare(
        network, optimizer, loader, make(optimizer, 0, given.steps)
    )
    for batch in loader:
        accelerator.backward(network(**batch).loss)
        accelerator.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def train_trainer(network: Any, data: HeadTraining, given: argparse.Namespace) -> None:
    """Take the steps with transformers' Trainer."""
    AcceleratorState._reset_state(reset_partial_state=True)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=given.steps,
            per_device_train_batch_size=given.batch,
            learning_rate=RATE,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        examples: Any = list(data.train)
        trainer = Trainer(
            model=copy.deepcopy(network), args=arguments, train_dataset=examples, data_collator=data.collate
        )
        trainer.train()


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", type=Path, default=Path("models/e5-small"))
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    network = AutoModelForSequenceClassification.from_pretrained(
        given.model, num_labels=3, dtype=torch.float32
    )
    data = make_data(AutoTokenizer.from_pretrained(given.model), given.steps * given.batch, given.length)
    contenders: dict[str, Callable[[], None]] = {
        "harness, 4 parts": lambda: train_ours(network, data, given, None),
        "harness, whole batch": lambda: train_ours(network, data, given, 1),
        "Trainer": lambda: train_trainer(network, data, given),
        "bare accelerate loop": lambda: train_bare(network, data, given),
    }
    seconds = alternate(contenders, rounds=given.rounds)
    show(f"{given.steps} steps of {given.batch} x {given.length} pieces, {given.threads} thread(s)", seconds)
    rates = {name: given.steps / statistics.median(times) for name, times in seconds.items()}
    fastest = max(rates["Trainer"], rates["bare accelerate loop"])
    for name, rate in rates.items():
        print(f"{name}: {rate:.3f} steps/s, {rate / fastest:.2f} of the faster of Trainer and bare loop")
    ratio = rates["harness, whole batch"] / fastest
    record("training: steps/s of the faster of Trainer and a bare loop", ratio, LIMIT, least=True)


if __name__ == "__main__":
    main()
