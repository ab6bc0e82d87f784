"""Compares systems item by item: scores on common items, paired differences, agreement, and what answering cost.

Cells are joined on task, language and the conditions that change the items (the variant and the axes of the spec).
What differs otherwise, such as the protocol, the seed or the prompt, makes systems. An item is common when every
system has it with the same inputs and the same gold answer; all others are counted and skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from harness.analysis.agreement import Agreement, agreement, answer_of, right_items
from harness.analysis.significance import LanguageItems, Scores, assess, bound_note, detectable_note
from harness.analysis.systems import System, SystemGroup, group_systems
from harness.errors import DataError, HarnessError, UsageError
from harness.metrics.metric import Metric, MetricContext
from harness.metrics.scoring import ScoreInput, score_cell
from harness.progress import show_step
from harness.storage.records import ItemRecord
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

if TYPE_CHECKING:
    from harness.table import Table

__all__ = [
    "Comparison",
    "Costs",
    "LanguageComparison",
    "SharedItems",
    "TaskComparison",
    "compare",
    "compare_group",
    "shared_items",
]

LEFT_OUT = {
    "differing": "whose inputs differ between the runs",
    "regraded": "whose gold answers differ between the runs",
    "unlabelled": "without a gold answer",
}
"""Counts of `LanguageComparison`, and what they say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Failed answers of a system and their costs: flags of the common items, and sums over its whole cells."""

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
    missing: tuple[int, ...]
    """By system: items that it does not have and another one has."""
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
    contributions: Mapping[str, LanguageItems]
    """By metric."""
    answers: tuple[tuple[str | None, ...], ...]
    right: npt.NDArray[np.bool_]
    """Shape (systems, items)."""
    parallel: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedItems:
    """What the items that all systems answered contribute to one metric."""

    parts: tuple[LanguageItems, ...]
    linked: bool
    """Whether items of the same id in several languages are one draw."""
    unpaired: tuple[str, ...]
    """Languages that this does not hold for."""
    skipped: int
    """Items that are not the same in all systems, or that some do not have."""


def compare(
    runs: Sequence[Run],
    metrics: Table[Metric],
    *,
    tasks: Sequence[str] = (),
    languages: Sequence[str] = (),
    metric: str | None = None,
    strict: bool = False,
) -> Comparison:
    """Return the comparison of every task that at least two systems finished.

    Args:
        runs: Run folders; their first system is what the others are compared with.
        metrics: The registry's.
        tasks: Names or globs to restrict it to; none takes all.
        languages: Codes to restrict it to; none takes all.
        metric: The metric to score with; None takes the headline metrics of each task.
        strict: Whether systems must have the same items, the same version of the task and the same test data.

    Raises:
        UsageError: For names that no run has, and where no task was finished by two systems; with `strict`, where
            systems differ in what they were asked.
        DataError: Where no item is common to the systems of any task, or records are broken.
    """
    found: list[TaskComparison] = []
    notes: list[str] = []
    for group in group_systems(runs, tasks=tasks, languages=languages):
        if len(group.systems) < 2:
            notes.append(f"{group.title}: only {group.systems[0].name} finished it.")
            continue
        show_step(f"Comparison: {group.title}")
        compared = compare_group(group, metrics, metric=metric)
        if compared is None:
            notes.append(f"{group.title}: the metric {metric!r} does not score it.")
            continue
        if strict:
            _require_equal(group, compared)
        if compared.items:
            found.append(_with_absent(compared, runs, group))
        else:
            notes.append(" ".join([f"{group.title}: no item is common to the systems.", *compared.notes]))
    if not found:
        raise DataError(f"Nothing can be compared. {' '.join(notes)}")
    sample = any(run.results.run.data == "sample" for run in runs)
    return Comparison(tasks=tuple(found), notes=tuple(notes), sample=sample)


def _with_absent(compared: TaskComparison, runs: Sequence[Run], group: SystemGroup) -> TaskComparison:
    present = [system.run.path for system in group.systems]
    absent = [run for run in runs if run.path not in present]
    notes = [f"{run.manifest.model} ({run.path}) did not finish it: skipped." for run in absent]
    return replace(compared, notes=(*notes, *compared.notes))


def _chosen(metrics: Table[Metric], name: str | None, group: SystemGroup) -> list[Metric]:
    """Return the metrics of a task: the one that was asked for where it fits, or the headline of the first system."""
    kinds = {system.spec.kind for system in group.systems}
    if len(kinds) > 1:
        kinds_found = " and ".join(sorted(kinds))
        raise DataError(f"The runs hold different tasks under the name {group.task!r}: {kinds_found}.")
    names = [name] if name is not None else group.systems[0].spec.headline
    found = [each for each in map(metrics.get, names) if kinds <= each.kinds]
    for each in found:
        if each.ready is not None:
            each.ready()
    return found


def compare_group(
    group: SystemGroup, metrics: Table[Metric], *, metric: str | None = None
) -> TaskComparison | None:
    """Return the comparison of the systems of one task; None where the metric does not score it.

    Args:
        group: At least two systems.
        metrics: The registry's.
        metric: The metric to score with; None takes the headline metrics of the first system's task.

    Raises:
        DataError: Where the systems did different tasks of one name, or records are broken.
    """
    chosen = _chosen(metrics, metric, group)
    return _compare_task(group, chosen) if chosen else None


def shared_items(group: SystemGroup, metric: Metric) -> SharedItems:
    """Return the common items of systems in the languages that all of them have; raises `DataError` as `compare`."""
    systems = group.systems
    common = [code for code in systems[0].cells if all(code in system.cells for system in systems)]
    joined = [_join(code, systems, [metric]) for code in common]
    full = [part for part in joined if part.comparison.ids]
    return SharedItems(
        parts=tuple(part.contributions[metric.name] for part in full),
        linked=any(part.parallel for part in full),
        unpaired=tuple(part.comparison.language for part in full if not part.parallel),
        skipped=sum(
            max(own.missing) + own.differing + own.regraded for own in (p.comparison for p in joined)
        ),
    )


def _compare_task(group: SystemGroup, metrics: Sequence[Metric]) -> TaskComparison:
    systems = group.systems
    common = [code for code in systems[0].cells if all(code in system.cells for system in systems)]
    parts = [_join(code, systems, metrics) for code in common]
    full = [part for part in parts if part.comparison.ids]
    scores, languages = _assessed(group.task, metrics, full)
    return TaskComparison(
        task=group.task,
        title=group.title,
        view=group.view,
        systems=tuple(system.name for system in systems),
        languages=tuple(languages),
        scores=tuple(scores),
        costs=tuple(_total([part.comparison.costs[index] for part in full]) for index in range(len(systems))),
        agreement=agreement([part.answers for part in full], [part.right for part in full]),
        notes=(
            *_left_out_languages(systems, common),
            *_left_out_items(parts, systems),
            *_unequal(systems),
            *filter(
                None,
                (
                    note(own, [system.name for system in systems])
                    for own in scores
                    for note in (bound_note, detectable_note)
                ),
            ),
        ),
    )


def _assessed(
    task: str, metrics: Sequence[Metric], parts: Sequence[_Items]
) -> tuple[list[Scores], list[LanguageComparison]]:
    """Return the means over languages by metric, and the languages with their scores."""
    if not parts:
        return [], []
    linked = any(part.parallel for part in parts)
    unpaired = [part.comparison.language for part in parts if not part.parallel]
    found = [
        assess(
            metric,
            [part.contributions[metric.name] for part in parts],
            task=task,
            linked=linked,
            unpaired=unpaired,
        )
        for metric in metrics
    ]
    languages = [
        replace(part.comparison, scores=tuple(own[place] for _, own in found))
        for place, part in enumerate(parts)
    ]
    return [mean for mean, _ in found], languages


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
    contributions = _score(code, systems, metrics, records) if ids else {}
    answers = tuple(tuple(answer_of(record) for record in own) for own in records)
    rows = contributions[metrics[0].name].rows if ids else None
    right = right_items(None if rows is None or rows.ndim > 2 else list(rows), answers, records)
    comparison = LanguageComparison(
        language=code,
        ids=ids,
        scores=(),
        costs=tuple(
            _costs(system.cells[code], own, list(found.values()))
            for system, own, found in zip(systems, records, by_id, strict=True)
        ),
        missing=tuple(len(anywhere - set(found)) for found in by_id),
        differing=len(shared) - len(same),
        regraded=len(same) - len(graded),
        unlabelled=len(graded) - len(ids),
        all_right=_ids_with(ids, np.flatnonzero(right.all(axis=0))),
        none_right=_ids_with(ids, np.flatnonzero(~right.any(axis=0))),
    )
    return _Items(
        comparison=comparison,
        records=records,
        contributions=contributions,
        answers=answers,
        right=right,
        parallel=systems[0].spec.parallel and code not in systems[0].spec.unpaired,
    )


def _ids_with(ids: Sequence[str], rows: npt.NDArray[np.intp]) -> tuple[str, ...]:
    return tuple(ids[row] for row in rows.tolist())


def _score(
    code: str,
    systems: Sequence[System],
    metrics: Sequence[Metric],
    records: Sequence[Sequence[ItemRecord]],
) -> dict[str, LanguageItems]:
    """Return by metric the scores of one language, and what its items contribute."""
    scored = []
    for system, own in zip(systems, records, strict=True):
        context = MetricContext(
            language=system.spec.answer_language or code,
            labels=tuple(system.spec.labels),
            options=system.spec.metric_options,
        )
        inputs = [ScoreInput.of(item) for item in own]
        try:
            scored.append(score_cell(metrics, inputs, context))
        except HarnessError as error:
            raise HarnessError(f"{system.name} in {code!r}: {error}") from error
    found = {}
    for metric in metrics:
        contributed = [cell.items.get(metric.name) for cell in scored]
        known = all(rows is not None for rows in contributed)
        found[metric.name] = LanguageItems(
            language=code,
            ids=[item.id for item in records[0]],
            clusters=[item.cluster for item in records[0]],
            values=tuple(cell.metrics[metric.name].value for cell in scored),
            rows=np.array(contributed, dtype=np.float64) if known and contributed else None,
        )
    return found


def _costs(cell: CellResult, common: Sequence[ItemRecord], every: Sequence[ItemRecord]) -> Costs:
    ranked = [
        sum(record.prediction["tokens"])
        for record in every
        if isinstance(record.prediction, Mapping) and "tokens" in record.prediction
    ]
    return Costs(
        unparsed=sum(bool(record.flags.get("unparsed")) for record in common),
        truncated=sum(bool(record.flags.get("truncated")) for record in common),
        dropped_shots=cell.dropped_shots,
        tokens=cell.tokens or (sum(ranked) if ranked else None),
        seconds=cell.seconds,
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
        unfinished = sorted({code for other in systems for code in other.cells} - set(system.cells))
        if unfinished:
            notes.append(f"{system.name} did not finish {' '.join(unfinished)}: skipped.")
    return notes if common or notes else ["The systems have no language in common."]


def _left_out_items(parts: Sequence[_Items], systems: Sequence[System]) -> list[str]:
    compared = [part.comparison for part in parts]
    notes = []
    for index, system in enumerate(systems):
        missing = sum(part.missing[index] for part in compared)
        if missing:
            notes.append(f"Skipped items that {system.name} does not have: {missing}.")
    for name, reason in LEFT_OUT.items():
        count = sum(getattr(part, name) for part in compared)
        if count:
            notes.append(f"Skipped items {reason}: {count}.")
    return notes


def _unequal(systems: Sequence[System]) -> list[str]:
    """Return what systems were asked differently although their items are the same."""
    notes = []
    digests = {
        (code, cell.pool["digest"]) for system in systems for code, cell in system.cells.items() if cell.pool
    }
    if len(digests) > len({code for code, _ in digests}):
        notes.append("The candidates that were searched are not the same.")
    versions = {
        str(cell.version) for system in systems for cell in system.cells.values() if cell.version is not None
    }
    if len(versions) > 1:
        notes.append(f"The versions of the task are not the same: {' and '.join(sorted(versions))}.")
    return notes


def _require_equal(group: SystemGroup, compared: TaskComparison) -> None:
    """Raise `UsageError` where systems do not have the same items, version of the task, and test data."""
    systems = group.systems
    found = [*_left_out_languages(systems, ["any"]), *_unequal(systems)]
    for part in compared.languages:
        counts = {"missing": sum(part.missing), "differing": part.differing, "regraded": part.regraded}
        differences = [f"{count} {name}" for name, count in counts.items() if count]
        if differences:
            found.append(f"Items in {part.language}: {', '.join(differences)}.")
        digests = {system.cells[part.language].data.get("digest") for system in systems}
        if len(digests) > 1:
            found.append(f"The test data in {part.language} are not the same files.")
    if found or not compared.items:
        raise UsageError(
            f"{group.title}: the systems were not asked the same. {' '.join(found or compared.notes)}",
            hint="Without --strict they are compared on the items that they have in common.",
        )
