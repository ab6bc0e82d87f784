"""Rows of a cache of keys and values: the memory they take, and how they are chosen and joined."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import pad
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

SUPPORTED = (DynamicLayer, DynamicSlidingWindowLayer)
"""Kinds of cache whose rows can be chosen; others (recurrent states) are not shared between texts."""

SPARE = 64
"""Columns that a layer is widened by at once."""


def supports_rows(cache: Any) -> bool:
    """Return whether the rows of a cache can be chosen, joined and expanded."""
    return cache is not None and all(type(layer) in SUPPORTED for layer in getattr(cache, "layers", [None]))


@dataclass(frozen=True, slots=True)
class CacheCost:
    """The bytes that one row of a cache takes, as the network's own cache has them: heads, sizes, type, windows."""

    per_token: tuple[tuple[int | None, int], ...]
    """(Window of the layers, None without one; bytes of a token in all layers with this window)."""

    @classmethod
    def measure(cls, cache: Any) -> CacheCost:
        """Return the cost of a row, measured on a cache of one row and one token."""
        sizes: Counter[int | None] = Counter()
        for layer in _layers(cache):
            sizes[getattr(layer, "sliding_window", None)] += layer.keys.nbytes + layer.values.nbytes
        return cls(tuple(sizes.items()))

    @property
    def has_windows(self) -> bool:
        """Whether a layer keeps the last tokens only."""
        return any(window is not None for window, _ in self.per_token)

    def row(self, tokens: int) -> int:
        """Return the bytes of a row of so many tokens."""
        return sum(
            size * (tokens if window is None else min(tokens, window)) for window, size in self.per_token
        )


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """A layer without window that keeps spare columns, so that a token is added without a copy of all before it."""

    _keys_before: torch.Tensor | None = None
    _buffers: tuple[torch.Tensor, ...]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append states of shape (rows, heads, tokens, size); return all keys and values."""
        assert self.keys is not None and self.values is not None
        start, added = self.keys.shape[2], key_states.shape[2]
        if self.keys is not self._keys_before or start + added > self._buffers[0].shape[2]:
            widened = (0, 0, 0, added + SPARE)
            self._buffers = (pad(self.keys, widened), pad(self.values, widened))
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, start : start + added] = states
        self.keys, self.values = (buffer[:, :, : start + added] for buffer in self._buffers)
        self._keys_before = self.keys
        return self.keys, self.values


def grow_in_place(cache: Any) -> None:
    """Let the layers of a cache that have no window keep spare columns from now on."""
    for layer in _layers(cache):
        if type(layer) is DynamicLayer:
            layer.__class__ = GrowingLayer


def choose_rows(cache: Any, rows: torch.Tensor) -> Any:
    """Return a cache of the chosen rows of another, any row several times; that one does not change."""
    chosen = copy.copy(cache)
    chosen.layers = [copy.copy(layer) for layer in cache.layers]
    keep_rows(chosen, rows, cache.get_seq_length())
    return chosen


def keep_rows(cache: Any, rows: torch.Tensor, columns: int) -> None:
    """Keep the chosen rows of a cache, and its last `columns` columns."""
    for layer in _layers(cache):
        chosen = rows.to(layer.keys.device)
        layer.keys, layer.values = (states[:, :, -columns:][chosen] for states in (layer.keys, layer.values))
        if layer.is_sliding:
            layer.cumulative_length = min(layer.cumulative_length, columns)


def join_rows(cache: Any, appended: Any) -> None:
    """Append the rows of another cache; both are aligned at their last column, and widened on the left."""
    for layer, more in zip(_layers(cache), _layers(appended), strict=True):
        width = max(layer.keys.shape[2], more.keys.shape[2])
        pairs = ((layer.keys, more.keys), (layer.values, more.values))
        layer.keys, layer.values = (
            torch.cat([pad(states, (0, 0, width - states.shape[2], 0)) for states in pair]) for pair in pairs
        )
        if layer.is_sliding:
            layer.cumulative_length = max(layer.cumulative_length, more.cumulative_length)


def _layers(cache: Any) -> Iterator[Any]:
    """Yield the layers that hold keys; others read those of an earlier layer."""
    return (layer for layer in cache.layers if layer.is_initialized)
