"""The map of tasks against languages, and the figures of a run, which `LoadedRun.plot` has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from harness.errors import UsageError
from harness.reporting.blocks.model import Field, TileMap
from harness.reporting.blocks.number import score_field, signed
from harness.reporting.blocks.remark import counted
from harness.reporting.blocks.score import Score
from harness.reporting.blocks.task_chart import Mark, TaskChart, TaskRow
from harness.reporting.overview.column import cells_of
from harness.reporting.overview.figure import Figure
from harness.reporting.overview.glance import Glance, TaskGlance
from harness.reporting.overview.material import Material
from harness.reporting.overview.summary_blocks import score_shades
from harness.running.session import open_session
from harness.scores.aggregation import aggregate_tasks
from harness.scores.task_intervals import task_intervals
from harness.storage.results import TaskScore

FEWEST = 3
"""Tiles that a map must have to make anything clearer."""
WIDEST = 26
"""Languages side by side."""
BOXES = "Dashed: asked for, without a score. Blank: not a language of the task."


def task_names(tasks: Sequence[TaskGlance]) -> list[str]:
    """Return the names of tasks; with protocol and conditions where these are not the same for all."""
    conditions = [task.column.title.split("\n")[1:-1] for task in tasks]
    differ = any(lines != conditions[0] for lines in conditions)
    return [
        " ".join([task.column.task, *(lines if differ else [])])
        for task, lines in zip(tasks, conditions, strict=True)
    ]


def tile_map(
    material: Material, tasks: Sequence[TaskGlance], *, digits: int = 0, fewest: int = FEWEST
) -> TileMap | None:
    """Return the map of the first run; None for fewer tiles than `fewest`."""
    summary = material.summary
    shades = score_shades(summary)
    rows = []
    for task, name in zip(tasks, task_names(tasks), strict=True):
        index = summary.columns.index(task.column)
        scores = {language.code: language.score for language in task.languages}
        fields = [
            _tile(scores.get(code), shades.get((code, index), "absent"), digits)
            for code, _, _ in material.languages
        ]
        if any(field.text for field in fields):
            rows.append((name, fields))
    count = sum(bool(field.text) for _, fields in rows for field in fields)
    if count < fewest:
        return None
    return TileMap(
        title="Tasks by languages",
        families=[(section.family, len(section.rows)) for section in summary.sections],
        languages=[(code, name) for code, name, _ in material.languages],
        rows=rows,
        keys=[("ramp", 0, "from chance, or 0 where it is not known, to 100")],
    )


def _tile(score: Score | None, shade: str, digits: int) -> Field:
    if score is None:
        return Field(shade="absent")
    if score.value is None:
        return Field(text="!" if score.mark == "!" else "", shade="absent", title="no score")
    return Field(text=f"{score.value * 100:.{digits}f}", shade=shade)


class Plots:
    """Figures of the first run of a report; a notebook shows each, and ``figure.save("x.svg")`` writes it."""

    def __init__(self, material: Material, glance: Glance) -> None:
        self._material = material
        self._glance = glance
        self._tiles = tile_map(material, glance.tasks, digits=1, fewest=1)

    def heatmap(self) -> Figure:
        """Return the map of the report: tasks by languages, which are grouped by family.

        The colours go from chance, or 0 where none is known, to 100. A cell that was asked for and has no score is a
        dashed box.

        Raises `UsageError` where the run has no scores.
        """
        if self._tiles is None:
            raise UsageError("The run has no scores to show.")
        scored = {code for code, _, _ in self._material.languages}
        hidden = len({cell.language for cell in self._material.runs[0].cells} - scored)
        notes = [f"Not shown: {counted(hidden, 'language')} without any score."] if hidden else []
        return self._figure([*_bands(self._tiles)], BOXES, *notes)

    def gap(self) -> Figure:
        """Return every task's source language and the mean of the others, with 95 % intervals.

        The interval of the mean of the others comes from the items, as that of a task's mean does.

        Raises `UsageError` where no task has a score in its source language and in another one.
        """
        pairs = zip(self._glance.tasks, task_names(self._glance.tasks), strict=True)
        rows = [row for pair in pairs if pair[0].transfer_gap is not None for row in self._lanes(*pair)]
        if not rows:
            raise UsageError(
                "No task of this run has a score in the language it was trained in and in another one.",
                hint="Evaluate a task that has a source language, such as xnli:en+sw, with a model that is fine-tuned.",
            )
        return self._figure([TaskChart(title="What is lost on leaving the source language", rows=rows)])

    def _lanes(self, task: TaskGlance, name: str) -> Iterator[TaskRow]:
        """Yield a row of the source language, and one of the others with their mean."""
        mean = self._mean_of_others(task)
        marks = []
        for language in task.scored:
            if language.code == task.source:
                yield score_row(name, f"{language.name}, the source language", language.score)
            else:
                value = 100 * (language.score.value or 0.0)
                marks.append(Mark(kind="language", label=language.name, value=value))
        words = f"mean of the others, gap {signed(task.transfer_gap)}"
        yield score_row("", words, Score(value=mean.value, interval=mean.ci), marks)

    def _mean_of_others(self, task: TaskGlance) -> TaskScore:
        """Return the mean of all languages but the source, with an interval that takes parallel items together."""
        run = self._material.runs[0]
        cells = [cell for cell in cells_of(run, task.column) if cell.language != task.source]
        rows = aggregate_tasks(cells, run.manifest.tasks)
        [row] = [row for row in rows if row.metric == task.column.metric]
        metrics = open_session().registry.metrics
        return task_intervals([row], cells, run.manifest.tasks, run.records_of, metrics)[0]

    def _figure(self, charts: Sequence[TileMap | TaskChart], *notes: str) -> Figure:
        return Figure(
            title=charts[0].title,
            rows=[[chart] for chart in charts],
            notes=[self._glance.name, *notes],
            sample=self._material.summary.sample,
        )


def _bands(tiles: TileMap) -> Iterator[TileMap]:
    """Yield a map in bands of languages that fit the width of a paper; a band has the tasks with a tile in it."""
    families = [family for family, count in tiles.families for _ in range(count)]
    for start in range(0, len(families), WIDEST):
        band = slice(start, start + WIDEST)
        rows = [(task, fields[band]) for task, fields in tiles.rows]
        yield replace(
            tiles,
            families=[(family, len([*group])) for family, group in groupby(families[band])],
            languages=tiles.languages[band],
            rows=[(task, fields) for task, fields in rows if any(field.text for field in fields)],
        )


def score_row(name: str, words: str, score: Score, marks: Sequence[Mark] = ()) -> TaskRow:
    """Return a score with its interval as a row of a chart."""
    field = score_field(score)
    ends = (score.value, *(score.interval or (None, None)))
    value, low, high = (None if end is None else 100 * end for end in ends)
    return TaskRow(
        name=name,
        words=words,
        value=value,
        text=field.text,
        small=field.small,
        low=low,
        high=high,
        marks=marks,
    )
