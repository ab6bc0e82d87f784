"""The summary of runs as a pure table: languages grouped by family against tasks, with means and gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.languages.table import known_languages, recorded_name
from harness.planning.plan import grouped_reason, reason_without_language
from harness.reporting.blocks.remark import Remark, sentences
from harness.reporting.blocks.score import Score
from harness.reporting.formats import ReportSection, SectionReport
from harness.reporting.overview.column import Column, cells_of, conditions_of
from harness.reporting.overview.item_origin import origin_mark, published_means
from harness.reporting.overview.matrix import Matrix, is_crossed, matrices
from harness.reporting.overview.mean_row import MeanRow, mean_labels, mean_remarks, mean_row, row_of
from harness.reporting.overview.missing import is_missing
from harness.reporting.overview.published import is_shown, place_of, published_rows, shown_documents
from harness.reporting.overview.run_remarks import published_remarks, run_remarks
from harness.reporting.overview.suite import SuiteTable, suite_tables
from harness.reporting.overview.unreadable import UNREADABLE, is_unreadable, marked_mean
from harness.reporting.sections import read_sections
from harness.storage.results import CellResult, TaskSummary, Value
from harness.storage.run_folder import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The languages of one family or script: (code, name, one score per column)."""

    family: str
    """Or the script."""
    rows: tuple[tuple[str, str, tuple[Score, ...]], ...]
    means: tuple[Score, ...] = ()
    """The mean in every column where several of the languages have a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedGroup:
    """Skipped or failed cells of one task with one reason."""

    task: str
    protocol: str | None
    status: str
    languages: tuple[str, ...]
    reason: str
    """One sentence for all of its languages."""
    cells: int
    """More than languages where a task has axes, variants or several seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All that a summary shows."""

    title: str
    sample: bool
    columns: tuple[Column, ...]
    lows: tuple[float, ...]
    """By column: the score of guessing, 0 where it is not known, at which its colours begin."""
    sections: tuple[Section, ...]
    by_script: tuple[Section, ...]
    """The same languages by script."""
    means: tuple[tuple[str, tuple[Score, ...]], ...]
    """Rows under the table: the mean of each run, published scores, chance, the gaps."""
    scripts: tuple[tuple[str, tuple[Score, ...]], ...]
    """The mean of every script, where there are several."""
    counts: tuple[tuple[str, tuple[str, ...]], ...]
    """Rows of languages, items and seconds."""
    suites: tuple[SuiteTable, ...]
    matrices: tuple[Matrix, ...]
    skipped: tuple[SkippedGroup, ...]
    skipped_cells: tuple[tuple[str, str, str], ...]
    """Task, language and reason of what was skipped before the run began."""
    remarks: tuple[Remark, ...]
    extra: Mapping[ReportSection, SectionReport]
    """Reports of plugins' sections on all given runs."""

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


def summarise(
    runs: Sequence[Run],
    published: Sequence[Mapping[str, Any]] | None = None,
    *,
    sections: Sequence[ReportSection] = (),
) -> Summary:
    """Return the summary of the first run, with the means of the further ones (baselines) under it.

    Args:
        runs: The main run first.
        published: The documents of published systems; None takes those of the run.
        sections: The sections of plugins to include.
    """
    run, baselines = runs[0], runs[1:]
    published = run.manifest.published if published is None else published
    specs: Mapping[str, Any] = run.manifest.tasks
    columns = columns_of(run)
    protocols = {column.protocol for column in columns}
    published = [item for item in published if is_shown(item, protocols)]
    mean_columns = [place_of(column, row_of(run, column), specs[column.task]) for column in columns]
    of_suites = [
        item for item in published if item.get("suite") in {suite.suite for suite in run.manifest.suites}
    ]
    noted = [
        *of_suites,
        *(item for item in shown_documents(published, mean_columns) if item not in of_suites),
    ]
    run_matrices = matrices(run)
    blank = [
        Remark(text=f"{matrix.title}: {' '.join(matrix.notes)}") for matrix in run_matrices if not matrix.rows
    ]
    means, of_means = _means(run, baselines, columns, specs, published)
    return Summary(
        title=run.manifest.title or f"{run.manifest.model_name} on {_data_of(run)} data",
        sample=run.results.run.data == "sample",
        columns=columns,
        lows=tuple(chance_of(specs[column.task], column.metric) or 0.0 for column in columns),
        sections=_sections(run, columns, lambda code: _language(run, code)[1]),
        by_script=_sections(run, columns, lambda code: script_of(run, code)),
        means=means,
        scripts=_scripts(run, columns),
        counts=_counts(run, columns),
        suites=suite_tables(runs, published),
        matrices=tuple(matrix for matrix in run_matrices if matrix.rows),
        skipped=_skipped(run),
        skipped_cells=tuple(
            (cell.task, cell.language, cell.reason)
            for cell in run.cells
            if cell.status == "skipped" and not cell.is_stopped
        ),
        remarks=(*of_means, *blank, *run_remarks(run), *published_remarks(noted)),
        extra=read_sections(runs, sections),
    )


def columns_of(run: Run) -> tuple[Column, ...]:
    """Return the columns of a run's table, in the order of its cells."""
    specs = run.manifest.tasks
    columns: dict[Column, None] = {}
    for cell in run.cells:
        if (cell.status == "skipped" and not cell.has("method")) or is_crossed(specs[cell.task]):
            continue
        for metric in specs[cell.task].shown or specs[cell.task].headline:
            columns[_column(cell, metric)] = None
    return tuple(columns)


def _column(cell: CellResult, metric: str) -> Column:
    return Column(
        task=cell.task,
        protocol=str(cell.protocol),
        method=str(cell.method),
        view=conditions_of(cell.view),
        metric=metric,
    )


def _sections(run: Run, columns: Sequence[Column], group_of: Callable[[str], str]) -> tuple[Section, ...]:
    """Return the languages by group, the largest group first."""
    scores: dict[str, dict[Column, Score]] = {}
    for column in columns:
        row = row_of(run, column)
        over_seeds = {} if row is None else row.over_seeds
        for code, cells in _by_language(cells_of(run, column)).items():
            mark = origin_mark(cells[0], run.manifest.tasks[column.task])
            scores.setdefault(code, {})[column] = _score(cells, column.metric, mark, over_seeds.get(code))
    groups: dict[str, list[str]] = {}
    for code in sorted(scores):
        groups.setdefault(group_of(code), []).append(code)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(
        Section(
            family=group,
            rows=tuple(
                (
                    code,
                    _language(run, code)[0],
                    tuple(scores[code].get(column, Score()) for column in columns),
                )
                for code in codes
            ),
            means=tuple(
                _mean_of([scores[code].get(column, Score()) for code in codes]) for column in columns
            ),
        )
        for group, codes in ordered
    )


def _mean_of(scores: Sequence[Score]) -> Score:
    """Return the mean of several scores; nothing for one score alone, or where some are unreadable."""
    if any(score.mark == UNREADABLE for score in scores):
        return Score(mark=" ")
    values = [score.value for score in scores if score.value is not None]
    return Score(value=fmean(values)) if len(values) > 1 else Score(mark=" ")


def _scripts(run: Run, columns: Sequence[Column]) -> tuple[tuple[str, tuple[Score, ...]], ...]:
    means = [mean_row(run, run, column, columns) for column in columns]
    rows = [mean.row for mean in means if mean.row is not None]
    names = sorted({script for row in rows for script in row.by_script})
    if len(names) < 2:
        return ()
    return tuple((name, tuple(_script_mean(run, mean, name) for mean in means)) for name in names)


def _script_mean(run: Run, mean: MeanRow, script: str) -> Score:
    if mean.row is None or script not in mean.row.by_script:
        return Score()
    languages = run.manifest.tasks[mean.row.task].languages
    codes = [code for code in mean.row.by_language if languages.get(code, ("", ""))[1] == script]
    return marked_mean(Score(value=mean.row.by_script[script]), codes, mean.unreadable)


def _language(run: Run, code: str) -> tuple[str, str]:
    table = known_languages()
    if code in table:
        language = table.get(code)
        return language.name, language.family
    for spec in run.manifest.tasks.values():
        if code in spec.languages:
            name = recorded_name(code, (task.names for task in run.manifest.tasks.values()))
            return name, str(spec.languages[code][0])
    return code, "other"


def script_of(run: Run, code: str) -> str:
    """Return the ISO 15924 code of a script: that of the run's tasks, or else that of the language table."""
    for spec in run.manifest.tasks.values():
        if code in spec.languages:
            return str(spec.languages[code][1])
    table = known_languages()
    return table.get(code).script if code in table else "?"


def _by_language(cells: Sequence[CellResult]) -> dict[str, list[CellResult]]:
    grouped: dict[str, list[CellResult]] = {}
    for cell in cells:
        grouped.setdefault(cell.language, []).append(cell)
    return grouped


def _score(cells: Sequence[CellResult], metric: str, mark: str, over_seeds: Value | None = None) -> Score:
    """Return the score of one language: the mean over its seeds, with the mark of where its items come from."""
    if any(cell.status == "failed" for cell in cells):
        return Score(mark="!")
    if any(is_unreadable(cell) for cell in cells):
        return Score(mark=UNREADABLE)
    entries = [cell.metrics[metric] for cell in cells if metric in cell.metrics]
    if not entries:
        return Score()
    value = fmean(entry.value for entry in entries)
    only = entries[0] if len(entries) == 1 else over_seeds
    interval = None if only is None else only.ci
    return Score(value=value, interval=interval, mark=f"{'*' if cells[0].stands_in else ''}{mark}")


def _data_of(run: Run) -> str:
    """Return ``hub``, ``local``, ``sample``, or ``packaged`` where all files were installed with their tasks."""
    revisions = [cell.data.get("revision") for cell in run.cells if cell.status == "ok"]
    is_packaged = run.results.run.data == "hub" and revisions and not any(revisions)
    return "packaged" if is_packaged else run.results.run.data


def _means(
    run: Run,
    others: Sequence[Run],
    columns: Sequence[Column],
    specs: Mapping[str, TaskSummary],
    published: Sequence[Mapping[str, Any]],
) -> tuple[tuple[tuple[str, tuple[Score, ...]], ...], tuple[Remark, ...]]:
    """Return the rows under the table, and what their marks mean."""
    rows, marked = [], []
    labels, remarks = mean_labels((run, *others))
    for label, candidate in zip(labels, (run, *others), strict=True):
        fields = [mean_row(candidate, run, column, columns) for column in columns]
        marked.append((label, fields))
        task_rows = [field.row for field in fields]
        for name, scores in (
            (label, [field.score for field in fields]),
            *published_means(candidate, task_rows, label),
        ):
            rows.append(
                (name, tuple(field.marked(score) for score, field in zip(scores, fields, strict=True)))
            )
    rows += published_rows(
        published, [place_of(column, row_of(run, column), specs[column.task]) for column in columns]
    )
    chance = [chance_of(specs[column.task], column.metric) for column in columns]
    if any(value is not None for value in chance):
        rows.append(("chance", tuple(Score(value=value) for value in chance)))
    means = [mean_row(run, run, column, columns) for column in columns]
    for key, label in (("transfer_gap", "transfer gap"), ("human_gap", "gap to human")):
        gaps = [None if field.row is None else getattr(field.row, key) for field in means]
        if key == "transfer_gap" or any(gap is not None for gap in gaps):
            intervals = [field.row and field.row.transfer_gap_interval for field in means]
            ends = [interval.ci if interval and key == "transfer_gap" else None for interval in intervals]
            gap_scores = [
                mean.marked(Score(value=gap, interval=end))
                for mean, gap, end in zip(means, gaps, ends, strict=True)
            ]
            rows.append((label, tuple(gap_scores)))
    return tuple(rows), (*remarks, *mean_remarks(marked))


def chance_of(spec: TaskSummary, metric: str) -> float | None:
    """Return the score of guessing in a metric: specs declare that of their first metric alone."""
    first = next(iter(spec.metrics or spec.headline), None)
    return spec.chance if metric == first else None


def _counts(run: Run, columns: Sequence[Column]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    languages, items, seconds = [], [], []
    for column in columns:
        cells = [cell for cell in cells_of(run, column) if cell.status == "ok"]
        planned = (cell for cell in run.cells if cell.is_scored or is_missing(cell))
        codes = {cell.language for cell in planned if cell.task == column.task}
        languages.append(f"{len({cell.language for cell in cells})}/{len(codes)}")
        items.append(f"{sum(cell.n for cell in cells):,}")
        seconds.append(f"{sum(cell.seconds for cell in cells):,.0f}")
    return (("languages", tuple(languages)), ("items", tuple(items)), ("seconds", tuple(seconds)))


def _skipped(run: Run) -> tuple[SkippedGroup, ...]:
    groups: dict[tuple[str, str | None, str, str], list[CellResult]] = {}
    for cell in run.cells:
        if cell.status == "ok":
            continue
        failed = cell.status == "failed"
        shape = cell.reason if failed else reason_without_language(cell.reason, cell.language)
        key = (cell.task, cell.protocol, cell.status, shape)
        groups.setdefault(key, []).append(cell)
    return tuple(
        SkippedGroup(
            task=task,
            protocol=protocol,
            status=status,
            languages=tuple(dict.fromkeys(cell.language for cell in cells)),
            reason=grouped_reason(cell.reason for cell in cells),
            cells=len(cells),
        )
        for (task, protocol, status, _), cells in groups.items()
    )
