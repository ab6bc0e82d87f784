"""Makes one run of several: the shards of a plan, or runs of one model over different tasks and languages."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.analysis.merge_checks import check_compatible, same_scores
from harness.analysis.merge_manifest import differing_settings, merged_manifest
from harness.analysis.pairing import harness_versions
from harness.errors import DataError, StorageError, UsageError
from harness.metrics.metric import Metric
from harness.running.summaries import empty_result
from harness.scores.aggregation import aggregate_tasks
from harness.scores.task_intervals import add_task_intervals
from harness.storage.file_lock import FileLock
from harness.storage.results import CellResult, Manifest, RunResults
from harness.storage.run_folder import LOCK, STARTED, Run
from harness.table import NamedTable


def merge_runs(
    paths: Sequence[Path], output: Path, metrics: NamedTable[Metric], *, incomplete: bool = False
) -> list[str]:
    """Write a run folder that holds the cells of all runs, and return the notes about it.

    The folder appears whole or not at all. Their baselines are merged too. A cell that several runs
    have is taken from the first that finished it.

    Args:
        paths: Run folders.
        output: The new run folder; it may exist, empty.
        metrics: The registry's, for the intervals of means over languages.
        incomplete: Whether shards may be missing; their cells are then skipped, with the reason.

    Raises:
        UsageError: For a folder that is no run or named twice, for runs that differ in model, data, specs,
            settings or the scores of a cell, for missing shards, and for an output that holds anything.
        DataError: For records that are missing.
        StorageError: Where the output cannot be written.
    """
    _check_output(output)
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("A run was named twice; each run can be merged once.")
    for path in paths:
        _check_ended(path)
    runs = [Run(path) for path in paths]
    merged = _merge(runs, output.absolute().name, metrics, incomplete=incomplete)
    baselines = {
        name: _merge(baseline_runs, name, metrics, incomplete=incomplete)
        for name, baseline_runs in _baselines(runs).items()
    }
    try:
        _place(merged, baselines, output.absolute())
    except OSError as error:
        raise StorageError(
            f"The merged run {str(output)!r} cannot be written: {error}.", hint="Nothing was written."
        ) from error
    return merged.notes


def _check_ended(path: Path) -> None:
    """Raise `UsageError` for a run that has not ended."""
    lock = FileLock(path / LOCK)
    if lock.is_held():
        raise UsageError(
            f"The run {str(path)!r} is still running: {lock.holder()}.", hint="Merge it once it has ended."
        )


def _check_output(output: Path) -> None:
    Run.at(output).check_usable()
    if output.is_dir() and any(output.iterdir()):
        raise UsageError(f"The folder {str(output)!r} is not empty.", hint="Give a new folder with --output.")


def _baselines(runs: Sequence[Run]) -> dict[str, list[Run]]:
    by_name: dict[str, list[Run]] = {}
    for run in runs:
        folder = run.path / "baselines"
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if (path / "results.json").is_file():
                by_name.setdefault(path.name, []).append(Run(path))
    return by_name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merged:
    """A merged run before it is written."""

    runs: Sequence[Run]
    origins: Mapping[str, Run]
    """By the digest of the cell: the run that it comes from."""
    manifest: Manifest
    results: RunResults
    notes: list[str]


def _merge(runs: Sequence[Run], name: str, metrics: NamedTable[Metric], *, incomplete: bool) -> _Merged:
    check_compatible(runs)
    plan = _whole_plan(runs)
    lost = _lost_cells(runs, plan)
    count = plan["count"] if plan else 0
    shards = sorted({cell["shard"] for cell in lost})
    if lost and not incomplete:
        missing = ", ".join(f"{shard}/{count}" for shard in shards)
        raise UsageError(
            f"The shards {missing} of the plan are missing.",
            hint="Name their runs too, or give --incomplete to merge without them.",
        )
    by_digest, found_notes = _cells_by_digest(runs)
    cells = [cell for cell, _ in by_digest.values()]
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    cells.sort(key=lambda cell: tasks.index(cell.task))
    absent = [_absent(cell, count) for cell in lost]
    if plan:
        position = {cell["digest"]: number for number, cell in enumerate(plan["cells"])}
        cells = sorted([*cells, *absent], key=lambda cell: position.get(cell.digest, len(position)))
    cells += _skipped(runs)
    notes = [
        f"shard {shard}/{count} was not merged: {sum(cell['shard'] == shard for cell in lost)} cells are skipped"
        for shard in shards
    ]
    versions = harness_versions(runs)
    if len(versions) > 1:
        notes.append(f"parts of this run were made by the harness {' and '.join(versions)}")
    for setting, values in differing_settings([run.manifest for run in runs]).items():
        by_task = "; ".join(f"{value} for {', '.join(task_names)}" for value, task_names in values.items())
        notes.append(f"--{setting} differs between tasks: {by_task}")
    manifest = Manifest.model_validate(merged_manifest(runs, cells, plan if lost else None))
    origins = {digest: run for digest, (_, run) in by_digest.items()}
    results = add_task_intervals(
        _results(runs, name, cells, manifest, notes),
        manifest.tasks,
        manifest.suites,
        lambda cell: origins[cell.digest].records_of(cell),
        metrics,
    )
    found_notes += notes
    stopped = sum(cell.has("data") and cell.status == "skipped" for cell in cells)
    if stopped:
        found_notes.append(f"{stopped} cells were never run: their run was stopped before them")
    return _Merged(runs=runs, origins=origins, manifest=manifest, results=results, notes=found_notes)


# Shards -----------------------------------------------------------------------------------------------


def _whole_plan(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Return the plan that runs are shards of, None where none is; raises `UsageError` for shards of several."""
    plan: dict[str, Any] | None = None
    for run in runs:
        if not run.manifest.plan_cells:
            continue
        indices, _, count = str(run.manifest.shard).partition("/")
        current = {
            "digest": run.manifest.plan,
            "count": int(count),
            "cells": run.manifest.plan_cells,
            "path": run.path,
            "indices": {int(index) for index in indices.split("+")},
        }
        if plan is None:
            plan = current
            continue
        if plan["digest"] != current["digest"]:
            raise UsageError(
                f"The runs {str(plan['path'])!r} and {str(run.path)!r} are shards of different plans.",
                hint="Give every shard the same tasks, languages and settings.",
            )
        if plan["count"] != current["count"]:
            raise UsageError(
                f"The runs {str(plan['path'])!r} and {str(run.path)!r} divide their plan differently: into "
                f"{plan['count']} shards and into {current['count']}."
            )
        plan["indices"] |= current["indices"]
    return plan


def _lost_cells(runs: Sequence[Run], plan: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    planned = {cell.digest for run in runs for cell in run.cells if _is_planned(cell)}
    return [] if plan is None else [cell for cell in plan["cells"] if cell["digest"] not in planned]


def _is_planned(cell: CellResult) -> bool:
    """Whether a run had the cell; an incomplete merge names those of other shards too, without data."""
    return cell.has("digest") and cell.has("data")


def _absent(cell: Mapping[str, Any], count: int) -> CellResult:
    names = ("task", "version", "language", "protocol", "method", "view", "seed", "digest")
    reason = f"in shard {cell['shard']}/{count}, which was not merged"
    return CellResult(
        **{name: cell[name] for name in names}, fit=None, prompt=None, **empty_result("skipped", reason)
    )


# Cells ------------------------------------------------------------------------------------------------


def _cells_by_digest(runs: Sequence[Run]) -> tuple[dict[str, tuple[CellResult, Run]], list[str]]:
    """Return by digest every cell with its run, a finished one where there is one, and notes on repetitions."""
    by_digest: dict[str, tuple[CellResult, Run]] = {}
    repeated: dict[str, int] = {}
    for run in runs:
        for cell in run.cells:
            if not _is_planned(cell):
                continue
            before = by_digest.get(cell.digest)
            if before is None or (before[0].status != "ok" and cell.status == "ok"):
                by_digest[cell.digest] = (cell, run)
            elif before[0].status == cell.status == "ok":
                if not same_scores(before[0], cell):
                    raise UsageError(
                        f"The runs {str(before[1].path)!r} and {str(run.path)!r} have different scores of "
                        f"{cell.task}:{cell.language} ({cell.protocol}): {_scores(before[0])} and "
                        f"{_scores(cell)}.",
                        hint="Omit one of them; harness compare RUN RUN shows the items that differ.",
                    )
                repeated[str(run.path)] = repeated.get(str(run.path), 0) + 1
    return by_digest, [
        f"{count} cells of {path} are in an earlier run, too" for path, count in repeated.items()
    ]


def _scores(cell: CellResult) -> str:
    values = ", ".join(f"{name} {score.value:.6f}" for name, score in cell.metrics.items())
    return f"{values} over {cell.n} items"


def _skipped(runs: Sequence[Run]) -> list[CellResult]:
    """Return the cells that the plans skipped, each once, without those that another run did."""
    by_run = [{(cell.task, cell.language) for cell in run.cells if _is_planned(cell)} for run in runs]
    skipped: dict[str, CellResult] = {}
    for run, planned in zip(runs, by_run, strict=True):
        for cell in run.cells:
            pair = (cell.task, cell.language)
            if cell.has("digest") or (
                pair not in planned and any(_does(candidate, cell) for candidate in runs)
            ):
                continue
            skipped.setdefault(repr([*pair, cell.protocol, cell.view, cell.reason]), cell)
    return list(skipped.values())


def _does(run: Run, skipped: CellResult) -> bool:
    return any(
        _is_planned(cell)
        and (cell.task, cell.language) == (skipped.task, skipped.language)
        and skipped.protocol in {None, cell.protocol}
        and skipped.view.items() <= cell.view.items()
        for cell in run.cells
    )


# Documents --------------------------------------------------------------------------------------------


def _results(
    runs: Sequence[Run], name: str, cells: Sequence[CellResult], manifest: Manifest, notes: Sequence[str]
) -> RunResults:
    heads = [run.results.run for run in runs]
    requests: Counter[str] = Counter()
    for head in heads:
        requests.update(head.requests)
    # Of a part that was merged itself, without what was missing then.
    run_notes = [
        note
        for run in runs
        for note in run.results.notes
        if not (note.startswith("shard ") and " was not merged: " in note)
    ]
    opened = (run for run in runs if any(cell.status == "ok" for cell in run.cells))
    fits = {digest: fit for run in reversed(runs) for digest, fit in run.results.fits.items()}
    order = dict.fromkeys([*(cell.fit for cell in cells), *fits])
    return runs[0].results.changed(
        run=heads[0].changed(
            id=name,
            created=min(head.created for head in heads),
            seconds=round(sum(head.seconds for head in heads), 2),
            requests=dict(requests),
        ),
        model=next(opened, runs[0]).results.model,
        fits={digest: fits[digest] for digest in order if digest is not None and digest in fits},
        notes=list(dict.fromkeys([*run_notes, *notes])),
        cells=list(cells),
        tasks=aggregate_tasks(cells, manifest.tasks),
    )


# Files ------------------------------------------------------------------------------------------------


def _place(merged: _Merged, baselines: Mapping[str, _Merged], output: Path) -> None:
    """Write everything next to the output folder and move it there as the last step."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.merging-") as scratch:
        folder = Path(scratch) / "run"
        for name, content in baselines.items():
            _write(content, Run.at(folder / "baselines" / name))
        _write(merged, Run.at(folder))
        folder.replace(output)


def _write(merged: _Merged, folder: Run) -> None:
    folder.create()
    for cell in merged.results.cells:
        run = merged.origins.get(cell.digest)
        if run is not None:
            _copy_cell(run, cell, folder)
    logs = [path for run in merged.runs for path in _journals(run)]
    for number, path in enumerate(logs):
        _copy(path, folder.path / "journal" / f"{number}.log")
    folder.write_manifest(merged.manifest)
    folder.write_results(merged.results)


def _copy_cell(run: Run, cell: CellResult, folder: Run) -> None:
    source, digest = run.records_of(cell), cell.digest
    if cell.status == "ok":
        if not source.is_file():
            raise DataError(
                f"The records {str(source)!r} of a finished cell are missing, so the run is not whole."
            )
        _copy(source, folder.records_path(cell.task, cell.language, digest))
    for name in (f"failures/{digest}.txt", f"cells/{digest}.json", f"cells/{digest}{STARTED}"):
        if (run.path / name).is_file():
            _copy(run.path / name, folder.path / name)


def _journals(run: Run) -> list[Path]:
    logs = (run.path / "journal").glob("*.log")
    return sorted(logs, key=lambda path: (len(path.stem), path.stem))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
