"""Tables that are asked for alone, as papers print them: matrices, and runs next to published systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from statistics import fmean
from typing import Any

from harness.data.origin import Origin
from harness.errors import UsageError
from harness.metrics.metric import Metric, metric_name
from harness.reporting.blocks.model import BLANK, Block, Field, Note, Notes, Table, TableRow, make_table
from harness.reporting.blocks.number import Score, percent, score_field
from harness.reporting.blocks.words import counted
from harness.reporting.overview.column import Column, conditions_of, list_names, system_names
from harness.reporting.overview.matrix import Matrix, matrices, published_overall, suite_row
from harness.reporting.overview.means import (
    NOT_COMPARABLE,
    OTHER_CELLS,
    Place,
    by_language,
    published_rows,
    published_score,
    published_systems,
    row_of,
    shown_documents,
)
from harness.reporting.overview.run_remarks import published_remarks
from harness.reporting.overview.summary import Material, read_material
from harness.reporting.overview.summary_blocks import matrix_table, rises
from harness.reporting.render.console import SAMPLE_WARNING
from harness.reporting.render.text import csv_text, render_latex, render_markdown
from harness.reporting.sections import Render, written_formats
from harness.specs.catalog import Catalog
from harness.specs.schema import TaskSpec
from harness.storage.run_folder import Run
from harness.table import NamedTable

AVERAGE = "Avg"
ABOUT_TASKS = ("comparable", "items", "families", "layers")
"""Keys of documents that are about single tasks."""
MARKS = f"{NOT_COMPARABLE} not comparable, as its source says; {OTHER_CELLS} over other languages."


# Matrices ----------------------------------------------------------------------------------------------------


def matrix_report(runs: Sequence[Run], *, in_terminal: bool = False) -> list[Block]:
    """Return all matrices of runs: scores, and in documents the means and numbers of queries that notes sum up."""
    blocks: list[Block] = []
    for name, matrix in _named(runs):
        title = f"{name}: {matrix.title}"
        if matrix.rows:
            blocks.append(replace(matrix_table(matrix), title=title))
        else:
            blocks += [Note(title, "subheading"), Notes(matrix.notes)]
        blocks += [] if in_terminal else _query_tables(title, matrix)
    return blocks or [Note("This run has no matrix.")]


def _named(runs: Sequence[Run]) -> Iterator[tuple[str, Matrix]]:
    pairs = zip(runs, system_names(runs), strict=True)
    return ((name, matrix) for run, name in pairs for matrix in matrices(run))


def _query_tables(title: str, matrix: Matrix) -> Iterator[Block]:
    """Yield the means over pairs of languages, and the queries of pairs with their totals, as XTREME-R's Table 9."""
    if matrix.averages:
        averages = [
            (name, f"{micro * 100:.1f}", f"{macro * 100:.1f}") for name, micro, macro in matrix.averages
        ]
        heads = ("pairs", "mean of queries", "mean of pairs")
        yield make_table(f"{title}: means over pairs of languages", heads, averages)
    counts = matrix.counts
    if len(set(counts.values())) > 1:
        rows, columns = (list(dict.fromkeys(names)) for names in zip(*counts, strict=True))
        lines = [(row, [counts.get((row, column), 0) for column in columns]) for row in rows]
        lines.append(("Total", [sum(column) for column in zip(*(line for _, line in lines), strict=True)]))
        yield make_table(
            f"{title}: queries",
            (matrix.corner, *columns, "Total"),
            ((row, *(f"{count:,}" for count in (*line, sum(line)))) for row, line in lines),
        )


def matrix_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return a row per field of every matrix: its model, title, row, column, score as a fraction, and queries."""
    rows = []
    for name, matrix in _named(runs):
        scores = {
            (row, column): score.value
            for row, fields in matrix.rows
            for column, score in zip(matrix.columns, fields, strict=True)
        }
        for pair in dict.fromkeys([*scores, *matrix.counts]):
            place = {"model": name, "matrix": matrix.title, "row": pair[0], "column": pair[1]}
            rows.append({**place, "value": scores.get(pair), "n": matrix.counts.get(pair)})
    return rows


def matrix_format(name: str, whole: Render) -> Render:
    """Return the function that writes the matrices alone as `name`; `whole` where that is a format of figures.

    Raises `UsageError` for ``html``, which has no such page.
    """
    formats = written_formats(matrix_report, matrix_rows)
    if name == "html":
        raise UsageError(
            "--matrices cannot be written as 'html', whose page has all matrices: omit --matrices.",
            hint=f"Other formats: {', '.join(formats)}, svg, pdf, png.",
        )
    return formats.get(name, whole)


# Runs next to published systems: the languages are those of the runs, so that all means are over the same ones ---


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
    place = material.place(column)
    place = replace(place, languages=frozenset(codes) & (place.published or frozenset(codes)))
    rows: list[tuple[str, bool, tuple[Score, ...]]] = []
    for label, [document] in published_systems(published, [place]).items() if place.languages else ():
        if document is not None:
            table, mean = by_language(document, place), published_score(document, place)
            star = NOT_COMPARABLE if NOT_COMPARABLE in mean.mark else ""
            scores = (Score(table[code] / 100, mark=star) if code in table else Score() for code in codes)
            rows.append((label.removeprefix("published "), False, (*scores, mean)))
    if not rows:
        return None
    for path, by in scored.items():
        values = [by[code] for code in codes if code in by and code in place.languages]
        mark = "" if len(values) == len(place.languages) else OTHER_CELLS
        mean = Score(fmean(values) if values else None, mark=mark)
        rows.append((material.names[path], True, (*(Score(by.get(code)) for code in codes), mean)))
    name = " ".join(filter(None, [column.task, column.view]))
    return PublishedTable(
        places=(place,) * (len(codes) + 1),
        heads=(*codes, AVERAGE),
        title=f"{name}: {metric_name(column.metric)} times 100 in {counted(len(codes), 'language')}",
        rows=tuple(rows),
        sources=_sources(published, [place]),
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
        places = [material.place(column) for column in columns]
        overall = published_overall(published, suite, row, first.manifest.tasks)
        rows = [
            (label.removeprefix("published "), False, (overall.get(label, (Score(),))[0], *scores))
            for label, scores in published_rows(published, places)
        ]
        for run in material.runs if rows else ():
            score = suite_row(run, row)
            mark = OTHER_CELLS if score and not score.complete else ""
            average = Score(score.paper.value if score else None, mark=mark)
            means = (material.mean(run, column) for column in columns)
            scores = (mean.marked(Score(mean.score.value)) for mean in means)
            rows.append((material.names[run.path], True, (average, *scores)))
        if rows:
            yield PublishedTable(
                places=(None, *places),
                heads=(AVERAGE, *(f"{column.task}\n{metric_name(column.metric)}" for column in columns)),
                title=f"{row.suite}: {AVERAGE} is the mean of the category means; scores times 100",
                rows=tuple(rows),
                sources=_sources(published, places),
            )


def _sources(published: Sequence[Mapping[str, Any]], places: Sequence[Place]) -> tuple[str, ...]:
    tasks = {place.task for place in places}
    documents = [
        document
        | {
            name: {task: entry for task, entry in document[name].items() if task in tasks}
            for name in ABOUT_TASKS
            if name in document
        }
        for document in map(dict, shown_documents(published, places))
    ]
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
    best = [_best(place, scores, metrics) for place, scores in columns]
    marked = any(score.mark for _, _, scores in table.rows for score in scores)
    is_run = [is_run for _, is_run, _ in table.rows]
    rows = (
        TableRow(
            label=label, fields=tuple(map(_field, scores, best)), ends=is_run[at : at + 2] == [False, True]
        )
        for at, (label, _, scores) in enumerate(table.rows)
    )
    title = f"{table.title}. Bold: the best score. {MARKS if marked else ''}".rstrip()
    return make_table(title, ("system", *table.heads), rows, divided=True)


def _best(place: Place | None, scores: Sequence[Score], metrics: NamedTable[Metric]) -> str | None:
    """Return the best score of a column without a mark; None where there is none."""
    values = [score.value for score in scores if score.value is not None and not score.mark]
    choose = max if place is None or rises(place.metric, metrics) else min
    return percent(choose(values)) if values else None


def _field(score: Score, best: str | None) -> Field:
    is_best = score.value is not None and not score.mark and percent(score.value) == best
    return Field(text=score_field(score).text, style="best" if is_best else "")


def published_cells(tables: Sequence[PublishedTable]) -> list[dict[str, Any]]:
    """Return one row for every score, as fractions; a mean has no language, and an overall score no task."""
    return [
        {
            **{name: getattr(place, name, None) for name in ("task", "protocol", "view")},
            "metric": "overall" if place is None else place.metric,
            "language": head if head in (place.languages if place else ()) else None,
            "system": label,
            "source": "run" if is_run else "published",
            "value": score.value,
            "mark": score.mark,
        }
        for table in tables
        for label, is_run, scores in table.rows
        for place, head, score in zip(table.places, table.heads, scores, strict=True)
        if score.value is not None
    ]


# The tasks of a suite: sizes, test languages, metric, domain (XTREME-R, Table 2) --------------------------------


def suite_overview(catalog: Catalog, name: str) -> list[dict[str, str]]:
    """Return a row per task of a suite; ``-`` where the specs do not say.

    Training and development sets are those in the language that models are trained on; stages are joined with ``+``.
    Test sizes are the smallest and largest of the suite's languages in the first known release. Raises
    `UnknownNameError` for an unknown suite.
    """
    suite = catalog.suite(name)
    category = {task: group.replace("_", " ") for group, tasks in suite.categories.items() for task in tasks}
    rows = []
    for task in suite.tasks:
        entry = catalog.task(task)
        spec = entry.spec
        codes = suite.languages.get(task) or [code for code in spec.languages if code not in entry.added]
        stages = [] if spec.transfer is None else spec.transfer.stages
        sizes = [Origin.named(stage, catalog).spec.sizes for stage in stages]
        row = {
            "category": category.get(task),
            "task": task,
            "train": "+".join(f"{size['train']:,}" for size in sizes if "train" in size),
            "dev": "+".join(f"{size['validation']:,}" for size in sizes[-1:] if "validation" in size),
            "test": _test_size(spec, codes),
            "test sets": "translations" if spec.parallel else "independent",
            "languages": str(len(codes)),
            "metric": " / ".join(map(metric_name, spec.headline)),
            "domain": spec.domain,
        }
        rows.append({head: text or BLANK for head, text in row.items()})
    return rows


def _test_size(spec: TaskSpec, codes: Sequence[str]) -> str:
    releases = list(spec.releases.values())[:1]
    counts = [count for release in releases for code in codes if (count := release.count(code))]
    ends = sorted({min(counts), max(counts)}) if counts else []
    return "–".join(f"{count:,}" for count in ends)


def suite_overview_text(name: str, rows: Sequence[Mapping[str, str]], format_name: str) -> str:
    """Return the rows of a suite as ``csv``, ``latex`` or ``markdown``."""
    if format_name == "csv":
        return csv_text(rows)
    table = make_table(
        f"The tasks of {name}", list(rows[0]), (tuple(row.values()) for row in rows), words={0, 4, 6, 7}
    )
    return render_latex([table]) if format_name == "latex" else render_markdown([table])
