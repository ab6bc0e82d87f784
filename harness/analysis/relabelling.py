"""Makes a run with a corrected gold out of a run: the same answers, other references, a name of its own."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.analysis.rescoring import CHUNK, rescore
from harness.data.gold import VIEW, CellGold, GoldCounts, GoldFile, gold_note, read_gold
from harness.errors import UsageError
from harness.planning.plan import identity_digest
from harness.registry.registry import Registry
from harness.storage.files import FileNotWrittenError
from harness.storage.records import ItemRecord, RecordWriter
from harness.storage.results import CellResult
from harness.storage.run_folder import Run, with_baselines


def relabel(
    path: Path, gold_path: Path, output: Path, registry: Registry, further: tuple[str, ...] = ()
) -> None:
    """Write a run whose items are scored with corrected labels; the run itself stays as it is.

    Args:
        path: The run.
        gold_path: The corrected labels.
        output: The new run folder, which appears whole or not at all; it has no journal.
        registry: Has the metrics.
        further: Names of metrics besides the run's own.

    Raises:
        UsageError: Where the gold fits no task of the run, the run has a corrected gold already, or the output
            cannot be written.
        DataError: For labels of items that a cell does not have, and for broken records.
    """
    gold = read_gold(gold_path)
    run = Run(path)
    runs = with_baselines(run)
    _check(runs, gold)
    Run.at(output).check_usable()
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as folder:
            relabelled = Path(folder) / output.name
            for source in runs:
                _write(source, gold, relabelled / source.path.relative_to(run.path), output.name)
            rescore(relabelled, registry, further)
            if output.is_dir():
                output.rmdir()  # an empty one; a folder that holds something is an error
            relabelled.rename(output)
    except OSError as error:
        raise FileNotWrittenError(output, error) from error


def _check(runs: list[Run], gold: GoldFile) -> None:
    tasks = {name: task for run in runs for name, task in run.manifest.tasks.items()}
    labelled = sorted(gold.tasks & set(tasks))
    if not labelled:
        raise UsageError(
            f"The gold {str(gold.path)!r} labels items of {', '.join(sorted(gold.tasks))}; the run has "
            f"{', '.join(sorted(tasks))}."
        )
    for task in labelled:
        gold.check_labels(task, tasks[task].kind, tasks[task].labels)
    gold_name = next((cell.view[VIEW] for run in runs for cell in run.cells if VIEW in cell.view), None)
    if gold_name is not None:
        raise UsageError(
            f"The run {str(runs[0].path)!r} is scored with the gold {gold_name!r} already.",
            hint="Take the run that it was made from.",
        )


def _write(run: Run, gold: GoldFile, folder: Path, name: str) -> None:
    target = Run.at(folder)
    folder.mkdir(parents=True)
    if (run.path / "failures").is_dir():
        shutil.copytree(run.path / "failures", folder / "failures")
    renamed: dict[str, Any] = {}
    for planned in run.manifest.cells:
        identity = {key: value for key, value in planned.items() if key != "digest"}
        if planned["task"] in gold.tasks:
            identity["view"] = _view(planned.get("view", {}), gold)
        renamed[planned["digest"]] = {**identity, "digest": identity_digest(identity)}
    cells = [_cell(run, cell, gold, target, renamed) for cell in run.cells]
    made_from = {"run": str(run.path.absolute()), "gold": str(gold.path.absolute()), "name": gold.name}
    target.write_manifest(run.manifest.changed(cells=list(renamed.values()), relabelled=made_from))
    labels: dict[str, dict[str, int]] = {}
    for cell in cells:
        if cell.gold is not None:
            by_language = labels.setdefault(cell.task, {})
            by_language[cell.language] = max(by_language.get(cell.language, 0), cell.gold["relabelled"])
    notes = [gold_note(task, gold.name, by_language) for task, by_language in labels.items()]
    target.write_results(
        run.results.changed(
            run=run.results.run.changed(id=name), cells=cells, notes=[*run.results.notes, *notes]
        )
    )


def _view(view: Mapping[str, str], gold: GoldFile) -> dict[str, str]:
    return dict(sorted({**view, VIEW: gold.name}.items()))


def _cell(
    run: Run, cell: CellResult, gold: GoldFile, target: Run, renamed: Mapping[str, Mapping[str, Any]]
) -> CellResult:
    corrected = cell.task in gold.tasks
    new = cell.changed(view=_view(cell.view, gold)) if corrected else cell
    if not cell.digest:
        return new
    new = new.changed(digest=renamed[cell.digest]["digest"])
    if cell.status != "ok":
        return new
    path = target.records_of(new)
    if not corrected:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run.records_of(cell), path)
        return new
    cell_gold = gold.of(cell.task, cell.language, cell.view)
    counts = GoldCounts()
    ids: set[str] = set()
    with RecordWriter(path, model=run.manifest.model_name, task=cell.task, language=cell.language) as writer:
        records = _corrected(run.records(cell), cell_gold, counts, ids)
        while chunk := list(itertools.islice(records, CHUNK)):
            writer.add(chunk)
        writer.close()
    if cell.size in {None, cell.n}:  # items beyond a limit are unknown
        cell_gold.check_known(ids, f"{cell.task}:{cell.language}")
    return new.changed(gold={"name": gold.name, **counts.to_json()})


def _corrected(
    records: Iterator[ItemRecord], gold: CellGold, counts: GoldCounts, ids: set[str]
) -> Iterator[ItemRecord]:
    for record in records:
        ids.add(record.id)
        yield replace(record, reference=gold.corrected(record.id, record.reference, counts))
