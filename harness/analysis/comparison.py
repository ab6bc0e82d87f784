"""Compares systems item by item: scores on common items, paired differences, agreement, and what answering cost.

Cells are joined on task, language and the conditions that change the items (the variant and the axes of the spec).
What differs otherwise, such as the seed or the prompt, makes systems; those of different protocols are compared only
where nothing else differs, or there is nothing else to compare. An item is common when every
system has it with the same inputs and the same gold answer; all others are counted and skipped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from harness.analysis.significance import ComparedItems, Scores, assess, power_notes
from harness.analysis.systems import (
    ItemMatch,
    System,
    SystemGroup,
    group_systems,
    match_items,
    run_difference_notes,
)
from harness.errors import DataError, HarnessError, UsageError
from harness.metrics.metric import Metric
from harness.metrics.scoring import score_cell, task_context
from harness.progress import show_step
from harness.statistics.interval import Booleans, Floats
from harness.storage.records import ItemRecord
from harness.storage.results import CellResult
from harness.storage.run_folder import Run
from harness.table import NamedTable

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


SUMMED = ("unparsed", "truncated", "dropped_shots", "seconds")
"""Fields of `Costs` that always have a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Shares of the common items, by pairs of systems."""

    same: tuple[tuple[float, ...], ...]
    """Both gave the same answer; an answer that could not be read equals none."""
    right: tuple[tuple[float, ...], ...]
    """Both are right; on the diagonal the share that the system itself has right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageComparison(ItemMatch):
    """The common items of one language."""

    language: str
    scores: tuple[Scores, ...]
    costs: tuple[Costs, ...]
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
        return sum(len(language.ids) for language in self.languages)


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
    contributions: Mapping[str, ComparedItems]
    """By metric."""
    answers: Sequence[Sequence[str | None]]
    """By system."""
    right: Booleans
    """Shape (systems, items)."""


def compare(
    runs: Sequence[Run],
    metrics: NamedTable[Metric],
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
    comparisons: list[TaskComparison] = []
    notes: list[str] = []
    for group in group_systems(runs, tasks=tasks, languages=languages, alike=True):
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
            comparisons.append(_with_absent(compared, runs, group))
        else:
            notes.append(" ".join([f"{group.title}: no item is common to the systems.", *compared.notes]))
    if not comparisons:
        raise DataError(f"Nothing can be compared. {' '.join(notes)}")
    sample = any(run.results.run.data == "sample" for run in runs)
    return Comparison(tasks=tuple(comparisons), notes=(*notes, *run_difference_notes(runs)), sample=sample)


def _with_absent(compared: TaskComparison, runs: Sequence[Run], group: SystemGroup) -> TaskComparison:
    present = [system.run.path for system in group.systems]
    # Where protocols of one model are compared, further runs have no part.
    absent = [run for run in runs if run.path not in present and len(group.protocols) < 2]
    notes = [f"{run.manifest.model_name} ({run.path}) did not finish it: skipped." for run in absent]
    return replace(compared, notes=(*notes, *compared.notes))


def compare_group(
    group: SystemGroup, metrics: NamedTable[Metric], *, metric: str | None = None
) -> TaskComparison | None:
    """Return the comparison of the systems of one task; None where the metric does not score it.

    Args:
        group: At least two systems.
        metrics: The registry's.
        metric: The metric to score with; None takes the headline metrics of the first system's task.

    Raises:
        DataError: Where the systems did different tasks of one name, or records are broken.
    """
    systems, names = group.systems, [system.name for system in group.systems]
    kinds = {system.spec.kind for system in systems}
    if len(kinds) > 1:
        kinds_found = " and ".join(sorted(kinds))
        raise DataError(f"The runs hold different tasks under the name {group.task!r}: {kinds_found}.")
    headline = systems[0].spec.headline if metric is None else [metric]
    chosen = [each for each in map(metrics.get, headline) if kinds <= each.kinds]
    if not chosen:
        return None
    for each in chosen:
        if each.ready is not None:
            each.ready()
    joined = _joined(systems, chosen)
    full = [items for items in joined if items.comparison.ids]
    assessed = [
        assess(each, [items.contributions[each.name] for items in full], task=group.task)
        for each in (chosen if full else ())
    ]
    scores = tuple(mean for mean, _ in assessed)
    return TaskComparison(
        task=group.task,
        title=group.title,
        view=group.view,
        systems=tuple(names),
        languages=tuple(
            replace(items.comparison, scores=tuple(languages[at] for _, languages in assessed))
            for at, items in enumerate(full)
        ),
        scores=scores,
        costs=tuple(_total([items.comparison.costs[at] for items in full]) for at in range(len(systems))),
        agreement=_agreement(full),
        notes=(
            *_left_out_languages(systems, bool(joined)),
            *_left_out_items(joined, systems),
            *_unequal(systems),
            *(note for score in scores for note in power_notes(score, names)),
        ),
    )


def shared_items(systems: Sequence[System], metric: Metric) -> tuple[list[ComparedItems], int]:
    """Return the common items of systems by language, and how many are skipped: not the same, or not in all systems.

    Raises `DataError` as `compare`.
    """
    joined = _joined(systems, [metric])
    compared = [items.comparison for items in joined]
    skipped = sum(max(language.missing) + language.differing + language.regraded for language in compared)
    return [items.contributions[metric.name] for items in joined if items.comparison.ids], skipped


def _joined(systems: Sequence[System], metrics: Sequence[Metric]) -> list[_Items]:
    """Return the languages that all systems have."""
    common = [code for code in systems[0].cells if all(code in system.cells for system in systems)]
    return [_join(code, systems, metrics) for code in common]


def _join(code: str, systems: Sequence[System], metrics: Sequence[Metric]) -> _Items:
    by_id = [{record.id: record for record in system.run.records(system.cells[code])} for system in systems]
    match = match_items(
        [
            {name: (record.inputs_digest, record.reference) for name, record in recorded.items()}
            for recorded in by_id
        ]
    )
    records = [[recorded[name] for name in match.ids] for recorded in by_id]
    contributions = _score(code, systems, metrics, records) if match.ids else {}
    answers = [[None if item.flags.get("unparsed") else item.answer for item in items] for items in records]
    scores = contributions[metrics[0].name].scores if match.ids else np.empty((len(systems), 0))
    # A full item score or, for set-level metrics, the gold answer itself.
    right = scores >= 1.0 if scores.ndim == 2 else np.array([[*map(_is_right, items)] for items in records])
    comparison = LanguageComparison(
        **asdict(match),
        language=code,
        scores=(),
        costs=tuple(
            _costs(system.cells[code], common, every.values())
            for system, common, every in zip(systems, records, by_id, strict=True)
        ),
        all_right=tuple(itertools.compress(match.ids, map(np.all, right.T))),
        none_right=tuple(itertools.compress(match.ids, map(np.all, ~right.T))),
    )
    return _Items(comparison=comparison, contributions=contributions, answers=answers, right=right)


def _score(
    code: str, systems: Sequence[System], metrics: Sequence[Metric], records: Sequence[Sequence[ItemRecord]]
) -> dict[str, ComparedItems]:
    """Return by metric the scores of one language, and what its items contribute."""
    scored = []
    for system, system_records in zip(systems, records, strict=True):
        try:
            scored.append(score_cell(metrics, system_records, task_context(system.spec, code)))
        except HarnessError as error:
            raise HarnessError(f"{system.name} in {code!r}: {error}") from error
    rows = {metric.name: [cell.items.get(metric.name, ()) for cell in scored] for metric in metrics}
    return {
        name: ComparedItems(
            language=code,
            ids=[item.id for item in records[0]],
            clusters=[item.cluster for item in records[0]],
            values=tuple(cell.metrics[name].value for cell in scored),
            scores=np.array(contributed if all(map(len, contributed)) else [], np.float64),
            parallel=systems[0].spec.parallel and code not in systems[0].spec.unpaired,
        )
        for name, contributed in rows.items()
    }


def _costs(cell: CellResult, common: Sequence[ItemRecord], every: Iterable[ItemRecord]) -> Costs:
    predictions = [record.prediction for record in every if isinstance(record.prediction, Mapping)]
    ranked = [sum(prediction["tokens"]) for prediction in predictions if "tokens" in prediction]
    return Costs(
        unparsed=sum(bool(record.flags.get("unparsed")) for record in common),
        truncated=sum(bool(record.flags.get("truncated")) for record in common),
        dropped_shots=cell.dropped_shots,
        tokens=cell.tokens or (sum(ranked) if ranked else None),
        seconds=cell.seconds,
    )


def _total(costs: Sequence[Costs]) -> Costs:
    tokens = [cost.tokens for cost in costs if cost.tokens is not None]
    sums: dict[str, Any] = {name: sum(getattr(cost, name) for cost in costs) for name in SUMMED}
    return Costs(**sums, tokens=sum(tokens) if tokens else None)


def _left_out_languages(systems: Sequence[System], has_common: bool = True) -> list[str]:
    codes = {code for system in systems for code in system.cells}
    notes = [
        f"{system.name} did not finish {' '.join(sorted(codes - set(system.cells)))}: skipped."
        for system in systems
        if codes - set(system.cells)
    ]
    return notes if has_common or notes else ["The systems have no language in common."]


def _left_out_items(joined: Sequence[_Items], systems: Sequence[System]) -> list[str]:
    compared = [items.comparison for items in joined]
    counts = {
        f"that {system.name} does not have": sum(language.missing[at] for language in compared)
        for at, system in enumerate(systems)
    }
    for name, reason in LEFT_OUT.items():
        counts[reason] = sum(getattr(language, name) for language in compared)
    return [f"Skipped items {reason}: {count}." for reason, count in counts.items() if count]


def _unequal(systems: Sequence[System]) -> list[str]:
    """Return the differences between systems on the same items: protocol, candidates and version of the task."""
    notes = []
    cells = [(code, cell) for system in systems for code, cell in system.cells.items()]
    protocols = dict.fromkeys(str(cell.protocol) for _, cell in cells)
    if len(protocols) > 1 and len({system.run.manifest.model for system in systems}) > 1:
        notes.append(f"The protocols are not the same: {' and '.join(protocols)}.")
    digests = {(code, cell.pool["digest"]) for code, cell in cells if cell.pool}
    if len(digests) > len({code for code, _ in digests}):
        notes.append("The candidates that were searched are not the same.")
    versions = {str(cell.version) for _, cell in cells if cell.version is not None}
    if len(versions) > 1:
        notes.append(f"The versions of the task are not the same: {' and '.join(sorted(versions))}.")
    return notes


def _require_equal(group: SystemGroup, compared: TaskComparison) -> None:
    """Raise `UsageError` where systems do not have the same items, version of the task, and test data."""
    systems = group.systems
    reasons = [*_left_out_languages(systems), *_unequal(systems)]
    for language in compared.languages:
        counts = {name: getattr(language, name) for name in ("missing", "differing", "regraded")}
        counts["missing"] = sum(language.missing)
        differences = [f"{count} {name}" for name, count in counts.items() if count]
        if differences:
            reasons.append(f"Items in {language.language}: {', '.join(differences)}.")
        digests = {system.cells[language.language].data.get("digest") for system in systems}
        if len(digests) > 1:
            reasons.append(f"The test data in {language.language} are not the same files.")
    if reasons or not compared.items:
        raise UsageError(
            f"{group.title}: the systems were not asked the same. {' '.join(reasons or compared.notes)}",
            hint="Without --strict they are compared on the items that they have in common.",
        )


def _is_right(record: ItemRecord) -> bool:
    """Return whether an item is wholly right: by its own verdict or, of texts, where it is one of the gold ones."""
    if record.flags.get("unparsed"):
        return False
    texts = record.reference if isinstance(record.reference, list) else [record.reference]
    is_correct = record.correct
    return record.answer in texts if is_correct is None else is_correct


def _agreement(joined: Sequence[_Items]) -> Agreement:
    """Return the agreement over the items of all languages together."""
    count = len(joined[0].answers) if joined else 0
    total = sum(items.right.shape[1] for items in joined) or 1
    same, both = np.zeros((count, count)), np.zeros((count, count))
    for items in joined:
        both += items.right.astype(np.float64) @ items.right.T.astype(np.float64)
        for first, second in itertools.product(range(count), repeat=2):
            pairs = zip(items.answers[first], items.answers[second], strict=True)
            same[first, second] += sum(one is not None and one == other for one, other in pairs)
    return Agreement(same=_rows(same / total), right=_rows(both / total))


def _rows(shares: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, shares.tolist()))
