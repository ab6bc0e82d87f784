"""Hidden states of the sentences that several problems share, and the labelled vectors of some layers in memory.

Each sentence is read once. The states of train and dev are on disk in half precision by content; those of test never.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from harness import ContractError, DataError, StorageError
from harness.kinds import MethodContext
from harness.models import FloatArray, WordCoverage
from harness.storage import FileLock, FileNotWrittenError, write_atomically
from harness_probing.problem import Level, Numbers, ProbeItem, ProbeProblem, Targets, Words
from harness_probing.scores import Floats

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
ROWS = 2_048
CONSTANT = 1e-12
"""A feature whose variance is below this share of its squared mean is constant up to rounding."""
DEVICE_SHARE = 0.5
"""Of an accelerator's free memory that features may take."""
BLOCK = 512
"""Sentences that are given to the model at a time."""
WINDOW = 4_096
"""Items of each problem that wait for another problem to come to the same sentence."""
Block = list[tuple[Words, list[tuple[str, ProbeItem]]]]
"""Sentences with the items of all problems that read them."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Features become ``(x - mean) / scale``."""

    mean: Floats
    """Shape (layers, dimension)."""
    scale: Floats
    """Shape (layers, dimension); 1 for a constant feature."""

    @classmethod
    def none(cls, layers: int, dimension: int) -> Scaling:
        """Return the scaling that leaves features as they are."""
        return cls(mean=np.zeros((layers, dimension)), scale=np.ones((layers, dimension)))

    def apply(self, features: torch.Tensor) -> None:
        """Scale features of shape (layers, n, dimension) in place."""
        for layer, mean, scale in zip(features, self.mean, self.scale, strict=True):
            shift = torch.as_tensor(mean.astype(np.float32), device=layer.device)
            factor = torch.as_tensor((1 / scale).astype(np.float32), device=layer.device)
            for block in layer.split(ROWS):
                block.sub_(shift).mul_(factor)


def scaling_of(features: torch.Tensor) -> Scaling:
    """Return the scaling that gives features of shape (layers, n, dimension) mean 0 and variance 1.

    Sums are made in float64 over blocks of rows, and over differences from the first row, so that features far from
    zero keep their digits.
    """
    layers, n, dimension = features.shape
    scaling = Scaling.none(layers, dimension)
    for index, layer in enumerate(features):
        shift = layer[0].clone()
        total = torch.zeros(dimension, dtype=torch.float64, device=layer.device)
        squares = torch.zeros_like(total)
        for block in layer.split(ROWS):
            differences = (block - shift).double()
            total += differences.sum(dim=0)
            squares += differences.square_().sum(dim=0)
        mean = (total / n).cpu().numpy()
        variance = (squares / n).cpu().numpy() - mean**2
        scaling.mean[index] = shift.double().cpu().numpy() + mean
        varies = variance > CONSTANT * scaling.mean[index] ** 2
        scaling.scale[index, varies] = np.sqrt(variance[varies])
    return scaling


def read_features(states: States, rows: Numbers, layers: Sequence[int], device: torch.device) -> torch.Tensor:
    """Return features as the model gives them: float32 of shape (layers, rows, dimension).

    Raises `ContractError` where a state is not finite.
    """
    features = torch.empty((len(layers), len(rows), states.dimension), dtype=torch.float32, device=device)
    for index, layer in enumerate(layers):
        for start in range(0, len(rows), ROWS):
            block = torch.from_numpy(states.read(layer, rows[start : start + ROWS]))
            # A finite sum says that all are; one that is not may have overflowed.
            if not math.isfinite(float(block.sum())) and not bool(torch.isfinite(block).all()):
                raise ContractError(f"The hidden states of layer {layer} are not finite (NaN or infinite).")
            features[index, start : start + ROWS] = block
    return features


def layer_blocks(layers: Sequence[int], *, bytes_per_layer: int, device: torch.device) -> list[range]:
    """Return which layers (by index) are trained together: one on a CPU, as many as fit on an accelerator."""
    together = 1
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        together = max(1, int(DEVICE_SHARE * free) // max(1, bytes_per_layer))
    return [range(start, min(start + together, len(layers))) for start in range(0, len(layers), together)]


class ModelReader:
    """Asks an adapter for vectors by position: 0 is that of the sentence, n + 1 that of word n."""

    def __init__(self, adapter: Any, *, sentence_vector: bool) -> None:
        self._adapter = adapter
        self._options = {"sentence_vector": True} if sentence_vector else {}
        self.layers = tuple(range(int(adapter.layer_count())))
        self.shift = 0 if sentence_vector else 1
        """What is taken from a position to get the index of its vector."""

    def identity(self) -> Mapping[str, str]:
        """Return the identity of the states, apart from the sentences."""
        return dict(self._adapter.identity())

    def states(self, sentences: Sequence[Words]) -> Iterable[tuple[int, FloatArray]]:
        """Yield (number of the sentence, states of shape (layers, vectors, dimension)), in any order."""
        vectors: Iterable[tuple[int, FloatArray]] = self._adapter.hidden_states(
            sentences, self.layers, **self._options
        )
        return vectors

    def coverage(self, sentences: Sequence[Words]) -> list[WordCoverage]:
        """Return the parts of every sentence that the states do not show; nothing for adapters that do not say it."""
        ask = getattr(self._adapter, "word_coverage", None)
        return [WordCoverage() for _ in sentences] if ask is None else ask(sentences)


def coverage_of(level: Level, items: Iterable[tuple[ProbeItem, WordCoverage]]) -> Counter[str]:
    """Return the counts of parts of items that did not reach the probes.

    Sentences of which the model did not read the end, or only a part of a labelled word; sentences that it read in
    several parts; words that the tokenizer turned into nothing.
    """
    counts = Counter(truncated_sentences=0, split_sentences=0, empty_words=0)
    for item, coverage in items:
        cut, labelled = set(coverage.cut), {position - 1 for position in item.positions}
        is_whole = level == "sentence"
        counts["split_sentences"] += coverage.windows > 1
        counts["truncated_sentences"] += (
            coverage.windows > 1 or bool(cut) if is_whole else bool(labelled & cut)
        )
        counts["empty_words"] += (
            len(coverage.empty) if is_whole else len(labelled.intersection(coverage.empty))
        )
    return counts


class SentencePool:
    """The sentences of a split with the vectors that the problems read of them."""

    def __init__(self, items: Mapping[str, Sequence[ProbeItem]], reader: ModelReader) -> None:
        by_sentence: dict[Words, set[int]] = {}
        for problem_items in items.values():
            for item in problem_items:
                by_sentence.setdefault(item.words, set()).update(item.positions)
        self.sentences = list(by_sentence)
        self.coverage = dict(zip(self.sentences, reader.coverage(self.sentences), strict=True))
        self.wanted = [
            sorted(positions - {word + 1 for word in self.coverage[words].empty})
            for words, positions in by_sentence.items()
        ]
        self.counts = tuple(map(len, self.wanted))
        starts = np.concatenate([[0], np.cumsum(np.asarray(self.counts, dtype=np.int64))]).tolist()
        self._rows = {
            words: {position: start + index for index, position in enumerate(positions)}
            for words, positions, start in zip(self.sentences, self.wanted, starts, strict=False)
        }

    def states(self, reader: ModelReader, context: MethodContext, split: str) -> States:
        """Return the states of all vectors, from the cache or the model."""
        how = blake2b(json.dumps(self.wanted).encode(), digest_size=16).hexdigest()
        key = state_key(
            identity=reader.identity(),
            sentences=self.sentences,
            layers=reader.layers,
            vectors=f"first piece, positions {how}",
        )
        progress = context.progress

        def produce(numbers: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
            context.learning.check()
            for index, states in reader.states([self.sentences[number] for number in numbers]):
                columns = [position - reader.shift for position in self.wanted[numbers[index]]]
                yield numbers[index], states[:, columns]
                progress.advance(1)

        cache = StateCache(context.learning.folder / "probing", announce=progress.announce)
        progress.start(f"hidden states of {split}", len(self.sentences), "sentences")
        try:
            return cache.states(key, layers=reader.layers, counts=self.counts, produce=produce)
        finally:
            progress.finish()

    def covered(self, items: Sequence[ProbeItem]) -> list[tuple[ProbeItem, WordCoverage]]:
        """Return items with what of their sentences the states do not show."""
        return [(item, self.coverage[item.words]) for item in items]

    def targets(self, problem: ProbeProblem, items: Sequence[ProbeItem]) -> Targets:
        """Return the labelled vectors of a problem; words without a piece are skipped.

        Every item is a sentence of its own in batches and online codes, also where two items share their words.
        """
        labelled: list[tuple[int, int, int, str]] = []
        for number, item in enumerate(items):
            if item.classes is None:
                raise DataError(f"The item {item.id!r} of {problem.name!r} has no label to learn from.")
            row_of = self._rows[item.words]
            for position, label, word in zip(item.positions, item.classes, item.types, strict=True):
                if position in row_of:
                    labelled.append((row_of[position], label, number, word))
        rows, classes, numbers, types = zip(*labelled, strict=True) if labelled else ((), (), (), ())
        return Targets(
            problem=problem,
            vectors=np.asarray(rows, dtype=np.int64),
            classes=np.asarray(classes, dtype=np.int64),
            sentences=np.asarray(numbers, dtype=np.int64),
            types=types,
        )


# The test items of several problems, so that a sentence that they share is read once --------------------


def shared_blocks(problems: Mapping[str, Iterable[ProbeItem]]) -> Iterator[Block]:
    """Yield all items of all problems once, those of the same sentence together where they are not far apart."""
    sources = {name: iter(items) for name, items in problems.items()}
    held: dict[Words, list[tuple[str, ProbeItem]]] = {}
    waiting = Counter[str]()
    while True:
        for name, source in sources.items():
            for item in itertools.islice(source, max(0, WINDOW - waiting[name])):
                held.setdefault(item.words, []).append((name, item))
                waiting[name] += 1
        if not held:
            return
        block = [(words, held.pop(words)) for words in list(itertools.islice(held, BLOCK))]
        waiting.subtract(name for _, items in block for name, _ in items)
        yield block
