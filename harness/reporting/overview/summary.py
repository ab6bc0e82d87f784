"""The summary of runs: languages by family against tasks, with means and gaps; and the runs that a report is of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.languages.table import known_languages, recorded_name
from harness.metrics.metric import Metric
from harness.registry.declarations import ReportSection
from harness.reporting.blocks.number import Score
from harness.reporting.blocks.words import Remark, sentences
from harness.reporting.overview.column import Column, cells_of, column_of, group_pairs, system_names
from harness.reporting.overview.matrix import Matrix, Row, is_crossed, matrices, suite_tables
from harness.reporting.overview.means import (
    UNREADABLE,
    MeanRow,
    Place,
    is_shown,
    is_unreadable,
    marked_mean,
    mean_labels,
    mean_remarks,
    mean_row,
    origin_mark,
    place_of,
    published_means,
    published_rows,
    row_of,
    shown_documents,
)
from harness.reporting.overview.missing import SkippedGroup, is_missing, skipped_groups
from harness.reporting.overview.run_remarks import published_remarks, run_remarks
from harness.reporting.sections import SectionReport, installed_registry, read_sections
from harness.storage.results import CellResult, TaskSummary
from harness.storage.run_folder import Run
from harness.table import NamedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageGroup:
    """The languages of one family or script: (code, name, one score per column)."""

    family: str
    """Or the script."""
    rows: tuple[tuple[str, str, tuple[Score, ...]], ...]
    means: tuple[Score, ...] = ()
    """The mean in every column where several of the languages have a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All that a summary shows."""

    title: str
    sample: bool
    columns: tuple[Column, ...]
    chances: tuple[float | None, ...]
    """By column: the score of guessing, where it is known."""
    sections: tuple[LanguageGroup, ...]
    by_script: tuple[LanguageGroup, ...]
    """The same languages by script."""
    systems: tuple[tuple[str, tuple[MeanRow, ...]], ...]
    """The means of every run with their label."""
    means: tuple[Row, ...]
    """Rows under the table: the mean of each run, published scores, chance, the gaps."""
    scripts: tuple[Row, ...]
    """The mean of every script, where there are several."""
    counts: tuple[tuple[str, tuple[str, ...]], ...]
    """Rows of languages, items and seconds."""
    suites: tuple[Matrix, ...]
    matrices: tuple[Matrix, ...]
    skipped: tuple[SkippedGroup, ...]
    remarks: tuple[Remark, ...]
    extra: Mapping[ReportSection, SectionReport]
    """Reports of plugins' sections on all given runs."""

    @property
    def languages(self) -> list[tuple[str, str, str, tuple[Score, ...]]]:
        """The languages: code, name, family, and a score per column."""
        return [
            (code, name, section.family, scores)
            for section in self.sections
            for code, name, scores in section.rows
        ]

    @property
    def notes(self) -> tuple[str, ...]:
        """The whole sentences of its remarks."""
        return sentences(self.remarks)

    @property
    def covered(self) -> frozenset[tuple[str, str, str]]:
        """Task, method and conditions of the columns that a terminal shows in a plugin's section only."""
        return frozenset().union(*(report.covered for report in self.extra.values()))

    @property
    def shown_extra(self) -> list[SectionReport]:
        """Reports of sections that are not for a page alone."""
        return [report for report in self.extra.values() if not report.page_only]


def summarise(runs: Sequence[Run], *, sections: Sequence[ReportSection] = ()) -> Summary:
    """Return the summary of the first run, with the means of the further ones (baselines) under it.

    Args:
        runs: The main run first.
        sections: The sections of plugins to include.
    """
    run, columns = runs[0], columns_of(runs[0])
    manifest, protocols = run.manifest, {column.protocol for column in columns}
    published: list[Mapping[str, Any]] = [
        document for document in manifest.published if is_shown(document, protocols)
    ]
    places = [place_of(column, row_of(run, column), manifest.tasks[column.task]) for column in columns]
    suite_names = {suite.suite for suite in manifest.suites}
    noted = [document for document in published if document.get("suite") in suite_names]
    noted += [document for document in shown_documents(published, places) if document not in noted]
    run_matrices = matrices(run)
    labels, label_remarks = mean_labels(runs)
    systems = tuple(
        (label, tuple(mean_row(system, run, column, columns) for column in columns))
        for label, system in zip(labels, runs, strict=True)
    )
    chances = tuple(chance_of(manifest.tasks[column.task], column.metric) for column in columns)
    scores = _scores(run, columns)
    return Summary(
        title=manifest.title or f"{manifest.model_name} on {_data_of(run)} data",
        sample=run.results.run.data == "sample",
        columns=columns,
        chances=chances,
        sections=_sections(run, scores, lambda code: _language(run, code)[1]),
        by_script=_sections(run, scores, lambda code: script_of(run, code)),
        systems=systems,
        means=(*_means(runs, systems), *published_rows(published, places), *_facts(systems[0][1], chances)),
        scripts=_scripts(run, systems[0][1]),
        counts=_counts(run, columns),
        suites=suite_tables(runs, published),
        matrices=tuple(matrix for matrix in run_matrices if matrix.rows),
        skipped=skipped_groups(run),
        remarks=(
            *label_remarks,
            *mean_remarks(systems),
            *(
                Remark(f"{matrix.title}: {' '.join(matrix.notes)}")
                for matrix in run_matrices
                if not matrix.rows
            ),
            *run_remarks(run),
            *published_remarks(noted),
        ),
        extra=read_sections(runs, sections),
    )


def columns_of(run: Run) -> tuple[Column, ...]:
    """Return the columns of a run's table, in the order of its cells."""
    specs = run.manifest.tasks
    columns = (
        column_of(cell, metric)
        for cell in run.cells
        if (cell.status != "skipped" or cell.has("method")) and not is_crossed(specs[cell.task])
        for metric in specs[cell.task].shown or specs[cell.task].headline
    )
    return tuple(dict.fromkeys(columns))


def chance_of(spec: TaskSummary, metric: str) -> float | None:
    """Return the score of guessing in a metric: specs declare that of their first metric alone."""
    first = next(iter(spec.metrics or spec.headline), None)
    return spec.chance if metric == first else None


def _data_of(run: Run) -> str:
    """Return ``hub``, ``local``, ``sample``, or ``packaged`` where all files were installed with their tasks."""
    revisions = [cell.data.get("revision") for cell in run.cells if cell.status == "ok"]
    is_packaged = run.results.run.data == "hub" and revisions and not any(revisions)
    return "packaged" if is_packaged else run.results.run.data


# Languages ---------------------------------------------------------------------------------------------------


def _scores(run: Run, columns: Sequence[Column]) -> dict[str, tuple[Score, ...]]:
    """Return the scores in every column by language, the languages by their codes."""
    scores = [
        {
            code: _score(run, column, cells)
            for code, cells in group_pairs((cell.language, cell) for cell in cells_of(run, column)).items()
        }
        for column in columns
    ]
    codes = sorted({code for by_language in scores for code in by_language})
    return {code: tuple(by_language.get(code, Score()) for by_language in scores) for code in codes}


def _score(run: Run, column: Column, cells: Sequence[CellResult]) -> Score:
    """Return the score of one language: the mean over its seeds, with the mark of where its items come from."""
    if any(cell.status == "failed" for cell in cells):
        return Score(mark="!")
    if any(is_unreadable(cell) for cell in cells):
        return Score(mark=UNREADABLE)
    entries = [cell.metrics[column.metric] for cell in cells if column.metric in cell.metrics]
    if not entries:
        return Score()
    row, spec = row_of(run, column), run.manifest.tasks[column.task]
    over_seeds = None if row is None else row.over_seeds.get(cells[0].language)
    only = entries[0] if len(entries) == 1 else over_seeds
    return Score(
        value=fmean(entry.value for entry in entries),
        interval=None if only is None else only.ci,
        mark=f"{'*' if cells[0].stands_in else ''}{origin_mark(cells[0], spec)}",
    )


def _sections(
    run: Run, scores: Mapping[str, tuple[Score, ...]], group_of: Callable[[str], str]
) -> tuple[LanguageGroup, ...]:
    """Return the languages by group, the largest group first."""
    groups = group_pairs((group_of(code), code) for code in scores)
    return tuple(
        LanguageGroup(
            family=group,
            rows=tuple((code, _language(run, code)[0], scores[code]) for code in codes),
            means=tuple(map(_mean_of, zip(*(scores[code] for code in codes), strict=True))),
        )
        for group, codes in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )


def _mean_of(scores: Sequence[Score]) -> Score:
    """Return the mean of several scores; nothing for one score alone, or where some are unreadable."""
    values = [score.value for score in scores if score.value is not None]
    if len(values) < 2 or any(score.mark == UNREADABLE for score in scores):
        return Score(mark=" ")
    return Score(fmean(values))


def _scripts(run: Run, means: Sequence[MeanRow]) -> tuple[Row, ...]:
    names = sorted({script for mean in means if mean.row is not None for script in mean.row.by_script})
    rows = ((name, tuple(_script_mean(run, mean, name) for mean in means)) for name in names)
    return tuple(rows) if len(names) > 1 else ()


def _script_mean(run: Run, mean: MeanRow, script: str) -> Score:
    if mean.row is None or script not in mean.row.by_script:
        return Score()
    languages = run.manifest.tasks[mean.row.task].languages
    codes = [code for code in mean.row.by_language if languages.get(code, ("", ""))[1] == script]
    return marked_mean(Score(mean.row.by_script[script]), codes, mean.unreadable)


def _language(run: Run, code: str) -> tuple[str, str]:
    """Return the name and family of a language."""
    if code in known_languages():
        language = known_languages().get(code)
        return language.name, language.family
    names = (task.names for task in run.manifest.tasks.values())
    return (
        (recorded_name(code, names), recorded[0]) if (recorded := _recorded(run, code)) else (code, "other")
    )


def script_of(run: Run, code: str) -> str:
    """Return the ISO 15924 code of a script: that of the run's tasks, or else that of the language table."""
    if recorded := _recorded(run, code):
        return recorded[1]
    return known_languages().get(code).script if code in known_languages() else "?"


def _recorded(run: Run, code: str) -> tuple[str, str] | None:
    """Return the family and script of a language as the run's tasks have them."""
    specs = run.manifest.tasks.values()
    return next((spec.languages[code] for spec in specs if code in spec.languages), None)


# Rows under the languages ------------------------------------------------------------------------------------


def _means(runs: Sequence[Run], systems: Sequence[tuple[str, Sequence[MeanRow]]]) -> Iterator[Row]:
    """Yield the means of every run, and those without added languages."""
    for run, (label, fields) in zip(runs, systems, strict=True):
        means = (label, tuple(mean.score for mean in fields))
        for name, scores in (means, *published_means(run, [mean.row for mean in fields], label)):
            yield name, tuple(mean.marked(score) for mean, score in zip(fields, scores, strict=True))


def _facts(means: Sequence[MeanRow], chances: Sequence[float | None]) -> Iterator[Row]:
    """Yield chance, the transfer gap, and the gap to people, where these are known."""
    if any(chance is not None for chance in chances):
        yield "chance", tuple(Score(chance) for chance in chances)
    yield "transfer gap", tuple(mean.marked(mean.gap) for mean in means)
    human = [Score(None if mean.row is None else mean.row.human_gap) for mean in means]
    if any(gap.value is not None for gap in human):
        yield "gap to human", tuple(mean.marked(gap) for mean, gap in zip(means, human, strict=True))


def _counts(run: Run, columns: Sequence[Column]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    planned = group_pairs(
        (cell.task, cell.language) for cell in run.cells if cell.is_scored or is_missing(cell)
    )
    cells = [[cell for cell in cells_of(run, column) if cell.status == "ok"] for column in columns]
    languages = (
        f"{len({cell.language for cell in scored})}/{len(set(planned.get(column.task, ())))}"
        for column, scored in zip(columns, cells, strict=True)
    )
    return (
        ("languages", tuple(languages)),
        ("items", tuple(f"{sum(cell.n for cell in scored):,}" for scored in cells)),
        ("seconds", tuple(f"{sum(cell.seconds for cell in scored):,.0f}" for scored in cells)),
    )


# The runs of a report ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The runs of a report, their baselines, and the summary that all sections agree with."""

    runs: tuple[Run, ...]
    """The given runs, the main run first."""
    every: tuple[Run, ...]
    """The given runs with their baselines; baselines follow their run."""
    names: Mapping[Path, str]
    """Path of a run -> what the report calls it; each name is used once."""
    summary: Summary
    columns: tuple[Column, ...]
    """Those of all given runs, the summary's first."""
    metric_table: NamedTable[Metric] | None = None
    """Metrics that say which scores are the best; None takes the installed ones."""

    @property
    def metrics(self) -> NamedTable[Metric]:
        """The metrics that say which scores are the best."""
        return installed_registry().metrics if self.metric_table is None else self.metric_table

    def name(self, run: Run) -> str:
        """Return the name of a run in the report."""
        return self.names[run.path]

    @property
    def languages(self) -> list[tuple[str, str, str]]:
        """The languages of the summary in its order: code, name, family."""
        return [(code, name, family) for code, name, family, _ in self.summary.languages]

    def owner(self, column: Column, default: Run) -> Run:
        """Return the first run that has a column itself."""
        return next((run for run in self.every if row_of(run, column) is not None), default)

    def place(self, column: Column) -> Place:
        """Return the place of a column's published scores: over the languages of the first run that has it."""
        owner = self.owner(column, self.runs[0])
        return place_of(column, row_of(owner, column), owner.manifest.tasks.get(column.task))

    def mean(self, run: Run, column: Column) -> MeanRow:
        """Return the mean of a run in a column, compared with the first run that has this column itself."""
        return mean_row(run, self.owner(column, run), column, self.columns)


def read_material(
    runs: Sequence[Run],
    *,
    sections: Sequence[ReportSection] = (),
    metrics: NamedTable[Metric] | None = None,
) -> Material:
    """Return the material of runs, each of which may be followed by its baselines, with sections of plugins."""
    # A baseline that the user also names comes twice: once as a run, and once with its own run.
    times = Counter(run.path.resolve() for run in runs)
    by_path = {run.path.resolve(): run for run in reversed(runs)}
    every = {path: by_path[path] for path in times}
    requested = [
        run
        for path, run in every.items()
        if times[path] > 1 or path.parent.name != "baselines" or path.parent.parent not in every
    ]
    first, *_ = runs_of_report = tuple(every.values())
    return Material(
        runs=tuple(requested),
        every=runs_of_report,
        names=dict(zip((run.path for run in runs_of_report), system_names(runs_of_report), strict=True)),
        summary=summarise(runs_of_report, sections=sections),
        columns=tuple(dict.fromkeys(column for run in (first, *requested) for column in columns_of(run))),
        metric_table=metrics,
    )
