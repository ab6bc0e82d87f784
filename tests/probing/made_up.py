"""What tests give probes: states in memory, targets of sentences, and test sentences in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.models.requests import FloatArray
from harness_probing.evaluation import Evaluator, Predictions, problem_result
from harness_probing.problem import Numbers, ProbeItem, ProbeProblem, Targets


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceTargets:
    """The labelled vectors of one sentence; all sequences have the same length."""

    vectors: Sequence[int]
    classes: Sequence[int]
    types: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSentence:
    """A test sentence with its states."""

    __test__ = False  # Not a test class, whatever its name.

    id: str
    cluster: str
    states: FloatArray
    targets: Mapping[str, SentenceTargets]
    """By name of the problem."""

    def items(self) -> list[tuple[str, ProbeItem]]:
        """Return the item of every problem."""
        return [
            (
                name,
                ProbeItem(
                    id=self.id,
                    cluster=self.cluster,
                    words=(),
                    positions=tuple(own.vectors),
                    classes=tuple(own.classes),
                    types=tuple(own.types),
                ),
            )
            for name, own in self.targets.items()
        ]


def add_block(evaluator: Evaluator, sentences: Sequence[TestSentence]) -> list[dict[str, Predictions]]:
    """Evaluate sentences, and return the predictions of each by problem."""
    found: dict[str, dict[str, Predictions]] = {sentence.id: {} for sentence in sentences}
    for name, item, predictions in evaluator.add([(own.states, own.items()) for own in sentences]):
        found[item.id][name] = predictions
    return list(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStates:
    """States that are held in memory."""

    layers: tuple[int, ...]
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


def gather(problem: ProbeProblem, sentences: Sequence[SentenceTargets], counts: Sequence[int]) -> Targets:
    """Return the targets of sentences that have so many vectors each."""
    starts = np.cumsum([0, *counts])
    numbers = [np.full(len(own.classes), number) for number, own in enumerate(sentences)]
    vectors = [np.asarray(own.vectors) + start for own, start in zip(sentences, starts, strict=False)]
    nothing = [np.empty(0)]
    return Targets(
        problem=problem,
        vectors=np.concatenate([*nothing, *vectors]).astype(np.int64),
        classes=np.concatenate([*nothing, *(own.classes for own in sentences)]).astype(np.int64),
        sentences=np.concatenate([*nothing, *numbers]).astype(np.int64),
        types=tuple(word for own in sentences for word in own.types),
    )


def stream(
    evaluator: Evaluator, sentences: Iterable[TestSentence], *, size: int = 40
) -> Iterator[tuple[str, Mapping[str, Predictions]]]:
    """Yield (id, predictions by problem) of every sentence, evaluated in blocks."""
    block = list(sentences)
    for start in range(0, len(block), size):
        part = block[start : start + size]
        yield from zip([own.id for own in part], add_block(evaluator, part), strict=True)


def results(evaluator: Evaluator) -> dict[str, dict[str, Any]]:
    """Return the results of all problems."""
    return {name: problem_result(own, evaluator.counts[name]) for name, own in evaluator.probes.items()}
