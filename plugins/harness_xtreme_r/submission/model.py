"""A submission as a model: its predictions are looked up in its files, to make a run of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import MissingDataError, UsageError
from harness.data import BitextExample, Prediction
from harness.kinds import Method, MethodContext
from harness.models import AdapterOptions, Capability, ModelDescription
from harness_xtreme_r.submission.exchange import read_predictions
from harness_xtreme_r.submission.layout import TASKS, SubmissionTask

FOLDERS = {"wikiann": "panx"}
"""Public folder names of tasks that have another name here."""


class SubmissionOptions(AdapterOptions):
    """A submission has no options."""


class SubmissionModel:
    """A folder of predictions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def identity(self) -> Mapping[str, str]:
        """Return a digest over the names and bytes of all files."""
        digest = hashlib.sha256()
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(self.folder)}\0".encode())
            digest.update(path.read_bytes())
        return {"submission": digest.hexdigest()}

    def close(self) -> None:
        """Do nothing: no file stays open."""


def public_task(name: str) -> SubmissionTask | None:
    """Return the public format of a task, or None without one."""
    folder = FOLDERS.get(name, name)
    return TASKS.get(folder)


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return the capabilities of a submission: recorded predictions; raises `UsageError` unless it is a folder."""
    if not Path(ref).is_dir():
        raise UsageError(
            f"The submission {ref!r} is not a folder.", hint="Expected TASK/test-LANG.EXT files in it."
        )
    return ModelDescription(adapter="submission", ref=ref, offers=frozenset({Capability.PREDICTS}))


def open_submission(description: ModelDescription, options: AdapterOptions) -> SubmissionModel:
    """Return the submission."""
    return SubmissionModel(Path(description.ref))


def _predict(adapter: SubmissionModel, examples: Sequence[Any], context: MethodContext) -> list[Prediction]:
    task = public_task(context.spec.task)
    if task is None:
        raise UsageError(f"Task {context.spec.task!r} has no public submission format.")
    path = task.path(adapter.folder, context.language.code)
    if not path.is_file():
        raise MissingDataError(f"The submission has no {path.relative_to(adapter.folder)}.")
    # Files without ids are in the order of the whole test set.
    english = [example.query for example in context.pool if isinstance(example, BitextExample)] or None
    found = read_predictions(task, path, [example.id for example in context.pool], english=english)
    by_id = {prediction.id: prediction for prediction in found}
    return [by_id[example.id] for example in examples]


METHODS = tuple(
    Method(
        name="recorded",
        kind=kind,
        requires=Capability.PREDICTS,
        protocols=frozenset({"frozen"}),
        predict=_predict,
        needs_all=True,
    )
    for kind in sorted({task.kind for task in TASKS.values()})
)
