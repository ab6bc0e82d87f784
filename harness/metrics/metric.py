"""Definition of a metric: a pure function over predictions and references, declared with its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricContext:
    """Inputs of a metric besides predictions and references."""

    language: str
    """Language code of the items."""
    labels: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    clusters: Sequence[str | None] = ()
    """The cluster of every item, for metrics that are not `by_item`; so are `groups` and `tags`."""
    groups: Sequence[str | None] = ()
    tags: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The 95 % interval that a metric computes itself, where a formula is better than resampling."""

    se: float
    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScore:
    """The value of a metric over a part of a cell, and how many observations it has."""

    value: float
    n: int
    bounds: Bounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResult:
    """The value of a metric over a set of items, as a fraction in [0, 1].

    A metric that is the mean of its items gives `items`; a set-level metric gives `counts`: one row of
    sufficient statistics per item, whose column sums `Metric.from_counts` turns into the value.
    """

    value: float
    items: Floats | None = None
    """Shape (n,): the score of each item; their mean is `value`."""
    counts: Floats | None = None
    """Shape (n, k): the sufficient statistics of each item."""
    groups: Mapping[str, GroupScore] = field(default_factory=dict)
    """Scores of parts of the items, by name: the target languages of a retrieval task, the tests of a checklist."""
    bounds: Bounds | None = None
    """Takes the place of the interval that `items` or `counts` would give."""


MetricFunction = Callable[[Sequence[Any], Sequence[Any], MetricContext], MetricResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A named metric.

    `compute` gets the outputs of predictions and the references of the kind, as plain JSON values in the same
    order; it raises `ValueError` when the two do not fit together.
    """

    name: str
    compute: MetricFunction
    kinds: frozenset[str]
    """Names of the task kinds whose predictions and references it understands."""
    description: str
    source: str
    """Where the published definition stands."""
    from_counts: Callable[[Floats], float] | None = None
    """For set-level metrics: column sums of `MetricResult.counts` -> the value."""
    by_item: bool = False
    """Whether an item's row of `items` or `counts` depends on that item alone, and the value on nothing but the mean
    of `items` or the column sums of `counts`. Then a cell is scored chunk by chunk, in memory that does not grow;
    False is always right, and keeps all predictions of a cell until its end."""
    outcome_by_cluster: bool = False
    """Whether `counts` are (1 or 0, 1) once per cluster and zeros for its other items: an outcome of the whole cluster,
    as that of a test case. Systems are then compared by won and lost clusters, with McNemar's test."""
    higher_is_better: bool = True
    options: tuple[str, ...] = ()
    """Keys of a task's ``metric_options`` that it reads; a key that no metric reads is a fault of the spec."""
    languages: tuple[str, ...] = ()
    """Those that its rules are for; empty where it scores any."""
    methods: frozenset[str] | None = None
    """Names of the methods whose predictions it understands; None for all of its kinds. Other cells go without it."""
    ready: Callable[[], None] | None = None
    """Called before a run starts; raises `HarnessError` where the metric cannot be computed here."""
    missing: Callable[[], str | None] | None = None
    """Returns why the metric cannot be computed here, as a sentence, or None. Then runs go without it and say so."""
    signature: Callable[[MetricContext], str] | None = None
    """Returns what a published score must be quoted with: version and settings of the scorer."""

    def takes_option(self, key: str) -> bool:
        """Return whether it reads an option: one that it declares, its own name, or one that begins with ``NAME.``."""
        return key in self.options or key == self.name or key.startswith(f"{self.name}.")

    def scores_language(self, language: str, options: Mapping[str, str]) -> bool:
        """Return whether it has rules for a task's language, or the task names another one as ``answer_language``."""
        return not self.languages or language in self.languages or "answer_language" in options

    def scores_method(self, method: str) -> bool:
        """Return whether it understands the predictions of a method."""
        return self.methods is None or method in self.methods
