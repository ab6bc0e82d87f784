"""A model's states of the sentences that several problems share: each sentence is read once."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from harness import DataError
from harness.kinds import MethodContext
from harness.models import FloatArray, WordCoverage
from harness_probing.problem import Level, ProbeItem, ProbeProblem, Targets, Words
from harness_probing.states import StateCache, States, state_key


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

BLOCK = 512
"""Sentences that are given to the model at a time."""
WINDOW = 4_096
"""Items of each problem that wait for another problem to come to the same sentence."""

Block = list[tuple[Words, list[tuple[str, ProbeItem]]]]
"""Sentences with the items of all problems that read them."""


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
