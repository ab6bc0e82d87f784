"""The identity of a model, and the record that marks a folder as a finished fit: ``harness_fit.json``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness import AdapterError
from harness.models import DevScore, Head, TrainingSettings
from harness.storage import configuration_files, file_digest, write_atomically
from harness_hf.model_files import conversion_identity
from harness_hf.model_folder import (
    ADAPTER_CONFIG,
    adapter_base,
    sentence_module_files,
    weight_files,
)

DualPooling = Literal["pooler", "mean", "cls"]
RECORD_NAME = "harness_fit.json"
SCALE_NAME = "dual_encoder.safetensors"
"""Holds the learned scale of a dual encoder's logits."""
HEAD_NAME = "harness_head.safetensors"
"""Holds a linear head that is not part of a class of transformers."""

LIBRARIES = ("torch", "transformers", "tokenizers")
UNREAD = {
    RECORD_NAME: ("resumed_at", "first_loss", "last_loss"),
    ADAPTER_CONFIG: ("base_model_name_or_path", "revision"),
}
"""Entries of files that change no answer: interruptions, losses, and where an adapter's base is (its weights count)."""


def folder_identity(folder: Path) -> dict[str, str]:
    """Return SHA-256 digests of a model's weights, and of all other files that the library may read.

    A converted copy has the digest of its pickled source, too. The base of an adapter counts, and so do the small
    weights of heads and modules for sentences.
    """
    folders = [adapter_base(folder), folder] if (folder / ADAPTER_CONFIG).is_file() else [folder]
    read = ""
    for number, source in enumerate(folders):
        heads = [name for name in (SCALE_NAME, HEAD_NAME) if (source / name).is_file()]
        names = sorted({*configuration_files(source), *heads, *sentence_module_files(source)})
        read += "".join(f"{number}/{name}={_content_digest(source / name)}\n" for name in names)
    files = hashlib.sha256(read.encode()).hexdigest()
    return {"weights": weights_digest(folder), "files": files, **conversion_identity(folder)}


def weights_digest(folder: Path) -> str:
    """Return the SHA-256 digest of a model's weights, those of an adapter's base included."""
    digests = "".join(file_digest(file) for file in weight_files(folder))
    return hashlib.sha256(digests.encode("ascii")).hexdigest()


def library_versions() -> dict[str, str]:
    """Return the installed versions of the libraries that compute the answers."""
    return {library: version(library) for library in LIBRARIES}


def _content_digest(file: Path) -> str:
    """Return the digest of a small file, without the entries that change no answer."""
    if file.name not in UNREAD:
        return file_digest(file)
    content = json.loads(file.read_text(encoding="utf-8"))
    lasting = {name: value for name, value in content.items() if name not in UNREAD[file.name]}
    return hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()


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
        actual = f" with the labels {list(record.labels)}" if labels is not None else ""
        expected = f" with {list(labels)}" if labels is not None else ""
        raise AdapterError(
            f"The folder {str(folder)!r} holds a {record.head.value} fit{actual}; expected {head.value}{expected}."
        )
    return record


def write_record(folder: Path, record: FitRecord) -> None:
    """Write the record in one step, so that a folder never looks finished before it is."""
    write_atomically(folder / RECORD_NAME, record.model_dump_json(indent=2).encode() + b"\n")


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
