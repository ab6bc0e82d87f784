"""How wrong an answer is, to find the worst ones of a cell."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from harness.analysis.calibration import probabilities
from harness.storage.records import ItemRecord

CLASSIFYING = {"sequence_classification", "multiple_choice"}


def worst(records: Iterable[ItemRecord], kind: str, headline: Sequence[str], most: int) -> list[ItemRecord]:
    """Return the items that are most wrong, worst first; equals in the order of the records.

    Only `most` records are held at a time.
    """
    judged = ((severity(record, kind, headline), record) for record in records)
    wrong = ((error_size, record) for error_size, record in judged if error_size is not None)
    return [record for _, record in heapq.nlargest(most, wrong, key=lambda pair: pair[0])]


def severity(record: ItemRecord, kind: str, headline: Sequence[str]) -> tuple[float, float] | None:
    """Return how wrong an answer is, larger is worse; None where it is right or has no gold answer.

    Classification: the confidence in the wrong label. Tagging: wrong tokens or spans. Ranked retrieval: the rank of the
    first right candidate. Others: what is missing from a full score, then the confidence.
    """
    prediction, gold = record.prediction, record.reference
    if gold is None:
        return None
    if kind in CLASSIFYING:
        if isinstance(prediction, Mapping) and prediction.get("label") == gold:
            return None
        return (confidence_of(prediction) or 0.0, 0.0)
    rank = first_rank(prediction, gold)
    if rank is not None:
        return None if rank == 1 else (float(rank), 0.0)
    if kind == "token_tagging":
        tags = prediction if isinstance(prediction, list) else []
        wrong = sum(expected != predicted for expected, predicted in zip(gold, tags, strict=False)) + abs(
            len(gold) - len(tags)
        )
        return (float(wrong), wrong / max(1, len(gold))) if wrong else None
    return _lost(record, headline)


def _lost(record: ItemRecord, headline: Sequence[str]) -> tuple[float, float] | None:
    if isinstance(record.scores.get("example_error"), int | float):
        # The headline is a score of groups of examples, so it cannot rank single examples.
        scores = [1.0 - record.scores["example_error"]]
    else:
        scores = [record.scores[name] for name in headline if name in record.scores]
    if not scores:
        return None
    if isinstance(scores[0], int | float):
        lost = 1.0 - float(np.mean([score for score in scores if isinstance(score, int | float)]))
    else:
        # Right, predicted, gold; or right and all.
        right, *totals = scores[0]
        lost = sum(totals) - right * len(totals)
    sure = record.prediction.get("score", 0.0) if isinstance(record.prediction, Mapping) else 0.0
    return (lost, float(sure or 0.0)) if lost > 0 else None


def first_rank(prediction: Any, gold: Any) -> int | None:
    """Return the rank of the first right candidate, from 1; one more than the last where none is right.

    None for answers that are no ranking.
    """
    if not isinstance(prediction, Mapping) or not isinstance(gold, Mapping) or "candidates" not in prediction:
        return None
    ranking = [*prediction["candidates"], *prediction.get("further", ())]
    targets = set(gold.get("targets", ()))
    return next((rank for rank, name in enumerate(ranking, start=1) if name in targets), len(ranking) + 1)


def confidence_of(prediction: Any) -> float | None:
    """Return the probability of the label that was given; None where the answer has no scores of all labels."""
    scores = prediction.get("scores") if isinstance(prediction, Mapping) else None
    if not isinstance(scores, list) or len(scores) < 2 or not np.isfinite(scores).all():
        return None
    return float(probabilities(np.array([scores], dtype=np.float64)).max())
