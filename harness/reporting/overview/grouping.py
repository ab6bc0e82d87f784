"""Groups of what a report counts or names together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def group_pairs(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the second elements of pairs by their first one, both in the order of the pairs."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def list_names(names: Iterable[str]) -> str:
    """Return names with commas between them, each once."""
    return ", ".join(dict.fromkeys(names))
