"""F1 over several labels per item, and Spearman's rank correlation of grades."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from harness.metrics import Floats, Metric, MetricContext, MetricResult, check_pairs, field_of
from harness_semeval import multilabel, relatedness


def _f1(
    predictions: Sequence[Any],
    references: Sequence[Any],
    context: MetricContext,
    *,
    from_counts: Callable[[Floats], float],
) -> MetricResult:
    check_pairs(predictions, references)
    names = multilabel.base_labels(context.labels)
    counts = np.zeros((len(references), 4, len(names)))
    for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        predicted = field_of(prediction, "labels", index)
        if not isinstance(predicted, list):
            raise ValueError(f"Item {index}: expected a list of labels, found {predicted!r}.")
        for column, name in enumerate(names):
            if name in reference["annotated"]:
                guess, gold = name in predicted, name in reference["labels"]
                counts[index, :, column] = guess and gold, guess, gold, 1
    rows = counts.reshape(len(references), -1)
    return MetricResult(value=from_counts(rows.sum(axis=0)), counts=rows)


def macro_from_counts(sums: Floats) -> float:
    """Return the plain mean of the F1 of the annotated labels, 0 for one that is neither gold nor predicted."""
    right, predicted, gold, annotated = sums.reshape(4, -1)
    return float((2 * right / np.maximum(predicted + gold, 1))[annotated > 0].mean())


def micro_from_counts(sums: Floats) -> float:
    """Return the F1 of all decisions about a label together."""
    right, predicted, gold, _ = sums.reshape(4, -1).sum(axis=1)
    return float(2 * right / max(predicted + gold, 1))


def _spearman(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> MetricResult:
    """Return the correlation of ranks; resampling keeps the ranks of the whole set."""
    from scipy.stats import rankdata

    check_pairs(predictions, references)
    grades = [float(field_of(prediction, "grade", index)) for index, prediction in enumerate(predictions)]
    # Centred and scaled, so that sums of squares lose no digits.
    ranks = [(rankdata(values) - (len(grades) + 1) / 2) / len(grades) for values in (grades, references)]
    x, y = ranks
    counts = np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)
    return MetricResult(value=correlation_from_counts(counts.sum(axis=0)), counts=counts)


def correlation_from_counts(sums: Floats) -> float:
    """Return Pearson's correlation from n and the sums of x, y, their squares and their product; 0 for a constant."""
    n, x, y, xx, yy, xy = sums.tolist()
    spread = (n * xx - x * x) * (n * yy - y * y)
    return 0.0 if spread <= 1e-18 * n**4 else float((n * xy - x * y) / spread**0.5)


_LABELLED: Final = frozenset({multilabel.NAME})
_SOURCE: Final = "Muhammad et al. 2025, SemEval-2025 task 11; scikit-learn f1_score of an indicator matrix"
METRICS: Final = (
    Metric(
        name="multilabel_macro_f1",
        compute=partial(_f1, from_counts=macro_from_counts),
        kinds=_LABELLED,
        description="plain mean of the F1 of the labels that the language's file has a column for",
        source=_SOURCE,
        from_counts=macro_from_counts,
        by_item=True,
    ),
    Metric(
        name="multilabel_micro_f1",
        compute=partial(_f1, from_counts=micro_from_counts),
        kinds=_LABELLED,
        description="F1 of all decisions about a label together",
        source=_SOURCE,
        from_counts=micro_from_counts,
        by_item=True,
    ),
    Metric(
        name="spearman",
        compute=_spearman,
        kinds=frozenset({relatedness.NAME}),
        description="Spearman's rank correlation of grades, from -1 to 1; 0 where all predicted grades are equal",
        source="Ousidhoum et al. 2024, SemEval-2024 task 1, evaluation.py; scipy.stats.spearmanr",
        from_counts=correlation_from_counts,
        lowest=-1.0,
    ),
)
