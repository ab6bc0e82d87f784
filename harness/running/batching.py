"""Which requests are asked together: sorted by length, the longest first, and cut into blocks.

Blocks depend on the requests alone, not on how many processes share them nor on what has been answered before: so are
the batches in them, and so every answer is the same to the bit for any number of processes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

__all__ = ["plan_blocks"]


def plan_blocks(
    lengths: Sequence[int], groups: Sequence[Hashable] | None, size: int | None
) -> list[list[int]]:
    """Return lists of request numbers, each with at most `size` characters of text, or a single group.

    The longest come first: where memory is too small, that shows at the start, and an estimate of the time left is
    too long rather than too short. Requests of one group stay together. `size` None makes one block.
    """
    if not lengths:
        return []
    members, weights = _grouped(lengths, groups)
    order = np.argsort(-np.asarray(weights, dtype=np.int64), kind="stable").tolist()
    blocks: list[list[int]] = [[]]
    filled = 0
    for number in order:
        added = weights[number] * len(members[number])
        if size is not None and blocks[-1] and filled + added > size:
            blocks.append([])
            filled = 0
        blocks[-1] += members[number]
        filled += added
    return blocks


def _grouped(lengths: Sequence[int], groups: Sequence[Hashable] | None) -> tuple[list[list[int]], list[int]]:
    """Return the requests of every group in order, and the longest length of each."""
    if groups is None:
        return [[index] for index in range(len(lengths))], list(lengths)
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    return list(members.values()), [max(lengths[index] for index in own) for own in members.values()]
