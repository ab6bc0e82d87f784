"""A network on its device: redrawn at random, and freed."""

from __future__ import annotations

import copy
import gc
from typing import Any, Self

import torch

from harness.errors import AdapterError
from harness_hf.options import ModelOptions
from harness_hf.placement import place
from harness_hf.random_network import random_twin

__all__ = ["HeldNetwork"]


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
        """What the weights were drawn by, where they are not those of the folder."""

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
