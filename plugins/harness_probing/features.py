"""The labelled vectors of some layers in memory, and how their features are standardized."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from harness.errors import ContractError
from harness_probing.problem import Numbers
from harness_probing.states import States

__all__ = ["Floats", "Scaling", "layer_blocks", "read_features", "scaling_of"]

Floats = npt.NDArray[np.float64]
ROWS = 8_192
CONSTANT = 1e-12
"""A feature whose variance is below this share of its squared mean is constant up to rounding."""
DEVICE_SHARE = 0.5
"""Of an accelerator's free memory that features may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Features become ``(x - mean) / scale``."""

    mean: Floats
    """Shape (layers, dimension)."""
    scale: Floats
    """Shape (layers, dimension); 1 for a constant feature."""

    @classmethod
    def none(cls, layers: int, dimension: int) -> Scaling:
        """Return the scaling that leaves features as they are."""
        return cls(mean=np.zeros((layers, dimension)), scale=np.ones((layers, dimension)))


def scaling_of(states: States, rows: Numbers, layers: Sequence[int]) -> Scaling:
    """Return the scaling that gives these vectors mean 0 and variance 1 in every feature of every layer.

    Sums are made in float64 over blocks of rows, so that they do not depend on the number of threads.
    """
    mean = np.zeros((len(layers), states.dimension))
    scale = np.ones((len(layers), states.dimension))
    for index, layer in enumerate(layers):
        total, squares = np.zeros(states.dimension), np.zeros(states.dimension)
        shift = states.read(layer, rows[:1])[0].astype(np.float64)
        for start in range(0, len(rows), ROWS):
            block = states.read(layer, rows[start : start + ROWS]) - shift
            total += block.sum(axis=0)
            squares += np.einsum("nd,nd->d", block, block)
        mean[index] = shift + total / len(rows)
        variance = squares / len(rows) - (total / len(rows)) ** 2
        varies = variance > CONSTANT * mean[index] ** 2
        scale[index, varies] = np.sqrt(variance[varies])
    return Scaling(mean=mean, scale=scale)


def read_features(
    states: States, rows: Numbers, layers: Sequence[int], scaling: Scaling, device: torch.device
) -> torch.Tensor:
    """Return scaled features: float32 of shape (layers, rows, dimension).

    `scaling` has one row for each of `layers`. Raises `ContractError` where a state is not finite.
    """
    found = torch.empty((len(layers), len(rows), states.dimension), dtype=torch.float32, device=device)
    for index, layer in enumerate(layers):
        mean = scaling.mean[index].astype(np.float32)
        inverse = (1 / scaling.scale[index]).astype(np.float32)
        for start in range(0, len(rows), ROWS):
            block = states.read(layer, rows[start : start + ROWS])
            block -= mean
            block *= inverse
            if not np.isfinite(block).all():
                raise ContractError(f"The hidden states of layer {layer} are not finite (NaN or infinite).")
            found[index, start : start + ROWS] = torch.from_numpy(block)
    return found


def layer_blocks(layers: Sequence[int], *, bytes_per_layer: int, device: torch.device) -> list[range]:
    """Return which layers (by index) are trained together: one on a CPU, as many as fit on an accelerator."""
    together = 1
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        together = max(1, int(DEVICE_SHARE * free) // max(1, bytes_per_layer))
    return [range(start, min(start + together, len(layers))) for start in range(0, len(layers), together)]
