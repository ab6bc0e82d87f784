"""Tables of a summary and of several runs: languages and tasks, matrices, systems and tasks, what has no score."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from harness.metrics.metric import Metric
from harness.registry.declarations import ReportSection
from harness.reporting.blocks.model import (
    BLANK,
    Block,
    Field,
    Fold,
    Note,
    Notes,
    Ramp,
    Table,
    TableRow,
    anchor,
    make_table,
    rows_of,
)
from harness.reporting.blocks.number import (
    HALF_LEGEND,
    INTERVAL_LEGEND,
    SCALES,
    heat_class,
    levels,
    percent,
    score_field,
)
from harness.reporting.blocks.words import legend, legend_paragraphs, sentences, words_of
from harness.reporting.overview.column import cells_of
from harness.reporting.overview.matrix import Matrix
from harness.reporting.overview.means import PUBLISHED, UNREADABLE, MeanRow, mean_remarks, published_rows
from harness.reporting.overview.missing import skipped_blocks
from harness.reporting.overview.run_remarks import sampled_items
from harness.reporting.overview.summary import Material, Summary, chance_of, summarise
from harness.reporting.render.console import SAMPLE_WARNING, shown_parts
from harness.reporting.render.text import render_latex
from harness.storage.run_folder import Run
from harness.table import NamedTable

Grouping = Literal["family", "script"]
"""Property that groups the rows of languages."""
LABEL_WIDTH = 22
WIDEST_PUBLISHED = 36
"""Of published systems, whose names differ at the end: `XLM-R Large ORIG, NLLB`."""
WIDEST_LABEL = 30
"""In the small tables, whose rows may be paths of models."""
BEST, PRINTED = legend_paragraphs("means of systems")


def summary_blocks(summary: Summary) -> list[Block]:
    """Return the whole summary for a document."""
    return [
        *_warning(summary),
        *([language_table(summary)] if summary.columns else []),
        *map(matrix_table, (*summary.matrices, *summary.suites)),
        *(block for report in summary.shown_extra for block in report.all_blocks),
        Note(f"Scores x100. {INTERVAL_LEGEND}. Mean: unweighted over languages."),
        Notes(summary.notes),
        *skipped_blocks(summary.skipped),
    ]


def detail_blocks(summary: Summary, *, width: int, by: Grouping = "family") -> list[Block]:
    """Return the tables by language for a terminal: large matrices have one line, and no score is shown twice."""
    indices = [index for index, column in enumerate(summary.columns) if column.key not in summary.covered]
    table = language_table(summary, by=by, whole=False).part(indices)
    # A section that covers a task shows its axis too.
    covered = {task for task, _, _ in summary.covered}
    intervals = _interval_legend(table, width) if indices else ""
    text = f"Scores x100.{intervals}{f' In the row of a {by}: the mean.' if indices else ''}"
    return [
        Note(summary.title, "heading"),
        *([table] if indices else []),
        *(
            matrix_table(matrix)
            if matrix.is_small
            else Note(f"{matrix.title}: {matrix.notes[0]} The matrix: harness report RUN --matrices")
            for matrix in summary.matrices
            if matrix.name not in covered
        ),
        *map(matrix_table, summary.suites),
        *(block for report in summary.shown_extra for block in report.brief_blocks),
        Note(f"{text} Mean: unweighted over languages. Transfer gap: source minus the others."),
        *([Note(marks.strip())] if (marks := mark_legend(summary)) else []),
        Note(""),
    ]


def mark_legend(summary: Summary) -> str:
    """Return the meanings of the marks after scores, as far as the tables have them; it follows other sentences."""
    rows = [scores for *_, scores in summary.languages] + [scores for _, scores in summary.means]
    rows += [scores for suite in summary.suites for _, scores in suite.rows]
    marks = {mark for scores in rows for score in scores if score.mark != UNREADABLE for mark in score.mark}
    texts = [f"{mark} {meaning}" for mark, meaning in words_of("words")["marks"].items() if mark in marks]
    return f" Marks: {', '.join(texts)}." if texts else ""


def note_blocks(summary: Summary) -> list[Block]:
    """Return all remarks on a run in whole sentences, and every reason why something has no score."""
    blocks: list[Block] = [Notes(summary.notes), *skipped_blocks(summary.skipped)]
    return blocks if summary.notes or summary.skipped else [Note("There is nothing to note about this run.")]


def part_blocks(summary: Summary, section: ReportSection) -> list[Block]:
    """Return one section of a plugin with all its tables."""
    report = summary.extra.get(section)
    return [*_warning(summary), *([Note(section.empty)] if report is None else report.all_blocks)]


def _warning(summary: Summary) -> list[Block]:
    return [Note(SAMPLE_WARNING, "warning")] if summary.sample else []


# Languages against tasks -------------------------------------------------------------------------------------


def _interval_legend(table: Table, width: int) -> str:
    """Return the legend of the intervals after scores in a terminal; empty where there is no space for them."""
    if not shown_parts(table, width)[1]:
        return ""
    smalls = [field.small for row in table.rows for field in row.fields if isinstance(field, Field)]
    return f" {INTERVAL_LEGEND if any('–' in small for small in smalls) else HALF_LEGEND}."


def language_table(summary: Summary, *, by: Grouping = "family", whole: bool = True) -> Table:
    """Return the table by language with the means under it; with `whole` also those of all scripts."""
    published = [name for name, _ in summary.means if name.startswith(PUBLISHED)]
    return make_table(
        summary.title,
        ("language", *(column.title for column in summary.columns)),
        (*_language_rows(summary, by), *_mean_rows(summary, whole=whole)),
        label_width=max(LABEL_WIDTH, *(min(len(name), WIDEST_PUBLISHED) for name in published), 0),
        untitled=True,
        divided=True,
    )


def score_blocks(material: Material) -> list[Block]:
    """Return languages against tasks of every given run, by family, with the means of scripts, for a page."""
    if not material.languages:
        return []
    blocks: list[Block] = [Note(legend("scores") + mark_legend(material.summary), "note")]
    for number, run in enumerate(material.runs):
        table = _score_table(material, run, summarise([run]) if number else material.summary)
        blocks.append(Fold(title=f"Scores of {material.name(run)}", blocks=[table]) if number else table)
    return blocks


def _score_table(material: Material, run: Run, summary: Summary) -> Table:
    """Return the scores of a run as colours: a row per language under its family, the means at the end."""
    rows = _language_rows(summary, run=run, pages={code for code, _, _ in material.languages})
    return make_table(
        f"Scores of {material.name(run)}, times 100; {INTERVAL_LEGEND}",
        ("language", *(column.title for column in summary.columns)),
        (*rows, *_mean_rows(summary, whole=True, in_page=True)),
        style="heat scores",
        ramp="score",
        ramp_low="chance, or 0 where it is not known",
    )


def _language_rows(
    summary: Summary, by: Grouping = "family", *, run: Run | None = None, pages: Collection[str] = ()
) -> Iterator[TableRow]:
    """Yield the languages under their group; with `run`, for a page that has its seeds and links to `pages`."""
    shades = score_shades(summary)
    for section in summary.sections if by == "family" else summary.by_script:
        means = tuple(map(score_field, section.means))
        yield TableRow(label=section.family, fields=means, style="head", optional=True)
        for code, name, scores in section.rows:
            href = f"#{anchor('language', code)}" if code in pages else ""
            label = Field(text=f"{name} ({code})", short=f"{code:<3} {name}", href=href)
            fields = [
                replace(score_field(score), shade=shades[code, index]) for index, score in enumerate(scores)
            ]
            if run is not None:
                fields = [_with_seeds(field, summary, run, code, index) for index, field in enumerate(fields)]
            depth, ends = int(run is None), code == section.rows[-1][0]
            yield TableRow(label=label, fields=tuple(fields), depth=depth, optional=True, ends=ends)


def _with_seeds(field: Field, summary: Summary, run: Run, code: str, index: int) -> Field:
    """Return the field of a page: the scores of several seeds for their interval, and ``-`` without a score."""
    if field.shade == "absent":
        return Field(text=field.text.strip() or BLANK, shade="absent")
    column = summary.columns[index]
    metrics = [cell.metrics for cell in cells_of(run, column, code) if column.metric in cell.metrics]
    seeds = ", ".join(percent(metric[column.metric].value) for metric in metrics)
    return replace(field, small=f"(seeds {seeds})") if len(metrics) > 1 else field


def _mean_rows(summary: Summary, *, whole: bool, in_page: bool = False) -> Iterator[TableRow]:
    if whole and summary.scripts:
        yield TableRow(label="By script", style="head")
        for script, scores in summary.scripts:
            fields, ends = tuple(map(score_field, scores)), script == summary.scripts[-1][0]
            yield TableRow(label=script, fields=fields, depth=1, optional=True, ends=ends)
    if in_page and summary.means:
        yield TableRow(label="All languages", style="head")
    for title, scores in summary.means:
        style: Literal["", "bold"] = "bold" if in_page or title == "mean" else ""
        fields, optional = tuple(map(score_field, scores)), title.startswith(PUBLISHED)
        yield TableRow(label=title, fields=fields, style=style, optional=optional)
    for title, texts in summary.counts:
        yield TableRow(label=title, fields=texts, style="dim")


def score_shades(summary: Summary) -> dict[tuple[str, int], str]:
    """Return the class of every score, by language and place of its column; what differs by noise alone has one."""
    shades: dict[tuple[str, int], str] = {}
    for index, chance in enumerate(summary.chances):
        smoothed = levels([scores[index] for *_, scores in summary.languages])
        for (code, *_), level in zip(summary.languages, smoothed, strict=True):
            shades[code, index] = heat_class(level, chance or 0.0, 1.0)
    return shades


# Matrices ----------------------------------------------------------------------------------------------------


def matrix_table(matrix: Matrix) -> Table:
    """Return the scores of a matrix."""
    rows = [TableRow(label=label, fields=tuple(map(score_field, scores))) for label, scores in matrix.rows]
    heads = (matrix.corner, *matrix.columns)
    return make_table(matrix.title, heads, rows, notes=matrix.notes, label_width=WIDEST_LABEL, terse=True)


def error_table(matrix: Matrix) -> Table:
    """Return a matrix; one of error rates in the colours of errors, from 0 to 100."""
    table = matrix_table(matrix)
    return replace(table, rows=shaded_rows(matrix), style="heat", ramp="error") if matrix.heat else table


def shaded_rows(matrix: Matrix) -> tuple[TableRow, ...]:
    """Return the rows of a matrix in the colours of errors or scores, from 0 to 100; all fields are compared."""
    ramp: Ramp = "error" if matrix.heat else "score"
    smoothed = levels([score for _, row in matrix.rows for score in row])
    shades = iter([heat_class(level, *SCALES[ramp], ramp=ramp) for level in smoothed])
    return rows_of(
        (label, *(replace(score_field(score), shade=next(shades)) for score in row))
        for label, row in matrix.rows
    )


# Systems against tasks: the means of runs, baselines and published systems ------------------------------------


def system_table(material: Material) -> Table | None:
    """Return a row per system and a column per task; None where nothing was scored."""
    labelled = [
        (material.name(run), [material.mean(run, column) for column in material.columns])
        for run in material.every
    ]
    if not any(mean.row is not None for _, means in labelled for mean in means):
        return None
    best = _best(material, [means for _, means in labelled])
    places = [material.place(column) for column in material.columns]
    published = [
        TableRow(label=label, fields=tuple(map(score_field, scores)), style="dim")
        for label, scores in published_rows(material.runs[0].manifest.published, places)
    ]
    rows = (TableRow(label=label, fields=tuple(map(_mean_field, means, best))) for label, means in labelled)
    notes = [BEST] if any(value is not None for value in best) else []
    notes += [PRINTED] if published else []
    return make_table(
        f"Means over languages, times 100; {INTERVAL_LEGEND}",
        ("system", *(column.title for column in material.columns)),
        (*rows, *published, *_facts(material)),
        notes=(*notes, *sentences(mean_remarks(labelled))),
        style="systems",
    )


def _best(material: Material, rows: Sequence[Sequence[MeanRow]]) -> list[float | None]:
    """Return the best mean of every column without a mark, where several systems have one."""
    best = []
    for column, means in zip(material.columns, zip(*rows, strict=True), strict=True):
        values = [mean.row.value for mean in means if mean.row is not None and not mean.differences]
        choose = max if rises(column.metric, material.metrics) else min
        best.append(choose(values) if len(values) > 1 else None)
    return best


def rises(metric: str, metrics: NamedTable[Metric]) -> bool:
    """Return whether a higher score of a metric is better, as of metrics that are not installed."""
    return metric not in metrics or metrics.get(metric).higher_is_better


def _mean_field(mean: MeanRow, best: float | None) -> Field:
    if mean.row is None:
        return Field(text=BLANK)
    field = score_field(mean.marked(mean.score))
    return replace(field, style="best") if mean.row.value == best and not mean.differences else field


def _facts(material: Material) -> Iterator[TableRow]:
    """Yield further facts on every task: chance, and those of the first run with the column."""
    facts = []
    for column in material.columns:
        means = ((run, material.mean(run, column)) for run in material.every)
        run = next((run for run, mean in means if mean.row is not None), material.runs[0])
        spec = run.manifest.tasks.get(column.task)
        cells = [cell for cell in cells_of(run, column) if cell.status == "ok"]
        languages = f"{len({cell.language for cell in cells})}"
        total = len(spec.published_languages) if spec is not None else 0
        facts.append(
            (
                percent(None if spec is None else chance_of(spec, column.metric)),
                percent(material.mean(run, column).transfer_gap),
                f"{languages} of {total}" if total else languages,
                f"{sum(cell.n for cell in cells):,}",
            )
        )
    names = ("chance", "transfer gap", "languages", "items")
    for label, texts in zip(names, zip(*facts, strict=True), strict=True):
        if any(text != BLANK for text in texts):
            yield TableRow(label=label, fields=texts, style="dim")


def systems_latex(material: Material, table: Table) -> str:
    """Return the table of systems and tasks as LaTeX; its caption says what limits all its numbers."""
    samples = dict.fromkeys(sample for run in material.every for sample in sampled_items(run))
    phrases = [
        table.title,
        *([BEST] if BEST in table.notes else []),
        *(note.partition(": ")[0] for note in table.notes if note not in {BEST, PRINTED}),  # marks
        *([SAMPLE_WARNING] if any(run.results.run.data == "sample" for run in material.every) else []),
        *(sample[0].upper() + sample[1:] for sample in samples),
    ]
    return render_latex([replace(table, title=". ".join(phrase.rstrip(".") for phrase in phrases) + ".")])
