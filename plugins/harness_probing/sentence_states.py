"""A model's states of the sentences that several problems share: each sentence is read once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from harness import DataError, FloatArray, MethodContext
from harness.models.requests import WordCoverage
from harness_probing.conversion import SENTENCE, Level, ProbeItem, Words
from harness_probing.problem import Numbers, ProbeProblem, Targets
from harness_probing.result import Coverage
from harness_probing.states import StateCache, States, state_key

__all__ = ["ModelReader", "SentencePool", "coverage_of", "needs_sentence_vector"]


class ModelReader:
    """Asks an adapter for vectors by position: 0 is that of the sentence, n + 1 that of word n."""

    def __init__(self, adapter: Any, *, sentence_vector: bool) -> None:
        self._adapter = adapter
        self._options = {"sentence_vector": True} if sentence_vector else {}
        self.layers = tuple(range(int(adapter.layer_count())))
        self.shift = 0 if sentence_vector else 1
        """What is taken from a position to get the index of its vector."""

    def identity(self) -> Mapping[str, str]:
        """Return what the states depend on, apart from the sentences."""
        return dict(self._adapter.identity())

    def states(self, sentences: Sequence[Words]) -> Iterable[tuple[int, FloatArray]]:
        """Yield (number of the sentence, states of shape (layers, vectors, dimension)), in any order."""
        found: Iterable[tuple[int, FloatArray]] = self._adapter.hidden_states(
            sentences, self.layers, **self._options
        )
        return found

    def coverage(self, sentences: Sequence[Words]) -> list[WordCoverage]:
        """Return what of every sentence the states do not show; nothing for adapters that do not say it."""
        ask = getattr(self._adapter, "word_coverage", None)
        return [WordCoverage() for _ in sentences] if ask is None else ask(sentences)


def coverage_of(level: Level, items: Iterable[tuple[ProbeItem, WordCoverage]]) -> Coverage:
    """Return what of some items did not reach the probes, counted."""
    truncated = split = empty = 0
    for item, own in items:
        cut = set(own.cut)
        split += own.windows > 1
        if level == "sentence":
            truncated += own.windows > 1 or bool(cut)
            empty += len(own.empty)
        else:
            truncated += any(position - 1 in cut for position in item.positions)
            empty += len(set(own.empty).intersection(position - 1 for position in item.positions))
    return Coverage(truncated_sentences=truncated, split_sentences=split, empty_words=empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where the vectors of a sentence lie."""

    number: int
    positions: Mapping[int, int]
    """Position -> index among the vectors of the sentence that are kept."""


class SentencePool:
    """The sentences of a split with the vectors that the problems read of them."""

    def __init__(self, items: Mapping[str, Sequence[ProbeItem]], reader: ModelReader) -> None:
        wanted: dict[Words, set[int]] = {}
        for own in items.values():
            for item in own:
                wanted.setdefault(item.words, set()).update(item.positions)
        self.sentences = list(wanted)
        self.coverage = dict(zip(self.sentences, reader.coverage(self.sentences), strict=True))
        self.wanted = [
            sorted(positions - {word + 1 for word in self.coverage[words].empty})
            for words, positions in wanted.items()
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
            sentences=self.sentences,  # type: ignore[arg-type]
            layers=reader.layers,
            vectors=f"first piece, positions {how}",
        )
        progress = context.progress

        def produce(numbers: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
            context.check()
            for index, states in reader.states([self.sentences[number] for number in numbers]):
                columns = [position - reader.shift for position in self.wanted[numbers[index]]]
                yield numbers[index], states[:, columns]
                progress.advance(1)

        cache = StateCache(context.folder / "probing", announce=progress.announce)
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
        rows: list[int] = []
        classes: list[int] = []
        numbers: list[int] = []
        types: list[str] = []
        for number, item in enumerate(items):
            if item.classes is None:
                raise DataError(f"The item {item.id!r} of {problem.name!r} has no label to learn from.")
            own = self._rows[item.words]
            for position, label, word in zip(item.positions, item.classes, item.types, strict=True):
                if position in own:
                    rows.append(own[position])
                    classes.append(label)
                    numbers.append(number)
                    types.append(word)
        return Targets(
            problem=problem,
            vectors=_numbers(rows),
            classes=_numbers(classes),
            sentences=_numbers(numbers),
            types=tuple(types),
        )


def _numbers(values: Sequence[int]) -> Numbers:
    return np.asarray(values, dtype=np.int64)


def needs_sentence_vector(items: Iterable[ProbeItem]) -> bool:
    """Return whether one of the items is about its sentence as a whole."""
    return any(SENTENCE in item.positions for item in items)
