"""Common beginnings of texts, which are computed once, and the rows of the cache of keys and values that holds them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
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


LEAST_SHARED = 8
"""Tokens that a common beginning must have: below, a second run costs more than it saves."""
MOST_TOGETHER = 64
"""Texts in one group; more would save little of what is left."""
CACHE_FACTOR = 4
"""How many times the batch's tokens the cached keys and values of its texts may span."""


@dataclass(frozen=True, slots=True)
class PrefixGroup:
    """Texts with a common beginning."""

    members: tuple[int, ...]
    """Indices of the texts."""
    stem: int
    """How many tokens they share and are run through once; the whole text where there is one only."""
    longest: int
    """Tokens of the longest text."""

    @property
    def branches(self) -> int:
        """How many rows a second run has at most."""
        return len(self.members) if self.longest > self.stem else 0


def share_prefixes(texts: Sequence[Sequence[int]], *, share: bool) -> list[PrefixGroup]:
    """Return groups that hold every text once, chosen so that the fewest tokens are run.

    Groups are runs of the texts in lexicographic order. A group of n texts that share p tokens saves
    (n - 1) p; the split with the largest sum is found by dynamic programming over where groups end.
    """
    if not share:
        return [PrefixGroup((index,), len(text), len(text)) for index, text in enumerate(texts)]
    order = sorted(range(len(texts)), key=lambda index: tuple(texts[index]))
    arrays = [np.asarray(texts[index], dtype=np.int64) for index in order]
    common = [0] + [_common(arrays[i - 1], arrays[i]) for i in range(1, len(arrays))]
    saved, begin = [0] * (len(order) + 1), [0] * (len(order) + 1)
    for end in range(1, len(order) + 1):
        saved[end], begin[end] = saved[end - 1], end - 1
        shared = len(arrays[end - 1])
        for start in range(end - 2, max(-1, end - 1 - MOST_TOGETHER), -1):
            shared = min(shared, common[start + 1])
            if shared < LEAST_SHARED:
                break
            gain = saved[start] + (end - start - 1) * shared
            if gain > saved[end]:
                saved[end], begin[end] = gain, start
    groups = []
    end = len(order)
    while end:
        groups.append(_group(order[begin[end] : end], texts, common[begin[end] + 1 : end]))
        end = begin[end]
    return groups


def pack_groups(
    groups: Sequence[PrefixGroup], texts: Sequence[Sequence[int]], budget: int
) -> Iterator[list[PrefixGroup]]:
    """Yield batches of groups of similar length, the longest first, of at most `budget` tokens with padding.

    A group that is too large is split, and its beginning run once per part; a text longer than the budget is
    alone in its batch. Groups with a second run are kept apart from those without.
    """
    fitting = [subgroup for group in groups for subgroup in _fit(group, texts, budget)]
    batch: list[PrefixGroup] = []
    for group in sorted(
        fitting, key=lambda group: (group.branches > 0, -group.longest, -group.stem, group.members)
    ):
        mixed = batch and (batch[0].branches > 0) != (group.branches > 0)
        if mixed or (batch and not _within([*batch, group], budget)):
            yield batch
            batch = []
        batch.append(group)
    if batch:
        yield batch


def split_group(group: PrefixGroup, texts: Sequence[Sequence[int]], most: int) -> list[PrefixGroup]:
    """Return groups of at most `most` of a group's texts each."""
    members = group.members
    chunks = [members[start : start + most] for start in range(0, len(members), most)]
    return [_part(chunk, texts, group.stem) for chunk in chunks]


def _fit(group: PrefixGroup, texts: Sequence[Sequence[int]], budget: int) -> list[PrefixGroup]:
    # The texts of a group alone are run in several turns behind its beginning.
    most = CACHE_FACTOR * budget // max(1, group.longest - group.stem)
    return split_group(group, texts, max(1, most)) if group.branches > most else [group]


def _within(batch: Sequence[PrefixGroup], budget: int) -> bool:
    rows = sum(group.branches for group in batch)
    stem = max(group.stem for group in batch)
    tail = max(group.longest - group.stem for group in batch)
    return len(batch) * stem + rows * tail <= budget and rows * (stem + tail) <= CACHE_FACTOR * budget


def _group(members: Sequence[int], texts: Sequence[Sequence[int]], common: Sequence[int]) -> PrefixGroup:
    stem = min(len(texts[members[0]]), *common) if common else len(texts[members[0]])
    return _part(tuple(members), texts, stem)


def _part(members: tuple[int, ...], texts: Sequence[Sequence[int]], stem: int) -> PrefixGroup:
    longest = max(len(texts[member]) for member in members)
    return PrefixGroup(members, longest if len(members) == 1 else stem, longest)


def _common(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> int:
    """Return how many tokens two texts share at their beginning."""
    size = min(len(first), len(second))
    different = np.flatnonzero(first[:size] != second[:size])
    return int(different[0]) if different.size else size


def continue_inputs(
    texts: Sequence[Sequence[int]], pads: Sequence[int], before: torch.Tensor, pad_id: int
) -> dict[str, torch.Tensor]:
    """Return the inputs of texts that continue cached beginnings; they begin at the columns `pads` behind these.

    `before` is the mask of the beginnings in the cache, of shape (texts, columns).
    """
    width = max(start + len(text) for start, text in zip(pads, texts, strict=True))
    ids = np.full((len(texts), width), pad_id, dtype=np.int64)
    mask = np.zeros((len(texts), width), dtype=np.int64)
    for row, (text, start) in enumerate(zip(texts, pads, strict=True)):
        ids[row, start : start + len(text)] = text
        mask[row, start : start + len(text)] = 1
    positions = torch.from_numpy(np.maximum(mask.cumsum(axis=1) - 1, 0)) + before.sum(dim=1, keepdim=True)
    attention_mask = torch.cat([before, torch.from_numpy(mask)], dim=1)
    return {"input_ids": torch.from_numpy(ids), "attention_mask": attention_mask, "position_ids": positions}
