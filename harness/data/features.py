"""Features: attributes of items by which a diagnosis splits a score, what they are computed from, and their buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.languages.table import Language

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


Values = Any
"""An array of float64, shape (n,), for a continuous feature (NaN where an item has no value); a list of n texts
(None where an item has no value) for a discrete one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """The labelled items of one cell, by column: every column has one entry per item, in the order of records."""

    task: str
    kind: str
    language: Language
    labels: tuple[str, ...]
    """All labels of the task."""
    input_names: tuple[str, ...]
    """The input fields in the order of the spec; empty for kinds without."""
    ids: Sequence[str]
    digests: Sequence[str]
    """What was asked, as a short digest."""
    fields: Sequence[Mapping[str, Any]]
    """The fields of the example without gold: ``question`` and ``context``, ``tokens``, ``inputs``; empty mappings in
    runs of older versions."""
    predictions: Sequence[Any]
    references: Sequence[Any]
    clusters: Sequence[str | None]
    tags: Sequence[Mapping[str, str]]
    scores: Sequence[Mapping[str, Any]]
    """By metric: a float, or a list of sufficient statistics."""
    kept: dict[Any, Any] = field(default_factory=dict)
    """What features have computed already, for each other."""

    def __len__(self) -> int:
        return len(self.ids)

    def once(self, key: object, compute: Callable[[], Any]) -> Any:
        """Return the value of `compute` at the first request of a feature of these items for the key."""
        if key not in self.kept:
            self.kept[key] = compute()
        return self.kept[key]

    def texts(self, name: str) -> list[str] | None:
        """Return a text field of every item, one of ``inputs`` too; None where some item has no such text."""
        nested = bool(self.fields) and name not in self.fields[0]
        rows = [fields.get("inputs") or {} for fields in self.fields] if nested else self.fields
        values = [row.get(name) for row in rows]
        return None if any(not isinstance(text, str) for text in values) else values  # type: ignore[return-value]

    def word_counts(self, name: str) -> npt.NDArray[np.float64] | None:
        """Return the number of words of a text field (`harness.languages.segmentation`); None if it is missing."""

        def count() -> Any:
            from harness.languages.segmentation import word_counts

            texts = self.texts(name)
            return None if texts is None else word_counts(texts).astype(float)

        counts: npt.NDArray[np.float64] | None = self.once(("words", name), count)
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """The tagged spans of all items, gold ones or predicted ones; each column has one entry per span."""

    side: Literal["gold", "predicted"]
    unit: Literal["token", "character"]
    """What `starts` and `ends` count."""
    items: npt.NDArray[np.int64]
    """The number of the item in `Items`."""
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    """One after the last token or character."""
    tags: Sequence[str]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureContext:
    """Inputs that a feature may need besides items."""

    spans: Spans | None = None
    """What a feature of spans gives values for: called once for the gold spans and once for each system's."""
    model: Path | None = None
    """The folder of the run's model, where there is one on this machine."""
    vocabulary: frozenset[str] | None = None
    """The words of the training data in lower case, where they were given."""
    english: Callable[[], Items | None] = lambda: None
    """Reads the English items of the run's task where items of all languages have the same ids; else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """An interval ``(low, high]``, ``[low, high]`` where `low_closed`, or a value, for which the bounds are None."""

    name: str
    low: float | None = None
    high: float | None = None
    low_closed: bool = False

    @property
    def interval(self) -> str:
        """``(2, 5]``; the value itself for a bucket of one value."""
        if self.low is None or self.high is None:
            return self.name
        if self.low == self.high and self.low_closed:
            return f"{self.low:.3g}"
        return f"{'[' if self.low_closed else '('}{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One attribute, declared by a plugin.

    `compute` gets all labelled items of a cell and returns `Values`, one per item or, for the level ``span``, one per
    span of the context; or None where it does not apply to these items (no such field, no model at hand).
    """

    name: str
    """As the paper writes it: ``qLen``."""
    title: str
    """What it is, in a few words."""
    compute: Callable[[Items, FeatureContext], Values | None]
    kinds: frozenset[str] | None = None
    """The task kinds it is for; None for all."""
    level: Literal["item", "span"] = "item"
    continuous: bool = True
    """Whether its values are numbers, put into intervals; else every value is a bucket."""
    of: Literal["item", "prediction", "model"] = "item"
    """What it depends on besides gold; two systems are compared by features of the item only."""
    description: str = ""
    source: str = ""
    """Where it is defined."""
    published: Callable[[str, str], Sequence[Bucket] | None] | None = None
    """Task and language -> the edges that a paper printed for it, if any."""
    ends: tuple[str, str] | None = None
    """In words, what has the lowest and the highest values: ``("shortest answers", "longest answers")``."""
    words: int | None = None
    """For discrete features: so many of the most frequent values have a bucket, fewer than is usual."""
