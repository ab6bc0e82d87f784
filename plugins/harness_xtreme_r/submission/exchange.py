"""Predictions of the harness as the content of submission files and back, and a submission as a model.

The predictions of the model are looked up in its files, to make a run of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import DataError, MissingDataError, UsageError
from harness.data import BitextExample, Prediction
from harness.kinds import Method, MethodContext
from harness.models import AdapterOptions, Capability, ModelDescription
from harness_xtreme_r.submission.formats import CHOICES, TASKS, SubmissionTask

_LABELLED = frozenset({"sequence_classification", "multiple_choice"})
FOLDERS = {"wikiann": "panx"}
"""Public folder names of tasks that have another name here."""


def write_predictions(
    task: SubmissionTask,
    root: Path,
    language: str,
    predictions: Sequence[Prediction],
    *,
    english: Sequence[str] | None = None,
) -> Path:
    """Write predictions in test order as the file of one language below `root`, and return its path.

    Of a ranking the candidates are kept and not those after them. `english` gives Tatoeba the English sentence
    of every pair. Raises `DataError` where a line-based format has no line for an unanswered item or for
    an unknown answer, and `UsageError` for Tatoeba without the English sentences.
    """
    path = task.path(root, language)
    content: Any
    if task.kind == "span_extraction":
        content = {own.id: own.output["text"] for own in predictions if own.output["text"] is not None}
    elif task.kind == "ranked_retrieval":
        content = {own.id: list(own.output["candidates"]) for own in predictions}
    elif task.kind == "token_tagging":
        content = [list(own.output) for own in predictions]
    else:
        content = _answers(task, predictions)
    if task.kind == "bitext_retrieval":
        ids = [own.id for own in predictions]
        content = to_sorted_english_indices(content, ids, _needed(english, task))
    task.format.write(path, content)
    return path


def _answers(task: SubmissionTask, predictions: Sequence[Prediction]) -> list[Any]:
    """Return a label, the number of a choice, or a candidate per item."""
    answers = []
    for own in predictions:
        answer = own.output["label" if task.kind in _LABELLED else "candidate"]
        if answer is None:
            raise DataError(
                f"{task.name}: item {own.id!r} has no answer, and its file has a line for every item."
            )
        if task.kind == "multiple_choice":
            if answer not in CHOICES:
                expected = " or ".join(map(repr, CHOICES))
                raise DataError(
                    f"{task.name}: item {own.id!r}: expected the answer {expected}, found {answer!r}."
                )
            answer = CHOICES.index(answer)
        answers.append(answer)
    return answers


def read_predictions(
    task: SubmissionTask, path: Path, ids: Sequence[str], *, english: Sequence[str] | None = None
) -> list[Prediction]:
    """Return one prediction for each id of a file, in the order of `ids`, which is the test order.

    An id that is missing from a file with ids becomes an unparsed prediction without an answer, which scores 0. Scores
    and offsets, which no submission file holds, are absent. Raises `DataError` where a line-based file has
    another number of items than `ids`, and `UsageError` for Tatoeba without the English sentences.
    """
    content = task.format.read_predictions(path)
    if task.kind in {"span_extraction", "ranked_retrieval"}:
        answers = [content.get(key) for key in ids]
        if task.kind == "span_extraction":
            outputs: list[Any] = [{"text": answer} for answer in answers]
        else:
            outputs = [{"candidates": answer or [], "further": []} for answer in answers]
    elif len(content) != len(ids):
        raise DataError(f"{path}: {task.name}: expected {len(ids)} items, found {len(content)}.")
    elif task.kind == "token_tagging":
        outputs = [list(tags) for tags in content]
    elif task.kind == "multiple_choice":
        outputs = [{"label": CHOICES[number]} for number in content]
    elif task.kind in _LABELLED:
        outputs = [{"label": label} for label in content]
    else:
        try:
            candidates = from_sorted_english_indices(content, ids, _needed(english, task))
        except DataError as error:
            raise DataError(f"{path}: {error.message}", hint=error.hint) from error
        outputs = [{"candidate": candidate} for candidate in candidates]
    known = set(content) if isinstance(content, dict) else set(ids)
    return [
        Prediction(id=key, output=output, unparsed=key not in known)
        for key, output in zip(ids, outputs, strict=True)
    ]


def _needed(english: Sequence[str] | None, task: SubmissionTask) -> Sequence[str]:
    if english is None:
        raise UsageError(
            f"The files of {task.name!r} are ordered by the English sentences, which were not given."
        )
    return english


# Tatoeba ------------------------------------------------------------------------------------------------


def sorted_english_order(english: Sequence[str]) -> list[int]:
    """Return, for each position in the sorted English file, the 0-based line in the original order.

    These numbers are also the gold file. Equal sentences keep their order.
    """
    lines = [sentence.strip() for sentence in english]
    return sorted(range(len(lines)), key=lines.__getitem__)


def to_sorted_english_indices(
    candidates: Sequence[str], ids: Sequence[str], english: Sequence[str]
) -> list[int]:
    """Return the lines of a submission file for the pairs of one language.

    All three have one entry a pair, in the original order: `candidates` the id of the pair whose foreign
    sentence was found for the pair's English one, `ids` the pair's own id, `english` its English sentence.
    Raises `DataError` where the lengths differ, an id repeats, or a candidate is no id.
    """
    positions = _positions(ids, english)
    if len(candidates) != len(ids):
        raise DataError(f"Expected a candidate for each of the {len(ids)} pairs, found {len(candidates)}.")
    for query, candidate in zip(ids, candidates, strict=True):
        if candidate not in positions:
            raise DataError(f"Pair {query!r}: expected a pair id as its candidate, found {candidate!r}.")
    return [positions[candidates[line]] for line in sorted_english_order(english)]


def from_sorted_english_indices(
    indices: Sequence[int], ids: Sequence[str], english: Sequence[str]
) -> list[str]:
    """Return the candidate id of each pair in the original order: the inverse of `to_sorted_english_indices`.

    Raises `DataError` where the lengths differ, an id repeats, or an index is no line of the foreign file.
    """
    _positions(ids, english)
    if len(indices) != len(ids):
        raise DataError(f"Expected {len(ids)} lines, one for each pair, found {len(indices)}.")
    candidates = [""] * len(ids)
    for number, (line, index) in enumerate(zip(sorted_english_order(english), indices, strict=True), start=1):
        if not 0 <= index < len(ids):
            raise DataError(f"Line {number}: expected a number from 0 to {len(ids) - 1}, found {index}.")
        candidates[line] = ids[index]
    return candidates


def _positions(ids: Sequence[str], english: Sequence[str]) -> dict[str, int]:
    if len(ids) != len(english):
        raise DataError(f"Expected {len(ids)} English sentences, one for each pair, found {len(english)}.")
    positions = {pair: position for position, pair in enumerate(ids)}
    if len(positions) != len(ids):
        raise DataError(f"Expected {len(ids)} distinct pair ids, found {len(positions)}.")
    return positions


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
