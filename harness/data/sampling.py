"""Which items a limited run takes: drawn by a seed, so that every run takes the same ones."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import TypeVar

Item = TypeVar("Item")

LIMIT_SEED = 0
"""Which items a limit keeps never depends on the training seed, so that seeds are compared on the same items."""


def draw(ids: Sequence[str], limit: int | None, *, seed: int, task: str, language: str | None) -> list[int]:
    """Return the indices of the items that are kept, in their original order: min(limit, len(ids)) of them.

    Every item gets a key, the BLAKE2b digest of (seed, task, language, id), and the smallest keys are kept.
    So the choice depends on nothing else: it does not change when the file is reordered, and a smaller limit
    takes a subset of what a larger one takes. For a parallel task pass ``language=None``, so that the same
    items are taken in every language and variant. All items are kept when `limit` is None.

    Raises `ValueError` for a negative limit, or for ids that are not unique.
    """
    if limit is None:
        return list(range(len(ids)))
    if len(set(ids)) != len(ids):
        raise ValueError(f"The ids of the items of {task!r} must be unique.")
    return [index for index, _ in draw_items(ids, limit, str, seed=seed, task=task, language=language)]


def draw_items(
    items: Iterable[Item],
    limit: int,
    identify: Callable[[Item], str],
    *,
    seed: int,
    task: str,
    language: str | None,
) -> list[tuple[int, Item]]:
    """Return the indices and items that `draw` keeps, in their order; holds no more than `limit` items at a time.

    Goes through all items, whose ids must be unique (not checked). Raises `ValueError` for a negative limit.
    """
    if limit < 0:
        raise ValueError(f"The limit must not be negative, found {limit}.")
    stream = iter(items)
    keyed = ((_key(seed, task, language, identify(item)), index, item) for index, item in enumerate(stream))
    smallest = heapq.nsmallest(limit, keyed)
    for _ in stream:  # A limit of 0 takes nothing, but the checks of the items must see them all.
        pass
    return sorted(((index, item) for _, index, item in smallest), key=lambda pair: pair[0])


def _key(seed: int, task: str, language: str | None, identifier: str) -> bytes:
    # JSON keeps the parts apart, so that no id can imitate another task's.
    identity = json.dumps([seed, task, language or "", identifier])
    return blake2b(identity.encode("ascii"), digest_size=16).digest()
