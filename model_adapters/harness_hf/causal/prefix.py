"""Groups of texts with a common beginning, which is computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

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
    width = max(pad + len(text) for pad, text in zip(pads, texts, strict=True))
    ids = np.full((len(texts), width), pad_id, dtype=np.int64)
    mask = np.zeros((len(texts), width), dtype=np.int64)
    for row, (text, pad) in enumerate(zip(texts, pads, strict=True)):
        ids[row, pad : pad + len(text)] = text
        mask[row, pad : pad + len(text)] = 1
    positions = torch.from_numpy(np.maximum(mask.cumsum(axis=1) - 1, 0)) + before.sum(dim=1, keepdim=True)
    attention_mask = torch.cat([before, torch.from_numpy(mask)], dim=1)
    return {"input_ids": torch.from_numpy(ids), "attention_mask": attention_mask, "position_ids": positions}
