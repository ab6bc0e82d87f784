"""Turn the vectors of pieces into the vector of a text."""

from __future__ import annotations

from typing import Any, Literal

import torch

from harness import UsageError
from harness_hf.sentence_files import Pooling

__all__ = ["pool", "read_layer", "resolve_layer"]


def resolve_layer(layer: int | Literal["last", "xtreme_r"], depth: int) -> int:
    """Return the number of a layer of a network with `depth` transformer layers; 0 is the embedding layer.

    ``xtreme_r`` is ``depth / 2 + 2``, at most the last: the 8th layer of 12 and the 14th of 24, as in the
    public scripts and appendix C of XTREME-R (Ruder et al., 2021). Raises `UsageError` outside ``0..depth``.
    """
    if layer == "last":
        return depth
    if layer == "xtreme_r":
        return min(depth // 2 + 2, depth)
    if not 0 <= layer <= depth:
        raise UsageError(f"The model has layers 0 to {depth}; there is no layer {layer}.")
    return layer


def read_layer(backbone: Any, inputs: Any, layer: int, depth: int) -> torch.Tensor:
    """Return the hidden states of one layer, of shape (batch, pieces, dimension)."""
    output = backbone(**inputs, output_hidden_states=layer != depth)
    # The last state has gone through a final normalisation in networks that have one.
    states: torch.Tensor = output.last_hidden_state if layer == depth else output.hidden_states[layer]
    return states


def pool(states: torch.Tensor, mask: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """Return one float32 vector per sequence from states of shape (batch, pieces, dimension).

    ``mean`` is over all positions that are not padding, the first and last special pieces included (XTREME-R,
    Tatoeba); ``cls`` is the first position, ``last`` the last one that is not padding.
    """
    states = states.float()
    if pooling == "cls":
        return states[:, 0]
    if pooling == "last":
        rows = torch.arange(states.shape[0], device=states.device)
        return states[rows, mask.sum(dim=1) - 1]
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1)
