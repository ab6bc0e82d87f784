"""Converts a run to a submission folder, and a submission folder to a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness import HarnessError, Run, UsageError, evaluate, open_session
from harness.data import Prediction
from harness.planning import data_options
from harness.storage import CellResult
from harness_xtreme_r.submission.exchange import FOLDERS, public_task, write_predictions
from harness_xtreme_r.submission.formats import TASKS, SubmissionTask, find_languages

OWN_NAMES = {folder: name for name, folder in FOLDERS.items()}


def export_run(folder: Path, target: Path, *, protocol: str | None = None) -> tuple[list[Path], list[str]]:
    """Write the predictions of a run in the public layout; return the files, and the skipped cells with reasons.

    A cell is skipped when its task has no public format, when it was limited or failed, or when `protocol`
    names another one. Raises `UsageError` where two cells would write the same file.
    """
    run = Run(folder)
    chosen: dict[Path, CellResult] = {}
    omitted: list[str] = []
    skipped = 0
    for cell in run.cells:
        task = public_task(cell.task)
        reason = _why_not(cell, task, protocol)
        if cell.status == "skipped":
            skipped += 1
        elif task is None or reason:
            omitted.append(f"{cell.task}:{cell.language}: {reason}")
        else:
            path = task.path(target, cell.language)
            if path in chosen:
                raise UsageError(
                    f"Two cells of the run would write {path.name!r} of {task.name!r} ({_how(chosen[path])} and "
                    f"{_how(cell)}).",
                    hint="Choose with --protocol, and export one seed and one variant per run.",
                )
            chosen[path] = cell
    if skipped:
        omitted.append(f"{skipped} cells that the run skipped; 'harness report {folder}' says why")
    if not chosen:
        raise HarnessError(f"Nothing of the run {str(folder)!r} can be exported: {'; '.join(omitted[:3])}.")
    for chosen_cell in chosen.values():
        _write(run, chosen_cell, target)
    return list(chosen), omitted


def _write(run: Run, cell: CellResult, target: Path) -> None:
    task = public_task(cell.task)
    assert task is not None
    records = list(run.records(cell))
    predictions = [
        Prediction(id=record.id, output=record.prediction, unparsed=record.flags["unparsed"])
        for record in records
    ]
    english = None
    if task.kind == "bitext_retrieval":
        english = [str(record.fields.get("query", "")) for record in records]
        if not all(english):
            raise HarnessError(f"The records of {cell.task}:{cell.language} are without their sentences.")
    write_predictions(task, target, cell.language, predictions, english=english)


def _why_not(cell: CellResult, task: SubmissionTask | None, protocol: str | None) -> str:
    if cell.status != "ok":
        return f"{cell.status} ({cell.reason})"
    if task is None:
        return "the task has no public submission format"
    if protocol is not None and cell.protocol != protocol:
        return f"its protocol is {cell.protocol}"
    if "split" in cell.view:
        return f"these are items of the {cell.view['split']} split"
    if cell.size is not None and cell.n < cell.size:
        return f"the run has {cell.n} of its {cell.size} items; run it on all of them"
    return ""


def _how(cell: CellResult) -> str:
    view = "".join(f", {name}={value}" for name, value in sorted(cell.view.items()))
    return f"{cell.protocol}, seed {cell.seed}{view}"


def import_submission(folder: Path, data: Sequence[str], output: Path) -> tuple[Run, list[str]]:
    """Return a run made of a submission folder, scored on the test data that `data` names, and the skipped parts.

    Raises `UsageError` where the folder holds no file of a task that is installed here.
    """
    session = open_session()
    patterns, omitted = [], []
    for public, task in TASKS.items():
        name = OWN_NAMES.get(public, public)
        found = find_languages(folder, task).paths
        if not found:
            continue
        if name not in session.catalog.names("task"):
            omitted.append(f"{name}: no task of this name is installed")
            continue
        known = set(session.catalog.languages_of(name))
        omitted += [f"{name}:{code}: the task has no such language" for code in sorted(set(found) - known)]
        codes = [code for code in found if code in known]
        if codes:
            patterns.append(f"{name}:{'+'.join(codes)}")
    if not patterns:
        raise UsageError(
            f"The folder {str(folder)!r} holds no predictions that can be imported. {' '.join(omitted)}".strip(),
            hint=f"Expected TASK/test-LANG.EXT with TASK among {', '.join(sorted(TASKS))}.",
        )
    mode = data_options(data)
    places = ["sample"] if mode.mode == "sample" else [str(path) for path in mode.folders] or "hub"
    run = evaluate(patterns, f"submission:{folder}", data=places, protocols=("frozen",), output=output)
    return run, omitted
