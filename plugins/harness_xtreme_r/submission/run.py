"""Converts a run to a submission folder, and a submission folder to a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import (
    BitextExample,
    DataError,
    HarnessError,
    Prediction,
    ReadContext,
    Run,
    Session,
    UsageError,
    evaluate,
    open_session,
    read_examples,
)
from harness.data.resolve import DataOptions
from harness.data.sources import DataFinder, data_ref
from harness.running.session import data_options
from harness.storage.files import cache_folder
from harness_xtreme_r.submission.exchange import write_predictions
from harness_xtreme_r.submission.layout import TASKS, SubmissionTask, find_languages
from harness_xtreme_r.submission.model import FOLDERS, public_task

__all__ = ["export_run", "import_submission"]

OWN_NAMES = {folder: name for name, folder in FOLDERS.items()}


def export_run(folder: Path, target: Path, *, protocol: str | None = None) -> tuple[list[Path], list[str]]:
    """Write the predictions of a run in the public layout; return the files, and the skipped cells with reasons.

    A cell is skipped when its task has no public format, when it was limited or failed, or when `protocol`
    names another one. Raises `UsageError` where two cells would write the same file.
    """
    run = Run(folder)
    chosen: dict[Path, Mapping[str, Any]] = {}
    omitted: list[str] = []
    skipped = 0
    for cell in run.cells:
        task = public_task(cell["task"])
        reason = _why_not(cell, task, protocol)
        if cell["status"] == "skipped":
            skipped += 1
        elif task is None or reason:
            omitted.append(f"{cell['task']}:{cell['language']}: {reason}")
        else:
            path = task.path(target, cell["language"])
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


def _write(run: Run, cell: Mapping[str, Any], target: Path) -> None:
    task = public_task(cell["task"])
    assert task is not None
    predictions = [
        Prediction(id=record.id, output=record.prediction, unparsed=record.flags["unparsed"])
        for record in run.records(cell)
    ]
    english = _english(run, cell, predictions) if task.kind == "bitext_retrieval" else None
    write_predictions(task, target, cell["language"], predictions, english=english)


def _why_not(cell: Mapping[str, Any], task: SubmissionTask | None, protocol: str | None) -> str:
    if cell["status"] != "ok":
        return f"{cell['status']} ({cell['reason']})"
    if task is None:
        return "the task has no public submission format"
    if protocol is not None and cell["protocol"] != protocol:
        return f"its protocol is {cell['protocol']}"
    if cell["n"] < cell["size"]:
        return f"the run has {cell['n']} of its {cell['size']} items; run it without --limit"
    return ""


def _how(cell: Mapping[str, Any]) -> str:
    view = "".join(f", {name}={value}" for name, value in sorted(cell["view"].items()))
    return f"{cell['protocol']}, seed {cell['seed']}{view}"


def _english(run: Run, cell: Mapping[str, Any], predictions: Sequence[Prediction]) -> list[str]:
    """Return the English sentences of a Tatoeba cell, read from the data that the run used."""
    given = run.manifest["config"]["data"]
    options = DataOptions(mode=given["mode"], folders=tuple(Path(item) for item in given["folders"]))
    examples = _test_examples(open_session(), cell, options)
    if [example.id for example in examples] != [prediction.id for prediction in predictions]:
        raise DataError(f"The data of {cell['task']}:{cell['language']} has other items than the run.")
    return [example.query for example in examples if isinstance(example, BitextExample)]


def _test_examples(session: Session, cell: Mapping[str, Any], options: DataOptions) -> list[Any]:
    entry = session.catalog.task(cell["task"])
    code = cell["language"]
    source = entry.spec.source(code, "test")
    if source is None:
        raise DataError(f"Task {cell['task']!r} no longer has a test split in {code!r}.")
    finder = DataFinder(options, session.registry, cache_folder() / "data")
    language = entry.languages.get(code)
    ref = data_ref(
        source, owner=cell["task"], language=language, split="test", folder=entry.folders.get(code)
    )
    found = finder.find(source, ref)
    if found.digest() != cell["data"]["digest"]:
        raise DataError(
            f"The data of {cell['task']}:{code} changed since the run: {found.digest()[:12]} now, "
            f"{cell['data']['digest'][:12]} then."
        )
    context = ReadContext.of_test(entry.spec, code, found.label_map)
    return read_examples(session.registry.kinds.get(entry.spec.kind), finder.rows(found), context)


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
