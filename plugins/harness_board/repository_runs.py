"""Runs as files of a results repository, and its files as runs in memory, which a board reads like others.

What is publishable of a run, how it joins what is already there, and which scores of a model count.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import ValidationError

from harness import DataError, Run, UsageError
from harness.scores import aggregate_tasks, cells_of_row, group_cells
from harness.specs import read_yaml, validate_document
from harness.storage import CellResult, MetricValue, RunResults, TaskScore, TaskSummary
from harness_board.document import System, TaskColumn, created_on, run_systems, run_tasks
from harness_board.published import SystemMetadata, read_metadata
from harness_board.repository_entry import (
    DIGITS,
    FOLDER,
    LanguageMean,
    ModelRun,
    ModelScore,
    RepositoryEntry,
    file_name,
    local_path,
)

CELL_FIELDS = "language split stands_in provenance protocol method view seed fit n".split()
"""Fields that a score has in common with the cell of a run."""
TASK_FIELDS = "kind metrics headline parallel source chance axes published_languages".split()
"""Fields that a task has in common with its summary in a run."""
MEAN_FIELDS = ("protocol", "method", "view", "metric")
"""Fields that a mean has in common with the mean of a run."""
COMPARED = ("kind", "headline", "parallel", "source", "published_languages")
"""What all files of one version of a task must agree in: scores have no common mean otherwise."""
SAME = 1e-5
"""By how much the same score may differ between machines."""
METADATA = "models"
"""The folder of what is stated of models, one YAML file each."""
PARTIAL = "on fewer items than the test or training set has"
SAME_MEAN = 2e-6
"""Of rounded scores."""


class RejectedRunError(DataError):
    """A run, or a task of it, that does not belong into a results repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What is usually rejected; a score that needs it is marked in its file."""

    partial: bool = False
    """Fewer items than the test or the training set has."""
    unpinned: bool = False
    """Downloads that no commit or checksum fixes."""


def publishable_tasks(run: Run) -> list[str]:
    """Return the tasks of a run that have scores; raises `RejectedRunError` for a run that cannot be published."""
    head, folder = run.results.run, str(run.path)
    if head.data == "sample":
        raise RejectedRunError(
            f"The run {folder!r} is on the sample data, whose scores say nothing about a model.",
            hint="Evaluate with --data hub, or with --data FOLDER.",
        )
    if run.manifest.shard:
        raise RejectedRunError(
            f"The run {folder!r} is the shard {run.manifest.shard} of a plan.",
            hint="Merge the shards first: harness merge RUN... --output DIR.",
        )
    tasks = list(dict.fromkeys(cell.task for cell in run.cells if cell.is_scored))
    if not tasks:
        raise RejectedRunError(
            f"The run {folder!r} has no scores: no cell of it was finished.",
            hint=f"Finish it: harness eval --resume {run.path}",
        )
    return tasks


def entry_of(run: Run, task: str, *, name: str | None = None, allowed: Allowed) -> RepositoryEntry:
    """Return the scores of a run on one task as a file.

    Args:
        run: One that `publishable_tasks` accepts.
        task: One of them.
        name: What the model is called in the repository; by default as the run calls it.
        allowed: What is marked instead of rejected.

    Raises:
        RejectedRunError: The task is not complete, its data are not pinned, or a text would publish a local path.
    """
    cells = [cell for cell in run.cells if cell.task == task]
    _require_complete(run, task, cells)
    scored = [cell for cell in cells if cell.is_scored]
    scores = [_score(run, cell, allowed) for cell in scored]
    means = [_mean(row) for row in run.results.tasks if row.task == task]
    identity, head, fits = run.manifest.identity, run.results, sorted({str(cell.fit) for cell in scored})
    content = {
        "schema": 1,
        "model": name or run.manifest.model_name,
        "task": _task(task, run.manifest.tasks[task], scored),
        "runs": [
            {
                "created": head.run.created,
                "harness": head.run.harness,
                "adapter": head.model.adapter,
                "parameters": head.model.parameters,
                "revision": head.model.revision,
                "weights": identity.get("weights"),
                "dtype": identity.get("dtype"),
                "fits": {fit: head.fits[fit].title for fit in fits if fit in head.fits},
                "scores": scores,
                "means": [mean for mean in means if mean["languages"]],
            }
        ],
    }
    if (path := local_path(str(content))) is not None:
        raise RejectedRunError(
            f"The scores of {task!r} in {str(run.path)!r} would publish the local path {path!r}.",
            hint="Evaluate with a name for what the path is of, as --name NAME for the model.",
        )
    try:
        return RepositoryEntry.model_validate_json(json.dumps(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise RejectedRunError(
            f"The scores of {task!r} in {str(run.path)!r} do not fit a results repository: {place}: {reason}.",
            hint=f"Score it with this version (harness score {run.path}), evaluate again, or give --name NAME.",
        ) from error


def _require_complete(run: Run, task: str, cells: Sequence[CellResult]) -> None:
    """Raise `RejectedRunError` where a cell failed or was not reached; languages without data do not count."""
    missing = [cell.language for cell in cells if cell.status == "failed" or cell.is_stopped]
    if missing:
        raise RejectedRunError(
            f"{task!r} is not complete in {str(run.path)!r}: no score of {' '.join(sorted(set(missing)))}.",
            hint=f"Finish it: harness eval --resume {run.path}",
        )


def _score(run: Run, cell: CellResult, allowed: Allowed) -> dict[str, Any]:
    place, limit = f"{cell.task}:{cell.language}", run.manifest.config.get("train_limit")
    is_fitted = cell.fit in run.results.fits
    size = cell.size or cell.n
    is_partial = cell.n < size or bool(limit and is_fitted)
    if is_partial and not allowed.partial:
        what = f"{cell.n:,} of {size:,} items"
        if cell.n >= size:
            what = f"a model trained on {limit:,} examples at most"
        raise RejectedRunError(
            f"{place} in {str(run.path)!r} is the score of {what}.",
            hint="Evaluate without --limit and --train-limit, or add it as a partial one with --partial.",
        )
    is_unpinned = not (cell.data.get("pinned") and _is_pinned_fit(run, cell))
    if is_unpinned and not allowed.unpinned:
        raise RejectedRunError(
            f"The data of {place} in {str(run.path)!r} are not pinned: others may get other items.",
            hint="Pin them (harness lock, then harness eval --locked FILE), or add them marked with --unpinned.",
        )
    return {
        **{key: getattr(cell, key) for key in CELL_FIELDS},
        "size": size,
        "prompt": cell.prompt and cell.prompt.get("digest"),
        "items": {
            "origin": cell.data.get("origin"),
            "digest": str(cell.data.get("digest"))[:16],
            "revision": cell.data.get("revision"),
            "released": cell.file_state == "released file",
        },
        "metrics": {metric: _numbers(value) for metric, value in cell.metrics.items() if ":" not in metric},
        "partial": is_partial,
        "unpinned": is_unpinned,
    }


def _is_pinned_fit(run: Run, cell: CellResult) -> bool:
    """Return whether the training data of a cell's model are pinned."""
    fit = run.results.fits.get(str(cell.fit))
    stages = fit.stages if fit else ()
    sources = (source for stage in stages for source in stage.get("train", {}).get("data", ()))
    return all(source.get("pinned", True) for source in sources)


def _numbers(value: MetricValue | TaskScore) -> dict[str, Any]:
    return {
        "value": round(value.value, DIGITS),
        "ci_method": value.ci_method,
        "se": None if value.se is None else round(value.se, DIGITS),
        "ci": None if value.ci is None else [round(end, DIGITS) for end in value.ci],
    }


def _mean(row: TaskScore) -> dict[str, Any]:
    fields = {key: getattr(row, key) for key in MEAN_FIELDS}
    return {**_numbers(row), **fields, "languages": sorted(row.by_language)}


def _task(name: str, task: TaskSummary, cells: Sequence[CellResult]) -> dict[str, Any]:
    codes = sorted({cell.language for cell in cells})
    return {
        "name": name,
        "version": cells[0].version or 1,
        **{key: getattr(task, key) for key in TASK_FIELDS},
        "added": sorted(set(task.added) & set(codes)),
        "languages": {code: task.languages[code] for code in codes},
        "names": {code: task.names[code] for code in codes if code in task.names},
    }


# Joining -----------------------------------------------------------------------------------------------


def joined(stored: RepositoryEntry, new: RepositoryEntry, *, replace: bool = False) -> RepositoryEntry:
    """Return a file with the scores of a further run: other seeds, more languages, a newer harness.

    A score that is already there is not added again. Raises `RejectedRunError` where the file has another value for it
    (unless `replace` takes the new one), is of other weights, or describes the task otherwise.
    """
    _require_same_model(stored, new)
    _require_same_task(stored, new)
    [run] = new.runs
    runs = list(stored.runs)
    present = {(earlier.harness, score.key): score for earlier in runs for score in earlier.scores}
    fresh = [score for score in run.scores if (run.harness, score.key) not in present]
    changed: set[Hashable] = set()
    for score in run.scores:
        before = present.get((run.harness, score.key))
        if before is not None and not _are_equal(before, score):
            if not replace:
                raise RejectedRunError(
                    f"{new.path} has another score for {score.language} (seed {score.seed}) of harness {run.harness}.",
                    hint="Evaluate with another seed (--seeds), name another model (--name), or repair it (--replace).",
                )
            changed.add(score.key)
            fresh.append(score)
    if not fresh:
        return stored
    if changed:
        runs = [kept for earlier in runs if (kept := _without(earlier, run.harness, changed)) is not None]
    means = run.means if len(fresh) == len(run.scores) else ()
    runs.append(run.model_copy(update={"scores": tuple(fresh), "means": means}))
    newest = max(runs, key=lambda each: each.created)
    task = new.task if newest is runs[-1] else stored.task
    both: Mapping[str, Any] = {
        "languages": {**stored.task.languages, **new.task.languages},
        "names": {**stored.task.names, **new.task.names},
        "added": tuple(sorted({*stored.task.added, *new.task.added})),
    }
    return stored.model_copy(update={"runs": tuple(runs), "task": task.model_copy(update=both)})


def _require_same_model(stored: RepositoryEntry, new: RepositoryEntry) -> None:
    [run] = new.runs
    for earlier in stored.runs:
        for what in ("weights", "revision"):
            before, now = getattr(earlier, what), getattr(run, what)
            if before is not None and now is not None and before != now:
                raise RejectedRunError(
                    f"{new.path} is of a model with the {what} {before[:12]}, the run of one with {now[:12]}.",
                    hint="Add the run under a name of its own: --name NAME.",
                )
        if (earlier.adapter == "baseline") != (run.adapter == "baseline"):
            raise RejectedRunError(
                f"{new.path} is of {earlier.adapter}:{stored.model}, the run of {run.adapter}:{new.model}.",
                hint="Add the run under a name of its own: --name NAME.",
            )


def _require_same_task(stored: RepositoryEntry, new: RepositoryEntry) -> None:
    for key in COMPARED:
        if getattr(stored.task, key) != getattr(new.task, key):
            raise RejectedRunError(
                f"{new.path} describes another task: its {key!r} is not that of the run.",
                hint="A task that changes needs a new version in its spec.",
            )


def _are_equal(before: ModelScore, score: ModelScore) -> bool:
    """Return whether two scores of one key are of the same items and have the same values."""
    return (
        before.items.digest == score.items.digest
        and before.metrics.keys() == score.metrics.keys()
        and all(abs(before.metrics[name].value - score.metrics[name].value) <= SAME for name in score.metrics)
    )


def _without(run: ModelRun, harness: str, keys: set[Hashable]) -> ModelRun | None:
    """Return a run without some scores, and without the means that they are in; None where none is left."""
    scores = tuple(score for score in run.scores if run.harness != harness or score.key not in keys)
    if len(scores) == len(run.scores):
        return run
    return run.model_copy(update={"scores": scores, "means": ()}) if scores else None


def write_entry(entry: RepositoryEntry, repository: Path) -> Path:
    """Write a file into its place below a repository and return it; raises `UsageError` where it cannot be written."""
    from harness.cli import write_file

    path = repository / entry.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder {str(path.parent)!r} cannot be made: {error.strerror}.") from error
    write_file(path, entry.text())
    return path


def additions(
    run: Run, repository: Path, *, name: str | None, allowed: Allowed, replace: bool
) -> Iterator[str | RejectedRunError]:
    """Write the scores of a run into a repository; yield what became of each task, or why it is rejected."""
    try:
        tasks = publishable_tasks(run)
    except RejectedRunError as error:
        yield error
        return
    for task in tasks:
        try:
            yield _added(entry_of(run, task, name=name, allowed=allowed), repository, replace=replace)
        except RejectedRunError as error:
            yield error


def _added(entry: RepositoryEntry, repository: Path, *, replace: bool) -> str:
    path = repository / entry.path
    stored = read_entry(path) if path.is_file() else None
    whole = entry if stored is None else joined(stored, entry, replace=replace)
    if whole == stored:
        return f"unchanged: {entry.path}"
    write_entry(whole, repository)
    codes = dict.fromkeys(score.language for run in entry.runs for score in run.scores)
    return f"{'added' if stored is None else 'joined'}: {entry.path} ({' '.join(codes)})"


# Files as runs ------------------------------------------------------------------------------------------


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
        partial = {name for name, entry in named.items() if any(own.partial for own in _newest_scores(entry))}
        systems += [_marked(system, partial) for system in run_systems(run)]
        dates += [created_on(run.created) for entry in entries for run in entry.runs]
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
    name, version = entry.task.name, entry.task.version
    return name if version >= newest.get(file_name(name), 0) else f"{name}-v{version}"


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
        means = [mean for run in entries[row.task].runs for mean in run.means]
        row_cells = [cell for own in cells_of_row(row, groups).values() for cell in own]
        rows.append(_with_error(row, means, row_cells))
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
    metrics = {name: metric.model_dump() for name, metric in score.metrics.items()}
    plain = {name: getattr(score, name) for name in (*CELL_FIELDS, "size")}
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
    scores = list(system.scores)
    for at, score in enumerate(scores):
        if score.task in partial:
            note = "; ".join(filter(None, (score.note, PARTIAL)))
            scores[at] = replace(score, reason=PARTIAL, note=note)
    return replace(system, scores=tuple(scores))
