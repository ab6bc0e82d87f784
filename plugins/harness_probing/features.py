"""The labelled vectors of some layers in memory, and how their features are standardized."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from harness import ContractError
from harness_probing.problem import Numbers
from harness_probing.scores import Floats
from harness_probing.states import States

ROWS = 2_048
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

    def apply(self, features: torch.Tensor) -> None:
        """Scale features of shape (layers, n, dimension) in place."""
        for layer, mean, scale in zip(features, self.mean, self.scale, strict=True):
            shift = torch.as_tensor(mean.astype(np.float32), device=layer.device)
            factor = torch.as_tensor((1 / scale).astype(np.float32), device=layer.device)
            for block in layer.split(ROWS):
                block.sub_(shift).mul_(factor)


def scaling_of(features: torch.Tensor) -> Scaling:
    """Return the scaling that gives features of shape (layers, n, dimension) mean 0 and variance 1.

    Sums are made in float64 over blocks of rows, and over differences from the first row, so that features far from
    zero keep their digits.
    """
    layers, n, dimension = features.shape
    scaling = Scaling.none(layers, dimension)
    for index, layer in enumerate(features):
        shift = layer[0].clone()
        total = torch.zeros(dimension, dtype=torch.float64, device=layer.device)
        squares = torch.zeros_like(total)
        for block in layer.split(ROWS):
            differences = (block - shift).double()
            total += differences.sum(dim=0)
            squares += differences.square_().sum(dim=0)
        mean = (total / n).cpu().numpy()
        variance = (squares / n).cpu().numpy() - mean**2
        scaling.mean[index] = shift.double().cpu().numpy() + mean
        varies = variance > CONSTANT * scaling.mean[index] ** 2
        scaling.scale[index, varies] = np.sqrt(variance[varies])
    return scaling


def read_features(states: States, rows: Numbers, layers: Sequence[int], device: torch.device) -> torch.Tensor:
    """Return features as the model gives them: float32 of shape (layers, rows, dimension).

    Raises `ContractError` where a state is not finite.
    """
    features = torch.empty((len(layers), len(rows), states.dimension), dtype=torch.float32, device=device)
    for index, layer in enumerate(layers):
        for start in range(0, len(rows), ROWS):
            block = torch.from_numpy(states.read(layer, rows[start : start + ROWS]))
            # A finite sum says that all are; one that is not may have overflowed.
            if not math.isfinite(float(block.sum())) and not bool(torch.isfinite(block).all()):
                raise ContractError(f"The hidden states of layer {layer} are not finite (NaN or infinite).")
            features[index, start : start + ROWS] = block
    return features


def layer_blocks(layers: Sequence[int], *, bytes_per_layer: int, device: torch.device) -> list[range]:
    """Return which layers (by index) are trained together: one on a CPU, as many as fit on an accelerator."""
    together = 1
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        together = max(1, int(DEVICE_SHARE * free) // max(1, bytes_per_layer))
    return [range(start, min(start + together, len(layers))) for start in range(0, len(layers), together)]
