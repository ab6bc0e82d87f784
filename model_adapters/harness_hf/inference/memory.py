"""Free memory of the device that a model runs on, and how many pieces of a batch fit into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import torch

SHARES = {"cpu": 0.25, "cuda": 0.8, "mps": 0.5}
"""Share of the free memory that batches may take; a CPU's is used by other programs too."""
CGROUP = Path("/sys/fs/cgroup")
"""Where Linux keeps the limit of a container."""
LEAST_TOKENS, MOST_TOKENS = 1024, 131_072
"""Pieces of a batch on a GPU; above, a batch takes longer and no piece is faster."""


def free_memory(device: torch.device) -> int:
    """Return the bytes of a device that batches may take."""
    return int(SHARES[device.type] * _free(device))


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory()) - int(torch.mps.current_allocated_memory())
    available = int(psutil.virtual_memory().available)
    try:
        limit, used = ((CGROUP / f"memory.{name}").read_text() for name in ("max", "current"))
        return max(0, min(available, int(limit) - int(used)))
    except (OSError, ValueError):  # no container, or one without a limit
        return available


def tokens_within(memory: int, network: Any, cached: int) -> int:
    """Return how many pieces a batch may have whose activations, and `cached` bytes per piece, fit into the memory.

    About eight states are alive while a piece runs through a layer: residual, normalised, queries, keys, values,
    attention and copies; and three of the feed-forward part.
    """
    config = network.config.get_text_config()
    hidden = int(getattr(config, "hidden_size", None) or 4096)
    inner = int(getattr(config, "intermediate_size", None) or getattr(config, "d_ff", None) or 4 * hidden)
    # A decoder behind an encoder keeps keys and values of its own tokens and of the encoder's.
    cross_attention = (
        4 * config.num_hidden_layers if getattr(network.config, "is_encoder_decoder", False) else 0
    )
    piece: int = network.dtype.itemsize * ((8 + cross_attention) * hidden + 3 * inner) + cached
    return min(MOST_TOKENS, max(LEAST_TOKENS, memory // piece))
