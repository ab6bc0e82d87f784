"""Hidden states of train and dev, on disk in half precision by content; those of test are never stored.

A cache entry is a folder whose name is a digest of all that makes the states what they are. It holds::

    header.json      layers, vectors, dimension and chunks; the first thing written
    states.f16       [layer][vector][dimension], half precision
    exponents.i8     [layer][vector]: a vector is its halves times 2**exponent, so that no state overflows
    chunks.jsonl     one line with a checksum per chunk of sentences, appended once its states are on disk
    complete.json    written last; without it the entry is unfinished

An interrupted entry is resumed: chunks with a correct checksum are kept, all others are computed again.
"""

from __future__ import annotations

import json
import mmap
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from harness import ContractError, FloatArray, StorageError
from harness.storage.file_lock import FileLock
from harness.storage.files import FileNotWrittenError, write_atomically
from harness_probing.chunk import ChunkFile, Halves, Layout, scaled_halves
from harness_probing.problem import Numbers

__all__ = ["MemoryStates", "Produce", "StateCache", "States", "state_bytes", "state_key"]

Produce = Callable[[Sequence[int]], Iterable[tuple[int, FloatArray]]]
"""Called with sentence numbers; gives (sentence number, states of shape (layers, its vectors, dimension))."""
CHUNK_VECTORS = 4_096
"""Sentences are asked for in chunks of about so many vectors."""
RESIDENT = 256 * 2**20
"""Bytes of mapped states that may be resident before their pages are given back."""
PATIENCE = 24 * 3600.0


class States(Protocol):
    """Hidden states of a split that can be read by layer."""

    @property
    def layers(self) -> tuple[int, ...]:
        """Numbers of the layers, 0 being the embeddings."""

    @property
    def counts(self) -> tuple[int, ...]:
        """How many vectors every sentence has."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def read(self, layer: int, rows: Numbers) -> FloatArray:
        """Return the vectors of these rows in one layer (its number): float32 of shape (rows, dimension)."""


def state_bytes(*, layers: int, vectors: int, dimension: int) -> int:
    """Return how many bytes the states of so many vectors take on disk."""
    return layers * vectors * (2 * dimension + 1)


def state_key(
    *, identity: Mapping[str, str], sentences: Sequence[Sequence[str]], layers: Sequence[int], vectors: str
) -> str:
    """Return the digest that names the states of these tokenised sentences.

    Args:
        identity: What the adapter says of itself: weights, options, versions.
        sentences: The tokens of each.
        layers: Numbers of the layers.
        vectors: What a vector is, such as ``first piece``.
    """
    digest = blake2b(digest_size=20, person=b"probe states 1")
    digest.update(json.dumps([dict(sorted(identity.items())), list(layers), vectors]).encode())
    for tokens in sentences:
        digest.update(json.dumps(list(tokens)).encode() + b"\n")
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStates:
    """States that are held in memory, for small sets."""

    layers: tuple[int, ...]
    counts: tuple[int, ...]
    array: npt.NDArray[np.floating]
    """Shape (layers, vectors, dimension)."""

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""
        return int(self.array.shape[2])

    def read(self, layer: int, rows: Numbers) -> FloatArray:
        """Return the vectors of these rows in one layer: float32 of shape (rows, dimension)."""
        found: FloatArray = self.array[self.layers.index(layer)][rows].astype(np.float32)
        return found


class CachedStates:
    """States of a finished cache entry, mapped from its files."""

    def __init__(self, layout: Layout, folder: Path) -> None:
        self._layout = layout
        self.layers = layout.layers
        self.counts = layout.counts
        self.dimension = layout.dimension
        shape = (len(layout.layers), layout.vectors)
        self._mapped: np.memmap[tuple[int, ...], np.dtype[np.float16]] | None = None
        self._states: Halves = np.empty((*shape, layout.dimension if layout.vectors else 0), dtype=np.float16)
        self._exponents = np.zeros(shape, dtype=np.int8)
        if layout.vectors:
            self._mapped = np.memmap(
                folder / "states.f16", dtype=np.float16, mode="r", shape=(*shape, layout.dimension)
            )
            self._states = np.asarray(self._mapped)
            self._exponents = np.fromfile(folder / "exponents.i8", dtype=np.int8).reshape(shape)
        self._touched = 0

    def read(self, layer: int, rows: Numbers) -> FloatArray:
        """Return the vectors of these rows in one layer: float32 of shape (rows, dimension)."""
        found = np.empty((len(rows), self.dimension), dtype=np.float32)
        index = self.layers.index(layer)
        step = max(1, RESIDENT // (4 * max(1, self.dimension)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            # torch widens halves several times faster than numpy.
            torch.from_numpy(found[start : start + step]).copy_(torch.from_numpy(self._states[index][part]))
            self._give_back(len(part))
        exponents = self._exponents[index][rows]
        if exponents.any():
            np.ldexp(found, exponents[:, None].astype(np.int32), out=found)
        return found

    def _give_back(self, vectors: int) -> None:
        # Mapped pages count as memory of this process until they are given back; they stay in the page cache.
        self._touched += max(2 * self.dimension, mmap.PAGESIZE) * vectors
        mapped = getattr(self._mapped, "_mmap", None)
        if self._touched > RESIDENT and mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)
            self._touched = 0


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
        lock = FileLock(self.root / f"{key}.lock")
        if not lock.acquire(patience=PATIENCE, waiting=lambda who: self._announce(f"Waiting for {who}.")):
            raise StorageError(f"The states in {str(folder)!r} are held by {lock.holder()}.")
        try:
            entry = _Entry(folder, tuple(layers), tuple(int(count) for count in counts), self._announce)
            return CachedStates(entry.completed(produce), folder)
        finally:
            lock.release()


class _Entry:
    """One split's states while they are completed."""

    def __init__(
        self, folder: Path, layers: tuple[int, ...], counts: tuple[int, ...], announce: Callable[[str], None]
    ) -> None:
        self.folder = folder
        self.layers = layers
        self.counts = counts
        self.announce = announce

    def completed(self, produce: Produce) -> Layout:
        """Return the layout of the files, which hold all states then."""
        complete = self.folder / "complete.json"
        layout = self._kept_layout()
        if layout is not None and complete.exists() and ChunkFile(self.folder, layout).is_whole():
            return layout
        complete.unlink(missing_ok=True)
        chunks = self._chunks()
        kept = ChunkFile(self.folder, layout).verified(chunks) if layout is not None else set()
        layout = layout if kept else None
        for number, chunk in enumerate(chunks):
            if number in kept:
                continue
            states = self._asked(produce, chunk)
            if layout is None or layout.dimension != states.shape[2]:
                if kept:
                    raise ContractError(
                        f"The states in {str(self.folder)!r} have dimension {layout and layout.dimension}, those that "
                        f"the model gives now {states.shape[2]}."
                    )
                layout = self._begun(states.shape[2])
            ChunkFile(self.folder, layout).write(number, chunk, *scaled_halves(states))
            kept.add(number)
        layout = layout or self._begun(0)
        write_atomically(complete, json.dumps({"chunks": len(chunks)}))
        return layout

    def _chunks(self) -> list[range]:
        """Return consecutive sentences of about `CHUNK_VECTORS` vectors each."""
        found, start, filled = [], 0, 0
        for number, count in enumerate(self.counts):
            if filled and filled + count > CHUNK_VECTORS:
                found.append(range(start, number))
                start, filled = number, 0
            filled += count
        return [*found, range(start, len(self.counts))] if filled else found

    def _kept_layout(self) -> Layout | None:
        """Return the layout that an earlier process wrote, None where there is none or another one."""
        try:
            header = json.loads((self.folder / "header.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(header, dict) or not isinstance(header.get("dimension"), int):
            return None
        layout = Layout(layers=self.layers, counts=self.counts, dimension=header["dimension"])
        return layout if header == layout.header() else None

    def _begun(self, dimension: int) -> Layout:
        """Return the layout of an entry that begins anew; raises `StorageError` where there is no room for it."""
        layout = Layout(layers=self.layers, counts=self.counts, dimension=dimension)
        size = state_bytes(layers=len(self.layers), vectors=layout.vectors, dimension=dimension)
        for name in ("chunks.jsonl", "states.f16", "exponents.i8"):
            (self.folder / name).unlink(missing_ok=True)
        free = shutil.disk_usage(self.folder).free
        if size > free:
            raise StorageError(
                f"The hidden states need {size / 1e9:.2f} GB in {str(self.folder)!r}, where "
                f"{free / 1e9:.2f} GB are free.",
                hint="Make room there, or probe fewer layers or sentences.",
            )
        self.announce(
            f"Keeping the hidden states of {layout.vectors:,} vectors in {len(self.layers)} layers: "
            f"{size / 1e9:.2f} GB in {str(self.folder)!r}."
        )
        write_atomically(self.folder / "header.json", json.dumps(layout.header()))
        ChunkFile(self.folder, layout).create()
        return layout

    def _asked(self, produce: Produce, chunk: range) -> FloatArray:
        """Return the states of a chunk, checked: shape (layers, vectors, dimension)."""
        found: dict[int, FloatArray] = {}
        for number, states in produce(chunk):
            if number not in chunk or number in found:
                raise ContractError(f"The model gave states of sentence {number} unasked or twice.")
            checked_states(states, len(self.layers), self.counts[number], f"sentence {number}")
            found[number] = states
        missing = [number for number in chunk if number not in found]
        if missing:
            raise ContractError(f"The model gave no states of sentence {missing[0]}.")
        return np.concatenate([found[number] for number in chunk], axis=1)


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
