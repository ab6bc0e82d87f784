"""The checkpoints of a training that is under way: weights and optimiser in safetensors, the rest in JSON.

A checkpoint is a folder that gets its name when all of it is written, so a partial one is never read::

    checkpoints/step-00000200/{state.json, weights.safetensors, optimizer.safetensors}
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

from harness import TrainingError
from harness_hf.training.optimization import Optimization

__all__ = ["CheckpointFolder", "TrainingState"]

STATE, WEIGHTS, OPTIMIZER = "state.json", "weights.safetensors", "optimizer.safetensors"


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


class CheckpointFolder:
    """Keeps the last checkpoint and the weights of the best one."""

    def __init__(self, folder: Path, digest: str) -> None:
        self._folder = folder
        self._digest = digest

    def save_best(self, step: int, network: torch.nn.Module) -> None:
        """Write the weights of the best checkpoint; the one before stays until `save` has been called."""
        with self._whole(_name("best", step)) as partial:
            _write(partial / WEIGHTS, _weights(network))

    def save(self, state: TrainingState, network: torch.nn.Module, optimization: Optimization) -> None:
        """Write a checkpoint, and delete all others but the best one that it names."""
        with self._whole(_name("step", state.step)) as partial:
            _write(partial / WEIGHTS, _weights(network))
            _write(partial / OPTIMIZER, optimization.tensors())
            content = {"state": state.model_dump(), "optimizer": optimization.numbers()}
            with (partial / STATE).open("w", encoding="utf-8") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
        kept = {_name("step", state.step)}
        if state.best_step is not None:
            kept.add(_name("best", state.best_step))
        for other in self._folder.iterdir():
            if other.name not in kept:
                shutil.rmtree(other, ignore_errors=True)

    def last(self) -> int | None:
        """Return the step of the last checkpoint that is whole and of this training, None where there is none."""
        names = [path.name for path in self._folder.glob("step-*")] if self._folder.is_dir() else []
        steps = [int(name[5:]) for name in names if name[5:].isdecimal()]
        return next((step for step in sorted(steps, reverse=True) if self._is_whole(step)), None)

    def restore(self, step: int, network: torch.nn.Module, optimization: Optimization) -> TrainingState:
        """Put the checkpoint of a step into network and optimiser, and return its state."""
        folder = self._folder / _name("step", step)
        content = json.loads((folder / STATE).read_text(encoding="utf-8"))
        _put(network, load_file(folder / WEIGHTS))
        optimization.restore(load_file(folder / OPTIMIZER), content["optimizer"])
        return TrainingState.model_validate(content["state"])

    def restore_best(self, step: int, network: torch.nn.Module) -> None:
        """Put the weights of the best checkpoint into the network."""
        _put(network, load_file(self._folder / _name("best", step) / WEIGHTS))

    def remove(self) -> None:
        """Delete all checkpoints."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _is_whole(self, step: int) -> bool:
        folder = self._folder / _name("step", step)
        try:
            content = json.loads((folder / STATE).read_text(encoding="utf-8"))
            state = TrainingState.model_validate(content["state"])
            parts = [folder / WEIGHTS, folder / OPTIMIZER]
            if state.best_step is not None:
                parts.append(self._folder / _name("best", state.best_step) / WEIGHTS)
            for part in parts:
                # Opening compares the size of the file with what its header promises.
                with safe_open(part, framework="pt"):
                    pass
        except (OSError, ValueError, KeyError, TypeError, ValidationError, SafetensorError, RuntimeError):
            return False
        return state.digest == self._digest and state.step == step

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


def _weights(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return all weights by name, tied ones once."""
    known: set[tuple[int, torch.Size]] = set()
    weights: dict[str, torch.Tensor] = {}
    for name, tensor in network.state_dict().items():
        place = (tensor.data_ptr(), tensor.shape)
        if place not in known:
            known.add(place)
            weights[name] = tensor
    return weights


def _put(network: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    places: Mapping[str, Any] = network.state_dict()
    unknown = sorted(weights.keys() - places.keys())
    if unknown:
        raise TrainingError(f"A checkpoint has the weight {unknown[0]!r}, which the network does not have.")
    with torch.no_grad():
        for name, tensor in weights.items():
            places[name].copy_(tensor)


def _write(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
