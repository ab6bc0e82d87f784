"""Probing problems: a set of classes, and the vectors of a set of sentences that carry them.

Several problems (parts of speech, tree depth, case) share one pass of a model over the same sentences: each has its
own `Targets` over the same vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from harness.kinds import MethodContext

Numbers = npt.NDArray[np.int64]
Level = Literal["word", "sentence"]
Words = tuple[str | None, ...]
"""A tokenised sentence; None is a masked word."""
SENTENCE = 0
"""The position of the sentence's own vector; word n has position n + 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProblem:
    """The classes that probes distinguish."""

    name: str
    """Such as ``vyakarana_pos``; names the problem in results and messages."""
    classes: tuple[str, ...]
    """Names in the order of class numbers: all that may occur in train, dev or test."""
    level: Level = "word"
    """What a type is for the control task: a word form, or the text of a sentence."""


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

    def counts(self) -> Numbers:
        """Return how often every class occurs: shape (classes,)."""
        return np.bincount(self.classes, minlength=len(self.problem.classes)).astype(np.int64)


# From the examples of a task, and back to its outputs --------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeItem:
    """One item of a task: a sentence of which some vectors have a class."""

    id: str
    cluster: str
    """What is drawn in the bootstrap; the item's own id where it has no cluster."""
    words: Words
    positions: tuple[int, ...]
    """Of the vectors: 0 is that of the sentence, n + 1 that of word n."""
    classes: tuple[int, ...] | None
    """Class numbers, one a position; None for an unlabelled item."""
    types: tuple[str, ...]
    """Forms of the words, or the sentence's text."""


def level_of(kind: str) -> Level:
    """Return the level that carries the labels of a kind of task."""
    return "sentence" if kind == "sequence_classification" else "word"


def item_maker(context: MethodContext) -> Callable[[Any], ProbeItem]:
    """Return the maker of items from a cell's examples; raises `KeyError` for a kind that cannot be probed."""
    spec = context.spec
    numbers = {label: number for number, label in enumerate(spec.label_names)}
    mask: str | None = getattr(spec, "mask_word", None)
    make = _MAKERS[spec.kind]

    def made(example: Any) -> ProbeItem:
        words, positions, types, labels = make(example)
        masked = tuple(None if mask is not None and word == mask else word for word in words)
        return ProbeItem(
            id=example.id,
            cluster=example.id if example.cluster is None else example.cluster,
            words=masked,
            positions=positions,
            classes=None if labels is None else tuple(numbers[label] for label in labels),
            types=types,
        )

    return made


def output_of(kind: str, labels: Sequence[str]) -> Any:
    """Return a prediction in the form of its kind."""
    return {"label": labels[0], "scores": []} if level_of(kind) == "sentence" else list(labels)


Parts = tuple[tuple[str, ...], tuple[int, ...], tuple[str, ...], Sequence[str] | None]
"""Words, positions, types and labels."""


def _tagged(example: Any) -> Parts:
    return example.tokens, tuple(range(1, len(example.tokens) + 1)), example.tokens, example.tags


def _labelled(example: Any) -> Parts:
    types = tuple(example.tokens[target] for target in example.targets)
    return example.tokens, tuple(target + 1 for target in example.targets), types, example.labels


def _classified(example: Any) -> Parts:
    text = " ".join(example.inputs.values())
    words = tuple(word for word in text.split(" ") if word)
    return words, (SENTENCE,), (text,), None if example.label is None else (example.label,)


_MAKERS: Mapping[str, Callable[[Any], Parts]] = {
    "sequence_classification": _classified,
    "token_tagging": _tagged,
    "word_labelling": _labelled,
}
