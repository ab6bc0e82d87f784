"""The means of further runs under those of the first one, and how their cells differ from its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.reporting.blocks.remark import Remark, Weight, counted
from harness.reporting.blocks.score import Score
from harness.reporting.overview.column import Column, conditions_of
from harness.reporting.overview.memo import once_per_run
from harness.reporting.overview.system_name import train_names
from harness.reporting.overview.unreadable import WITH_UNREADABLE, is_unreadable, marked_mean
from harness.scores.aggregation import CellGroups, cells_of_row, group_cells
from harness.storage.results import CellResult, TaskScore
from harness.storage.run_folder import Run

OTHER_CELLS = "~"
"""A mean over other languages or items than the first run's."""
OTHER_PROTOCOL = "§"
"""A mean under another protocol, or with another prompt, than the column's."""
_LEGEND = {
    OTHER_CELLS: "over other cells than the first run's, not comparable with its mean",
    WITH_UNREADABLE: "with unreadable cells, whose answers count as wrong where they could not be read",
    OTHER_PROTOCOL: "under another protocol or prompt than the column's",
}
_BRIEF = {
    OTHER_CELLS: "over other cells, not comparable",
    WITH_UNREADABLE: "with unreadable cells",
    OTHER_PROTOCOL: "under another protocol or prompt",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanRow:
    """The row of ``results.json`` that one column shows for one run."""

    row: TaskScore | None
    differences: Mapping[str, str]
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
        return Score() if self.row is None else Score(value=self.row.value, interval=self.row.ci)

    @property
    def transfer_gap(self) -> float | None:
        """The score of the source language minus the mean of the others; none where answers say nothing."""
        return None if self.row is None or self.unreadable or self.is_collapsed else self.row.transfer_gap

    def marked(self, score: Score) -> Score:
        """Return a score with the marks of this row."""
        if score.value is None or self.row is None:
            return score
        return marked_mean(replace(score, mark=self.mark), self.row.by_language, self.unreadable)


def row_of(run: Run, column: Column) -> TaskScore | None:
    """Return the row of ``results.json`` that holds the mean of a column.

    A baseline may have another method than the run: then it is the first row of the task, protocol, view and metric.
    """
    rows = _rows(run).get(_column_place(column), [])
    same = [row for row in rows if row.method == column.method]
    return next(iter([*same, *rows]), None)


def cells_of_mean(run: Run, row: TaskScore) -> dict[str, list[CellResult]]:
    """Return the cells of a run whose mean a row is, by language."""
    return cells_of_row(row, _groups(run))


@once_per_run
def _groups(run: Run) -> CellGroups:
    return group_cells(run.cells)


@once_per_run
def _rows(run: Run) -> dict[tuple[str, str, str, str], list[TaskScore]]:
    groups: dict[tuple[str, str, str, str], list[TaskScore]] = {}
    for row in run.results.tasks:
        groups.setdefault(_place(row), []).append(row)
    return groups


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
    if run is first:
        return _with_unreadable(run, row, differences)
    if row is None:
        row = _substitute(run, column, columns)
        if row is None:
            return MeanRow(row=None, differences={})
        conditions = conditions_of(row.view)
        differences[OTHER_PROTOCOL] = " ".join(filter(None, (column.task, row.protocol, conditions)))
    of_first = row_of(first, column)
    difference = "" if of_first is None else _difference(_cells(run, row), _cells(first, of_first))
    if difference:
        differences[OTHER_CELLS] = f"{column.task} {difference}"
    return _with_unreadable(run, row, differences)


def _with_unreadable(run: Run, row: TaskScore | None, differences: Mapping[str, str]) -> MeanRow:
    """Return a mean with the languages whose answers could not be read."""
    by_language = {} if row is None else cells_of_mean(run, row)
    codes = [code for code, cells in by_language.items() if any(map(is_unreadable, cells))]
    source = None if row is None else run.manifest.tasks[row.task].source
    is_collapsed = any(cell.collapse for cell in by_language.get(source or "", ()))
    if row is None or not codes:
        return MeanRow(row=row, differences=differences, is_collapsed=is_collapsed)
    marks = {} if len(codes) == len(by_language) else {WITH_UNREADABLE: f"{row.task} {' '.join(codes)}"}
    return MeanRow(row=row, differences={**differences, **marks}, unreadable=frozenset(codes))


def mean_remarks(rows: Iterable[tuple[str, Sequence[MeanRow]]]) -> list[Remark]:
    """Return a remark for every mark that rows have, with what differs; rows are (label, one field per column)."""
    by_mark: dict[str, dict[str, None]] = {}
    for label, fields in rows:
        for field in fields:
            for mark, difference in field.differences.items():
                by_mark.setdefault(mark, {})[f"{label}, {difference}"] = None
    return [
        Remark(
            text=f"{mark} {_LEGEND[mark]}: {'; '.join(labels)}",
            brief=f"{counted(len(labels), 'mean')} {_BRIEF[mark]} ({mark})",
            weight=Weight.INCOMPARABLE,
        )
        for mark, labels in by_mark.items()
    ]


def mean_labels(runs: Sequence[Run]) -> tuple[list[str], list[Remark]]:
    """Return the label of every run's row of means, and a remark for each name that several runs share."""
    models = [run.manifest.model_name for run in runs]
    trained = train_names(runs)
    labels, remarks = ["mean"], []
    counts = Counter(models[:1])
    for run, model, name in zip(runs[1:], models[1:], trained[1:], strict=True):
        counts[model] += 1
        label = f"mean {model}"
        if name:  # A label is short: the model of the first run needs no name.
            label = f"mean {name}" if model == models[0] else f"{label} ({name})"
        elif counts[model] > 1:
            label = f"{label} ({counts[model]})"
            remarks.append(Remark(text=f"{label}: {run.path}"))
        labels.append(label)
    return labels, remarks


def _place(row: TaskScore) -> tuple[str, str, str, str]:
    return row.task, row.protocol, conditions_of(row.view), row.metric


def _column_place(column: Column) -> tuple[str, str, str, str]:
    return column.task, column.protocol, column.view, column.metric


def _substitute(run: Run, column: Column, columns: Sequence[Column]) -> TaskScore | None:
    keys = set(map(_column_place, columns))
    return next(
        (
            row
            for row in run.results.tasks
            if (row.task, row.metric) == (column.task, column.metric)
            and _place(row) not in keys
            and _item_view(run, row) == _item_view_of(run, column)
        ),
        None,
    )


def _item_axes(run: Run, task: str) -> set[str]:
    """Return the conditions that change the items of a task; others, such as the prompt, change how it is asked."""
    return {"variant", "translator", "split", *run.manifest.tasks[task].axes}


def _item_view(run: Run, row: TaskScore) -> set[str]:
    axes = _item_axes(run, row.task)
    return {f"{name}={value}" for name, value in row.view.items() if name in axes}


def _item_view_of(run: Run, column: Column) -> set[str]:
    axes = _item_axes(run, column.task)
    return {condition for condition in column.view.split(" ") if condition.partition("=")[0] in axes}


def _cells(run: Run, row: TaskScore) -> dict[str, tuple[int, str | None]]:
    """Return the number of items and the data of every language of a row; all seeds have the same."""
    by_language = {}
    for code, cells in cells_of_mean(run, row).items():
        by_language[code] = (cells[0].n, (cells[0].data or {}).get("digest"))
    return by_language


def _difference(
    own: Mapping[str, tuple[int, str | None]], others: Mapping[str, tuple[int, str | None]]
) -> str:
    """Return how cells differ from those of the first run; empty where they are the same."""
    if own == others:
        return ""
    mine, theirs = _size(own), _size(others)
    if mine != theirs:
        return f"{mine} (first run: {theirs})"
    return f"{mine} of other {'languages' if set(own) != set(others) else 'data'}"


def _size(cells: Mapping[str, tuple[int, str | None]]) -> str:
    items = sum(count for count, _ in cells.values())
    return f"{counted(len(cells), 'language')}, {counted(items, 'item')}"
