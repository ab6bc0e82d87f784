"""Accuracy of ranked choices by other rules than the largest sum, from the numbers that a run stored.

A ranked prediction has, by choice and in the order of the task's labels, ``scores`` (sums of log-probabilities,
natural logarithm), the lengths ``tokens``, ``characters`` and ``bytes`` of the continuations as they were asked (a
space at their beginning counts), and ``unconditional`` where the prompt asks for it.

Source: Brown et al. (2020), arXiv 2005.14165, section 2.4 (by token, and by the unconditional probability); Gao
(2021), "Multiple Choice Normalization in LM Evaluation" (by byte and by character; ``acc_norm`` of lm-eval divides
by the characters of the choice without the space before it); Holtzman et al. (2021), arXiv 2104.08315 (pointwise
mutual information).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.metrics.metric import MetricContext, MetricFunction
from harness.metrics.pairing import item_metric

View = Callable[[Sequence[float], Sequence[float]], list[float]]
"""Sums and other numbers of an item's choices -> what is ranked instead of the sums."""


def _per_length(sums: Sequence[float], lengths: Sequence[float]) -> list[float]:
    if min(lengths) <= 0:
        raise ValueError(f"expected lengths above 0, found {list(lengths)}")
    return [total / length for total, length in zip(sums, lengths, strict=True)]


def _less(sums: Sequence[float], unconditional: Sequence[float]) -> list[float]:
    return [total - alone for total, alone in zip(sums, unconditional, strict=True)]


def _ranked_by(key: str, view: View) -> MetricFunction:
    """Return the share of items whose best choice is the reference, ranked with a key; the first of equals wins.

    It raises `ValueError` for predictions without these numbers, such as a classifier's.
    """
    return item_metric(
        lambda prediction, reference, index, context: float(
            _best(prediction, key, view, context.labels, index) == reference
        )
    )


def _best(prediction: Any, key: str, view: View, labels: Sequence[str], index: int) -> str:
    """Return the label that the view ranks first; raises `ValueError` naming the item's 0-based `index`."""
    sums = _numbers(prediction, "scores", labels, index)
    if "tokens" not in prediction or prediction.get("label") not in labels:
        raise _unranked(prediction, "tokens", index)
    if sums[list(labels).index(prediction["label"])] != max(sums):
        raise ValueError(
            f"Item {index}: the label {prediction['label']!r} is not that of the largest sum, so the order of the "
            "scores is not that of the task's labels."
        )
    normalisers = _numbers(prediction, key, labels, index)
    try:
        values = view(sums, normalisers)
    except ValueError as error:
        raise ValueError(f"Item {index}: {error} under {key!r}.") from error
    return labels[values.index(max(values))]


def _numbers(prediction: Any, key: str, labels: Sequence[str], index: int) -> list[float]:
    if not isinstance(prediction, Mapping) or key not in prediction:
        raise _unranked(prediction, key, index)
    values = list(prediction[key])
    if len(values) != len(labels) or not values:
        raise ValueError(
            f"Item {index}: expected one number under {key!r} for each of the "
            f"{len(labels)} choices, found {len(values)}."
        )
    return values


def _unranked(prediction: Any, key: str, index: int) -> ValueError:
    keys = ", ".join(sorted(map(repr, prediction))) if isinstance(prediction, Mapping) else repr(prediction)
    hint = "a prompt with 'unconditional'" if key == "unconditional" else "the method 'rank'"
    return ValueError(f"Item {index}: expected a ranked prediction with {key!r} (from {hint}), found {keys}.")


accuracy_char = _ranked_by("characters", _per_length)
accuracy_byte = _ranked_by("bytes", _per_length)
accuracy_token = _ranked_by("tokens", _per_length)
accuracy_pmi = _ranked_by("unconditional", _less)


def _reciprocal_rank(prediction: Any, reference: Any, index: int, context: MetricContext) -> float:
    if not isinstance(prediction, Mapping) or not {"forms", "scores"} <= prediction.keys():
        raise ValueError(f"Item {index}: expected forms with their scores, found {prediction!r}.")
    forms, scores = list(prediction["forms"]), list(prediction["scores"])
    if reference not in forms or len(forms) != len(scores):
        raise ValueError(
            f"Item {index}: expected a score for each form, the right one {reference!r} among them."
        )
    right_score = scores[forms.index(reference)]
    return (
        0.0
        if right_score is None
        else 1 / sum(score is not None and score >= right_score for score in scores)
    )


mrr = item_metric(_reciprocal_rank)
"""The mean over items of 1 / the rank of the right form among the item's ``forms`` by their ``scores``.

A form with the score of the right one ranks before it; a right form without a score counts 0. Raises `ValueError` for
predictions without these keys, or whose forms do not hold the right one.
"""
