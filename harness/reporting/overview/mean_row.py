"""The means of runs under those of the first one, how their cells differ from its own, and differences of scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from harness.reporting.blocks.number import Score
from harness.reporting.blocks.remark import Remark, Weight, counted
from harness.reporting.overview.column import (
    Column,
    cells_of,
    conditions_of,
    group_pairs,
    once_per_run,
    train_names,
)
from harness.reporting.overview.marks import WITH_UNREADABLE, is_unreadable, marked_mean
from harness.scores.aggregation import CellGroups, cells_of_row, group_cells
from harness.statistics import NORMAL, wilson
from harness.storage.results import CellResult, Difference, TaskScore
from harness.storage.run_folder import Run

ColumnPlace = tuple[str, str, str, str]
"""Task, protocol, view and metric of a column."""
Items = Mapping[str, tuple[int, str | None]]
"""By language: the number of items, and the digest of the data; all seeds have the same."""
OTHER_CELLS = "~"
"""A mean over other languages or items than the first run's."""
OTHER_PROTOCOL = "§"
"""A mean under another protocol, or with another prompt, than the column's."""
_MEANINGS = {
    OTHER_CELLS: (
        "over other cells",
        " than the first run's, not comparable with its mean",
        ", not comparable",
    ),
    WITH_UNREADABLE: (
        "with unreadable cells",
        ", whose answers count as wrong where they could not be read",
        "",
    ),
    OTHER_PROTOCOL: ("under another protocol or prompt", " than the column's", ""),
}
"""By mark: its meaning, and what follows it in the legend and in the line of the summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanRow:
    """The row of ``results.json`` that one column shows for one run."""

    row: TaskScore | None
    differences: Mapping[str, str] = field(default_factory=dict)
    """By mark: what differs from the first run, and which of its cells are unreadable."""
    unreadable: frozenset[str] = frozenset()
    """Languages of its unreadable cells."""
    is_collapsed: bool = False
    """Whether the model gives one answer to nearly all items of the source language."""

    @property
    def mark(self) -> str:
        """The marks after its number, apart from that of unreadable cells."""
        return "".join(mark for mark in self.differences if mark != WITH_UNREADABLE)

    @property
    def score(self) -> Score:
        """Its mean with the interval, without marks; nothing where it has no row."""
        return Score() if self.row is None else Score(self.row.value, interval=self.row.ci)

    @property
    def transfer_gap(self) -> float | None:
        """The score of the source language minus the mean of the others; none where answers say nothing."""
        return None if self.row is None or self.unreadable or self.is_collapsed else self.row.transfer_gap

    @property
    def gap(self) -> Score:
        """The transfer gap of its row with the interval, without marks."""
        if self.row is None:
            return Score()
        difference = self.row.transfer_gap_interval
        return Score(self.row.transfer_gap, interval=None if difference is None else difference.ci)

    def marked(self, score: Score) -> Score:
        """Return a score with the marks of this row."""
        if score.value is None or self.row is None:
            return score
        return marked_mean(replace(score, mark=self.mark), self.row.by_language, self.unreadable)


def row_of(run: Run, column: Column) -> TaskScore | None:
    """Return the row of ``results.json`` that holds the mean of a column.

    A baseline may have another method than the run: then it is the first row of the task, protocol, view and metric.
    """
    rows = _rows(run).get(_place(column), [])
    same = [row for row in rows if row.method == column.method]
    return next(iter([*same, *rows]), None)


def cells_of_mean(run: Run, row: TaskScore) -> dict[str, list[CellResult]]:
    """Return the cells of a run whose mean a row is, by language."""
    return cells_of_row(row, _groups(run))


@once_per_run
def _groups(run: Run) -> CellGroups:
    return group_cells(run.cells)


@once_per_run
def _rows(run: Run) -> dict[ColumnPlace, list[TaskScore]]:
    return group_pairs((_place(row), row) for row in run.results.tasks)


def _place(row: TaskScore | Column) -> ColumnPlace:
    view = row.view if isinstance(row, Column) else conditions_of(row.view)
    return row.task, row.protocol, view, row.metric


def mean_row(run: Run, first: Run, column: Column, columns: Sequence[Column]) -> MeanRow:
    """Return the mean of a run in a column.

    Where it has no row of the column's protocol and prompt, one of the same task, items and metric takes its place,
    unless that has a column of its own: so the baselines of a prompted model have a number.

    Args:
        run: Whose mean it is.
        first: The run whose cells the others' are compared with; it may be `run`.
        column: Of the report.
        columns: All of the report.
    """
    row, differences = row_of(run, column), dict[str, str]()
    if row is None and run is not first and (row := _substitute(run, column, columns)):
        substitute = (column.task, row.protocol, conditions_of(row.view))
        differences[OTHER_PROTOCOL] = " ".join(filter(None, substitute))
    if row is None:
        return MeanRow(row=None)
    if run is not first and (of_first := row_of(first, column)):
        difference = _difference(_items(run, row), _items(first, of_first))
        differences |= {OTHER_CELLS: f"{column.task} {difference}"} if difference else {}
    by_language, source = cells_of_mean(run, row), run.manifest.tasks[row.task].source
    codes = [code for code, cells in by_language.items() if any(map(is_unreadable, cells))]
    if codes and len(codes) < len(by_language):
        differences[WITH_UNREADABLE] = f"{row.task} {' '.join(codes)}"
    is_collapsed = any(cell.collapse for cell in by_language.get(source or "", ()))
    return MeanRow(row=row, differences=differences, unreadable=frozenset(codes), is_collapsed=is_collapsed)


def _substitute(run: Run, column: Column, columns: Sequence[Column]) -> TaskScore | None:
    spec = run.manifest.tasks.get(column.task)
    # Conditions that change the items of the task; others, such as the prompt, change how it is asked.
    axes = {"variant", "translator", "split", *(spec.axes if spec else ())}

    def item_view(view: str) -> set[str]:
        return {condition for condition in view.split(" ") if condition.partition("=")[0] in axes}

    places = set(map(_place, columns))
    for row in run.results.tasks:
        place = task, _, view, metric = _place(row)
        is_same = (task, metric) == (column.task, column.metric) and item_view(view) == item_view(column.view)
        if is_same and place not in places:
            return row
    return None


def _items(run: Run, row: TaskScore) -> Items:
    cells = {code: seeds[0] for code, seeds in cells_of_mean(run, row).items()}
    return {code: (cell.n, (cell.data or {}).get("digest")) for code, cell in cells.items()}


def _difference(items: Items, firsts: Items) -> str:
    """Return how cells differ from those of the first run; empty where they are the same."""
    if items == firsts:
        return ""
    size, first_size = (
        f"{counted(len(by_language), 'language')}, {counted(sum(count for count, _ in by_language.values()), 'item')}"
        for by_language in (items, firsts)
    )
    if size != first_size:
        return f"{size} (first run: {first_size})"
    return f"{size} of other {'languages' if set(items) != set(firsts) else 'data'}"


def mean_remarks(rows: Iterable[tuple[str, Sequence[MeanRow]]]) -> list[Remark]:
    """Return a remark for every mark that rows have, with what differs; rows are (label, one field per column)."""
    by_mark = group_pairs(
        (mark, f"{label}, {difference}")
        for label, fields in rows
        for mean in fields
        for mark, difference in mean.differences.items()
    )
    remarks = []
    for mark, labels in by_mark.items():
        meaning, legend, brief = _MEANINGS[mark]
        distinct = dict.fromkeys(labels)
        text = f"{mark} {meaning}{legend}: {'; '.join(distinct)}"
        line = f"{counted(len(distinct), 'mean')} {meaning}{brief} ({mark})"
        remarks.append(Remark(text, line, Weight.INCOMPARABLE))
    return remarks


def mean_labels(runs: Sequence[Run]) -> tuple[list[str], list[Remark]]:
    """Return the label of every run's row of means, and a remark for each name that several runs share."""
    models = [run.manifest.model_name for run in runs]
    labels, remarks, counts = ["mean"], list[Remark](), Counter(models[:1])
    for run, model, name in zip(runs[1:], models[1:], train_names(runs)[1:], strict=True):
        counts[model] += 1
        label = f"mean {model}"
        if name:  # A label is short: the model of the first run needs no name.
            label = f"mean {name}" if model == models[0] else f"{label} ({name})"
        elif counts[model] > 1:
            label = f"{label} ({counts[model]})"
            remarks.append(Remark(f"{label}: {run.path}"))
        labels.append(label)
    return labels, remarks


# Differences of two scores: those of languages as the run keeps them, others from their standard errors -----------


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A score in [0, 1] with what is known of its uncertainty."""

    value: float
    se: float | None = None
    interval: tuple[float, float] | None = None
    """95 %."""
    draws: int = 0
    """Clusters, or single items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A score minus another one, as fractions."""

    difference: float
    low: float
    high: float
    p: float
    """Two-sided; of the normal distribution where it is not one that the run keeps."""
    is_paired: bool = False
    """Whether it is over the same items in both, as in parallel tasks."""


def contrast(one: Estimate, other: Estimate) -> Contrast | None:
    """Return the first minus the second, with a 95 % interval and p.

    The interval recovers the variances from the two intervals, each of its own kind (MOVER; Zou and Donner 2008).
    Where both are of the same items it is too wide rather than too narrow. None where an error or interval is unknown,
    or both errors are 0.
    """
    if one.se is None or other.se is None or one.interval is None or other.interval is None:
        return None
    if (se := math.hypot(one.se, other.se)) == 0:
        return None
    difference = one.value - other.value
    return Contrast(
        difference=difference,
        low=difference - math.hypot(one.value - one.interval[0], other.interval[1] - other.value),
        high=difference + math.hypot(one.interval[1] - one.value, other.value - other.interval[0]),
        p=math.erfc(abs(difference) / se / math.sqrt(2)),
    )


def from_others(run: Run, column: Column, code: str, codes: Sequence[str]) -> Contrast | None:
    """Return a language minus the mean of the others, as the run keeps it where these are its languages.

    Runs of older versions and means over fewer languages have it from the scores' own intervals, unpaired.
    """
    row, mean = row_of(run, column), mean_of_others(run, column, code, codes)
    score = score_of(run, column, code)
    scored = {*_scores(run, column, codes), *([code] if score is not None else [])}
    if row is not None and scored == set(row.by_language) and (kept := row.from_others.get(code)):
        return _kept(kept)
    return None if score is None or mean is None else contrast(score, mean)


def from_source(run: Run, column: Column, code: str, source: str) -> Contrast | None:
    """Return a language minus the source language, as the run keeps it, or from the scores' own intervals."""
    row, score, origin = row_of(run, column), score_of(run, column, code), score_of(run, column, source)
    if score is None or origin is None:
        return None
    difference = row.from_source.get(code) if row is not None else None
    return contrast(score, origin) if difference is None else _kept(difference)


def _kept(difference: Difference) -> Contrast | None:
    if difference.ci is None or difference.p is None:
        return None
    low, high = difference.ci
    is_paired = str(difference.ci_method).startswith("paired")
    return Contrast(difference=difference.value, low=low, high=high, p=difference.p, is_paired=is_paired)


@once_per_run
def score_of(run: Run, column: Column, code: str) -> Estimate | None:
    """Return the score of one language; that of several seeds is their mean, with the interval that the run keeps.

    Unreadable cells have none.
    """
    cells = cells_of(run, column, code)
    if any(map(is_unreadable, cells)):
        return None
    scored = [cell for cell in cells if cell.status == "ok" and column.metric in cell.metrics]
    values = [cell.metrics[column.metric] for cell in scored]
    if len(scored) == 1:
        [cell], [score] = scored, values
        interval, draws = score.ci, score.clusters or cell.n
        is_clustered = bool(run.manifest.specs.get(cell.task, {}).get("cluster")) and not score.clusters
        if interval is None and score.ci_method == "constant" and not is_clustered and draws:
            # Draws that are all wrong or all right have the interval of Wilson.
            interval = wilson(score.value * draws, draws) if score.value in {0.0, 1.0} else None
        se = score.se
        if not se and interval is not None:
            # Where all items are equal, the error is that of the reach of the interval, not 0.
            se = max(score.value - interval[0], interval[1] - score.value) / NORMAL
        return Estimate(value=score.value, se=se, interval=interval, draws=draws)
    row = row_of(run, column) if values else None
    if row is not None and (mean := row.over_seeds.get(code)):
        return Estimate(value=row.by_language[code], se=mean.se, interval=mean.ci, draws=mean.clusters or 0)
    return Estimate(value=fmean(score.value for score in values)) if values else None


@once_per_run
def _scores(run: Run, column: Column, codes: Sequence[str]) -> dict[str, Estimate]:
    """Return the scores of those languages that have one."""
    return {code: score for code in codes if (score := score_of(run, column, code)) is not None}


@once_per_run
def mean_of_others(run: Run, column: Column, code: str, codes: Sequence[str]) -> Estimate | None:
    """Return the unweighted mean of the other languages, whose errors are taken as independent."""
    scores = [score for language, score in _scores(run, column, codes).items() if language != code]
    if not scores:
        return None
    value = fmean(score.value for score in scores)
    errors = [score.se for score in scores if score.se is not None]
    if len(errors) < len(scores):
        return Estimate(value=value)
    se = math.hypot(*errors) / len(scores)
    interval = (max(0.0, value - NORMAL * se), min(1.0, value + NORMAL * se))
    return Estimate(value=value, se=se, interval=interval, draws=min(score.draws for score in scores))
