"""Predictions of the harness as the content of a submission file, and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import DataError, Prediction, UsageError
from harness_xtreme_r.submission.layout import SubmissionTask
from harness_xtreme_r.submission.line_format import ChoiceFormat
from harness_xtreme_r.submission.tatoeba import from_sorted_english_indices, to_sorted_english_indices

__all__ = ["content_of", "predictions_of", "read_predictions", "write_predictions"]

_LABELLED = frozenset({"sequence_classification", "multiple_choice"})


def content_of(
    task: SubmissionTask, predictions: Sequence[Prediction], *, english: Sequence[str] | None = None
) -> Any:
    """Return what ``task.format.write`` takes, from predictions in test order.

    Of a ranking the candidates are kept and not those after them. `english` gives Tatoeba the English sentence
    of every pair. Raises `DataError` where a line-based format has no line for an unanswered item or for
    an unknown answer, and `UsageError` for Tatoeba without the English sentences.
    """
    outputs = [prediction.output for prediction in predictions]
    if task.kind == "span_extraction":
        answered = [(p.id, p.output["text"]) for p in predictions if p.output["text"] is not None]
        return dict(answered)
    if task.kind == "ranked_retrieval":
        return {prediction.id: list(prediction.output["candidates"]) for prediction in predictions}
    if task.kind == "token_tagging":
        return [list(tags) for tags in outputs]
    answer_key = "label" if task.kind in _LABELLED else "candidate"
    for prediction in predictions:
        if prediction.output[answer_key] is None:
            raise DataError(
                f"{task.name}: item {prediction.id!r} has no answer, and its file has a line for every item."
            )
    if isinstance(task.format, ChoiceFormat):
        return [_number(prediction, task.format.choices, task) for prediction in predictions]
    if task.kind in _LABELLED:
        return [output["label"] for output in outputs]
    ids = [prediction.id for prediction in predictions]
    return to_sorted_english_indices([output["candidate"] for output in outputs], ids, _needed(english, task))


def predictions_of(
    task: SubmissionTask, content: Any, ids: Sequence[str], *, english: Sequence[str] | None = None
) -> list[Prediction]:
    """Return one prediction for each id, in the order of `ids`, which is the test order.

    An id that is missing from a file with ids becomes an unparsed prediction without an answer, which scores 0. Scores
    and offsets, which no submission file holds, are absent. Raises `DataError` where a line-based file has
    another number of items than `ids`, and `UsageError` for Tatoeba without the English sentences.
    """
    if task.kind == "span_extraction":
        return [
            Prediction(id=key, output={"text": content.get(key)}, unparsed=key not in content) for key in ids
        ]
    if task.kind == "ranked_retrieval":
        return [
            Prediction(
                id=key,
                output={"candidates": content.get(key, []), "further": []},
                unparsed=key not in content,
            )
            for key in ids
        ]
    if len(content) != len(ids):
        raise DataError(f"{task.name}: expected {len(ids)} items, found {len(content)}.")
    outputs: list[Any]
    if task.kind == "token_tagging":
        outputs = [list(tags) for tags in content]
    elif isinstance(task.format, ChoiceFormat):
        outputs = [{"label": task.format.choices[number]} for number in content]
    elif task.kind in _LABELLED:
        outputs = [{"label": label} for label in content]
    else:
        candidates = from_sorted_english_indices(content, ids, _needed(english, task))
        outputs = [{"candidate": candidate} for candidate in candidates]
    return [Prediction(id=key, output=output) for key, output in zip(ids, outputs, strict=True)]


def write_predictions(
    task: SubmissionTask,
    root: Path,
    language: str,
    predictions: Sequence[Prediction],
    *,
    english: Sequence[str] | None = None,
) -> Path:
    """Write the file of one language below `root` and return its path; the rest is as in `content_of`."""
    path = task.path(root, language)
    task.format.write(path, content_of(task, predictions, english=english))
    return path


def read_predictions(
    task: SubmissionTask, path: Path, ids: Sequence[str], *, english: Sequence[str] | None = None
) -> list[Prediction]:
    """Return the predictions of one file, given the ids in test order; the rest is as in `predictions_of`."""
    content = task.format.read_predictions(path)
    try:
        return predictions_of(task, content, ids, english=english)
    except DataError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from error


def _number(prediction: Prediction, choices: Sequence[str], task: SubmissionTask) -> int:
    label = prediction.output["label"]
    if label not in choices:
        expected = " or ".join(repr(choice) for choice in choices)
        raise DataError(
            f"{task.name}: item {prediction.id!r}: expected the answer {expected}, found {label!r}."
        )
    return choices.index(label)


def _needed(english: Sequence[str] | None, task: SubmissionTask) -> Sequence[str]:
    if english is None:
        raise UsageError(
            f"The files of {task.name!r} are ordered by the English sentences, which were not given."
        )
    return english
