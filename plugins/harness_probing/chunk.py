"""The files of a cache entry: states in half precision, written and verified chunk by chunk."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness import FloatArray
from harness.storage.files import FileNotWrittenError, write_atomically

__all__ = ["ChunkFile", "Halves", "Layout", "scaled_halves"]

Halves = npt.NDArray[np.float16]
Exponents = npt.NDArray[np.int8]
LARGEST = 32_768.0
"""Vectors with a state above this are scaled down by a power of two; float16 ends at 65,504."""


def scaled_halves(states: FloatArray) -> tuple[Halves, Exponents]:
    """Return halves and exponents with ``states ~ halves * 2**exponents``, one exponent a vector.

    The exponent is 0 unless a state of the vector is beyond what half precision can hold.
    """
    largest = np.abs(states).max(axis=-1, initial=0.0)
    exponents = np.where(largest > LARGEST, np.frexp(largest / LARGEST)[1], 0).astype(np.int8)
    if not exponents.any():
        return states.astype(np.float16), exponents
    return np.ldexp(states, -exponents[..., None].astype(np.int32)).astype(np.float16), exponents


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the states of every sentence lie."""

    layers: tuple[int, ...]
    counts: tuple[int, ...]
    """Vectors of each sentence."""
    dimension: int

    @property
    def vectors(self) -> int:
        """Return the number of all vectors."""
        return sum(self.counts)

    def header(self) -> dict[str, Any]:
        """Return what ``header.json`` holds."""
        digest = blake2b(json.dumps(self.counts).encode(), digest_size=8).hexdigest()
        return {
            "schema": 1,
            "layers": list(self.layers),
            "sentences": len(self.counts),
            "vectors": self.vectors,
            "counts": digest,
            "dimension": self.dimension,
        }


class ChunkFile:
    """Write chunks of states at their places, and check which of them are complete."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self._states = folder / "states.f16"
        self._exponents = folder / "exponents.i8"
        self._log = folder / "chunks.jsonl"
        self._layout = layout
        self._starts = np.concatenate([[0], np.cumsum(np.asarray(layout.counts, dtype=np.int64))]).tolist()

    def create(self) -> None:
        """Make the files in their full size, without content; raises `StorageError`."""
        for path, size in self._sizes():
            try:
                with path.open("wb") as file:
                    file.truncate(size)
            except OSError as error:
                raise FileNotWrittenError(path, error) from error

    def is_whole(self) -> bool:
        """Return whether the files have their full size."""
        return all(path.is_file() and path.stat().st_size == size for path, size in self._sizes())

    def write(self, number: int, sentences: range, halves: Halves, exponents: Exponents) -> None:
        """Write the states of a chunk of sentences and then its checksum; raises `StorageError` where it cannot.

        Args:
            number: Of the chunk.
            sentences: Its sentences, which follow each other.
            halves: Shape (layers, vectors, dimension).
            exponents: Shape (layers, vectors).
        """
        start = self._starts[sentences.start]
        width = 2 * self._layout.dimension
        try:
            self._write_at(self._states, [row.tobytes() for row in halves], start * width, width)
            self._write_at(self._exponents, [row.tobytes() for row in exponents], start, 1)
            line = json.dumps({"chunk": number, "checksum": _checksum(halves, exponents)}) + "\n"
            with self._log.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FileNotWrittenError(self._states, error) from error

    def verified(self, chunks: Sequence[range]) -> set[int]:
        """Return the numbers of the chunks that are on disk as they were written."""
        try:
            lines = self._log.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return set()
        if not self.is_whole():
            self._extend()
        noted: dict[int, str] = {}
        for line in lines:
            try:
                entry = json.loads(line)
                noted[int(entry["chunk"])] = str(entry["checksum"])
            except (ValueError, KeyError, TypeError):
                continue  # The last line of a process that was killed.
        if not lines or noted.keys() - set(range(len(chunks))):
            return set()
        # A line that breaks off would run into the next one.
        whole = [json.dumps({"chunk": key, "checksum": noted[key]}) + "\n" for key in sorted(noted)]
        write_atomically(self._log, "".join(whole))
        return {number for number, checksum in noted.items() if self._checksum_of(chunks[number]) == checksum}

    def _sizes(self) -> list[tuple[Path, int]]:
        vectors = len(self._layout.layers) * self._layout.vectors
        return [(self._states, 2 * vectors * self._layout.dimension), (self._exponents, vectors)]

    def _extend(self) -> None:
        """Give files that were cut or lost their full size again; what is missing reads as zeros."""
        for path, size in self._sizes():
            try:
                with path.open("ab") as file:
                    file.truncate(size)
            except OSError as error:
                raise FileNotWrittenError(path, error) from error

    def _write_at(self, path: Path, rows: list[bytes], offset: int, width: int) -> None:
        """Write one row per layer; the layers are `vectors` times `width` bytes apart."""
        with path.open("r+b") as file:
            for layer, row in enumerate(rows):
                file.seek(layer * self._layout.vectors * width + offset)
                file.write(row)
            file.flush()
            os.fsync(file.fileno())

    def _checksum_of(self, sentences: range) -> str:
        start, stop = self._starts[sentences.start], self._starts[sentences.stop]
        shape = (len(self._layout.layers), self._layout.vectors)
        states = np.memmap(self._states, dtype=np.float16, mode="r", shape=(*shape, self._layout.dimension))
        exponents = np.fromfile(self._exponents, dtype=np.int8).reshape(shape)
        return _checksum(states[:, start:stop], exponents[:, start:stop])


def _checksum(halves: Halves, exponents: Exponents) -> str:
    digest = blake2b(digest_size=16)
    for layer, row in zip(halves, exponents, strict=True):
        digest.update(np.ascontiguousarray(layer).tobytes())
        digest.update(np.ascontiguousarray(row).tobytes())
    return digest.hexdigest()
