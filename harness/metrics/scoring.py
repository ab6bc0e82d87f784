"""From predictions and references to the metrics of a cell, of one answer or several to an item.

It needs no model and no data files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from harness.errors import HarnessError
from harness.metrics.metric import GroupScore, Metric, MetricContext, MetricResult
from harness.statistics import ClusterCodes, Interval, count_interval, mean_of_codes, seed_of
from harness.statistics.interval import Floats, Integers
from harness.storage.records import REPEATS, ItemRecord, answer_text, is_correct

if TYPE_CHECKING:
    from harness.storage.results import TaskSummary

ROUNDING = 1e-9
"""Largest difference between the value of a metric and the mean of its items."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict)


def task_context(task: TaskSummary, language: str) -> MetricContext:
    """Return the context of a task's metrics in a language, whose answers may be in another one."""
    language = task.answer_language or language
    return MetricContext(language=language, labels=tuple(task.labels), options=task.metric_options)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreInput:
    """One item as the records keep it."""

    id: str
    prediction: Any
    reference: Any
    cluster: str | None = None
    group: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricScore:
    """A metric of a cell, as a fraction; it has no interval where it gives neither items nor counts."""

    value: float
    interval: Interval = field(default_factory=Interval)
    groups: Mapping[str, GroupScore] = field(default_factory=dict)
    signature: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the form that ``results.json`` keeps."""
        fields: dict[str, Any] = {"value": self.value, **self.interval.to_json()}
        if self.signature:
            fields["signature"] = self.signature
        if self.groups:
            fields["groups"] = {
                name: {"value": group.value, "n": group.n, **(group.bounds.to_json() if group.bounds else {})}
                for name, group in self.groups.items()
            }
        return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CellScores:
    """The metrics of a cell, and what each item contributed."""

    metrics: Mapping[str, MetricScore]
    items: Mapping[str, list[Any]] = field(default_factory=dict)
    """By metric: a float per item, or its list of sufficient statistics."""


class CellScorer:
    """Scores a cell whose items come chunk by chunk, in their order.

    Of a metric that is declared `by_item` it keeps 8 bytes per item, or 4 bytes for each count of an item, which are
    exact up to 2^24; it is also given by group. For the others it keeps the predictions and references of the cell as
    JSON, and computes them at the end.

    Args:
        metrics: What to score with.
        context: What the metrics get to know.
        task: Seeds the resampling of set-level metrics, with the language and the metric.
    """

    def __init__(self, metrics: Sequence[Metric], context: MetricContext, *, task: str = "") -> None:
        self._metrics = tuple(metrics)
        self._context = context
        self._task = task
        self._means: dict[str, list[Floats]] = {}
        self._rows: dict[str, list[npt.NDArray[np.float32]]] = {}
        self._sums: dict[str, Floats] = {}
        self._packed: list[str] = []
        self._clusters = ClusterCodes()
        self._groups: dict[str | None, int] = {}
        self._group_codes: list[npt.NDArray[np.int32]] = []
        self._count = 0

    def add(self, items: Sequence[ScoreInput | ItemRecord]) -> Mapping[str, list[Any]]:
        """Return the contributions of the next items that are labelled to the metrics that are `by_item`.

        By metric: a float per item, or its list of sufficient statistics. Raises `HarnessError` where predictions do
        not fit references, or where a metric is no mean of its items although it is declared so.
        """
        labelled = [item for item in items if item.reference is not None]
        if not labelled:
            return {}
        contributions = {}
        answers: dict[str, Floats] = {}
        for metric in self._metrics:
            if metric.by_item:
                contributions[metric.name] = self._add(metric, labelled, answers)
        if len(contributions) < len(self._metrics):
            self._packed += [_packed(item) for item in labelled]
        if repeat_count(labelled[0].prediction) > 1:
            predictions, references = zip(
                *((item.prediction, item.reference) for item in labelled), strict=True
            )
            for name, values in repeat_scores(predictions, references, answers).items():
                self._means.setdefault(name, []).append(values)
                contributions[name] = values.tolist()
        self._clusters.add([item.cluster for item in labelled])
        groups = [self._groups.setdefault(item.group, len(self._groups)) for item in labelled]
        self._group_codes.append(np.asarray(groups, dtype=np.int32))
        self._count += len(labelled)
        return contributions

    def finish(self) -> CellScores:
        """Return the scores of all labelled items; `items` holds those of the metrics that are not `by_item`."""
        if not self._count:
            return CellScores(metrics={})
        codes = self._clusters.codes()
        unpacked = [json.loads(text) for text in self._packed]
        repeats = repeat_count(unpacked[0][0]) if unpacked else 1
        predictions = [answer for item in unpacked for answer in answers_of(item[0])]
        references, clusters, groups, tags = (
            [item[column] for item in unpacked for _ in range(repeats)] for column in (1, 2, 3, 4)
        )
        context = replace(self._context, clusters=clusters, groups=groups, tags=tags)
        scores: dict[str, MetricScore] = {}
        contributions: dict[str, list[Any]] = {}
        for metric in self._metrics:
            if metric.by_item:
                result = self._total(metric.name, metric.from_counts)
            else:
                result = folded(_computed(metric, predictions, references, context), repeats)
                item_scores = result.counts if result.items is None else result.items
                if item_scores is not None:
                    contributions[metric.name] = item_scores.tolist()
            scores[metric.name] = MetricScore(
                value=result.value,
                interval=self._interval(metric, result, codes),
                groups=result.groups,
                signature="" if metric.signature is None else metric.signature(context),
            )
        for name in [name for name in self._means if name not in scores]:
            result = self._total(name, None)
            interval = mean_of_codes(np.concatenate(self._means[name]), codes)
            scores[name] = MetricScore(value=result.value, interval=interval, groups=result.groups)
        return CellScores(metrics=scores, items=contributions)

    def _add(
        self, metric: Metric, items: Sequence[ScoreInput | ItemRecord], answers: dict[str, Floats]
    ) -> list[Any]:
        """Return the contributions of items; `answers` gets the score of each of their answers."""
        repeats = repeat_count(items[0].prediction)
        predictions = [answer for item in items for answer in answers_of(item.prediction)]
        references = [item.reference for item in items for _ in range(repeats)]
        first = None if self._count == 0 else items[0].id
        result = _computed(metric, predictions, references, self._context, first=first)
        if result.items is not None:
            answers[metric.name] = result.items
        result = folded(result, repeats)
        if result.items is not None:
            _check_item_mean(metric, result, float(result.items.mean()))
            self._means.setdefault(metric.name, []).append(result.items)
            item_scores = result.items
        elif result.counts is not None and metric.from_counts is not None:
            _check_item_mean(metric, result, metric.from_counts(result.counts.sum(axis=0)))
            before = self._sums.get(metric.name)
            rows = result.counts if before is None else np.vstack([before, result.counts])
            self._sums[metric.name] = rows.sum(axis=0)
            self._rows.setdefault(metric.name, []).append(result.counts.astype(np.float32))
            item_scores = result.counts
        else:
            raise _wrongly_declared(metric, "it gives neither items nor counts with 'from_counts'")
        contributions: list[Any] = item_scores.tolist()
        return contributions

    def _interval(self, metric: Metric, result: MetricResult, codes: Integers) -> Interval:
        if result.bounds is not None:
            return replace(result.bounds, groups=int(codes.max()) + 1)
        if result.items is not None:
            return mean_of_codes(result.items, codes)
        chunks = self._rows.pop(metric.name, [])
        counts = np.concatenate(chunks) if chunks else result.counts
        if counts is None or metric.from_counts is None:
            return Interval()
        seed = seed_of(self._task, self._context.language, metric.name)
        return count_interval(counts, codes, metric.from_counts, seed=seed)

    def _total(self, name: str, from_counts: Callable[[Floats], float] | None) -> MetricResult:
        """Return the result over all items of what was added item by item."""
        if name in self._sums and from_counts is not None:
            statistic = from_counts
            groups = self._by_group(
                self._rows[name], lambda rows: statistic(rows.sum(axis=0, dtype=np.float64))
            )
            return MetricResult(value=from_counts(self._sums[name]), groups=groups)
        items = np.concatenate(self._means[name])
        groups = self._by_group([items], lambda rows: float(rows.mean()))
        return MetricResult(value=float(items.mean()), items=items, groups=groups)

    def _by_group(self, chunks: Sequence[Any], value: Callable[[Any], float]) -> dict[str, GroupScore]:
        """Return the value over the items of every group, in the order in which the groups came."""
        if self._groups.keys() <= {None}:
            return {}
        rows, codes = np.concatenate(chunks), np.concatenate(self._group_codes)
        members = {name: rows[codes == code] for name, code in self._groups.items() if name is not None}
        return {name: GroupScore(value=value(own), n=len(own)) for name, own in members.items()}


def score_cell(
    metrics: Sequence[Metric],
    items: Sequence[ScoreInput | ItemRecord],
    context: MetricContext,
    *,
    task: str = "",
) -> CellScores:
    """Return the scores of the labelled items; raises `HarnessError` where predictions do not fit references."""
    scorer = CellScorer(metrics, context, task=task)
    contributions = scorer.add(items)
    scores = scorer.finish()
    by_metric = {**contributions, **scores.items}
    return CellScores(
        metrics=scores.metrics, items={name: by_metric[name] for name in scores.metrics if name in by_metric}
    )


def _packed(item: ScoreInput | ItemRecord) -> str:
    return _ENCODER.encode([item.prediction, item.reference, item.cluster, item.group, item.tags])


def _computed(
    metric: Metric,
    predictions: Sequence[Any],
    references: Sequence[Any],
    context: MetricContext,
    *,
    first: str | None = None,
) -> MetricResult:
    """Return a metric's result; `first` is the id of the first item where that is not the first of the cell."""
    try:
        return metric.compute(predictions, references, context)
    except ValueError as error:
        counted = "" if first is None else f" (counted from 0 at the item {first!r})"
        raise HarnessError(
            f"The metric {metric.name!r} cannot score these predictions: {str(error).rstrip('.')}{counted}."
        ) from error


def _check_item_mean(metric: Metric, result: MetricResult, value: float) -> None:
    if result.groups:
        raise _wrongly_declared(metric, "it gives groups")
    if not abs(result.value - value) <= ROUNDING:
        raise _wrongly_declared(metric, f"its value is {result.value:g}, and that of its items {value:g}")


def _wrongly_declared(metric: Metric, reason: str) -> HarnessError:
    return HarnessError(
        f"The metric {metric.name!r} is declared with by_item=True, but {reason}.",
        hint="Declare it with by_item=False.",
    )


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
    items = None if items is None else items.reshape(-1, repeats).mean(axis=1)
    counts = None if counts is None else counts.reshape(-1, repeats, counts.shape[1]).sum(axis=1)
    return replace(result, items=items, counts=counts)


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
        verdicts = []
        for row, answer in enumerate(answers, start=number * repeats):
            item_scores = {name: values[row] for name, values in scores.items()}
            verdicts.append(is_correct(answer, reference, item_scores))
        if None in verdicts:
            return {}
        right = sum(map(bool, verdicts))
        for k in shown_sizes(repeats):
            passed[f"pass@{k}"].append(pass_at_k(repeats, right, k))
        majority.append(float(bool(verdicts[joined_answers(answers)[1]])))
    by_name = {**passed, f"majority@{repeats}": majority}
    return {name: np.asarray(values, dtype=np.float64) for name, values in by_name.items()}
