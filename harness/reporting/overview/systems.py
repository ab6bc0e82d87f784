"""Systems against tasks: the means of runs, baselines and published systems, as a table and as files to take away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from harness.reporting.blocks.model import BLANK, Download, Field, Table, TableRow, file_stem
from harness.reporting.blocks.number import INTERVAL_LEGEND, percent, score_field
from harness.reporting.blocks.remark import sentences
from harness.reporting.overview.column import Column, cells_of
from harness.reporting.overview.material import Material
from harness.reporting.overview.mean_row import MeanRow, mean_remarks
from harness.reporting.overview.published import published_rows
from harness.reporting.overview.run_remarks import sampled_items
from harness.reporting.overview.summary import chance_of
from harness.reporting.render.console import SAMPLE_WARNING
from harness.reporting.render.latex import render_latex
from harness.reporting.render.rows import COLUMNS, csv_text
from harness.running.session import open_session
from harness.scores.read import read_scores

SCORE_COLUMNS = tuple(name for name in COLUMNS if name not in {"version", "status", "reason"})
"""Columns of the table of scores; version, status and reason are left to ``--format csv``."""
BEST = "Bold: the best mean of the runs and their baselines that is over the same cells."
PUBLISHED = (
    "A published mean is the one that was printed, over the whole test sets; next to a mean over fewer languages it is "
    "over the same ones, or has ~. ° is not comparable: the notes of “How it was made” have the reason."
)


def system_table(material: Material) -> Table | None:
    """Return a row per system and a column per task; None where nothing was scored."""
    means = {run.path: [material.mean(run, column) for column in material.columns] for run in material.every}
    if not any(mean.row is not None for row in means.values() for mean in row):
        return None
    best = _best(material.columns, list(means.values()))
    rows = [
        TableRow(
            label=material.name(run),
            fields=tuple(_field(mean, best[index]) for index, mean in enumerate(means[run.path])),
        )
        for run in material.every
    ]
    mean_columns = [material.place(column) for column in material.columns]
    published = [
        TableRow(label=label, fields=tuple(map(score_field, scores)), style="dim")
        for label, scores in published_rows(material.published, mean_columns)
    ]
    labelled = [(material.name(run), means[run.path]) for run in material.every]
    return Table(
        title=f"Means over languages, times 100; {INTERVAL_LEGEND}",
        corner="system",
        heads=tuple(column.title for column in material.columns),
        rows=(*rows, *published, *_facts(material)),
        notes=(
            *([BEST] if any(value is not None for value in best) else []),
            *([PUBLISHED] if published else []),
            *sentences(mean_remarks(labelled)),
        ),
        style="systems",
    )


def _best(columns: Sequence[Column], rows: Sequence[Sequence[MeanRow]]) -> list[float | None]:
    """Return the best mean of every column without a mark, where several systems have one."""
    metrics = open_session().registry.metrics
    best = []
    for column, means in zip(columns, zip(*rows, strict=True), strict=True):
        values = [mean.row.value for mean in means if mean.row is not None and not mean.differences]
        rises = column.metric not in metrics or metrics.get(column.metric).higher_is_better
        best.append((max if rises else min)(values) if len(values) > 1 else None)
    return best


def _field(mean: MeanRow, best: float | None) -> Field:
    if mean.row is None:
        return Field(text=BLANK)
    field = score_field(mean.marked(mean.score))
    return replace(field, style="best") if mean.row.value == best and not mean.differences else field


def _facts(material: Material) -> Iterator[TableRow]:
    """Yield further facts on every task: chance, and those of the first run with the column."""
    columns = material.columns
    owners = [
        next((run for run in material.every if material.mean(run, column).row is not None), material.runs[0])
        for column in columns
    ]
    pairs = list(zip(owners, columns, strict=True))
    chance = [
        percent(chance_of(run.manifest.tasks[column.task], column.metric))
        if column.task in run.manifest.tasks
        else BLANK
        for run, column in pairs
    ]
    gaps = [percent(material.mean(*pair).transfer_gap) for pair in pairs]
    cells = [[cell for cell in cells_of(*pair) if cell.status == "ok"] for pair in pairs]
    languages, items = [], []
    for (run, column), column_cells in zip(pairs, cells, strict=True):
        spec = run.manifest.tasks.get(column.task)
        total = len(spec.published_languages) if spec is not None else 0
        count = len({cell.language for cell in column_cells})
        languages.append(f"{count} of {total}" if total else str(count))
        items.append(f"{sum(cell.n for cell in column_cells):,}")
    for label, texts in (
        ("chance", chance),
        ("transfer gap", gaps),
        ("languages", languages),
        ("items", items),
    ):
        if any(text != BLANK for text in texts):
            yield TableRow(label=label, fields=tuple(texts), style="dim")


def systems_latex(material: Material, table: Table) -> str:
    """Return the table of systems and tasks as LaTeX; its caption says what limits all its numbers."""
    samples = dict.fromkeys(sample for run in material.every for sample in sampled_items(run))
    phrases = [
        table.title,
        *([BEST] if BEST in table.notes else []),
        *(note.partition(": ")[0] for note in table.notes if note not in {BEST, PUBLISHED}),  # marks
        *([SAMPLE_WARNING] if any(run.results.run.data == "sample" for run in material.every) else []),
        *(sample[0].upper() + sample[1:] for sample in samples),
    ]
    return render_latex([replace(table, title=". ".join(phrase.rstrip(".") for phrase in phrases) + ".")])


def downloads(material: Material, table: Table | None) -> list[Download]:
    """Return the scores of all cells in the metrics of the report as CSV, and systems against tasks as LaTeX."""
    if table is None:
        return []
    name = file_stem("scores", material.runs[0].manifest.model_name)
    pairs = {(column.task, column.metric) for column in material.columns}
    names = {str(path): name for path, name in material.names.items()}
    scores = (
        read_scores(material.every).with_columns(model=pl.col("run").replace(names)).select(SCORE_COLUMNS)
    )
    rows = [
        row
        for row in scores.rename(COLUMNS, strict=False).to_dicts()
        if (row["task"], row["metric"]) in pairs
    ]
    csv, latex = csv_text(rows), systems_latex(material, table)
    return [
        Download(label="CSV", file=f"{name}.csv", media="text/csv", text=csv),
        Download(label="LaTeX", file=f"{name}.tex", media="application/x-tex", text=latex),
    ]
