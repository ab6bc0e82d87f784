"""Compares systems item by item: scores on common items, paired differences, agreement, and what answering cost.

Cells are joined on task, language and the conditions that change the items (the variant and the axes of the spec).
What differs otherwise, such as the protocol, the seed or the prompt, makes systems. An item is common when every
system has it with the same inputs and the same gold answer; all others are counted and left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from harness.agreement import Agreement, agreement, answer_of, right_items
from harness.errors import DataError, HarnessError
from harness.metrics.metric import Metric, MetricContext
from harness.results import ItemRecord, Run
from harness.scoring import ScoreInput, score_cell
from harness.statistics import paired_difference
from harness.systems import System, SystemGroup, group_systems

if TYPE_CHECKING:
    from harness.registry import Table

__all__ = ["Comparison", "Costs", "Difference", "LanguageComparison", "Scores", "TaskComparison", "compare"]

Cell = Mapping[str, Any]
Floats = npt.NDArray[np.float64]
LEFT_OUT = {
    "differing": "whose inputs differ between the runs",
    "regraded": "whose gold answers differ between the runs",
    "unlabelled": "without a gold answer",
}
"""Counts of `LanguageComparison`, and what they say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A score minus that of the first system; the interval is None for set-level metrics."""

    value: float
    low: float | None = None
    high: float | None = None
    method: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """A metric of every system, as fractions in [0, 1]."""

    metric: str
    values: tuple[float, ...]
    differences: tuple[Difference | None, ...]
    """None for the first system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a system's answers lacked and took: flags of the common items, and sums over its whole cells."""

    unparsed: int
    truncated: int
    dropped_shots: int
    tokens: int | None
    """Tokens written, or those of the choices that were ranked; None where neither happened."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageComparison:
    """The common items of one language."""

    language: str
    ids: tuple[str, ...]
    scores: tuple[Scores, ...]
    costs: tuple[Costs, ...]
    lacking: tuple[int, ...]
    """By system: items that it lacks and another one has."""
    differing: int
    """Items that all have, with inputs that are not the same."""
    regraded: int
    """Items that all have, with gold answers that are not the same."""
    unlabelled: int
    all_right: tuple[str, ...]
    none_right: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskComparison:
    """One task under one view of its items; scores are unweighted means over the languages that all systems have."""

    task: str
    title: str
    """The task with its view."""
    view: Mapping[str, str]
    systems: tuple[str, ...]
    languages: tuple[LanguageComparison, ...]
    scores: tuple[Scores, ...]
    costs: tuple[Costs, ...]
    agreement: Agreement
    notes: tuple[str, ...] = ()

    @property
    def items(self) -> int:
        """The number of common items."""
        return sum(len(part.ids) for part in self.languages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The tasks that could be compared, and what could not."""

    tasks: tuple[TaskComparison, ...]
    notes: tuple[str, ...] = ()
    sample: bool = False
    """Whether some run is on the sample data, so that scores say nothing about models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Items:
    """The common items of one language, and what the metrics say of them."""

    comparison: LanguageComparison
    records: tuple[tuple[ItemRecord, ...], ...]
    """By system, in the order of the ids."""
    item_scores: Mapping[str, tuple[Floats, ...]]
    """By metric that is a mean of its items: one array a system."""
    answers: tuple[tuple[str | None, ...], ...]
    right: npt.NDArray[np.bool_]
    """Shape (systems, items)."""
    parallel: bool


def compare(
    runs: Sequence[Run],
    metrics: Table[Metric],
    *,
    tasks: Sequence[str] = (),
    languages: Sequence[str] = (),
    metric: str | None = None,
) -> Comparison:
    """Return the comparison of every task that at least two systems finished.

    Args:
        runs: Run folders; their first system is what the others are compared with.
        metrics: The registry's.
        tasks: Names or globs to restrict it to; none takes all.
        languages: Codes to restrict it to; none takes all.
        metric: The metric to score with; None takes the headline metrics of each task.

    Raises:
        UsageError: For names that no run has, and where no task was finished by two systems.
        DataError: Where no item is common to the systems of any task, or records are broken.
    """
    found: list[TaskComparison] = []
    notes: list[str] = []
    for group in group_systems(runs, tasks=tasks, languages=languages):
        if len(group.systems) < 2:
            notes.append(f"{group.title}: only {group.systems[0].name} finished it.")
            continue
        chosen = _chosen(metrics, metric, group)
        if not chosen:
            notes.append(f"{group.title}: the metric {metric!r} does not score it.")
            continue
        compared = _compare_task(group, chosen)
        if compared.items:
            found.append(_with_absent(compared, runs, group))
        else:
            notes.append(" ".join([f"{group.title}: no item is common to the systems.", *compared.notes]))
    if not found:
        raise DataError(f"Nothing can be compared. {' '.join(notes)}")
    sample = any(run.results["run"]["data"] == "sample" for run in runs)
    return Comparison(tasks=tuple(found), notes=tuple(notes), sample=sample)


def _with_absent(compared: TaskComparison, runs: Sequence[Run], group: SystemGroup) -> TaskComparison:
    present = [system.run.path for system in group.systems]
    absent = [run for run in runs if run.path not in present]
    notes = [f"{run.manifest['model']} ({run.path}) did not finish it: left out." for run in absent]
    return replace(compared, notes=(*notes, *compared.notes))


def _chosen(metrics: Table[Metric], name: str | None, group: SystemGroup) -> list[Metric]:
    """Return the metrics of a task: the one that was asked for where it fits, or the headline of the first system."""
    kinds = {system.spec["kind"] for system in group.systems}
    if len(kinds) > 1:
        told = " and ".join(sorted(kinds))
        raise DataError(f"The runs hold different tasks under the name {group.task!r}: {told}.")
    names = [name] if name is not None else group.systems[0].spec["headline"]
    found = [each for each in map(metrics.get, names) if kinds <= each.kinds]
    for each in found:
        if each.ready is not None:
            each.ready()
    return found


def _compare_task(group: SystemGroup, metrics: Sequence[Metric]) -> TaskComparison:
    systems = group.systems
    common = [code for code in systems[0].cells if all(code in system.cells for system in systems)]
    parts = [_join(code, systems, metrics) for code in common]
    full = [part for part in parts if part.comparison.ids]
    return TaskComparison(
        task=group.task,
        title=group.title,
        view=group.view,
        systems=tuple(system.name for system in systems),
        languages=tuple(part.comparison for part in full),
        scores=tuple(_mean(metric.name, full) for metric in metrics) if full else (),
        costs=tuple(_total([part.comparison.costs[index] for part in full]) for index in range(len(systems))),
        agreement=agreement([part.answers for part in full], [part.right for part in full]),
        notes=(*_left_out_languages(systems, common), *_left_out_items(parts, systems), *_pools(systems)),
    )


def _join(code: str, systems: Sequence[System], metrics: Sequence[Metric]) -> _Items:
    by_id = [{record.id: record for record in system.run.records(system.cells[code])} for system in systems]
    everywhere = set.intersection(*(set(found) for found in by_id))
    anywhere = set.union(*(set(found) for found in by_id))
    shared = [identifier for identifier in by_id[0] if identifier in everywhere]
    same = [each for each in shared if len({found[each].inputs_digest for found in by_id}) == 1]
    graded = [
        each for each in same if all(found[each].reference == by_id[0][each].reference for found in by_id)
    ]
    ids = tuple(each for each in graded if by_id[0][each].reference is not None)
    records = tuple(tuple(found[each] for each in ids) for found in by_id)
    scores, item_scores = _score(code, systems, metrics, records) if ids else ((), {})
    answers = tuple(tuple(answer_of(record) for record in own) for own in records)
    right = right_items(item_scores.get(metrics[0].name), answers, records)
    comparison = LanguageComparison(
        language=code,
        ids=ids,
        scores=scores,
        costs=tuple(
            _costs(system.cells[code], own, list(found.values()))
            for system, own, found in zip(systems, records, by_id, strict=True)
        ),
        lacking=tuple(len(anywhere - set(found)) for found in by_id),
        differing=len(shared) - len(same),
        regraded=len(same) - len(graded),
        unlabelled=len(graded) - len(ids),
        all_right=_ids_with(ids, np.flatnonzero(right.all(axis=0))),
        none_right=_ids_with(ids, np.flatnonzero(~right.any(axis=0))),
    )
    return _Items(
        comparison=comparison,
        records=records,
        item_scores=item_scores,
        answers=answers,
        right=right,
        parallel=bool(systems[0].spec.get("parallel")),
    )


def _ids_with(ids: Sequence[str], rows: npt.NDArray[np.intp]) -> tuple[str, ...]:
    return tuple(ids[row] for row in rows.tolist())


def _score(
    code: str,
    systems: Sequence[System],
    metrics: Sequence[Metric],
    records: Sequence[Sequence[ItemRecord]],
) -> tuple[tuple[Scores, ...], dict[str, tuple[Floats, ...]]]:
    """Return the scores of one language, and the item scores of the metrics that have them."""
    scored = []
    for system, own in zip(systems, records, strict=True):
        context = MetricContext(
            language=code, labels=tuple(system.spec["labels"]), options=system.spec["metric_options"]
        )
        inputs = [
            ScoreInput(id=item.id, prediction=item.prediction, reference=item.reference, cluster=item.cluster)
            for item in own
        ]
        try:
            scored.append(score_cell(metrics, inputs, context))
        except HarnessError as error:
            raise HarnessError(f"{system.name} in {code!r}: {error}") from error
    scores, item_scores = [], {}
    for metric in metrics:
        values = tuple(cell.metrics[metric.name].value for cell in scored)
        contributions = [cell.items.get(metric.name) for cell in scored]
        if metric.from_counts is None and all(items is not None for items in contributions):
            item_scores[metric.name] = tuple(np.asarray(items, dtype=np.float64) for items in contributions)
        own_items = item_scores.get(metric.name)
        keys = [_keys(code, item, parallel=False) for item in records[0]]
        strata = np.zeros(len(keys), dtype=np.int64)
        differences = _differences(values, own_items, strata, keys)
        scores.append(Scores(metric=metric.name, values=values, differences=differences))
    return tuple(scores), item_scores


def _differences(
    values: Sequence[float],
    items: Sequence[Floats] | None,
    strata: npt.NDArray[np.int64],
    keys: Sequence[Sequence[Hashable]],
) -> tuple[Difference | None, ...]:
    found: list[Difference | None] = [None]
    for index, value in enumerate(values[1:], start=1):
        if items is None:
            found.append(Difference(value=value - values[0]))
        else:
            interval = paired_difference(items[index] - items[0], strata, keys)
            found.append(
                Difference(
                    value=value - values[0], low=interval.low, high=interval.high, method=interval.method
                )
            )
    return tuple(found)


def _keys(code: str, item: ItemRecord, *, parallel: bool) -> list[Hashable]:
    """Return what marks the draw of an item: its cluster in its language and, across languages, its id."""
    keys: list[Hashable] = [] if item.cluster is None else [("cluster", code, item.cluster)]
    return [*keys, ("id", item.id)] if parallel else keys


def _mean(metric: str, parts: Sequence[_Items]) -> Scores:
    """Return the unweighted mean of a metric over languages, with paired intervals where it has item scores."""
    by_language = [
        next(each for each in part.comparison.scores if each.metric == metric).values for part in parts
    ]
    values = tuple(fmean(column) for column in zip(*by_language, strict=True))
    if any(metric not in part.item_scores for part in parts):
        items = None
    else:
        items = [
            np.concatenate([part.item_scores[metric][index] for part in parts])
            for index in range(len(values))
        ]
    strata = np.repeat(np.arange(len(parts)), [len(part.comparison.ids) for part in parts])
    keys = [
        _keys(part.comparison.language, item, parallel=part.parallel)
        for part in parts
        for item in part.records[0]
    ]
    return Scores(metric=metric, values=values, differences=_differences(values, items, strata, keys))


def _costs(cell: Cell, common: Sequence[ItemRecord], every: Sequence[ItemRecord]) -> Costs:
    ranked = [
        sum(record.prediction["tokens"])
        for record in every
        if isinstance(record.prediction, Mapping) and "tokens" in record.prediction
    ]
    return Costs(
        unparsed=sum(bool(record.flags.get("unparsed")) for record in common),
        truncated=sum(bool(record.flags.get("truncated")) for record in common),
        dropped_shots=cell.get("dropped_shots", 0),
        tokens=cell.get("tokens") or (sum(ranked) if ranked else None),
        seconds=cell.get("seconds", 0.0),
    )


def _total(costs: Sequence[Costs]) -> Costs:
    tokens = [cost.tokens for cost in costs if cost.tokens is not None]
    return Costs(
        unparsed=sum(cost.unparsed for cost in costs),
        truncated=sum(cost.truncated for cost in costs),
        dropped_shots=sum(cost.dropped_shots for cost in costs),
        tokens=sum(tokens) if tokens else None,
        seconds=sum(cost.seconds for cost in costs),
    )


def _left_out_languages(systems: Sequence[System], common: Sequence[str]) -> list[str]:
    notes = []
    for system in systems:
        lacks = sorted({code for other in systems for code in other.cells} - set(system.cells))
        if lacks:
            notes.append(f"{system.name} did not finish {' '.join(lacks)}: left out.")
    return notes if common or notes else ["The systems have no language in common."]


def _left_out_items(parts: Sequence[_Items], systems: Sequence[System]) -> list[str]:
    compared = [part.comparison for part in parts]
    notes = []
    for index, system in enumerate(systems):
        lacking = sum(part.lacking[index] for part in compared)
        if lacking:
            notes.append(f"Items left out that {system.name} lacks: {lacking}.")
    for name, reason in LEFT_OUT.items():
        count = sum(getattr(part, name) for part in compared)
        if count:
            notes.append(f"Items left out {reason}: {count}.")
    return notes


def _pools(systems: Sequence[System]) -> list[str]:
    digests = {
        (code, cell["pool"]["digest"])
        for system in systems
        for code, cell in system.cells.items()
        if cell.get("pool")
    }
    languages = {code for code, _ in digests}
    return ["The candidates that were searched are not the same."] if len(digests) > len(languages) else []
