"""Which items are one draw: those of a cluster, and those that share a key with another one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b

import numpy as np

from harness.statistics.arrays import Integers

Codes = Integers


class ClusterCodes:
    """Numbers the clusters of items that come in parts; keeps 16 bytes per item, and none if no item has a cluster.

    A cluster is known by 128 bits of its key's BLAKE2b digest, so that two keys of any cell do not meet.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._digests: bytearray | None = None

    def add(self, clusters: Sequence[str | None]) -> None:
        """Take the clusters of the next items; None for an item without a cluster."""
        if self._digests is None and any(key is not None for key in clusters):
            self._digests = bytearray(b"".join(map(_alone, range(self._seen))))
        if self._digests is not None:
            self._digests += b"".join(
                _alone(number) if key is None else blake2b(key.encode(), digest_size=16).digest()
                for number, key in enumerate(clusters, start=self._seen)
            )
        self._seen += len(clusters)

    @property
    def alone(self) -> bool:
        """Whether no item has named a cluster yet."""
        return self._digests is None

    def codes(self) -> Codes:
        """Return the number of every item's cluster, by first appearance: shape (n,)."""
        if self._digests is None:
            return np.arange(self._seen, dtype=np.int64)
        digests = np.frombuffer(self._digests, dtype="S16")
        _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
        ranks = np.empty(len(first), dtype=np.int64)
        ranks[np.argsort(first)] = np.arange(len(first))
        return ranks[inverse]


def _alone(number: int) -> bytes:
    return blake2b(str(number).encode(), digest_size=16, person=b"alone").digest()


def linked_codes(*keyings: Codes) -> Codes:
    """Return the number of every item's draw: the connected component of items that share a number in a keying.

    Args:
        keyings: Each of shape (n,): the number of an item's key (its cluster in its language, its id in a parallel
            task); items with the same number in one keying are one draw.
    """
    if len(keyings) == 1:
        return np.unique(keyings[0], return_inverse=True)[1].astype(np.int64)
    n, offset = len(keyings[0]), len(keyings[0])
    columns = []
    for keying in keyings:
        columns.append(keying + offset)
        offset += int(keying.max(initial=-1)) + 1
    rows = np.tile(np.arange(n), len(keyings))
    return _component_codes(rows, np.concatenate(columns), n, offset)


def _component_codes(rows: Sequence[int] | Codes, columns: Sequence[int] | Codes, n: int, size: int) -> Codes:
    """Return the number of the connected component of each of the first n of the nodes, given the edges."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
    _, components = connected_components(graph, directed=False)
    return np.unique(components[:n], return_inverse=True)[1].astype(np.int64)


def draw_codes(
    languages: Sequence[tuple[str, Sequence[str], Sequence[str | None]]],
    *,
    linked: bool,
    unpaired: Collection[str] = (),
) -> Codes:
    """Return the number of every item's draw, for the items of several languages after each other.

    Args:
        languages: The language, the ids and the clusters of its items. A cluster is one of its language.
        linked: Whether items of the same id are one draw, as the translations of an item are.
        unpaired: Languages whose ids name other items than those of the same ids elsewhere.
    """
    ids, clusters = ClusterCodes(), ClusterCodes()
    for language, names, cluster_keys in languages:
        ids.add(own_names(names, language) if language in unpaired else names)
        clusters.add([None if key is None else f"{language} {key}" for key in cluster_keys])
    if not linked:
        return clusters.codes()
    return linked_codes(ids.codes()) if clusters.alone else linked_codes(ids.codes(), clusters.codes())


def own_names(ids: Sequence[str], language: str) -> list[str]:
    """Return ids that are linked with those of no other language."""
    return [f"{language}\n{identifier}" for identifier in ids]
