"""Positions of the choices that a model answers, and of the right ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.data.records import Example, MultipleChoiceExample, Prediction
from harness.statistics import recall_balance_p


class AnswerPositions:
    """Takes the items of a multiple-choice cell as they come; items of other kinds, and unread answers, are skipped."""

    def __init__(self) -> None:
        self._items: list[tuple[int, int, int, str]] = []

    def add(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], gold: Sequence[Any]
    ) -> None:
        """Count the next items; `gold` names their right choices."""
        for example, prediction, right in zip(examples, predictions, gold, strict=True):
            if not isinstance(example, MultipleChoiceExample) or prediction.unparsed:
                continue
            label, names = prediction.output["label"], example.names
            if label in names and right in names:
                positions = names.index(label), names.index(right)
                self._items.append((len(names), *positions, example.cluster or example.id))

    def to_json(self) -> dict[str, Any]:
        """Return the counts by position and the p of equal recall; nothing where there are no such items.

        They are those of the items with the commonest number of choices.
        """
        sizes = Counter(size for size, *_ in self._items)
        if not sizes:
            return {}
        [(size, _)] = sizes.most_common(1)
        items = [item for item in self._items if item[0] == size]
        answered, gold = (np.array([item[column] for item in items], dtype=np.int64) for column in (1, 2))
        right = answered == gold
        _, codes = np.unique([item[3] for item in items], return_inverse=True)
        return {
            "answered": np.bincount(answered, minlength=size).tolist(),
            "gold": np.bincount(gold, minlength=size).tolist(),
            "right": np.bincount(gold[right], minlength=size).tolist(),
            "p": recall_balance_p(right.astype(np.float64), gold, codes),
        }
