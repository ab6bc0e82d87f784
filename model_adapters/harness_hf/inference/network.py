"""A network on its device: how it is held, freed, and drawn again with random weights."""

from __future__ import annotations

import copy
import gc
from typing import Any, Self

import torch

from harness import AdapterError, CapabilityError
from harness_hf.options import ModelOptions
from harness_hf.placement import place

__all__ = ["HeldNetwork", "random_twin"]


class HeldNetwork:
    """Owns the network of one model until it is closed."""

    options: ModelOptions

    def __init__(self, network: Any, *, ref: str, options: ModelOptions) -> None:
        self.ref = ref
        self.options = options
        self._network: Any
        self._network, self.device = place(network, options)
        self.dtype = str(network.dtype).removeprefix("torch.")
        self.random_seed: int | None = None
        """Seed of random weights; None where the weights are those of the folder."""

    def untrained(self, seed: int) -> Self:
        """Return a session of the same tokenizer and architecture, its weights drawn by `seed`."""
        divided = self.options.device_map is not None
        twin = copy.copy(self)
        twin._network = random_twin(self.network, seed, ref=self.ref, divided=divided)
        twin.random_seed = seed
        return twin

    @property
    def network(self) -> Any:
        """The network with its head; raises `AdapterError` once the session is closed."""
        if self._network is None:
            raise AdapterError(f"The model {self.ref!r} has been closed.")
        return self._network

    def close(self) -> None:
        """Free the network; a second call does nothing."""
        if self._network is None:
            return
        self._network = None
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()


def random_twin(network: Any, seed: int, *, ref: str, divided: bool) -> Any:
    """Return a network like `network`, on its device and in its precision, as its class initialises it.

    The global random state does not change. Raises `CapabilityError` where the network is divided over devices.
    """
    if divided:
        raise CapabilityError(
            f"The model {ref!r} is divided over several devices, so it has no twin with random weights.",
            hint="Omit -o device_map.",
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # Made on the CPU, so that the weights are the same whatever the device.
        with torch.device("cpu"):
            twin = type(network)(copy.deepcopy(network.config))
    return twin.to(device=network.device, dtype=network.dtype).eval()
