"""Retrieval: top-1 accuracy, average precision and reciprocal rank at a cut-off.

Source: Ruder et al. (2021), XTREME-R, section 4 and appendix (mAP@20); google-research/xtreme
``third_party/utils_lareqa.py`` and ``third_party/utils_mewslix.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from harness.metrics.metric import GroupScore, MetricContext, MetricResult
from harness.metrics.pairing import check_pairs, field_of, item_metric

CUT_OFF: Final = 20
"""How many candidates of a ranking count in XTREME-R."""


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
        raise ValueError(f"Item {index}: expected at least one right candidate, found none.")
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
        raise ValueError(f"Item {index}: expected a list of candidate ids, found {ids!r}.")
    for candidate in ids:
        if not isinstance(candidate, str):
            raise ValueError(
                f"Item {index}: expected a candidate id, which is a string, "
                f"found {candidate!r} of type {type(candidate).__name__}."
            )
