"""Answers of a cell against a constant one: a collapsed model gives one value, a useless one is right no more often."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.data.records import Prediction

NEARLY_ALL = 0.95
UNLIKELY = 0.01
"""The largest probability at which answers that follow the gold answers would be so much alike."""
ANSWERS = ("label", "value", "text", "candidate", "candidates", "spans")
"""Keys of predictions with the answer, the first that is there."""


class AnswerSpread:
    """Counts the answers of a cell as they come, with how often each is right; answers that were not read are skipped.

    The answers are labels, names of choices, texts, numbers in plain digits, the nearest candidate or all marked
    spans; those of tagged items are the tags of their words.
    """

    def __init__(self) -> None:
        self._answers: Counter[str] = Counter()
        self._right_if_constant: Counter[str] = Counter()
        """By answer: units in whose gold answers it is."""
        self._right_with: Counter[str] = Counter()
        """By answer: the same, of units that are answered right."""
        self._units = self._right = 0
        self._is_of_words = self._is_of_candidates = self._is_of_labels = False

    def add(self, predictions: Sequence[Prediction], gold: Sequence[Any]) -> None:
        """Count the next items; those without a gold answer, and of kinds without a single answer, are skipped."""
        for prediction, reference in zip(predictions, gold, strict=True):
            output = prediction.output
            if reference is None or prediction.unparsed or prediction.unanswered:
                continue
            if isinstance(output, list) and isinstance(reference, list) and len(output) == len(reference):
                self._is_of_words = True
                for tag, right in zip(output, reference, strict=True):
                    self._count(_key(tag), {_key(right)})
            elif isinstance(output, Mapping):
                name = next((name for name in ANSWERS if name in output), None)
                answer = None if name is None else output[name]
                if name == "candidates":
                    answer = answer[0] if answer else None
                self._is_of_candidates |= name in {"candidate", "candidates"}
                self._is_of_labels |= name == "label"
                if answer is not None:
                    self._count(_key(answer), _gold_keys(reference))

    def _count(self, answer: str, right: set[str]) -> None:
        self._units += 1
        self._answers[answer] += 1
        self._right_if_constant.update(right)
        if answer in right:
            self._right += 1
            self._right_with.update(right)

    def to_json(self) -> dict[str, Any]:
        """Return the commonest answer with its count where the model has collapsed to it, otherwise nothing.

        It has where at least 95 % of the answers are the same, they are right no more often than always giving one
        answer would be, and answers that follow the gold answers would be so much alike with a probability of at most
        1 % (Chernoff's bound of the binomial tail).
        """
        if not self._units:
            return {}
        [(answer, count)] = self._answers.most_common(1)
        best = max(self._right_if_constant.values(), default=0)
        expected = (
            max(self._right_if_constant[answer], 1) / self._units
        )  # few items do not show that it is never right
        share = count / self._units
        if share < NEARLY_ALL or self._right > best or share <= expected:
            return {}
        if -self._units * _divergence(share, expected) > math.log(UNLIKELY):
            return {}
        unit = "words" if self._is_of_words else "items"
        value = None if self._is_of_candidates else json.loads(answer)
        return {"answer": value, "count": count, "of": self._units, "unit": unit}

    def majority(self) -> dict[str, Any]:
        """Return the commonest gold label with the items in which it, the answer and both are right; else nothing.

        Only labels have one: a constant tag or span is right in most places of a text without being worth anything.
        """
        if not self._is_of_labels or not self._right_if_constant:
            return {}
        [(answer, constant)] = self._right_if_constant.most_common(1)
        counts = {"right": self._right, "constant": constant, "both": self._right_with[answer]}
        return {"answer": json.loads(answer), **counts, "of": self._units}


def _key(answer: Any) -> str:
    return json.dumps(
        answer.strip() if isinstance(answer, str) else answer, ensure_ascii=False, sort_keys=True
    )


def _gold_keys(reference: Any) -> set[str]:
    """Return the texts that a right answer may have: the reference itself, its target, or one of its texts."""
    targets = reference.get("targets", reference) if isinstance(reference, Mapping) else reference
    each = targets if isinstance(targets, list) else []
    return {_key(value) for value in (targets, *each)}


def _divergence(share: float, expected: float) -> float:
    """Return the Kullback-Leibler divergence of two shares, in nats; `share` is the larger one."""
    if expected == 0:
        return math.inf
    remainder = 0.0 if share == 1 else (1 - share) * math.log((1 - share) / (1 - expected))
    return share * math.log(share / expected) + remainder
