"""Where the answers of a journal lie: some 30 bytes a key, however many there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["KeyIndex"]

MERGE_AT = 1 << 16
"""Keys that are kept in a dict before they are merged into the sorted arrays."""
_LARGE_SHARE = 16
"""In a large index the dict may hold this part of it, so that merging stays cheap for each key."""


class KeyIndex:
    """Keys of 16 bytes, and for each the number of a log, a position and a size; the first place of a key counts."""

    def __init__(self, *, merge_at: int = MERGE_AT) -> None:
        self._merge_at = merge_at
        # Of equal and full length, so that numpy's disregard of trailing zero bytes changes no comparison.
        self._keys: npt.NDArray[np.bytes_] = np.empty(0, "S16")
        self._logs = np.empty(0, np.uint16)
        self._positions = np.empty(0, np.uint64)
        self._sizes = np.empty(0, np.uint32)
        self._recent: dict[bytes, int] = {}

    def __len__(self) -> int:
        """Return the number of distinct keys."""
        self.merge()
        return len(self._keys)

    def add(self, key: bytes, log: int, position: int, size: int) -> None:
        """Enter a key; does nothing where it is already there."""
        recent = self._recent
        if key not in recent:
            # One integer, since a tuple a key would take three times the memory.
            recent[key] = position << 48 | size << 16 | log
            if len(recent) >= self._merge_at and len(recent) * _LARGE_SHARE >= len(self._keys):
                self.merge()

    def known(self, keys: Sequence[bytes]) -> npt.NDArray[np.bool_]:
        """Return, for each key, whether it is there; raises `ValueError` for a key that is not 16 bytes long."""
        found = self._find(keys)[1]
        if self._recent:
            found |= np.fromiter(map(self._recent.__contains__, keys), np.bool_, len(keys))
        return found

    def places(self, keys: Sequence[bytes]) -> list[tuple[int, int, int]]:
        """Return log, position and size of each key; raises `KeyError` with the first that is not there."""
        at, found = self._find(keys)
        at[~found] = 0
        empty = not len(self._keys)
        columns = (
            [0] * len(at) if empty else c[at].tolist() for c in (self._logs, self._positions, self._sizes)
        )
        rows = list(zip(*columns, strict=True))
        for number in np.flatnonzero(~found).tolist():
            place = self._recent[keys[number]]
            rows[number] = (place & 0xFFFF, place >> 48, place >> 16 & 0xFFFFFFFF)
        return rows

    def merge(self) -> None:
        """Move what was entered last into the sorted arrays."""
        if not self._recent:
            return
        places = list(self._recent.values())
        keys = np.frombuffer(b"".join(self._recent), "S16")
        order = np.argsort(keys)
        keys = keys[order]
        at, old = self._find_array(keys)
        order, at, keys = order[~old], at[~old], keys[~old]
        self._recent.clear()
        # Column by column, so that never more than one of them is there twice.
        self._keys = np.insert(self._keys, at, keys)
        logs = np.array([place & 0xFFFF for place in places], np.uint16)
        self._logs = np.insert(self._logs, at, logs[order])
        positions = np.array([place >> 48 for place in places], np.uint64)
        self._positions = np.insert(self._positions, at, positions[order])
        sizes = np.array([place >> 16 & 0xFFFFFFFF for place in places], np.uint32)
        self._sizes = np.insert(self._sizes, at, sizes[order])

    def _find(self, keys: Sequence[bytes]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        if any(len(key) != 16 for key in keys):
            raise ValueError("A key of the journal has 16 bytes.")
        return self._find_array(np.frombuffer(b"".join(keys), "S16"))

    def _find_array(self, keys: npt.NDArray[np.bytes_]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Return where each key belongs in the sorted arrays, and whether it is there."""
        at = np.searchsorted(self._keys, keys)
        if not len(self._keys):
            return at, np.zeros(len(keys), np.bool_)
        return at, self._keys[np.minimum(at, len(self._keys) - 1)] == keys
