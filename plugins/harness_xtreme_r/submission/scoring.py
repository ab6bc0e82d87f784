"""Scores a folder of submission files against a folder of gold files, as the benchmark's own scorer does.

Source: ``evaluate_one_task`` and ``evaluate`` in google-research/xtreme ``evaluate.py``. Unlike there, the
languages are those whose files exist, and everything that was skipped is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.table import Table

from harness import DataError, MissingDataError, UsageError, near_names
from harness.metrics import MetricContext
from harness_xtreme_r.submission.formats import TASKS, FilePair, LanguageFiles, SubmissionTask, find_languages

_WITHOUT_FORMAT: Final = "lareqa"
"""The task of XTREME-R whose predictions have no public file format."""
_GAP: Final = 2
"""Characters between two columns, and between two languages of a line."""
_OTHER_COLUMNS: Final = len("mewslix") + len("exact_match") + len("100.0") + len("48*") + 4 * _GAP
"""Characters of the columns before the languages at their widest."""
_ONLY_MEAN: Final = frozenset({"precision", "recall"})
"""Metrics whose languages would repeat the shape of F1; the JSON has them."""


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


def _score_language(task: SubmissionTask, language: str, files: FilePair) -> LanguageScore:
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
        languages = {}
        for language in (language for language in expected.paths if language in found.paths):
            files = FilePair(predictions=found.paths[language], gold=expected.paths[language])
            try:
                languages[language] = _score_language(task, language, files)
            except DataError as error:
                faults.append(error)
            else:
                warnings += _notes(task, language, languages[language])
        if languages:
            missing, without_gold = _differences(found, expected)
            tasks[task.name] = TaskScore(
                task=task, languages=languages, missing=missing, without_gold=without_gold
            )
    if len(faults) == 1:
        raise faults[0]
    if faults:
        lines = "".join(f"\n  {fault}" for fault in faults)
        raise DataError(f"{len(faults)} files of the submission cannot be scored:{lines}")
    if not tasks:
        raise MissingDataError(
            f"No task has a file TASK/test-LANG.EXT of the same language in both {predictions} and {gold}.",
            hint=f"Known tasks: {', '.join(TASKS)}.",
        )
    return SubmissionScore(tasks=tasks, warnings=tuple(warnings))


def _differences(found: LanguageFiles, expected: LanguageFiles) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the languages with gold alone, and those with predictions alone."""
    missing = tuple(language for language in expected.paths if language not in found.paths)
    return missing, tuple(language for language in found.paths if language not in expected.paths)


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
    missing, without_gold = _differences(found, expected)
    if not found.paths and expected.paths:
        yield f"{task.name}: no predictions; the gold has {', '.join(expected.paths)}."
    elif missing:
        scored = len(expected.paths) - len(missing)
        yield (
            f"{task.name}: no predictions for {', '.join(missing)}; the mean is over {scored} of "
            f"{len(expected.paths)} languages."
        )
    if without_gold:
        yield f"{task.name}: no gold for {', '.join(without_gold)}; these predictions were not scored."


def _notes(task: SubmissionTask, language: str, score: LanguageScore) -> Iterator[str]:
    if score.missing:
        count = f"{len(score.missing)} of {score.items} items"
        yield f"{task.name} {language}: {count} have no prediction and count 0, such as {score.missing[0]!r}."
    if score.extra:
        count = f"{len(score.extra)} of the predicted ids"
        yield f"{task.name} {language}: {count} are not in the gold, such as {score.extra[0]!r}."
    if score.note:
        yield f"{task.name} {language}: {score.note}"


def score_table(score: SubmissionScore, width: int) -> Table:
    """Return one row per task and metric: the mean, the number of languages, and the languages' points."""
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title="XTREME-R submission (points)", title_justify="left"
    )
    table.add_column("task", no_wrap=True)
    table.add_column("metric", no_wrap=True)
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("languages", no_wrap=True)
    for name, task in score.tasks.items():
        means = task.mean
        for position, metric in enumerate(task.task.metrics):
            points = {language: part.metrics[metric] for language, part in task.languages.items()}
            table.add_row(
                name if position == 0 else "",
                metric,
                f"{means[metric]:.1f}",
                str(len(points)) + ("*" if task.missing else ""),
                "" if metric in _ONLY_MEAN else _cells(points, width - _OTHER_COLUMNS),
            )
    if any(task.missing for task in score.tasks.values()):
        table.caption = "* languages of the gold are missing from the mean"
        table.caption_justify = "left"
    return table


def _cells(points: Mapping[str, float], width: int) -> str:
    code = max(map(len, points))
    cells = [f"{language:<{code}} {value:>5.1f}" for language, value in points.items()]
    per_line = max(1, (width + _GAP) // (len(cells[0]) + _GAP))
    lines = [cells[start : start + per_line] for start in range(0, len(cells), per_line)]
    return "\n".join((" " * _GAP).join(line) for line in lines)
