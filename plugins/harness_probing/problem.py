"""What is probed for: a set of classes, and which vectors of a set of sentences carry them.

Several problems (parts of speech, tree depth, case) share one pass of a model over the same sentences: each has its
own `Targets` over the same vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness import DataError, UsageError

__all__ = ["Numbers", "ProbeProblem", "SentenceTargets", "Targets"]

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProblem:
    """The classes that probes distinguish; raises `UsageError` for fewer than two, or for duplicates."""

    name: str
    """Such as ``vyakarana_pos``; names the problem in results and messages."""
    classes: tuple[str, ...]
    """Names in the order of class numbers: all that may occur in train, dev or test."""
    level: Literal["word", "sentence"] = "word"
    """What a type is for the control task: a word form, or the text of a sentence."""

    def __post_init__(self) -> None:
        if len(self.classes) < 2:
            raise UsageError(
                f"The problem {self.name!r} has {len(self.classes)} class(es); a probe needs at least two."
            )
        twice = sorted({name for name in self.classes if self.classes.count(name) > 1})
        if twice:
            raise UsageError(f"The problem {self.name!r} names the class {twice[0]!r} twice.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceTargets:
    """The labelled vectors of one sentence; all sequences have the same length, which may be 0."""

    vectors: Sequence[int]
    """Indices among the vectors that the model gives for this sentence; words without a piece are skipped."""
    classes: Sequence[int]
    """Class numbers."""
    types: Sequence[str] = ()
    """The word type of each (its form), or the sentence's text; needed for control tasks and type baselines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The labelled vectors of all sentences of a split, for one problem."""

    problem: ProbeProblem
    vectors: Numbers
    """Shape (n,): rows among the vectors of all sentences."""
    classes: Numbers
    """Shape (n,): class numbers."""
    sentences: Numbers
    """Shape (n,): number of the sentence; what a batch of sentences and an online code keep together."""
    types: tuple[str, ...] = field(default=(), repr=False)
    """Of length n, or empty where types are not known."""

    def __len__(self) -> int:
        """Return how many vectors are labelled."""
        return len(self.classes)

    @classmethod
    def gather(
        cls, problem: ProbeProblem, sentences: Sequence[SentenceTargets], counts: Sequence[int]
    ) -> Targets:
        """Return the targets of sentences that have so many vectors each; raises `DataError` for what does not fit."""
        if len(sentences) != len(counts):
            raise DataError(
                f"The problem {problem.name!r} has targets of {len(sentences)} sentences, "
                f"but there are {len(counts)} sentences."
            )
        starts = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))])
        types: list[str] = []
        vectors, classes, numbers = [], [], []
        for number, (own, count) in enumerate(zip(sentences, counts, strict=True)):
            check_targets(problem, own, count, f"sentence {number}")
            vectors.append(np.asarray(own.vectors, dtype=np.int64) + starts[number])
            classes.append(np.asarray(own.classes, dtype=np.int64))
            numbers.append(np.full(len(own.classes), number, dtype=np.int64))
            types.extend(own.types)
        if types and len(types) != sum(map(len, classes)):
            raise DataError(f"The problem {problem.name!r} has types for some of its targets only.")
        nothing = [np.empty(0, dtype=np.int64)]
        return cls(
            problem=problem,
            vectors=np.concatenate(vectors or nothing),
            classes=np.concatenate(classes or nothing),
            sentences=np.concatenate(numbers or nothing),
            types=tuple(types),
        )

    def counts(self) -> Numbers:
        """Return how often every class occurs: shape (classes,)."""
        return np.bincount(self.classes, minlength=len(self.problem.classes)).astype(np.int64)


def check_targets(problem: ProbeProblem, own: SentenceTargets, count: int, where: str) -> None:
    """Raise `DataError` for targets that do not fit a sentence of `count` vectors."""
    if len(own.vectors) != len(own.classes) or (own.types and len(own.types) != len(own.classes)):
        raise DataError(
            f"The problem {problem.name!r}, {where}: expected as many vectors, classes and types, found "
            f"{len(own.vectors)}, {len(own.classes)} and {len(own.types)}."
        )
    if len(own.vectors) and not (min(own.vectors) >= 0 and max(own.vectors) < count):
        raise DataError(
            f"The problem {problem.name!r}, {where}: expected vectors 0 to {count - 1}, found "
            f"{min(own.vectors)} to {max(own.vectors)}."
        )
    last = len(problem.classes) - 1
    if len(own.classes) and not (min(own.classes) >= 0 and max(own.classes) <= last):
        raise DataError(
            f"The problem {problem.name!r}, {where}: expected class numbers 0 to {last}, found "
            f"{min(own.classes)} to {max(own.classes)}."
        )
