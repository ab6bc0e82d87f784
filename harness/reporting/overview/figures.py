"""Figures of runs for papers: all that a report has, and differences around 0.

Systems side by side are XTREME-R's Figures 1 (by category of a suite) and 2 (by family of languages).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from harness.analysis.comparison import Comparison
from harness.errors import UsageError
from harness.languages.table import known_languages
from harness.metrics.metric import metric_name
from harness.reporting.blocks.chart import Mark, TaskChart, TaskRow
from harness.reporting.blocks.model import Charts, TileMap, as_field, file_stem
from harness.reporting.comparison.comparison import forest_blocks, has_few_languages, language_forest
from harness.reporting.languages.explanation import effect_chart, explained
from harness.reporting.overview.column import group_pairs, system_names
from harness.reporting.overview.glance import glance
from harness.reporting.overview.matrix import Matrix, suite_tables
from harness.reporting.overview.overview import Plots
from harness.reporting.overview.summary import read_material
from harness.reporting.overview.summary_blocks import shaded_rows
from harness.reporting.render.page import Figure
from harness.reporting.sections import installed_sections, read_sections
from harness.storage.results import TaskScore
from harness.storage.run_folder import Run

LEGEND = "Coloured: p ≤ .05 after Holm, which decides. Grey: not distinguishable, also where the interval excludes 0."
EFFECTS = "Coloured: the 95 % interval does not contain 0. Other properties are held equal."
SystemScore = tuple[str, str, str, float]
"""The system, the panel, the row and the score, times 100."""


def forest_figure(compared: Comparison) -> Figure:
    """Return the differences of a comparison: by task, and by language where there is one task.

    Raises `UsageError` where no difference can be drawn.
    """
    blocks = forest_blocks(compared)
    if len(compared.tasks) == 1 and not has_few_languages(compared.tasks[0]):
        blocks += language_forest(compared.tasks[0])
    charts = [chart for block in blocks if isinstance(block, Charts) for chart in block.charts]
    if not charts:
        raise UsageError("These runs have no difference to draw.")
    title = charts[0].title if len(charts) == 1 else "Differences with their intervals"
    return Figure(title=title, rows=[[chart] for chart in charts], notes=[LEGEND], sample=compared.sample)


def write_figures(runs: Sequence[Run], folder: Path, format_name: str) -> list[Path]:
    """Write heat map, gap, effects of properties of languages, matrices, and the curves of sections; return the files.

    A run without cells to show has no heat map. Systems side by side have figures too. Where `folder` has the suffix of
    the format, it is the file of the only chart.

    Raises:
        MissingExtraError: vl-convert, which makes PDF and PNG, is not installed.
        UsageError: The folder cannot be written, there is nothing to draw, or several charts are for one file.
    """
    charts: dict[str, Figure] = {}
    # Two names may differ in a letter that a file's name cannot have.
    names = system_names(runs)
    stems = [file_stem("", name) for name in names]
    for index, (run, name, stem) in enumerate(zip(runs, names, stems, strict=True)):
        end = stem if stem not in stems[:index] else f"{stem}-{index + 1}"
        material = read_material([run])
        plots = Plots(material, glance([run], material.summary))
        for title, draw in (("heatmap", plots.heatmap), ("gap", plots.gap)):
            with suppress(UsageError):
                charts[f"{title}{end}"] = draw()
        for effects in explained([run])[0][:1]:
            forest = effect_chart(effects)
            charts[f"effects{end}"] = Figure(title=forest.title, rows=[[forest]], notes=[EFFECTS])
        for number, matrix in enumerate((matrix for matrix in material.summary.matrices if matrix.rows), 1):
            title = f"matrix-{number}-{matrix.title.partition(' ')[0]}{end}"
            charts[title] = replace(matrix_figure(matrix, name), sample=material.summary.sample)
    shared = system_figures(runs)
    for section in read_sections(runs, installed_sections()).values():
        for name, curves in section.figures().items():
            shared[name] = Figure(title=curves.title, rows=[[curves]])
    sample = any(run.results.run.data == "sample" for run in runs)
    charts |= {name: replace(figure, sample=sample) for name, figure in shared.items()}
    if not charts:
        raise UsageError("These runs have nothing to draw: no cell with a score.")
    is_file = folder.suffix.lower() == f".{format_name}" and not folder.is_dir()
    if is_file and len(charts) > 1:
        raise UsageError(
            f"These runs have {len(charts)} figures ({', '.join(charts)}); {str(folder)!r} is one file.",
            hint=f"Name a folder: --format {format_name} --output {folder.with_suffix('')}",
        )
    paths = [folder if is_file else folder / f"{name}.{format_name}" for name in charts]
    for path, figure in zip(paths, charts.values(), strict=True):
        figure.save(path, format_name)
    return paths


def matrix_figure(matrix: Matrix, name: str) -> Figure:
    """Return a matrix as colours from 0 to 100, those of errors where it has error rates; in the order of its table."""
    rows = [(str(row.label), list(map(as_field, row.fields))) for row in shaded_rows(matrix)]
    columns = [(column, column) for column in matrix.columns]
    chart = TileMap(title=matrix.title, families=(), languages=columns, rows=rows, corner=matrix.corner)
    return Figure(title=matrix.title, rows=[[chart]], notes=[name, *matrix.notes])


def system_figures(runs: Sequence[Run]) -> dict[str, Figure]:
    """Return figures by name: ``categories`` of every suite, and ``families`` of languages by task.

    Published systems are those of the first run; their means by family are over its languages.
    """
    figures = {}
    for number, suite in enumerate(suite_tables(runs, runs[0].manifest.published), 1):
        values = [
            (name, suite.title, head, 100 * score.value)
            for name, scores in suite.rows
            for head, score in zip(suite.columns, scores, strict=True)
            if score.value is not None
        ]
        if values:
            figures[f"categories-{number}-{suite.name}"] = _system_figure(suite.title, values)
    if families := list(_families(runs)):
        figures["families"] = _system_figure("Means over the languages of a family", families)
    return figures


def _families(runs: Sequence[Run]) -> Iterator[SystemScore]:
    first = [row for row in runs[0].results.tasks if row.headline]
    for run, name in zip(runs, system_names(runs), strict=True):
        for row in run.results.tasks:
            if row.headline:
                yield from _by_family(name, row, row.by_language, 100)
    for document in runs[0].manifest.published:
        for row in first:
            scores = document.get("languages", {}).get(row.task, {}).get(row.metric, {})
            if document["protocol"] in {row.protocol, "human"}:
                yield from _by_family(f"published {document['label']}", row, scores)


def _by_family(
    system: str, row: TaskScore, scores: Mapping[str, float], factor: float = 1
) -> Iterator[SystemScore]:
    """Yield the mean of scores, times `factor`, over every family; over all languages of it that the row has."""
    table = known_languages()
    families = group_pairs(
        (table.get(code).family if code in table else "other", code) for code in row.by_language
    )
    for family, codes in families.items():
        if all(code in scores for code in codes):
            mean = factor * fmean(scores[code] for code in codes)
            yield system, f"{row.task} {metric_name(row.metric)}", f"{family} ({len(codes)})", mean


def _system_figure(title: str, scores: Sequence[SystemScore]) -> Figure:
    """Return scores as panels of rows, in which a system has a mark of its own."""
    charts = []
    panels = group_pairs((panel, (row, _mark(system, score))) for system, panel, row, score in scores)
    for panel, marks in panels.items():
        rows = sorted(group_pairs(marks).items())
        charts.append(
            [TaskChart(title=panel, rows=[TaskRow(label=label, marks=of_row) for label, of_row in rows])]
        )
    return Figure(title=title, rows=charts)


def _mark(system: str, score: float) -> Mark:
    name = system.removeprefix("published ")
    return Mark(kind="run" if name == system else "published", label=name, value=score)
