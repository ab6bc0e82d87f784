"""Judged answers: a source and an answer, or two, get one of the verdicts of a rubric; and the scores of verdicts.

Scores are ratings, agreement with gold, and which of two answers is preferred in both orders.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from harness.data import ClassificationExample, Row
from harness.kinds import ReadContext, TaskKind, choice_methods, cluster_of, id_of, label_of, meta_of, text_of
from harness.metrics import Metric, MetricContext, MetricResult, check_pairs, field_of, mean_of_items
from harness.prompts import PromptItem
from harness.specs import TaskSpec

METHODS = choice_methods("judgement")
Floats = npt.NDArray[np.float64]
FIRST: Final = "1"
SECOND: Final = "2"
ORDERS: Final = ("given", "swapped")
"""Whether the answer of the first run is shown first or second."""
_KINDS: Final = frozenset({"judgement"})


class JudgementSpec(TaskSpec):
    """The spec of a task that ``harness judge`` writes."""

    kind: Literal["judgement"]
    inputs: Annotated[tuple[str, ...], Field(min_length=1)]
    labels: Annotated[tuple[str, ...], Field(min_length=2)]
    """The verdicts; those of a scale from the worst to the best."""
    rubric: str = ""
    """``NAME@DIGEST``; tasks of older versions have none."""


def _example(row: Row, number: int, context: ReadContext) -> ClassificationExample:
    return ClassificationExample(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        meta=meta_of(row),
        inputs={name: text_of(row, name, context) for name in context.inputs},
        label=label_of(row, context),
        labels=context.labels,
    )


def _reference(example: ClassificationExample) -> dict[str, Any]:
    """Return the right verdict, None where it is not known, and of pairs which it is and which answer came first."""
    return {"label": example.label, "pair": example.meta.get("pair"), "order": example.meta.get("order")}


def _prompt_item(example: ClassificationExample) -> PromptItem:
    return PromptItem(fields=example.inputs, choices=example.labels, gold=example.label)


KIND = TaskKind(
    name="judgement",
    spec_model=JudgementSpec,
    head=None,
    methods=("generate", "rank"),
    example=_example,
    reference=_reference,
    summary="a model rates answers of a finished run",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: spec.input_names,
    texts=lambda example, spec: tuple(example.inputs.values()),
)


def _verdicts(predictions: Sequence[Any]) -> list[str | None]:
    return [field_of(prediction, "label", index) for index, prediction in enumerate(predictions)]


def _golds(references: Sequence[Mapping[str, Any]]) -> list[str]:
    golds = [reference["label"] for reference in references]
    if None in golds:
        raise ValueError("Agreement with gold needs an item's right verdict; this task has none.")
    return golds


def _accuracy(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> MetricResult:
    check_pairs(predictions, references)
    pairs = zip(_verdicts(predictions), _golds(references), strict=True)
    return mean_of_items(float(verdict == gold) for verdict, gold in pairs)


def _kappa(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> MetricResult:
    check_pairs(predictions, references)
    counts = kappa_counts(_verdicts(predictions), _golds(references), context.labels)
    return MetricResult(value=kappa_of(counts.sum(axis=0)), counts=counts)


def kappa_counts(verdicts: Sequence[str | None], golds: Sequence[str], labels: Sequence[str]) -> Floats:
    """Return each item's place in the table of verdicts and gold: shape (n, k * k), None being the last verdict."""
    names = (*labels, None)
    table = np.zeros((len(golds), len(names), len(names)))
    for row, verdict, gold in zip(table, verdicts, golds, strict=True):
        row[names.index(verdict), names.index(gold)] = 1
    return table.reshape(len(golds), -1)


def kappa_of(sums: Floats) -> float:
    """Return Cohen's kappa of a table; 0 where chance agreement is 1, as nothing is then shown (0 / 0)."""
    size = math.isqrt(len(sums))
    table = sums.reshape(size, size) / sums.sum()
    expected = float(table.sum(axis=0) @ table.sum(axis=1))
    return 0.0 if math.isclose(expected, 1) else (float(np.trace(table)) - expected) / (1 - expected)


def _rating(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> MetricResult:
    check_pairs(predictions, references)
    last = len(context.labels) - 1
    counts = np.array(
        [
            (0.0, 0.0) if verdict is None else (context.labels.index(verdict) / last, 1.0)
            for verdict in _verdicts(predictions)
        ]
    )
    if not counts[:, 1].any():
        raise ValueError("No verdict of the judge could be read.")
    return MetricResult(value=_ratio(counts.sum(axis=0)), counts=counts)


def _ratio(sums: Floats) -> float:
    return float(sums[0] / sums[1]) if sums[1] else 0.0


def _outcomes(
    predictions: Sequence[Any], references: Sequence[Any]
) -> list[tuple[int, str | None, str | None]]:
    """Return by pair its first place and the winner in each order, as runs; raises `ValueError` for half a pair."""
    check_pairs(predictions, references)
    swapped = {FIRST: SECOND, SECOND: FIRST}
    found: dict[str | None, tuple[int, dict[str, str | None]]] = {}
    for place, (verdict, reference) in enumerate(zip(_verdicts(predictions), references, strict=True)):
        _, winners = found.setdefault(reference["pair"], (place, {}))
        order = reference["order"]
        winners[order] = verdict if order == ORDERS[0] or verdict is None else swapped.get(verdict, verdict)
    if any(set(winners) != set(ORDERS) for _, winners in found.values()):
        raise ValueError("A pair of answers needs a verdict in both orders.")
    return [(place, winners[ORDERS[0]], winners[ORDERS[1]]) for place, winners in found.values()]


def _by_pair(size: int, scores: Mapping[int, float]) -> MetricResult:
    counts = np.zeros((size, 2))
    for place, score in scores.items():
        counts[place] = score, 1
    return MetricResult(value=_ratio(counts.sum(axis=0)), counts=counts)


def _preference(
    predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    wins = {FIRST: 1.0, SECOND: 0.0}
    scores = {
        place: wins.get(one or "", 0.5) if one == other else 0.5
        for place, one, other in _outcomes(predictions, references)
    }
    return _by_pair(len(predictions), scores)


def _order_change(
    predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    scores = {
        place: float(one is None or one != other) for place, one, other in _outcomes(predictions, references)
    }
    return _by_pair(len(predictions), scores)


METRICS = (
    Metric(
        name="judge_accuracy",
        compute=_accuracy,
        kinds=_KINDS,
        description="agreement of the judge's verdicts with gold; an unreadable verdict is wrong",
        source="this project",
        by_item=True,
    ),
    Metric(
        name="judge_kappa",
        compute=_kappa,
        kinds=_KINDS,
        description="the same beyond chance, as Cohen's kappa; unreadable is a verdict of its own, and 0/0 is 0",
        source="Cohen 1960",
        from_counts=kappa_of,
        by_item=True,
    ),
    Metric(
        name="judge_rating",
        compute=_rating,
        kinds=_KINDS,
        description="mean of the readable verdicts, from the worst of the scale (0) to the best (100)",
        source="this project",
        from_counts=_ratio,
        by_item=True,
    ),
    Metric(
        name="judge_preference",
        compute=_preference,
        kinds=_KINDS,
        description="share of pairs won by the first run in both orders; all but its wins and losses are half a win",
        source="Zheng et al. 2023, Judging LLM-as-a-Judge, section 3.4",
        from_counts=_ratio,
    ),
    Metric(
        name="judge_order_change",
        compute=_order_change,
        kinds=_KINDS,
        description="share of pairs whose verdict is not the same in both orders, or is unreadable in one",
        source="Zheng et al. 2023, Judging LLM-as-a-Judge, section 3.3",
        from_counts=_ratio,
        higher_is_better=False,
    ),
)
