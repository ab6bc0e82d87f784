"""Definition of a metric, a pure function over predictions and references, and what all families of metrics share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.statistics import Interval
from harness.statistics.bootstrap import RowStatistic, ratio
from harness.table import table_rows

Floats = npt.NDArray[np.float64]
METRIC_TABLE = table_rows("harness.metrics", "metrics.tsv")
"""The metrics of the core, as their file describes them."""
_SHORT = {row["name"]: row["short"] for row in METRIC_TABLE if row["short"]} | {"pass_rate": "passed"}


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
class GroupScore:
    """The value of a metric over a part of a cell, and how many observations it has."""

    value: float
    n: int
    bounds: Interval | None = None
    """Its 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResult:
    """The value of a metric over a set of items, as a fraction in [`Metric.lowest`, 1].

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
    bounds: Interval | None = None
    """Takes the place of the interval that `items` or `counts` would give, where a formula is better."""


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
    lowest: float = 0.0
    """The lowest possible value: -1 of a correlation."""
    options: tuple[str, ...] = ()
    """Keys of a task's ``metric_options`` that it reads; a key that no metric reads is a fault of the spec."""
    languages: tuple[str, ...] = ()
    """Those that its rules are for; empty where it scores any."""
    methods: frozenset[str] | None = None
    """Names of the methods whose predictions it understands; None for all of its kinds. Other cells go without it."""
    prompt_field: str = ""
    """Field of a prompt preset that gives what it scores, such as ``unconditional``. Cells of other presets go without
    it."""
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

    def scores_prompt(self, prompt: object) -> bool:
        """Return whether a prompt preset, None for methods without one, gives what it scores."""
        return not self.prompt_field or getattr(prompt, self.prompt_field, None) is not None


def metric_name(metric: str) -> str:
    """Return the one name of a metric in all output for people: ``F1``, ``acc``, ``token f1``, ``mean(F1, EM)``.

    JSON and CSV, options and messages about options have the machine name.
    """
    if inside := re.fullmatch(r"mean\((.+)\)", metric):
        return f"mean({', '.join(map(metric_name, inside[1].split(', ')))})"
    return _SHORT.get(metric, metric.replace("_", " "))


def check_pairs(predictions: Sequence[Any], references: Sequence[Any]) -> None:
    """Raise `ValueError` unless there is one prediction for each of at least one reference."""
    if len(predictions) != len(references):
        raise ValueError(
            f"Expected one prediction for each of the {len(references)} references, found {len(predictions)}."
        )
    if not references:
        raise ValueError("A metric needs at least one item, found none.")


def unfit(index: int, expected: str, actual: object, *, unit: str = "Item") -> ValueError:
    """Return the error of an item, by its 0-based index, that is something else than what a metric expects."""
    return ValueError(f"{unit} {index}: expected {expected}, found {actual}.")


def field_of(prediction: Any, name: str, index: int) -> Any:
    """Return ``prediction[name]`` of a prediction that is a mapping, and the prediction itself otherwise.

    Model outputs are mappings that hold more than the answer (scores, offsets); files of predictions hold the
    bare answer. Raises `ValueError`, naming the item's 0-based `index`, when a mapping has no such field.
    """
    if not isinstance(prediction, Mapping):
        return prediction
    if name not in prediction:
        keys = ", ".join(sorted(map(repr, prediction))) or "no keys"
        raise unfit(index, f"a prediction with the key {name!r}", keys)
    return prediction[name]


def answer_text(prediction: Any, index: int) -> str | None:
    """Return the text of one predicted answer: a string, or a mapping with the key ``text``.

    None means a question without an answer, which the published scripts give 0. Raises `ValueError`,
    naming the item's 0-based `index`, for anything else.
    """
    text = field_of(prediction, "text", index)
    if text is not None and not isinstance(text, str):
        raise unfit(index, "an answer text", f"{text!r} of type {type(text).__name__}")
    return text


def answer_texts(predictions: Sequence[Any]) -> list[str]:
    """Return the texts of predicted answers, empty ones for questions without an answer; raises as `answer_text`."""
    return [answer_text(prediction, index) or "" for index, prediction in enumerate(predictions)]


def reference_texts(reference: Any, index: int) -> Sequence[str]:
    """Return the gold texts of one item; raises `ValueError` where there is none, or a bare string."""
    if isinstance(reference, str) or not reference:
        raise unfit(index, "a list of at least one reference text", repr(reference))
    texts: Sequence[str] = reference
    return texts


def mean_of_items(scores: Iterable[float]) -> MetricResult:
    """Return the result of a metric that is the plain mean of item scores in [0, 1]."""
    items = np.fromiter(scores, dtype=np.float64)
    return MetricResult(value=float(items.mean()), items=items)


def item_metric(score: Callable[[Any, Any, int, MetricContext], float]) -> MetricFunction:
    """Return the metric that is the mean of item scores in [0, 1].

    Args:
        score: From a prediction, its reference, the 0-based index of the item and the context to the item's score.
    """

    def compute(
        predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
    ) -> MetricResult:
        check_pairs(predictions, references)
        return mean_of_items(
            score(prediction, reference, index, context)
            for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True))
        )

    return compute


@dataclass(frozen=True, slots=True)
class SetMetric:
    """A set-level metric that is computed from sums of counts over all items."""

    count: Callable[[Sequence[Any], Sequence[Any], MetricContext], Floats]
    """From predictions, references and the context to the counts of every item, shape (n, k)."""
    from_counts: Callable[[Floats], float]
    """From the column sums of the counts to the value."""

    def __call__(
        self, predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
    ) -> MetricResult:
        """Return the value with the counts; raises `ValueError` where the two sides do not fit together."""
        check_pairs(predictions, references)
        counts = self.count(predictions, references, context)
        return MetricResult(value=self.from_counts(counts.sum(axis=0)), counts=counts)


ratio_from_counts = RowStatistic(lambda totals: ratio(totals[..., 0], totals[..., 1]))
"""The first sum divided by the second; 0 where that is 0."""
