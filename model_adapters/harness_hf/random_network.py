"""Networks with random weights: what an architecture knows before any training."""

from __future__ import annotations

import copy
from typing import Any

import torch

from harness.errors import CapabilityError

__all__ = ["random_twin"]


def random_twin(network: Any, seed: int, *, ref: str, divided: bool) -> Any:
    """Return a network like `network`, on its device and in its precision, as its class initialises it.

    The global random state stays as it was. Raises `CapabilityError` where the network is divided over devices.
    """
    if divided:
        raise CapabilityError(
            f"The model {ref!r} is divided over several devices, so it has no twin with random weights.",
            hint="Leave out -o device_map.",
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # Made on the CPU, so that the weights are the same whatever the device.
        with torch.device("cpu"):
            twin = type(network)(copy.deepcopy(network.config))
    return twin.to(device=network.device, dtype=network.dtype).eval()
