"""From runs to files of a results repository: what is publishable, and how it joins what is already there."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness import DataError, Run
from harness.storage import CellResult, MetricValue, TaskScore, TaskSummary
from harness_board.repository.entry import DIGITS, ModelRun, ModelScore, RepositoryEntry, local_path
from harness_board.repository.reading import read_entry

COMPARED = ("kind", "headline", "parallel", "source", "published_languages")
"""What all files of one version of a task must agree in: scores have no common mean otherwise."""
SAME = 1e-5
"""By how much the same score may differ between machines."""


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
    identity, head = run.manifest.identity, run.results
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
                "fits": {
                    fit: head.fits[fit].title
                    for fit in sorted({str(cell.fit) for cell in scored})
                    if fit in head.fits
                },
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
        what = (
            f"{cell.n:,} of {size:,} items"
            if cell.n < size
            else f"a model trained on {limit:,} examples at most"
        )
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
        **{
            key: getattr(cell, key)
            for key in ("language", "split", "stands_in", "provenance", "protocol", "method")
        },
        **{key: getattr(cell, key) for key in ("view", "seed", "fit", "n")},
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
    sources = (
        [source for stage in fit.stages for source in stage.get("train", {}).get("data", ())] if fit else []
    )
    return all(source.get("pinned", True) for source in sources)


def _numbers(value: MetricValue | TaskScore) -> dict[str, Any]:
    numbers = {"value": round(value.value, DIGITS), "ci_method": value.ci_method}
    return {
        **numbers,
        "se": None if value.se is None else round(value.se, DIGITS),
        "ci": None if value.ci is None else [round(end, DIGITS) for end in value.ci],
    }


def _mean(row: TaskScore) -> dict[str, Any]:
    names = ("protocol", "method", "view", "metric")
    return {
        **_numbers(row),
        **{key: getattr(row, key) for key in names},
        "languages": sorted(row.by_language),
    }


def _task(name: str, task: TaskSummary, cells: Sequence[CellResult]) -> dict[str, Any]:
    codes = sorted({cell.language for cell in cells})
    plain = ("kind", "metrics", "headline", "parallel", "source", "chance", "axes", "published_languages")
    return {
        "name": name,
        "version": cells[0].version or 1,
        **{key: getattr(task, key) for key in plain},
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
    from harness import UsageError
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
