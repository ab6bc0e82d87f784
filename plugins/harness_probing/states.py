"""Hidden states of train and dev, on disk in half precision by content; those of test are never stored.

A cache entry is a folder whose name is a digest of all that makes the states what they are. It holds one file for every
chunk of sentences, ``0.npy``, ``1.npy`` and so on: an array of shape (layers, vectors) with a vector of halves and an
exponent in each field. A file is there when it is whole, so that an interrupted entry is resumed: only the chunks
without a file are computed.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from harness import ContractError, StorageError
from harness.models import FloatArray
from harness.storage import FileLock, FileNotWrittenError, write_atomically
from harness_probing.problem import Numbers

Produce = Callable[[Sequence[int]], Iterable[tuple[int, FloatArray]]]
"""Called with sentence numbers; gives (sentence number, states of shape (layers, its vectors, dimension))."""
Chunk = npt.NDArray[np.void]
CHUNK_VECTORS = 4_096
"""Sentences are asked for in chunks of about so many vectors."""
RESIDENT = 256 * 2**20
"""Bytes of mapped states that may be resident before their files are closed."""
LARGEST = 32_768.0
"""Vectors with a state above this are scaled down by a power of two; float16 ends at 65,504."""
PATIENCE = 24 * 3600.0


class States(Protocol):
    """Hidden states of a split that can be read by layer."""

    @property
    def layers(self) -> tuple[int, ...]:
        """Numbers of the layers, 0 being the embeddings."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def read(self, layer: int, rows: Numbers) -> FloatArray:
        """Return the vectors of these rows in one layer (its number): float32 of shape (rows, dimension)."""


def state_key(
    *,
    identity: Mapping[str, str],
    sentences: Iterable[Sequence[str | None]],
    layers: Sequence[int],
    vectors: str,
) -> str:
    """Return the digest that names the states of these tokenised sentences.

    Args:
        identity: What the adapter says of itself: weights, options, versions.
        sentences: The tokens of each.
        layers: Numbers of the layers.
        vectors: What a vector is, such as ``first piece``.
    """
    digest = blake2b(digest_size=20, person=b"probe states 2")
    digest.update(json.dumps([dict(sorted(identity.items())), list(layers), vectors]).encode())
    for tokens in sentences:
        digest.update(json.dumps(list(tokens)).encode() + b"\n")
    return digest.hexdigest()


def halved(states: FloatArray) -> Chunk:
    """Return states of shape (..., dimension) as halves, and one exponent a vector: 0 unless a state is too large."""
    largest = np.abs(states).max(axis=-1, initial=0.0)
    exponents = np.where(largest > LARGEST, np.frexp(largest / LARGEST)[1], 0)
    chunk = np.empty(
        states.shape[:-1], dtype=[("halves", np.float16, states.shape[-1:]), ("exponent", np.int8)]
    )
    chunk["halves"] = np.ldexp(states, -exponents[..., None]) if exponents.any() else states
    chunk["exponent"] = exponents
    return chunk


def widened(chunk: Chunk) -> FloatArray:
    """Return the input of `halved`: float32, ``halves * 2**exponent``."""
    vectors: FloatArray = chunk["halves"].astype(np.float32)
    exponents = chunk["exponent"]
    return np.ldexp(vectors, exponents[..., None].astype(np.int32)) if exponents.any() else vectors


class CachedStates:
    """States of a finished cache entry, mapped from its files."""

    def __init__(self, layers: tuple[int, ...], paths: Sequence[Path], starts: Sequence[int]) -> None:
        self.layers = layers
        self._paths = paths
        self._starts = np.asarray(starts)
        self._open: dict[int, Chunk] = {}
        self._touched = 0
        self.dimension = self._chunk(0).dtype["halves"].shape[0] if paths else 0

    def read(self, layer: int, rows: Numbers) -> FloatArray:
        """Return the vectors of these rows in one layer: float32 of shape (rows, dimension)."""
        vectors = np.empty((len(rows), self.dimension), dtype=np.float32)
        index = self.layers.index(layer)
        numbers = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(numbers).tolist():
            positions = np.flatnonzero(numbers == number)
            vectors[positions] = widened(self._chunk(number)[index][rows[positions] - self._starts[number]])
            self._touched += max(2 * self.dimension, 4_096) * len(positions)
        return vectors

    def _chunk(self, number: int) -> Chunk:
        # Mapped pages count as memory of this process until their file is closed; they stay in the page cache.
        if self._touched > RESIDENT:
            self._open, self._touched = {}, 0
        if number not in self._open:
            self._open[number] = np.load(self._paths[number], mmap_mode="r")
        return self._open[number]


class StateCache:
    """A folder of cache entries; several processes may use it at the same time."""

    def __init__(self, root: Path, *, announce: Callable[[str], None] = lambda _: None) -> None:
        self.root = root
        self._announce = announce

    def states(
        self, key: str, *, layers: Sequence[int], counts: Sequence[int], produce: Produce
    ) -> CachedStates:
        """Return the states of a split, after asking `produce` for those that are not in the cache.

        Args:
            key: What `state_key` returned.
            layers: Numbers of the layers, in the order in which `produce` gives them.
            counts: How many vectors every sentence has.
            produce: Gives the states of some sentences; called once per chunk, with its sentences.

        Raises:
            StorageError: There is no room for the states, or another process has held the entry for a day.
            ContractError: `produce` gave states of another shape than announced, or that are not finite.
        """
        folder = self.root / key
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileNotWrittenError(folder, error) from error
        chunks = _chunks(counts)
        paths = [folder / f"{number}.npy" for number in range(len(chunks))]
        sizes = [sum(counts[number] for number in chunk) for chunk in chunks]
        lock = FileLock(self.root / f"{key}.lock")
        if not lock.acquire(patience=PATIENCE, waiting=lambda who: self._announce(f"Waiting for {who}.")):
            raise StorageError(f"The states in {str(folder)!r} are held by {lock.holder()}.")
        try:
            dimensions = [
                _dimension(path, (len(layers), size)) for path, size in zip(paths, sizes, strict=True)
            ]
            dimension = next((stored for stored in dimensions if stored is not None), None)
            for path, chunk, stored in zip(paths, chunks, dimensions, strict=True):
                if stored is not None and stored == dimension:
                    continue
                states = _asked(produce, chunk, len(layers), counts)
                if dimension is None:
                    self._check_room(folder, len(layers), sum(counts), states.shape[2])
                dimension = states.shape[2] if dimension is None else dimension
                if dimension != states.shape[2]:
                    raise ContractError(
                        f"The states in {str(folder)!r} have dimension {dimension}, those that the model gives now "
                        f"{states.shape[2]}."
                    )
                content = io.BytesIO()
                np.save(content, halved(states))
                write_atomically(path, content.getvalue())
        finally:
            lock.release()
        return CachedStates(tuple(layers), paths, np.cumsum([0, *sizes])[:-1].tolist())

    def _check_room(self, folder: Path, layers: int, vectors: int, dimension: int) -> None:
        size, free = layers * vectors * (2 * dimension + 1), shutil.disk_usage(folder).free
        if size > free:
            raise StorageError(
                f"The hidden states need {size / 1e9:.2f} GB in {str(folder)!r}, where {free / 1e9:.2f} GB are free.",
                hint="Make room there, or probe fewer layers or sentences.",
            )
        self._announce(
            f"Keeping the hidden states of {vectors:,} vectors in {layers} layers: "
            f"{size / 1e9:.2f} GB in {str(folder)!r}."
        )


def _chunks(counts: Sequence[int]) -> list[range]:
    """Return consecutive sentences of about `CHUNK_VECTORS` vectors each."""
    chunks, start, filled = [], 0, 0
    for number, count in enumerate(counts):
        if filled and filled + count > CHUNK_VECTORS:
            chunks.append(range(start, number))
            start, filled = number, 0
        filled += count
    return [*chunks, range(start, len(counts))] if filled else chunks


def _dimension(path: Path, shape: tuple[int, int]) -> int | None:
    """Return the dimension of the states in a chunk's file; None for a file that is missing or not whole."""
    try:
        chunk: Any = np.load(path, mmap_mode="r")
        return chunk["halves"].shape[2] if chunk.shape == shape else None
    except (OSError, EOFError, ValueError, IndexError):
        return None


def _asked(produce: Produce, chunk: range, layers: int, counts: Sequence[int]) -> FloatArray:
    """Return the states of a chunk, checked: shape (layers, vectors, dimension)."""
    by_number: dict[int, FloatArray] = {}
    for number, states in produce(chunk):
        if number not in chunk or number in by_number:
            raise ContractError(f"The model gave states of sentence {number} unasked or twice.")
        checked_states(states, layers, counts[number], f"sentence {number}")
        by_number[number] = states
    missing = [number for number in chunk if number not in by_number]
    if missing:
        raise ContractError(f"The model gave no states of sentence {missing[0]}.")
    return np.concatenate([by_number[number] for number in chunk], axis=1)


def checked_states(states: FloatArray, layers: int, vectors: int, where: str) -> None:
    """Raise `ContractError` for states that are not finite or not of shape (layers, vectors, dimension)."""
    if states.ndim != 3 or states.shape[:2] != (layers, vectors):
        raise ContractError(
            f"The states of {where}: expected {layers} layers of {vectors} vectors, found the shape {states.shape}."
        )
    if not np.isfinite(states).all():
        layer, vector = np.argwhere(~np.isfinite(states))[0][:2].tolist()
        raise ContractError(
            f"The states of {where} are not finite (NaN or infinite): vector {vector} in layer number {layer} of those "
            "that were asked for.",
            hint="Load the model in float32 or bfloat16.",
        )
