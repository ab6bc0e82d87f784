"""Several answers to one item: how a record keeps them, their majority, and the chance that one of k is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import numpy as np

from harness.metrics.metric import Floats, MetricResult
from harness.storage.records import REPEATS, answer_text, is_correct


def joined_answers(outputs: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], int]:
    """Return the prediction of an item with several answers, the majority's with all of them, and its number.

    Answers are counted as they were read; those that could not be read do not count. At a tie the first one wins,
    and where none could be read the first answer is returned.
    """
    texts = [answer_text(output) for output in outputs]
    counts = Counter(text for text in texts if text is not None)
    chosen = texts.index(counts.most_common(1)[0][0]) if counts else 0
    prediction = {name: value for name, value in outputs[chosen].items() if name != "reasoning"}
    return {**prediction, REPEATS: list(outputs)}, chosen


def repeat_count(prediction: Any) -> int:
    """Return how many answers an item has."""
    return len(prediction[REPEATS]) if isinstance(prediction, Mapping) and REPEATS in prediction else 1


def answers_of(prediction: Any) -> list[Any]:
    """Return all answers to an item."""
    return list(prediction[REPEATS]) if repeat_count(prediction) > 1 else [prediction]


def folded(result: MetricResult, repeats: int) -> MetricResult:
    """Return a result over items where each of `repeats` rows after another is an answer to the same item.

    The score of an item is the mean over its answers, its counts are their sums: the value stays what it is.
    """
    items, counts = result.items, result.counts
    return MetricResult(
        value=result.value,
        items=None if items is None else items.reshape(-1, repeats).mean(axis=1),
        counts=None if counts is None else counts.reshape(-1, repeats, counts.shape[1]).sum(axis=1),
        groups=result.groups,
        bounds=result.bounds,
    )


def pass_at_k(answers: int, right: int, k: int) -> float:
    """Return the unbiased estimate that at least one of k answers is right, of which `right` among `answers` are.

    Chen et al. (2021), "Evaluating Large Language Models Trained on Code", equation 1: 1 - C(n - c, k) / C(n, k).
    """
    return 1.0 - comb(answers - right, k) / comb(answers, k)


def shown_sizes(repeats: int) -> list[int]:
    """Return the k of pass@k that are shown: powers of two up to the number of answers, and that number."""
    powers = [1 << power for power in range(repeats.bit_length()) if 1 << power <= repeats]
    return powers if powers[-1] == repeats else [*powers, repeats]


def repeat_scores(
    predictions: Sequence[Any], references: Sequence[Any], scores: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Return pass@k and majority@k of items with several answers; none where items are only more or less right.

    Args:
        predictions: One per item, each with the same number of answers.
        references: One per item.
        scores: By metric: a score for every answer, those of an item after one another.
    """
    repeats = repeat_count(predictions[0])
    passed: dict[str, list[float]] = {f"pass@{k}": [] for k in shown_sizes(repeats)}
    majority: list[float] = []
    for number, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        answers = answers_of(prediction)
        verdicts = [
            is_correct(
                answer,
                reference,
                {name: values[number * repeats + position] for name, values in scores.items()},
            )
            for position, answer in enumerate(answers)
        ]
        if None in verdicts:
            return {}
        right = sum(map(bool, verdicts))
        for k in shown_sizes(repeats):
            passed[f"pass@{k}"].append(pass_at_k(repeats, right, k))
        majority.append(float(bool(verdicts[joined_answers(answers)[1]])))
    by_name = {**passed, f"majority@{repeats}": majority}
    return {name: np.asarray(values, dtype=np.float64) for name, values in by_name.items()}
