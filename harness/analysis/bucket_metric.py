"""The metric of a bucket: the task's headline, as sufficient statistics that add up over items or spans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from harness.errors import UnknownNameError, UsageError
from harness.metrics import chunk, classification
from harness.metrics.pairing import ratio_from_counts

if TYPE_CHECKING:
    from harness.data.features import Items
    from harness.metrics.metric import Metric
    from harness.table import NamedTable

Floats = npt.NDArray[np.float64]
_OF_SPANS = {
    **dict.fromkeys(("chunk_f1", "span_f1"), chunk.f1_from_counts),
    **dict.fromkeys(("chunk_precision", "span_precision"), chunk.precision_from_counts),
    **dict.fromkeys(("chunk_recall", "span_recall"), chunk.recall_from_counts),
}
"""The metrics that are counts of spans: (correct, predicted, gold)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketMetric:
    """A metric as column sums: `values` of the sums of `statistics` over any items is its value for them."""

    name: str
    parts: tuple[str, ...]
    """The metrics whose mean it is; one in most cases."""
    values: Callable[[Floats], Floats]
    """Sums of shape (..., k) -> values of shape (...); NaN where nothing was summed."""
    is_mean: bool
    """Whether it is a mean of items: its statistics are (score, 1)."""
    of_spans: bool = False
    """Whether its statistics are the (correct, predicted, gold) spans."""

    def statistics(self, items: Items) -> Floats:
        """Return the sufficient statistics of every item, shape (n, k)."""
        if not self.is_mean:
            return np.array([scores[self.parts[0]] for scores in items.scores], dtype=np.float64)
        columns = [[scores[name] for scores in items.scores] for name in self.parts]
        means = np.array(columns, dtype=np.float64).reshape(len(self.parts), -1).mean(axis=0)
        return np.stack([means, np.ones(len(means))], axis=1)

    def losses(self, statistics: Floats) -> Floats:
        """Return how much is wrong with each row, to find the worst ones: shape (n,)."""
        if self.is_mean:
            return np.asarray(statistics[:, 1] - statistics[:, 0])
        if self.of_spans:
            return np.asarray(statistics[:, 1] + statistics[:, 2] - 2 * statistics[:, 0])
        return np.asarray(1 - np.nan_to_num(self.values(statistics)))


def bucket_metric(
    metrics: NamedTable[Metric], items: Items, headline: Sequence[str], asked: str | None
) -> BucketMetric:
    """Return the metric of the buckets of a cell.

    It is the unweighted mean of the headline metrics: the mean of F1 and exact match for questions, as in
    XTREME-R (Ruder et al., 2021, appendix K); the one headline metric of other tasks.

    Args:
        metrics: The registry's.
        items: The items of the cell.
        headline: Names of the task's headline metrics.
        asked: The metric to score with instead.

    Raises:
        UsageError: For a metric that the records do not hold.
    """
    held = list(items.scores[0]) if items.scores else []
    if asked is not None and asked not in held:
        raise UnknownNameError(f"metric in the records of {items.task!r}", asked, held)
    names = [asked] if asked is not None else [name for name in headline if name in held]
    if not names:
        raise UsageError(
            f"The records of {items.task!r} in {items.language.code!r} hold no score of each item by "
            f"{' or '.join(map(repr, headline))}.",
            hint=f"Give one that they hold with --metric: {', '.join(held) or 'none'}.",
        )
    first: Any = items.scores[0][names[0]]
    if isinstance(first, int | float):
        components = tuple(name for name in names if isinstance(items.scores[0][name], int | float))
        name = components[0] if len(components) == 1 else f"mean({', '.join(components)})"
        return BucketMetric(name=name, parts=components, values=_means, is_mean=True)
    from_counts = metrics.get(names[0]).from_counts
    if from_counts is None:
        raise UsageError(f"The metric {names[0]!r} gives no statistics that add up over items.")
    return BucketMetric(
        name=names[0],
        parts=(names[0],),
        values=_VECTORISED.get(from_counts) or _row_by_row(from_counts),
        is_mean=False,
        of_spans=names[0] in _OF_SPANS,
    )


def token_metric() -> BucketMetric:
    """Return the F1 of bare tags (parts of speech): every token is a span of one, right where its tag is.

    Precision counts the tokens that were given the tag, recall those that have it; over all tokens it is accuracy.
    """
    return BucketMetric(name="token_f1", parts=("token_f1",), values=_f1, is_mean=False, of_spans=True)


def _means(totals: Floats) -> Floats:
    return _ratio(totals[..., 0], totals[..., 1], empty=np.nan)


def _ratio(numerator: Floats, denominator: Floats, *, empty: float = 0.0) -> Floats:
    return np.asarray(
        np.divide(numerator, denominator, out=np.full(np.shape(numerator), empty), where=denominator != 0)
    )


def _f1(totals: Floats) -> Floats:
    # 2pr / (p + r) with p = c / predicted and r = c / gold.
    return _ratio(2 * totals[..., 0], totals[..., 1] + totals[..., 2])


def _precision(totals: Floats) -> Floats:
    return _ratio(totals[..., 0], totals[..., 1])


def _recall(totals: Floats) -> Floats:
    return _ratio(totals[..., 0], totals[..., 2])


def _weighted_f1(totals: Floats) -> Floats:
    right, predicted, gold = _class_counts(totals)
    of_class = 2 * right / np.maximum(predicted + gold, 1)
    return _ratio((of_class * gold).sum(axis=-1), gold.sum(axis=-1))


def _macro_f1(totals: Floats) -> Floats:
    right, predicted, gold = _class_counts(totals)
    of_class = 2 * right / np.maximum(predicted + gold, 1)
    occurring = predicted + gold > 0
    return _ratio((of_class * occurring).sum(axis=-1), occurring.sum(axis=-1))


def _class_counts(totals: Floats) -> Floats:
    """Return the right, predicted and gold labels by class, of shapes (..., classes)."""
    return np.moveaxis(totals.reshape(*totals.shape[:-1], 3, -1), -2, 0)


_VECTORISED: Mapping[Callable[[Floats], float], Callable[[Floats], Floats]] = {
    chunk.f1_from_counts: _f1,
    chunk.precision_from_counts: _precision,
    chunk.recall_from_counts: _recall,
    ratio_from_counts: _precision,
    classification.weighted_f1_from_counts: _weighted_f1,
    classification.macro_f1_from_counts: _macro_f1,
}


def _row_by_row(from_counts: Callable[[Floats], float]) -> Callable[[Floats], Floats]:
    def values(totals: Floats) -> Floats:
        rows = totals.reshape(-1, totals.shape[-1])
        scores = np.fromiter((from_counts(row) for row in rows), np.float64, len(rows))
        return scores.reshape(totals.shape[:-1])

    return values
