"""The first tab of the page, and the tables of systems, suites and tasks behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from harness.reporting.blocks.chart import Bar, BarChart
from harness.reporting.blocks.model import (
    Block,
    Charts,
    Columns,
    Fold,
    Note,
    Sentence,
    Sentences,
    Table,
    Tiles,
    anchor,
    rows_of,
)
from harness.reporting.blocks.task_chart import Mark, TaskChart, TaskRow
from harness.reporting.overview.glance import Glance, TaskGlance
from harness.reporting.overview.material import Material
from harness.reporting.overview.opening import lead
from harness.reporting.overview.plots import score_row, task_names, tile_map
from harness.reporting.overview.score_table import error_table
from harness.reporting.overview.summary_blocks import suite_table
from harness.reporting.overview.systems import system_table
from harness.reporting.overview.tiles import tiles
from harness.reporting.overview.unreadable import UNREADABLE
from harness.storage.run_folder import Run

MOST_SENTENCES = 5
MOST_OF_TASK = 2
"""Sentences about one task before those about others."""
NOTHING_FOUND = "No difference between languages is established with these items."
NARROW_MAP = 16
"""Languages of a map that has space next to the chart."""
MOST_UNREAD = "most answers unreadable"
LONGEST_WORDS = 30
"""Characters of what a task is in a few words."""


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
    bars = [
        Bar(
            label=language.name,
            value=_points(language.score.value),
            low=_points(language.score.interval[0]) if language.score.interval else None,
            high=_points(language.score.interval[1]) if language.score.interval else None,
        )
        for language in sorted(scored, key=lambda language: (-(language.score.value or 0.0), language.code))
    ]
    title = f"{tasks[0].column.plain_title} by language"
    yield Charts(charts=(BarChart(title=title, bars=tuple(bars), high=100.0, line=_points(tasks[0].chance)),))


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
    pairs = [pair for turn in rounds for pair in turn if pair is not None and pair[0] in names]
    counts = Counter[str]()
    late: list[bool] = []
    for _, text in pairs:
        task = text.partition(":")[0]
        late.append(counts[task] >= MOST_OF_TASK)
        counts[task] += 1
    ordered = [*(pair for pair, is_late in zip(pairs, late, strict=True) if not is_late)]
    ordered += (pair for pair, is_late in zip(pairs, late, strict=True) if is_late)
    return [_sentence(code, names[code], text) for code, text in ordered[:MOST_SENTENCES]]


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
        chance=_points(task.chance),
        weakest=tuple(language.name for language in task.scored if language.score.value == lowest),
        lowest=_points(lowest),
    )


def _points(value: float | None) -> float | None:
    return None if value is None else value * 100


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
    table = system_table(material)
    return [
        table if table is not None else Note("Nothing was scored."),
        *map(suite_table, material.summary.suites),
        *(
            Fold(title=matrix.title, blocks=[error_table(matrix)], is_open=matrix.is_small)
            for matrix in material.summary.matrices
        ),
        *_descriptions(material),
    ]


def _descriptions(material: Material) -> list[Block]:
    specs = {task: spec for run in reversed(material.runs) for task, spec in run.manifest.specs.items()}
    tasks = dict.fromkeys(cell.task for run in material.runs for cell in run.cells)
    rows = [
        (task, _kind(spec), " ".join(str(spec.get("description") or "").split()))
        for task in tasks
        if (spec := specs.get(task)) is not None
    ]
    table = Table(
        title="What the tasks are",
        corner="task",
        heads=("kind", "description"),
        rows=rows_of(rows),
        words=frozenset({0, 1}),
    )
    return [table] if any(text for *_, text in rows) else []
