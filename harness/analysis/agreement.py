"""How far systems give the same answers to the same items, and which of them they have right."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.storage.records import ItemRecord

__all__ = ["Agreement", "agreement", "answer_of", "right_items"]

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
ANSWERS = ("label", "text", "candidate", "spans")
"""Where predictions keep their answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Shares of the common items, by pairs of systems."""

    same: tuple[tuple[float, ...], ...]
    """Both gave the same answer; an answer that could not be read equals none."""
    right: tuple[tuple[float, ...], ...]
    """Both are right; on the diagonal the share that the system itself has right."""


def answer_of(record: ItemRecord) -> str | None:
    """Return the answer to an item, as a text that can be compared; None where it could not be read.

    This is the label, the answer's text, the nearest candidate, the first one of a ranking, or all tags or spans.
    """
    prediction = record.prediction
    if record.flags.get("unparsed"):
        return None
    if isinstance(prediction, Mapping):
        for name in ANSWERS:
            if name in prediction:
                prediction = prediction[name]
                break
        else:
            prediction = prediction.get("candidates", prediction)
            prediction = prediction[0] if isinstance(prediction, list) and prediction else prediction
    return None if prediction is None else json.dumps(prediction, ensure_ascii=False, sort_keys=True)


def right_items(
    item_scores: Sequence[Floats] | None,
    answers: Sequence[Sequence[str | None]],
    records: Sequence[Sequence[ItemRecord]],
) -> Booleans:
    """Return which items are wholly right, of shape (systems, items).

    That is a full item score or, for set-level metrics, whose `item_scores` is None, the gold answer itself.
    """
    if item_scores is not None:
        return np.array([items >= 1.0 for items in item_scores])
    return np.array(
        [
            [
                answer is not None and answer in _gold_answers(record.reference)
                for answer, record in zip(given, own, strict=True)
            ]
            for given, own in zip(answers, records, strict=True)
        ],
        dtype=np.bool_,
    ).reshape(len(records), -1)


def _gold_answers(reference: Any) -> set[str]:
    """Return the texts that a right answer may have: the reference as a whole, or one of its texts."""
    each = (
        reference if isinstance(reference, list) and all(isinstance(item, str) for item in reference) else []
    )
    return {json.dumps(item, ensure_ascii=False, sort_keys=True) for item in [reference, *each]}


def agreement(answers: Sequence[Sequence[Sequence[str | None]]], right: Sequence[Booleans]) -> Agreement:
    """Return the agreement over the items of all languages together.

    Args:
        answers: By language and system, one `answer_of` per item.
        right: By language, of shape (systems, items).
    """
    count = len(answers[0]) if answers else 0
    total = sum(part.shape[1] for part in right) or 1
    same, both = np.zeros((count, count)), np.zeros((count, count))
    for given, marks in zip(answers, right, strict=True):
        both += marks.astype(np.float64) @ marks.T.astype(np.float64)
        for first, second in itertools.product(range(count), repeat=2):
            pairs = zip(given[first], given[second], strict=True)
            same[first, second] += sum(one is not None and one == other for one, other in pairs)
    return Agreement(same=_shares(same, total), right=_shares(both, total))


def _shares(counts: Floats, total: int) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) / total for value in row) for row in counts)
