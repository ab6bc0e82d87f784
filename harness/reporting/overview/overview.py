"""The first tab of the page with its chart and map, the tables behind it, and the run as notebooks show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.reporting.blocks.chart import Bar, BarChart, Mark, TaskChart, TaskRow
from harness.reporting.blocks.model import (
    Block,
    Charts,
    Columns,
    Field,
    Fold,
    Note,
    Sentence,
    Sentences,
    TileMap,
    Tiles,
    anchor,
    make_table,
)
from harness.reporting.blocks.number import Score, interval_text, percent, score_field, signed
from harness.reporting.blocks.words import counted
from harness.reporting.overview.column import cells_of
from harness.reporting.overview.glance import Glance, TaskGlance, glance, tiles
from harness.reporting.overview.means import UNREADABLE
from harness.reporting.overview.provenance import lead
from harness.reporting.overview.summary import Material, read_material
from harness.reporting.overview.summary_blocks import error_table, matrix_table, score_shades, system_table
from harness.reporting.render.page import Figure, template
from harness.scores.aggregation import aggregate_tasks
from harness.scores.task_intervals import task_intervals
from harness.storage.results import TaskScore
from harness.storage.run_folder import Run

if TYPE_CHECKING:
    import polars as pl

MOST_SENTENCES = 5
MOST_OF_TASK = 2
"""Sentences about one task before those about others."""
NOTHING_FOUND = "No difference between languages is established with these items."
NARROW_MAP = 16
"""Languages of a map that has space next to the chart."""
MOST_UNREAD = "most answers unreadable"
LONGEST_WORDS = 30
"""Characters of what a task is in a few words."""
FEWEST = 3
"""Tiles that a map must have to make anything clearer."""
WIDEST = 26
"""Languages side by side."""
BOXES = "Dashed: asked for, without a score. Blank: not a language of the task."


def overview_blocks(material: Material, first: Glance, sentences: Mapping[str, Sequence[str]]) -> list[Block]:
    """Return the first screen: tiles, the chart of tasks, tested sentences, and the map of tasks and languages."""
    scored = [task for task in first.tasks if task.mean.value is not None or task.mean.mark]
    findings = stands_out(material, sentences)
    chart = task_chart(material, scored)
    mapped = tile_map(material, scored)
    below: list[Block] = [] if mapped is None else [Note("Where it works", "heading"), mapped]
    is_narrow = mapped is not None and len(mapped.languages) <= NARROW_MAP
    second: list[Block] = [
        Note("What stands out", "heading"),
        Sentences(findings) if findings else Note(NOTHING_FOUND, "soft"),
        *(below if is_narrow else []),
    ]
    charts: list[Block] = [Charts(charts=(chart,)), *_language_bars(scored)]
    return [
        *([Note(text, "lead")] if (text := lead(material, first)) else []),
        *([Tiles(top_tiles)] if (top_tiles := tiles(material, first)) else []),
        *([Columns(charts, second)] if chart.rows else []),
        *([] if is_narrow else below),
    ]


def _language_bars(tasks: Sequence[TaskGlance]) -> Iterator[Block]:
    """Yield the languages of a task that is alone, from the best to the lowest, with their intervals and chance."""
    scored = tasks[0].scored if len(tasks) == 1 else []
    if len(scored) < 2:
        return
    bars = []
    for language in sorted(scored, key=lambda language: (-(language.score.value or 0.0), language.code)):
        low, high = language.score.interval or (None, None)
        value = points(language.score.value)
        bars.append(Bar(label=language.name, value=value, low=points(low), high=points(high)))
    title = f"{tasks[0].column.plain_title} by language"
    yield Charts(charts=(BarChart(title=title, bars=tuple(bars), high=100.0, line=points(tasks[0].chance)),))


def task_chart(material: Material, tasks: Sequence[TaskGlance]) -> TaskChart:
    """Return the chart of the first run's tasks, with what they are compared with."""
    names = task_names(tasks)
    rows = [_task_row(material, task, name) for task, name in zip(tasks, names, strict=True)]
    return TaskChart(title="By task", rows=rows)


def stands_out(material: Material, sentences: Mapping[str, Sequence[str]]) -> list[Sentence]:
    """Return five findings: the largest one of every language, then the next ones; languages and findings by size.

    A task that has two of them lets the other tasks go first.
    """
    names = {code: name for code, name, _ in material.languages}
    rounds = zip_longest(*([(code, text) for text in texts] for code, texts in sentences.items()))
    counts, first, late = Counter[str](), list[tuple[str, str]](), list[tuple[str, str]]()
    for code, text in (pair for turn in rounds for pair in turn if pair is not None and pair[0] in names):
        task = text.partition(":")[0]
        (late if counts[task] >= MOST_OF_TASK else first).append((code, text))
        counts[task] += 1
    return [_sentence(code, names[code], text) for code, text in [*first, *late][:MOST_SENTENCES]]


def _sentence(code: str, name: str, text: str) -> Sentence:
    before, separator, after = text.partition(name)
    sides = (before, after) if separator else ("", f", {text}")
    return Sentence(before=sides[0], link=name, after=sides[1], href=f"#{anchor('language', code)}")


def _task_row(material: Material, task: TaskGlance, name: str) -> TaskRow:
    words = _words(material.runs[0], task.column.task)
    words += f"; {MOST_UNREAD}" if task.mean.mark == UNREADABLE else ""
    lowest = next((language.score.value for language in task.weakest), None)
    return replace(
        score_row(name, words, task.mean, tuple(_marks(material, task))),
        chance=points(task.chance),
        weakest=tuple(language.name for language in task.scored if language.score.value == lowest),
        lowest=points(lowest),
    )


def _words(run: Run, task: str) -> str:
    """Return a task in a few words: the start of its description, or its kind where that is long."""
    spec = run.manifest.specs.get(task, {})
    start = str(spec.get("title") or spec.get("description") or "")
    for end in (". ", ": ", "; ", " (", ", "):
        start = start.partition(end)[0]
    start = start.strip().rstrip(".")
    if start and len(start) <= LONGEST_WORDS and " " in start and not start.startswith("For "):
        return start
    return _kind(spec)


def _kind(spec: Mapping[str, Any]) -> str:
    return str(spec.get("kind", "")).replace("_", " ")


def _marks(material: Material, task: TaskGlance) -> Iterator[Mark]:
    for language in task.scored:
        is_source = language.code == task.source
        value = (language.score.value or 0.0) * 100
        yield Mark(kind="source" if is_source else "language", label=language.name, value=value)
    for run in material.every:
        row = material.mean(run, task.column).row
        if run is not material.runs[0] and row is not None:
            is_given = any(run is main_run for main_run in material.runs)
            yield Mark(
                kind="run" if is_given else "baseline", label=material.name(run), value=row.value * 100
            )
    yield from (Mark(kind="published", label=label, value=value * 100) for label, value in task.published)


def task_blocks(material: Material) -> list[Block]:
    """Return the systems against the tasks, suites, what the tasks are, and the matrices of the first run."""
    summary = material.summary
    return [
        system_table(material) or Note("Nothing was scored."),
        *map(matrix_table, summary.suites),
        *(
            Fold(title=matrix.title, blocks=[error_table(matrix)], is_open=matrix.is_small)
            for matrix in summary.matrices
        ),
        *_descriptions(material),
    ]


def _descriptions(material: Material) -> list[Block]:
    specs = {task: spec for run in reversed(material.runs) for task, spec in run.manifest.specs.items()}
    tasks = dict.fromkeys(cell.task for run in material.runs for cell in run.cells if cell.task in specs)
    rows = [
        (task, _kind(specs[task]), " ".join(str(specs[task].get("description") or "").split()))
        for task in tasks
    ]
    table = make_table("What the tasks are", ("task", "kind", "description"), rows, words={0, 1})
    return [table] if any(text for *_, text in rows) else []


# Figures and notebooks --------------------------------------------------------------------------------------


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
            for code, *_ in summary.languages
        ]
        if any(field.text for field in fields):
            rows.append((name, fields))
    if sum(bool(field.text) for _, fields in rows for field in fields) < fewest:
        return None
    return TileMap(
        title="Tasks by languages",
        families=[(section.family, len(section.rows)) for section in summary.sections],
        languages=[(code, name) for code, name, *_ in summary.languages],
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
        for language in task.scored:
            if language.code == task.source:
                yield score_row(name, f"{language.name}, the source language", language.score)
        marks = [
            Mark(kind="language", label=language.name, value=100 * (language.score.value or 0.0))
            for language in task.scored
            if language.code != task.source
        ]
        words = f"mean of the others, gap {signed(task.transfer_gap)}"
        yield score_row("", words, Score(mean.value, interval=mean.ci), marks)

    def _mean_of_others(self, task: TaskGlance) -> TaskScore:
        """Return the mean of all languages but the source, with an interval that takes parallel items together."""
        run = self._material.runs[0]
        cells = [cell for cell in cells_of(run, task.column) if cell.language != task.source]
        rows = aggregate_tasks(cells, run.manifest.tasks)
        [row] = [row for row in rows if row.metric == task.column.metric]
        return task_intervals([row], cells, run.manifest.tasks, run.records_of, self._material.metrics)[0]

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
        rows = ((task, fields[band]) for task, fields in tiles.rows)
        yield replace(
            tiles,
            families=[(family, len([*group])) for family, group in groupby(families[band])],
            languages=tiles.languages[band],
            rows=[(task, fields) for task, fields in rows if any(field.text for field in fields)],
        )


def score_row(name: str, words: str, score: Score, marks: Sequence[Mark] = ()) -> TaskRow:
    """Return a score with its interval as a row of a chart."""
    field, (low, high) = score_field(score), score.interval or (None, None)
    return TaskRow(
        label=name,
        words=words,
        value=points(score.value),
        text=field.text,
        small=field.small,
        low=points(low),
        high=points(high),
        marks=marks,
    )


def points(value: float | None) -> float | None:
    """Return a fraction times 100."""
    return None if value is None else 100 * value


class LoadedRun(Run):
    """A run that shows itself: as a table in a notebook, as one line elsewhere, and as figures."""

    @cached_property
    def _material(self) -> Material:
        return read_material([self])

    @cached_property
    def glance(self) -> Glance:
        """The first look at the run."""
        return glance([self], self._material.summary)

    def scores(self) -> pl.DataFrame:
        """Return the table of scores; see `harness.scores.table.read_scores`."""
        from harness.scores.table import read_scores

        return read_scores([self])

    @property
    def plot(self) -> Plots:
        """Figures of the run: ``run.plot.heatmap()`` and ``run.plot.gap()``."""
        return Plots(self._material, self.glance)

    def __repr__(self) -> str:
        """Return one line: model, tasks, languages, cells and the mean."""
        look = self.glance
        completeness, mean = look.completeness, look.mean
        facts = [
            f"{completeness.tasks[0]} of {completeness.tasks[1]} tasks",
            f"{completeness.languages[0]} of {completeness.languages[1]} languages",
            f"{completeness.scored} of {completeness.cells} cells",
        ]
        if mean.value is not None:
            interval = "" if mean.interval is None else f" ({interval_text(mean.interval)})"
            facts.append(f"mean {percent(mean.value)}{interval}")
        return f"<Run {self.path}: {look.name}, {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        """Return the first look as a table; its colours fit light and dark notebooks."""
        look = self.glance
        rows = list(zip(look.tasks, task_names(look.tasks), strict=True))
        scores = [
            score
            for task in look.tasks
            for score in (task.mean, *(language.score for language in task.weakest))
        ]
        marks = {mark for score in scores for mark in score.mark}
        legend = [note for note in self._material.summary.notes if note[:1] in marks]
        return template("notebook.html.j2", look=look, rows=rows, legend=legend, run=self)
