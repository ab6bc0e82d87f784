"""Scores a folder of submission files against a folder of gold files, as the benchmark's own scorer does.

Source: ``evaluate_one_task`` and ``evaluate`` in google-research/xtreme ``evaluate.py``. Unlike there, the
languages are those whose files exist, and everything that was skipped is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import DataError, MetricContext, MissingDataError, UsageError, near_names
from harness_xtreme_r.submission.format import FilePair
from harness_xtreme_r.submission.layout import TASKS, LanguageFiles, SubmissionTask, find_languages

__all__ = ["LanguageScore", "SubmissionScore", "TaskScore", "score_language", "score_submission"]

_WITHOUT_FORMAT: Final = "lareqa"
"""The task of XTREME-R whose predictions have no public file format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageScore:
    """The scores of one task in one language."""

    metrics: Mapping[str, float]
    """Points from 0 to 100 by the names that the benchmark's scorer prints."""
    items: int
    missing: tuple[str, ...] = ()
    """Ids of gold items without a prediction; they counted 0."""
    extra: tuple[str, ...] = ()
    """Ids of predictions without a gold item; they did not count."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScore:
    """The scores of one task."""

    task: SubmissionTask
    languages: Mapping[str, LanguageScore]
    missing: tuple[str, ...]
    """Languages with gold but without predictions; the mean skips them."""
    without_gold: tuple[str, ...]
    """Languages with predictions but without gold."""

    @property
    def mean(self) -> dict[str, float]:
        """Return the unweighted mean over the scored languages of every metric, in points."""
        scores = [score.metrics for score in self.languages.values()]
        return {name: sum(score[name] for score in scores) / len(scores) for name in self.task.metrics}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionScore:
    """The scores of a submission: every task that has predictions and gold."""

    tasks: Mapping[str, TaskScore]
    warnings: tuple[str, ...]
    """One sentence for each thing that was skipped or looks wrong."""

    def as_json(self) -> dict[str, Any]:
        """Return ``{task: {"languages": {language: {metric: points}}, "mean": {metric: points}}}``.

        A task whose gold has languages without predictions also lists them as ``missing``.
        """
        rows: dict[str, Any] = {}
        for name, task in self.tasks.items():
            rows[name] = {
                "languages": {language: dict(score.metrics) for language, score in task.languages.items()},
                "mean": task.mean,
            }
            if task.missing:
                rows[name]["missing"] = list(task.missing)
        return rows


def score_language(task: SubmissionTask, language: str, files: FilePair) -> LanguageScore:
    """Return the scores of one file of predictions; raises `DataError` naming the file at fault."""
    predictions = task.format.read_predictions(files.predictions)
    items = task.format.pair(predictions, task.format.read_gold(files.gold), files)
    context = MetricContext(language=language)
    try:
        metrics = {
            name: 100 * compute(items.outputs, items.references, context).value
            for name, compute in task.metrics.items()
        }
    except ValueError as error:
        raise DataError(f"{files.predictions}: {error}") from error
    return LanguageScore(
        metrics=metrics,
        items=len(items.references),
        missing=items.missing,
        extra=items.extra,
        note=items.note,
    )


def score_submission(predictions: Path, gold: Path) -> SubmissionScore:
    """Return the scores of all tasks that both folders hold.

    Raises `UsageError` where a folder does not exist, `MissingDataError` where no language has both files,
    and `DataError` for files that cannot be scored: all of them at once.
    """
    for folder in (predictions, gold):
        if not folder.is_dir():
            raise UsageError(
                f"No folder {str(folder)!r}; expected one with a folder for each task: {', '.join(TASKS)}."
            )
    tasks: dict[str, TaskScore] = {}
    warnings = [*_unknown_folders(predictions)]
    faults: list[DataError] = []
    for task in TASKS.values():
        found, expected = find_languages(predictions, task), find_languages(gold, task)
        warnings += _skipped(task, found, expected)
        score = _score_task(task, found, expected, faults)
        warnings += [
            line for language, part in score.languages.items() for line in _notes(task, language, part)
        ]
        if score.languages:
            tasks[task.name] = score
    _raise_faults(faults)
    if not tasks:
        raise MissingDataError(
            f"No task has a file TASK/test-LANG.EXT of the same language in both {predictions} and {gold}.",
            hint=f"Known tasks: {', '.join(TASKS)}.",
        )
    return SubmissionScore(tasks=tasks, warnings=tuple(warnings))


def _score_task(
    task: SubmissionTask, found: LanguageFiles, expected: LanguageFiles, faults: list[DataError]
) -> TaskScore:
    """Return the scores of the languages that could be scored, and append what could not to `faults`."""
    languages = {}
    for language in (language for language in expected.paths if language in found.paths):
        files = FilePair(predictions=found.paths[language], gold=expected.paths[language])
        try:
            languages[language] = score_language(task, language, files)
        except DataError as error:
            faults.append(error)
    return TaskScore(
        task=task,
        languages=languages,
        missing=tuple(language for language in expected.paths if language not in found.paths),
        without_gold=tuple(language for language in found.paths if language not in expected.paths),
    )


def _raise_faults(faults: Sequence[DataError]) -> None:
    if len(faults) == 1:
        raise faults[0]
    if faults:
        lines = "".join(f"\n  {fault}" for fault in faults)
        raise DataError(f"{len(faults)} files of the submission cannot be scored:{lines}")


def _unknown_folders(predictions: Path) -> Iterator[str]:
    for folder in sorted(path for path in predictions.iterdir() if path.is_dir()):
        if folder.name not in TASKS and not folder.name.startswith("."):
            near = [] if folder.name == _WITHOUT_FORMAT else near_names(folder.name, TASKS)
            suggestion = f" Did you mean {near[0]!r}?" if near else ""
            yield f"{folder} was not scored: no task of that name has a public file format.{suggestion}"


def _skipped(task: SubmissionTask, found: LanguageFiles, expected: LanguageFiles) -> Iterator[str]:
    pattern = f"test-LANG.{task.format.extension}"
    for path in (*found.ignored, *expected.ignored):
        yield f"{path} was not read: expected the name {pattern}."
    if not found.paths and expected.paths:
        yield f"{task.name}: no predictions; the gold has {_listed(expected.paths)}."
    elif missing := [language for language in expected.paths if language not in found.paths]:
        scored = len(expected.paths) - len(missing)
        yield (
            f"{task.name}: no predictions for {_listed(missing)}; the mean is over {scored} of "
            f"{len(expected.paths)} languages."
        )
    if extra := [language for language in found.paths if language not in expected.paths]:
        yield f"{task.name}: no gold for {_listed(extra)}; these predictions were not scored."


def _notes(task: SubmissionTask, language: str, score: LanguageScore) -> Iterator[str]:
    if score.missing:
        count = f"{len(score.missing)} of {score.items} items"
        yield f"{task.name} {language}: {count} have no prediction and count 0, such as {score.missing[0]!r}."
    if score.extra:
        count = f"{len(score.extra)} of the predicted ids"
        yield f"{task.name} {language}: {count} are not in the gold, such as {score.extra[0]!r}."
    if score.note:
        yield f"{task.name} {language}: {score.note}"


def _listed(languages: Mapping[str, Path] | Sequence[str]) -> str:
    return ", ".join(languages)
