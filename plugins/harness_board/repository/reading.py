"""A results repository as the board reads it: its files as runs in memory, and so the same way to the board as runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from pathlib import Path
from statistics import fmean

from pydantic import ValidationError

from harness import Run, UsageError
from harness.scores import aggregate_tasks, cells_of_row, group_cells
from harness.specs import read_yaml, validate_document
from harness.storage import CellResult, RunResults, TaskScore, TaskSummary
from harness_board.document import System, TaskColumn
from harness_board.published import SystemMetadata, read_metadata
from harness_board.repository.entry import FOLDER, LanguageMean, ModelScore, RepositoryEntry, file_name
from harness_board.run_reading import run_systems, run_tasks

METADATA = "models"
"""The folder of what is stated of models, one YAML file each."""
PARTIAL = "on fewer items than the test or training set has"
SAME_MEAN = 2e-6
"""Of rounded scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResults:
    """What a board takes from a repository."""

    columns: tuple[TaskColumn, ...] = ()
    systems: tuple[System, ...] = ()
    metadata: tuple[SystemMetadata, ...] = ()
    dates: tuple[date, ...] = ()
    """When the runs were made."""


def entry_files(repository: Path) -> list[Path]:
    """Return all files below ``results``, sorted; raises `UsageError` where the folder is no results repository."""
    folder = repository / FOLDER
    if not folder.is_dir():
        raise UsageError(
            f"The folder {str(repository)!r} is no results repository: it has no folder {FOLDER!r}.",
            hint="Start with a copy of examples/results-repository, or with harness results add RUN --to DIR.",
        )
    return sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())


def metadata_files(repository: Path) -> list[Path]:
    """Return the files that describe models, sorted."""
    return sorted((repository / METADATA).glob("*.yaml"))


def parse_entry(text: str, source: str) -> RepositoryEntry:
    """Return a file's content; raises `SpecError` with all its faults and their lines."""
    try:
        return RepositoryEntry.model_validate_json(text, strict=True)
    except ValidationError:
        return validate_document(RepositoryEntry, read_yaml(text, source))


def read_entry(path: Path) -> RepositoryEntry:
    """Return one file; raises `UsageError` where it cannot be read, and `SpecError` for its faults."""
    try:
        return parse_entry(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"The file {str(path)!r} cannot be read: {reason}.") from error


def read_repository(repository: Path) -> StoredResults:
    """Return the results of a repository for a board; raises `UsageError` for none, an empty or a faulty one."""
    files = [path for path in entry_files(repository) if path.suffix == ".json"]
    if not files:
        raise UsageError(
            f"The results repository {str(repository)!r} is empty.",
            hint=f"Add a run: harness results add RUN --to {repository}",
        )
    newest: dict[str, int] = {}
    for path in files:
        task, _, version = path.stem.rpartition("-v")
        newest[task] = max(newest.get(task, 0), int(version) if version.isdecimal() else 0)
    columns: list[TaskColumn] = []
    systems: list[System] = []
    dates: list[date] = []
    # Model by model, so that never more than the files of one are in memory.
    for _, paths in groupby(files, key=lambda path: path.parent):
        entries = [_entry_in_place(path, repository) for path in paths]
        model = entries[0].model
        named = {_column_name(entry, newest): entry for entry in entries}
        run = _run(model, named, repository)
        columns += run_tasks(run)
        partial = {
            task for task, entry in named.items() if any(score.partial for score in _newest_scores(entry))
        }
        systems += [_marked(system, partial) for system in run_systems(run)]
        dates += [date.fromisoformat(run.created[:10]) for entry in entries for run in entry.runs]
    stated = tuple(read_metadata(path) for path in metadata_files(repository))
    return StoredResults(columns=tuple(columns), systems=tuple(systems), metadata=stated, dates=tuple(dates))


def _entry_in_place(path: Path, repository: Path) -> RepositoryEntry:
    entry = read_entry(path)
    if repository / entry.path != path:
        raise UsageError(
            f"The file {str(path)!r} belongs into {str(entry.path)!r}.",
            hint=f"Try: harness results check {repository}",
        )
    return entry


def _column_name(entry: RepositoryEntry, newest: Mapping[str, int]) -> str:
    """Return the name of a task on the board: an older version is a task of its own."""
    task = entry.task
    return (
        task.name if task.version >= newest.get(file_name(task.name), 0) else f"{task.name}-v{task.version}"
    )


def _newest_scores(entry: RepositoryEntry) -> Iterator[ModelScore]:
    """Yield the scores that count: of a language, condition and seed that of the newest run, on the test split first.

    A newer version of the harness may have another text of the same prompt.
    """
    scores = [(run.created, score) for run in entry.runs for score in run.scores]
    scores.sort(key=lambda pair: (not pair[1].stands_in, pair[0]))
    yield from {(score.language, score.condition, score.seed): score for _, score in scores}.values()


def _run(model: str, entries: Mapping[str, RepositoryEntry], repository: Path) -> Run:
    """Return the run in memory that would have all scores of a model."""
    tasks = {name: _summary(entry) for name, entry in entries.items()}
    cells = [_cell(name, score) for name, entry in entries.items() for score in _newest_scores(entry)]
    groups = group_cells(cells)
    rows = []
    for row in aggregate_tasks(cells, tasks):
        kept = [mean for run in entries[row.task].runs for mean in run.means]
        rows.append(
            _with_error(row, kept, [cell for own in cells_of_row(row, groups).values() for cell in own])
        )
    last = max((run for entry in entries.values() for run in entry.runs), key=lambda run: run.created)
    run = Run.at(repository)
    reference = f"{last.adapter}:{model}"
    run.manifest = run.manifest.changed(model=reference, name=model, tasks=tasks)
    head = {"id": f"harness {last.harness}, {last.created[:10]}", "created": last.created}
    about = {"adapter": last.adapter, "ref": model, "parameters": last.parameters, "revision": last.revision}
    run.results = RunResults.model_validate({"run": head, "model": about, "cells": cells, "tasks": rows})
    return run


def _summary(entry: RepositoryEntry) -> TaskSummary:
    plain = entry.task.model_dump(exclude={"name", "version", "added"})
    return TaskSummary.model_validate(plain | {"added": dict.fromkeys(entry.task.added, FOLDER)})


def _cell(task: str, score: ModelScore) -> CellResult:
    names = "language split stands_in provenance protocol method view seed fit n size".split()
    metrics = {name: metric.model_dump() for name, metric in score.metrics.items()}
    plain = {name: getattr(score, name) for name in names}
    return CellResult.model_validate({**plain, "task": task, "status": "ok", "metrics": metrics})


def _with_error(row: TaskScore, means: Sequence[LanguageMean], cells: Sequence[CellResult]) -> TaskScore:
    """Return the mean over languages of a task with the error that a run computed from its items.

    Where the languages are of several runs nothing is known of what items share: the mean of the errors is the largest
    error that their mean can have.
    """
    condition = (row.protocol, row.method, tuple(sorted(row.view.items())))
    for mean in means:
        is_of_row = (mean.condition, mean.metric) == (condition, row.metric)
        has_languages = set(mean.languages) == set(row.by_language)
        if is_of_row and has_languages and abs(mean.value - row.value) <= SAME_MEAN:
            return row.changed(se=mean.se, ci=mean.ci, ci_method=mean.ci_method)
    errors = [error for cell in cells if (error := cell.metrics[row.metric].se) is not None]
    if row.se is None and len(errors) == len(cells):
        return row.changed(se=fmean(errors))
    return row


def _marked(system: System, partial: set[str]) -> System:
    """Return a system whose scores on fewer items are not ranked next to others."""
    scores = (
        replace(score, reason=PARTIAL, note="; ".join(filter(None, (score.note, PARTIAL))))
        if score.task in partial
        else score
        for score in system.scores
    )
    return replace(system, scores=tuple(scores))
