"""Lengths of texts in words, their ratios, and how many words two texts share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.data import FeatureContext, Items
from harness.languages import word_counts, words

Floats = npt.NDArray[np.float64]
Compute = Callable[[Items, FeatureContext], Floats | None]


def length(name: str) -> Compute:
    """Return a function that counts the words of a field."""

    def compute(items: Items, context: FeatureContext) -> Floats | None:
        return items.word_counts(name)

    return compute


def input_length(number: int) -> Compute:
    """Return a function that counts the words of the first (0) or second (1) text of a pair, in spec order."""

    def compute(items: Items, context: FeatureContext) -> Floats | None:
        names = items.input_names
        return items.word_counts(names[number]) if number < len(names) else None

    return compute


def ratio(part: Compute, whole: Compute) -> Compute:
    """Return a function that divides one count by another; NaN where the other is 0."""

    def compute(items: Items, context: FeatureContext) -> Floats | None:
        above, below = part(items, context), whole(items, context)
        if above is None or below is None:
            return None
        return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=below != 0))

    return compute


def answers(items: Items) -> list[str]:
    """Return the first gold answer of every question, as ExplainaBoard takes it."""
    found: list[str] = items.once("answers", lambda: [gold[0] for gold in items.references])
    return found


def answer_length(items: Items, context: FeatureContext) -> Floats | None:
    """Return the number of words of the first gold answer."""
    found: Floats = items.once(
        ("words", "answer of gold"), lambda: word_counts(answers(items)).astype(np.float64)
    )
    return found


def choice_lengths(items: Items, context: FeatureContext) -> Floats | None:
    """Return the mean number of words of the choices of every item."""
    choices = [fields.get("choices") for fields in items.fields]
    if any(not isinstance(own, list) or not own for own in choices):
        return None
    sizes: Any = np.fromiter((len(own or ()) for own in choices), np.int64, len(choices))
    counts = word_counts([text for own in choices for text in own or ()])
    sums = np.bincount(np.repeat(np.arange(len(choices)), sizes), weights=counts, minlength=len(choices))
    return np.asarray(sums / sizes)


def word_lists(items: Items, key: str, texts: Callable[[], Sequence[str] | None]) -> list[list[str]] | None:
    """Return the words of texts in lower case, split once for all features; None without texts."""

    def split() -> list[list[str]] | None:
        given = texts()
        if given is None:
            return None
        distinct = list(dict.fromkeys(given))
        found = dict(zip(distinct, words([text.lower() for text in distinct]), strict=True))
        return [found[text] for text in given]

    lists: list[list[str]] | None = items.once(("word lists", key), split)
    return lists


def overlap(items: Items, context: FeatureContext) -> Floats | None:
    """Return the Jaccard index of the sets of words, in lower case, of the two texts of every pair; 0 for no words."""
    if len(items.input_names) < 2:
        return None
    first, second = (
        word_lists(items, name, lambda name=name: items.texts(name))  # type: ignore[misc]
        for name in items.input_names[:2]
    )
    if first is None or second is None:
        return None
    pairs = ((set(one), set(other)) for one, other in zip(first, second, strict=True))
    shares = (len(one & other) / (len(one | other) or 1) for one, other in pairs)
    return np.fromiter(shares, np.float64, len(first))
