"""The record that marks a folder as a finished fit: ``harness_fit.json``, written last and atomically."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness import AdapterError
from harness.models import DevScore, Head, TrainingSettings

DualPooling = Literal["pooler", "mean", "cls"]
RECORD_NAME = "harness_fit.json"
SCALE_NAME = "dual_encoder.safetensors"
"""Holds the learned scale of a dual encoder's logits."""
HEAD_NAME = "harness_head.safetensors"
"""Holds a linear head that is not part of a class of transformers."""


class FitRecord(BaseModel):
    """Record of a training: the model, its data and its end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = 1
    head: Head
    labels: tuple[str, ...]
    inputs: tuple[str, ...]
    settings: TrainingSettings
    max_length: int
    """Pieces of a sequence: the setting, or the model's limit where that is smaller."""
    query_prefix: str = ""
    """Text that was put before the queries of a dual encoder."""
    passage_prefix: str = ""
    """Text that was put before the passages of a dual encoder."""
    pooling: DualPooling | None = None
    """How a dual encoder made vectors of texts; None where the settings say it."""
    seed: int
    train_examples: int
    validation_examples: int
    steps: int
    """Optimiser steps that were taken."""
    metric: str
    """What checkpoints were compared by."""
    best_score: float | None
    """Value of the metric of the checkpoint that was kept; None where the last one was."""
    base: Mapping[str, str]
    """Identity of the model that training started from."""
    base_weights: str = ""
    """Digest of the weights that a low-rank adapter was trained on; empty where all weights were saved."""
    digest: str = ""
    """What was trained, on what and how, as checkpoints name it."""
    micro_batch: int | None = None
    """Examples per micro-batch at the end of training; None in records of older versions."""
    ran_out_at: int | None = None
    """Examples at once for which memory was too small; None where it never was."""
    resumed_at: tuple[int, ...] = ()
    """Steps at which the training was resumed after an interruption."""
    fp32_from: int | None = None
    """The step, counted from 1, from which training was in float32 because it was not finite in less."""
    first_loss: float | None = None
    """Mean loss at the start of training; None in records of older versions."""
    last_loss: float | None = None

    def dev_score(self) -> DevScore | None:
        """Return the dev score of the kept checkpoint; None where none was measured."""
        return None if self.best_score is None else DevScore(metric=self.metric, value=self.best_score)

    def training_loss(self) -> Mapping[str, float] | None:
        """Return the losses at both ends of the training; None in records of older versions."""
        first, last = self.first_loss, self.last_loss
        return None if first is None or last is None else {"first": first, "last": last, "steps": self.steps}

    def notices(self) -> tuple[str, ...]:
        """Return sentences for the user about how the model was trained."""
        sentences = []
        if self.pooling not in (None, self.settings.pooling):
            sentences.append(
                f"The model has no pooler, so it was fine-tuned for retrieval with pooling {self.pooling!r} instead of "
                f"{self.settings.pooling!r}, which the recipe says."
            )
        if self.ran_out_at is not None:
            sentences.append(
                f"Fine-tuning ran out of memory at {self.ran_out_at} examples at once and continued with "
                f"{self.micro_batch}; the effective batch stayed {self.settings.batch_size}."
            )
        if self.fp32_from is not None:
            sentences.append(
                f"The loss or its gradient was not finite at step {self.fp32_from} in mixed precision; the model was "
                "fine-tuned in float32 from that step."
            )
        return tuple(sentences)


def require_record(folder: Path, head: Head, labels: tuple[str, ...] | None = None) -> FitRecord:
    """Return the record of a finished fit; raises `AdapterError` for any other head, or other labels if given."""
    record = read_record(folder)
    if record is None:
        raise AdapterError(
            f"The folder {str(folder)!r} holds no finished fit.",
            hint="Delete it; the model will be fitted again.",
        )
    if record.head is not head or labels not in (None, record.labels):
        actual, expected = record.head.value, head.value
        if labels is not None:
            actual, expected = (
                f"{actual} fit with the labels {list(record.labels)}",
                f"{expected} with {list(labels)}",
            )
        else:
            actual = f"{actual} fit"
        raise AdapterError(f"The folder {str(folder)!r} holds a {actual}; expected {expected}.")
    return record


def write_record(folder: Path, record: FitRecord) -> None:
    """Write the record in one step, so that a folder never looks finished before it is."""
    partial = folder / f".{RECORD_NAME}.partial"
    with partial.open("w", encoding="utf-8") as file:
        file.write(record.model_dump_json(indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / RECORD_NAME)


def read_record(folder: Path) -> FitRecord | None:
    """Return the record of a fitted model, None for any other; raises `AdapterError` for a damaged one."""
    path = folder / RECORD_NAME
    if not path.is_file():
        return None
    try:
        return FitRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        raise AdapterError(
            f"The file {str(path)!r} is not a fit record of this version: {str(error).splitlines()[0]}.",
            hint="Delete the folder; the model will be fitted again.",
        ) from error
