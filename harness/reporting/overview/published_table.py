"""Runs next to published systems as papers print them: a table for each task by language, and one of all tasks.

The languages are those of the runs, so that all means of a table are over the same ones; for a run in all languages
these are the tables of the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from statistics import fmean
from typing import Any

from harness.errors import UsageError
from harness.metrics.metric import Metric
from harness.metrics.naming import metric_name
from harness.reporting.blocks.model import Block, Field, Note, Notes, Table, TableRow
from harness.reporting.blocks.number import percent, score_field
from harness.reporting.blocks.remark import counted
from harness.reporting.blocks.score import Score
from harness.reporting.overview.column import Column, conditions_of
from harness.reporting.overview.grouping import list_names
from harness.reporting.overview.material import Material, read_material
from harness.reporting.overview.mean_row import OTHER_CELLS, row_of
from harness.reporting.overview.published import (
    NOT_COMPARABLE,
    Place,
    by_language,
    published_rows,
    published_score,
    published_systems,
    shown_documents,
)
from harness.reporting.overview.run_remarks import published_remarks
from harness.reporting.overview.suite import published_overall, suite_row
from harness.reporting.render.console import SAMPLE_WARNING
from harness.storage.run_folder import Run
from harness.table import NamedTable

AVERAGE = "Avg"
ABOUT_TASKS = ("comparable", "items", "families", "layers")
"""Keys of documents that are about single tasks."""
MARKS = f"{NOT_COMPARABLE} not comparable, as its source says; {OTHER_CELLS} over other languages."


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """Published systems and runs against the languages of a task, or against the tasks of a suite."""

    places: tuple[Place | None, ...]
    """Places of its columns; None for the average."""
    heads: tuple[str, ...]
    title: str
    rows: tuple[tuple[str, bool, tuple[Score, ...]], ...]
    """Label, whether it is a run, and a score per column."""
    sources: tuple[str, ...]


def read_published_tables(
    runs: Sequence[Run],
    published: Sequence[Mapping[str, Any]],
    *,
    tasks: Sequence[str] = (),
    languages: Sequence[str] = (),
) -> list[PublishedTable]:
    """Return a table for every metric of a task that some system was published on; that of a suite is the first.

    Args:
        runs: The runs to show, in order, under the published systems.
        published: Their documents.
        tasks: Names or globs to restrict it to; none takes all, and the suites of the first run.
        languages: Codes to restrict it to.

    Raises:
        UsageError: No system was published on what remains.
    """
    material = read_material(runs)
    columns = {
        replace(column, method=""): column
        for column in reversed(material.columns)
        if not tasks or any(fnmatchcase(column.task, pattern) for pattern in tasks)
    }
    chosen = list(columns.values())[::-1]
    tables = [] if tasks or languages else list(_of_suites(material, published))
    tables += filter(None, (_of_task(material, column, published, languages) for column in chosen))
    if not tables:
        names = list_names(column.task for column in chosen) or "these tasks"
        raise UsageError(
            f"No system was published on {names} under the conditions of these runs.",
            hint="harness board --from-published TASK shows what there is.",
        )
    return tables


def _of_task(
    material: Material, column: Column, published: Sequence[Mapping[str, Any]], languages: Sequence[str]
) -> PublishedTable | None:
    """Return the table of a task by language; None where no system was published on these languages."""
    scored = {run.path: row.by_language if (row := row_of(run, column)) else {} for run in material.runs}
    order = dict.fromkeys(code for run in material.runs for code in run.manifest.tasks[column.task].languages)
    every = {code for by in scored.values() for code in by}
    codes = [code for code in order if code in every and (not languages or code in languages)]
    mean_column = material.place(column)
    mean_column = replace(
        mean_column, languages=frozenset(codes) & (mean_column.published or frozenset(codes))
    )
    rows: list[tuple[str, bool, tuple[Score, ...]]] = []
    for label, [item] in published_systems(published, [mean_column]).items() if mean_column.languages else ():
        if item is not None:
            table, mean = by_language(item, mean_column), published_score(item, mean_column)
            star = NOT_COMPARABLE if NOT_COMPARABLE in mean.mark else ""
            cells = [
                Score(value=table[code] / 100, mark=star) if code in table else Score() for code in codes
            ]
            rows.append((label.removeprefix("published "), False, (*cells, mean)))
    if not rows:
        return None
    for path, by in scored.items():
        values = [by[code] for code in codes if code in by and code in mean_column.languages]
        mark = "" if len(values) == len(mean_column.languages) else OTHER_CELLS
        mean = Score(value=fmean(values) if values else None, mark=mark)
        rows.append((material.names[path], True, (*(Score(value=by.get(code)) for code in codes), mean)))
    name = " ".join(filter(None, [column.task, column.view]))
    return PublishedTable(
        places=tuple(mean_column for _ in (*codes, AVERAGE)),
        heads=(*codes, AVERAGE),
        title=f"{name}: {metric_name(column.metric)} times 100 in {counted(len(codes), 'language')}",
        rows=tuple(rows),
        sources=_sources(published, [mean_column]),
    )


def _of_suites(material: Material, published: Sequence[Mapping[str, Any]]) -> Iterator[PublishedTable]:
    """Yield the table of every suite of the first run: the average of the paper, and the mean of every task."""
    first = material.runs[0]
    for row in first.results.suites:
        [suite] = [candidate for candidate in first.manifest.suites if candidate.suite == row.suite]
        conditions = (row.protocol, conditions_of(row.view))
        columns = [
            column
            for column in material.columns
            if column.task in row.tasks and (column.protocol, column.view) == conditions
        ]
        mean_columns = [material.place(column) for column in columns]
        overall = published_overall(published, suite, row, first.manifest.tasks)
        rows = [
            (label.removeprefix("published "), False, (overall.get(label, (Score(),))[0], *scores))
            for label, scores in published_rows(published, mean_columns)
        ]
        for run in material.runs if rows else ():
            score = suite_row(run, row)
            mark = OTHER_CELLS if score and not score.complete else ""
            average = Score(value=score.paper.value if score else None, mark=mark)
            means = [material.mean(run, column) for column in columns]
            scores = [mean.marked(Score(value=mean.score.value)) for mean in means]
            rows.append((material.names[run.path], True, (average, *scores)))
        if rows:
            yield PublishedTable(
                places=(None, *mean_columns),
                heads=(AVERAGE, *(f"{column.task}\n{metric_name(column.metric)}" for column in columns)),
                title=f"{row.suite}: {AVERAGE} is the mean of the category means; scores times 100",
                rows=tuple(rows),
                sources=_sources(published, mean_columns),
            )


def _sources(published: Sequence[Mapping[str, Any]], places: Sequence[Place]) -> tuple[str, ...]:
    tasks = dict.fromkeys(column.task for column in places)
    documents = []
    for item in shown_documents(published, places):
        by_task = {
            name: {task: item[name][task] for task in tasks if task in item[name]} for name in ABOUT_TASKS
        }
        documents.append({**item, **by_task})
    return tuple(remark.text for remark in published_remarks(documents))


def published_blocks(
    tables: Sequence[PublishedTable], metrics: NamedTable[Metric], *, sample: bool
) -> list[Block]:
    """Return tables with the best comparable score of every column in bold, and their sources."""
    warning: list[Block] = [Note(SAMPLE_WARNING, "warning")] if sample else []
    sources = dict.fromkeys(source for table in tables for source in table.sources)
    return [*warning, *(_block(table, metrics) for table in tables), Notes(list(sources))]


def _block(table: PublishedTable, metrics: NamedTable[Metric]) -> Table:
    columns = zip(table.places, zip(*(scores for _, _, scores in table.rows), strict=True), strict=True)
    best = [_best(column, scores, metrics) for column, scores in columns]
    marked = any(score.mark for _, _, scores in table.rows for score in scores)
    is_run = [is_run for _, is_run, _ in table.rows]
    return Table(
        title=f"{table.title}. Bold: the best score. {MARKS if marked else ''}".rstrip(),
        corner="system",
        heads=table.heads,
        rows=tuple(
            TableRow(
                label=label,
                fields=tuple(map(_field, scores, best)),
                ends=is_run[at : at + 2] == [False, True],
            )
            for at, (label, _, scores) in enumerate(table.rows)
        ),
        divided=True,
    )


def _best(place: Place | None, scores: Sequence[Score], metrics: NamedTable[Metric]) -> str | None:
    """Return the best score of a column without a mark; None where there is none."""
    values = [score.value for score in scores if score.value is not None and not score.mark]
    rises = place is None or place.metric not in metrics or metrics.get(place.metric).higher_is_better
    return percent((max if rises else min)(values)) if values else None


def _field(score: Score, best: str | None) -> Field:
    is_best = score.value is not None and not score.mark and percent(score.value) == best
    return Field(text=score_field(score).text, style="best" if is_best else "")


def published_cells(tables: Sequence[PublishedTable]) -> list[dict[str, Any]]:
    """Return one row for every score, as fractions; a mean has no language, and an overall score no task."""
    return [
        {
            **{name: getattr(column, name, None) for name in ("task", "protocol", "view")},
            "metric": "overall" if column is None else column.metric,
            "language": head if head in (column.languages if column else ()) else None,
            "system": label,
            "source": "run" if is_run else "published",
            "value": score.value,
            "mark": score.mark,
        }
        for table in tables
        for label, is_run, scores in table.rows
        for column, head, score in zip(table.places, table.heads, scores, strict=True)
        if score.value is not None
    ]
