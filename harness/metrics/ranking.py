"""Accuracy of ranked choices by other rules than the largest sum, from the numbers that a run stored.

A ranked prediction has, by choice and in the order of the task's labels, ``scores`` (sums of log-probabilities,
natural logarithm), the lengths ``tokens``, ``characters`` and ``bytes`` of the continuations as they were asked (a
space at their beginning counts), and ``unconditional`` where the prompt asks for it.

Source: Brown et al. (2020), arXiv 2005.14165, section 2.4 (by token, and by the unconditional probability); Gao
(2021), "Multiple Choice Normalization in LM Evaluation" (by byte and by character; ``acc_norm`` of lm-eval divides
by the characters of the choice without the space before it); Holtzman et al. (2021), arXiv 2104.08315 (pointwise
mutual information).

Retrieval: top-1 accuracy, average precision and reciprocal rank at a cut-off.

Source: Ruder et al. (2021), XTREME-R, section 4 and appendix (mAP@20); google-research/xtreme
``third_party/utils_lareqa.py`` and ``third_party/utils_mewslix.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from harness.metrics.metric import (
    GroupScore,
    MetricContext,
    MetricFunction,
    MetricResult,
    check_pairs,
    field_of,
    item_metric,
    unfit,
)

View = Callable[[Sequence[float], Sequence[float]], list[float]]
"""Sums and other numbers of an item's choices -> what is ranked instead of the sums."""
CUT_OFF: Final = 20
"""How many candidates of a ranking count in XTREME-R."""


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
        raise unfit(index, f"one number under {key!r} for each of the {len(labels)} choices", len(values))
    return values


def _unranked(prediction: Any, key: str, index: int) -> ValueError:
    keys = ", ".join(sorted(map(repr, prediction))) if isinstance(prediction, Mapping) else repr(prediction)
    hint = "a prompt with 'unconditional'" if key == "unconditional" else "the method 'rank'"
    return unfit(index, f"a ranked prediction with {key!r} (from {hint})", keys)


accuracy_char = _ranked_by("characters", _per_length)
accuracy_byte = _ranked_by("bytes", _per_length)
accuracy_token = _ranked_by("tokens", _per_length)
accuracy_pmi = _ranked_by("unconditional", _less)


def _reciprocal_rank(prediction: Any, reference: Any, index: int, context: MetricContext) -> float:
    if not isinstance(prediction, Mapping) or not {"forms", "scores"} <= prediction.keys():
        raise unfit(index, "forms with their scores", repr(prediction))
    forms, scores = list(prediction["forms"]), list(prediction["scores"])
    if reference not in forms or len(forms) != len(scores):
        raise ValueError(
            f"Item {index}: expected a score for each form, the right one {reference!r} among them."
        )
    right_score = scores[forms.index(reference)]
    if right_score is None:
        return 0.0
    return 1.0 / int(sum(score is not None and score >= right_score for score in scores))


mrr = item_metric(_reciprocal_rank)
"""The mean over items of 1 / the rank of the right form among the item's ``forms`` by their ``scores``.

A form with the score of the right one ranks before it; a right form without a score counts 0. Raises `ValueError` for
predictions without these keys, or whose forms do not hold the right one.
"""


def _is_top(prediction: Any, target: Any, index: int, context: MetricContext) -> float:
    candidate = field_of(prediction, "candidate", index)
    _check_ids([target] if candidate is None else [candidate, target], index)
    return float(candidate == target)


top1_accuracy = item_metric(_is_top)
"""The share of queries whose top candidate is the reference.

A prediction is a candidate's id or a mapping with the key ``candidate``, None for no candidate; a reference is the id
of the right candidate. Raises `ValueError` when the two do not fit together or an id is no string.
"""


def average_precision(candidates: Sequence[str], targets: Collection[str], cut_off: int = CUT_OFF) -> float:
    """Return the average precision of one ranking, in [0, 1].

    AP@k = 1 / min(|targets|, k) * sum over ranks i <= k that hold a target of (targets found up to i) / i,
    where a repeated candidate keeps its rank and counts at its first occurrence only. Raises `ValueError`
    without targets.
    """
    relevant = set(targets)
    if not relevant:
        raise ValueError("Average precision needs at least one target, found none.")
    retrieved: set[str] = set()
    total = 0.0
    for rank, candidate in enumerate(candidates[:cut_off], start=1):
        if candidate in relevant and candidate not in retrieved:
            retrieved.add(candidate)
            total += len(retrieved) / rank
    return total / min(len(relevant), cut_off)


def reciprocal_rank(candidates: Sequence[str], targets: Collection[str], cut_off: int = CUT_OFF) -> float:
    """Return 1 / the rank of the first target among the first `cut_off` candidates, 0 where there is none."""
    relevant = set(targets)
    if not relevant:
        raise ValueError("Reciprocal rank needs at least one target, found none.")
    ranks = (rank for rank, candidate in enumerate(candidates[:cut_off], start=1) if candidate in relevant)
    return next((1 / rank for rank in ranks), 0.0)


def _ranking(prediction: Any, reference: Any, index: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return the ranking and the targets of an item."""
    ranking = field_of(prediction, "candidates", index)
    targets = field_of(reference, "targets", index)
    _check_ids(ranking, index)
    _check_ids(targets, index)
    if not targets:
        raise unfit(index, "at least one right candidate", "none")
    return ranking, targets


map_at_20 = item_metric(
    lambda prediction, reference, index, _: average_precision(*_ranking(prediction, reference, index))
)
"""The mean over queries of `average_precision` at 20.

A prediction is a list of candidate ids, best first, or a mapping with the key ``candidates``; a reference is the list
of the ids of all right candidates, or a mapping with the key ``targets``. Raises `ValueError` when the two do not fit
together.
"""
mrr_at_20 = item_metric(
    lambda prediction, reference, index, _: reciprocal_rank(*_ranking(prediction, reference, index))
)
"""The mean over queries of `reciprocal_rank` at 20; the rest is as in `map_at_20`."""


def one_target_map_at_20(
    predictions: Sequence[Any], references: Sequence[Mapping[str, Sequence[str]]], context: MetricContext
) -> MetricResult:
    """Return the mean over queries and their targets of 1 / rank at 20, each target ranked without the others.

    XTREME-R's "limit to one target" (Table 14, Figure 4): for a question and a target language the right answers
    in the other languages leave the pool; with one right candidate average precision is 1 / its rank. `groups`
    holds the score by language of the target, so that all cells of a task give its question x answer matrix. With
    target per query (Mewsli-X) it equals `map_at_20`.

    A prediction is as in `map_at_20`; its key ``further`` holds the candidates after the first 20, without which a
    target behind others cannot be found. A reference has ``targets`` and their ``languages``. Raises `ValueError`
    when the two do not fit together.
    """
    check_pairs(predictions, references)
    items = []
    by_language: dict[str, list[float]] = {}
    for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        ranking, targets = _ranking(prediction, reference, index)
        languages = field_of(reference, "languages", index)
        if len(languages) != len(targets):
            raise ValueError(f"Item {index}: {len(targets)} targets have {len(languages)} languages.")
        further = prediction.get("further", []) if isinstance(prediction, Mapping) else []
        scores = one_target_ranks([*ranking[:CUT_OFF], *further], targets)
        for language, score in zip(languages, scores, strict=True):
            by_language.setdefault(language, []).append(score)
        items.append(float(np.mean(scores)))
    groups = {
        language: GroupScore(value=float(np.mean(scores)), n=len(scores))
        for language, scores in sorted(by_language.items())
    }
    return MetricResult(value=float(np.mean(items)), items=np.asarray(items), groups=groups)


def one_target_ranks(
    candidates: Sequence[str], targets: Sequence[str], cut_off: int = CUT_OFF
) -> list[float]:
    """Return for each target 1 / its rank among the candidates that are no other target, 0 behind the cut-off."""
    irrelevant = 0
    rank_of: dict[str, int] = {}
    relevant = set(targets)
    for candidate in candidates:
        if candidate in relevant:
            rank_of.setdefault(candidate, irrelevant + 1)
        else:
            irrelevant += 1
    ranks = [rank_of.get(target, cut_off + 1) for target in targets]
    return [1 / rank if rank <= cut_off else 0.0 for rank in ranks]


def _check_ids(ids: Any, index: int) -> None:
    if not isinstance(ids, list | tuple):
        raise unfit(index, "a list of candidate ids", repr(ids))
    for candidate in ids:
        if not isinstance(candidate, str):
            kind = f"{candidate!r} of type {type(candidate).__name__}"
            raise unfit(index, "a candidate id, which is a string", kind)
