"""The checkpoints of a training that is under way: weights and optimiser in safetensors, the rest in JSON.

A checkpoint is a folder that gets its name when all of it is written, so a partial one is never read::

    checkpoints/step-00000200/{training.json, weights.safetensors, optimizer.safetensors}
    checkpoints/best-00000100/weights.safetensors
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from harness_hf.training.engine import Engine

STATE, WEIGHTS, OPTIMIZER = "training.json", "weights.safetensors", "optimizer.safetensors"
RAN_OUT = "ran-out"
"""Holds the number of examples at once with which a process of several ran out of memory and ended."""


class TrainingState(BaseModel):
    """Where a training is."""

    model_config = ConfigDict(extra="forbid")

    digest: str
    """Digest of model, data and settings; a checkpoint with another digest belongs to another training."""
    micro_batch: int
    """Examples that go through the network at once."""
    step: int = 0
    """Steps that have been taken."""
    evaluated: int = 0
    """Steps after which the dev set was last measured."""
    best_score: float | None = None
    best_step: int | None = None
    ran_out_at: int | None = None
    """Examples at once for which memory was first too small; None where it never was."""
    resumed_at: list[int] = []
    """Steps at which an interrupted training was resumed."""
    first_loss: float = 0.0
    """Mean loss of the first tenth of the steps, at most 50; the same of the last ones is `last_loss`."""
    last_loss: float = 0.0
    fp32_from: int | None = None
    """The step, counted from 1, from which training is in float32 because it was not finite in less."""


class CheckpointFolder:
    """Keeps the last checkpoint and the weights of the best one; the main process writes."""

    def __init__(self, folder: Path, digest: str) -> None:
        self._folder = folder
        self._digest = digest

    def save_best(self, step: int, weights: Mapping[str, torch.Tensor]) -> None:
        """Write the weights of the best checkpoint; the one before stays until `save` has been called."""
        with self._whole(_name("best", step)) as partial:
            _write(partial / WEIGHTS, weights)

    def save(
        self,
        state: TrainingState,
        weights: Mapping[str, torch.Tensor],
        optimizer: tuple[Mapping[str, torch.Tensor], Mapping[str, Any]],
    ) -> None:
        """Write a checkpoint, and delete all others but the best one that it names."""
        with self._whole(_name("step", state.step)) as partial:
            _write(partial / WEIGHTS, weights)
            _write(partial / OPTIMIZER, optimizer[0])
            with (partial / STATE).open("w", encoding="utf-8") as file:
                json.dump({"state": state.model_dump(), "optimizer": optimizer[1]}, file)
                file.flush()
                os.fsync(file.fileno())
        names = {_name("step", state.step), RAN_OUT}
        if state.best_step is not None:
            names.add(_name("best", state.best_step))
        for folder in self._folder.iterdir():
            if folder.name not in names:
                shutil.rmtree(folder, ignore_errors=True)

    def last(self) -> TrainingState | None:
        """Return the last checkpoint that is whole and of this training, None where there is none."""
        names = [path.name for path in self._folder.glob("step-*")] if self._folder.is_dir() else []
        steps = sorted((int(name[5:]) for name in names if name[5:].isdecimal()), reverse=True)
        return next((state for state in map(self.read, steps) if state is not None), None)

    def restore(self, step: int, engine: Engine) -> None:
        """Put the checkpoint of a step into network and optimiser."""
        folder = self._folder / _name("step", step)
        content = json.loads((folder / STATE).read_text(encoding="utf-8"))
        engine.put_weights(load_file(folder / WEIGHTS))
        engine.put_optimizer_state(load_file(folder / OPTIMIZER), content["optimizer"])

    def restore_best(self, step: int, engine: Engine) -> None:
        """Put the weights of the best checkpoint into the network."""
        engine.put_weights(load_file(self._folder / _name("best", step) / WEIGHTS))

    def note_shortage(self, size: int) -> None:
        """Note that memory was too small for `size` examples at once, for the training that resumes this one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / RAN_OUT).write_text(str(size), encoding="ascii")

    def shortage(self) -> int | None:
        """Return the shortage that `note_shortage` noted, if any."""
        file = self._folder / RAN_OUT
        text = file.read_text(encoding="ascii") if file.is_file() else ""
        return int(text) if text.isdecimal() else None

    def read(self, step: int) -> TrainingState | None:
        """Return the state of a checkpoint, None where it is damaged or of another training."""
        folder = self._folder / _name("step", step)
        try:
            content = json.loads((folder / STATE).read_text(encoding="utf-8"))
            state = TrainingState.model_validate(content["state"])
            files = [folder / WEIGHTS, folder / OPTIMIZER]
            if state.best_step is not None:
                files.append(self._folder / _name("best", state.best_step) / WEIGHTS)
            for path in files:
                # Opening compares the size of the file with what its header promises.
                with safe_open(path, framework="pt"):
                    pass
        except (OSError, ValueError, KeyError, TypeError, ValidationError, SafetensorError, RuntimeError):
            return None
        return state if (state.digest, state.step) == (self._digest, step) else None

    @contextmanager
    def _whole(self, name: str) -> Iterator[Path]:
        """Yield a folder to write into, which gets its name once all of it is on disk."""
        partial = self._folder / f".{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        shutil.rmtree(self._folder / name, ignore_errors=True)
        partial.rename(self._folder / name)


def _name(kind: str, step: int) -> str:
    return f"{kind}-{step:08}"


def _write(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
