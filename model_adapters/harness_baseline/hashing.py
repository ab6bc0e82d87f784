"""Stable hashes of texts and of their character n-grams.

Python's own ``hash`` differs between processes; these depend on nothing but their input. Texts are hashed
with BLAKE2b, n-grams with a polynomial over code points modulo 2^64 followed by the finaliser of SplitMix64
(Steele, Lea and Flood, 2014), all windows of all texts at once. Mapping features to buckets by a hash, with a
second hash for the sign, follows Weinberger et al. (2009), "Feature Hashing for Large Scale Multitask
Learning".
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Hashes", "NgramHashes", "combine", "hash_ngrams", "hash_text", "mix", "normalise", "uniform"]

Hashes = npt.NDArray[np.uint64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def normalise(text: str) -> str:
    """Return the text in NFKC, case-folded, with one space between words and around the text."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return f" {' '.join(folded.split())} "


def hash_text(*parts: str | int) -> int:
    """Return a 64-bit hash of a sequence of texts and numbers; ``("ab", "c")`` and ``("a", "bc")`` differ."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = str(part).encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return int.from_bytes(digest.digest(), "little")


def mix(values: Hashes) -> Hashes:
    """Return the SplitMix64 finaliser of every value: close inputs become unrelated outputs."""
    values = values + _MULTIPLIER
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


def combine(first: Hashes, second: Hashes | int) -> Hashes:
    """Return the hash of the ordered pair of two hashes, element by element."""
    other = np.asarray(second, dtype=np.uint64)
    return mix(mix(first) * _MULTIPLIER ^ other)


def uniform(values: Hashes) -> npt.NDArray[np.float64]:
    """Return numbers in [0, 1) from the upper 53 bits of hashes."""
    return (values >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramHashes:
    """The hashed n-grams of several texts, in one flat array."""

    values: Hashes
    """Shape (n-grams,)."""
    rows: npt.NDArray[np.int64]
    """Index of the text that each n-gram comes from."""
    lengths: npt.NDArray[np.int64]
    """Number of code points of each n-gram."""


def hash_ngrams(texts: Sequence[str], lengths: Iterable[int]) -> NgramHashes:
    """Return the hashes of all windows of `lengths` code points that lie inside one text."""
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    points = _code_points("".join(texts))
    row_of = np.repeat(np.arange(len(texts), dtype=np.int64), sizes)
    left = np.repeat(np.cumsum(sizes), sizes) - np.arange(
        len(points)
    )  # characters from here to the text's end
    values: list[Hashes] = []
    rows: list[npt.NDArray[np.int64]] = []
    widths: list[npt.NDArray[np.int64]] = []
    wanted = set(lengths)
    rolling = np.zeros(len(points), dtype=np.uint64)
    for length in range(1, max(wanted, default=0) + 1):
        count = max(len(points) - length + 1, 0)
        rolling = rolling[:count] * _MULTIPLIER + mix(points[length - 1 :])[:count]
        if length in wanted:
            inside = left[:count] >= length
            values.append(mix(rolling[inside] ^ np.uint64(length)))
            rows.append(row_of[:count][inside])
            widths.append(np.full(int(inside.sum()), length, dtype=np.int64))
    if not values:
        return NgramHashes(values=rolling[:0], rows=row_of[:0], lengths=row_of[:0])
    return NgramHashes(
        values=np.concatenate(values), rows=np.concatenate(rows), lengths=np.concatenate(widths)
    )


def _code_points(text: str) -> Hashes:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
