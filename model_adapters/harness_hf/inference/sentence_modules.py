"""Steps of embedding models after pooling: linear layers, and division by the vector's length."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from harness import AdapterError
from harness_hf.model_folder import DenseModule

VectorModule = Callable[[torch.Tensor], torch.Tensor]


def unit_rows(vectors: torch.Tensor) -> torch.Tensor:
    """Return the vectors divided by their lengths."""
    return torch.nn.functional.normalize(vectors, dim=-1)


def open_dense(folder: Path, module: DenseModule, device: torch.device) -> VectorModule:
    """Return a linear layer and its activation, in float32; raises `AdapterError` for weights that do not fit."""
    file = folder / module.folder / "model.safetensors"
    if not file.is_file():
        raise AdapterError(
            f"The model folder {str(folder)!r} has no '{module.folder}/{file.name}'; weights are read from "
            "safetensors files only.",
            hint="Load it with sentence-transformers and call save_pretrained, or pass -o pooling=mean.",
        )
    try:
        weights = load_file(file)
    except (SafetensorError, OSError) as error:
        raise AdapterError(f"The file {str(file)!r} is not a safetensors file.") from error
    weight, bias = weights.get("linear.weight"), weights.get("linear.bias")
    if weight is None or weight.shape[0] != module.width or set(weights) - {"linear.weight", "linear.bias"}:
        raise AdapterError(
            f"The file {str(file)!r} does not hold one linear layer of {module.width} outputs, "
            "as its config.json says."
        )
    placed = weight.to(device, torch.float32)
    added = None if bias is None else bias.to(device, torch.float32)
    activation = getattr(torch.nn, module.activation)()
    return lambda vectors: activation(torch.nn.functional.linear(vectors.to(device), placed, added))
