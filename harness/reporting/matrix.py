"""Matrices: languages against the values of a second axis, such as question x answer language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.reporting.column import conditions_of
from harness.reporting.score import Score, mean_score
from harness.reporting.unreadable import UNREADABLE, is_unreadable
from harness.storage.results import CellResult, GroupValue, TaskScore, TaskSummary
from harness.storage.run_folder import Run

__all__ = ["LEAST_OBSERVATIONS", "Matrix", "is_crossed", "matrices"]

LEAST_OBSERVATIONS = 10
"""Fields with fewer observations stay blank, as in XTREME-R's Figure 4 and Table 9."""
SMALL = 12
"""Matrices with at most so many rows and columns belong into the summary."""

WIDEST = 8
"""So many columns are readable at 80 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Scores of one metric by two conditions."""

    title: str
    corner: str
    """What the rows and the columns are."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Score, ...]], ...]
    """Empty where all fields would be blank; the notes say why."""
    notes: tuple[str, ...] = ()
    task: str = ""
    """Whose axis it is; empty for a metric by group."""
    heat: bool = False
    """Whether its fields are error rates that a page may colour."""

    @property
    def is_small(self) -> bool:
        """Whether it belongs in the summary; error rates always do."""
        return self.heat or (len(self.rows) <= SMALL and len(self.columns) <= SMALL)


def is_crossed(spec: TaskSummary) -> bool:
    """Whether a task has one axis, so that its scores are a matrix rather than a column."""
    return len(spec.axes) == 1


def matrices(run: Run, short: Mapping[str, str]) -> tuple[Matrix, ...]:
    """Return the matrices of a run: tasks with an axis, and metrics that are given by group.

    Args:
        run: The run.
        short: Metric -> its short name.
    """
    specs = run.manifest.tasks
    crossed = (task for task, spec in specs.items() if is_crossed(spec))
    return (
        *(matrix for task in crossed for matrix in _crossed(run, task, specs[task], short)),
        *_grouped(run, short),
        *_tests(run),
    )


def _crossed(run: Run, task: str, spec: TaskSummary, short: Mapping[str, str]) -> Iterator[Matrix]:
    axis = spec.axes[0]
    # By protocol and further conditions: all seeds of every pair.
    groups: dict[tuple[str, ...], dict[tuple[str, str], list[CellResult]]] = {}
    for cell in run.cells:
        if cell.task == task and cell.status == "ok":
            rest = sorted(f"{name}={value}" for name, value in cell.view.items() if name != axis)
            pairs = groups.setdefault((str(cell.protocol), *rest), {})
            pairs.setdefault((cell.language, cell.view[axis]), []).append(cell)
    # Seeds, protocols and variants of a pair count once.
    asked = {
        (cell.language, cell.view[axis]) for cell in run.cells if cell.task == task and axis in cell.view
    }
    for conditions, pairs in groups.items():
        for metric in spec.shown or spec.headline:
            fields = {pair: found for pair, cells in pairs.items() if (found := _field(cells, metric))}
            if not fields:
                continue
            rows = list(dict.fromkeys(language for language, _ in fields))
            others = list(dict.fromkeys(other for _, other in fields))
            columns = [
                *(code for code in rows if code in others),
                *(code for code in others if code not in rows),
            ]
            yield Matrix(
                task=task,
                title=(
                    f"{task} {short.get(metric, metric)} ({' '.join(conditions)}), {len(fields)} of {len(asked)} pairs"
                ),
                corner=f"language \\ {axis.replace('_', ' ')}",
                columns=tuple(columns),
                rows=tuple((row, tuple(fields.get((row, own), Score()) for own in columns)) for row in rows),
                notes=_mean_notes(fields, by_language=not set(others).isdisjoint(spec.languages)),
            )


def _field(cells: Sequence[CellResult], metric: str) -> Score | None:
    """Return the score of one pair over its seeds; None where the metric is missing."""
    values = [cell.metrics[metric].value for cell in cells if metric in cell.metrics]
    if not values:
        return None
    if any(map(is_unreadable, cells)):
        return Score(mark=UNREADABLE)
    return Score(value=fmean(values), mark="*" if any(cell.stands_in for cell in cells) else "")


def _mean_notes(fields: Mapping[tuple[str, str], Score], *, by_language: bool) -> tuple[str, ...]:
    halves: dict[str, list[float]] = {"same language": [], "across languages": []}
    for (row, column), score in fields.items():
        if score.value is not None:
            halves["same language" if row == column else "across languages"].append(score.value)
    values = [value for own in halves.values() for value in own]
    if not values:
        return ()
    if not by_language:
        return (f"Mean: {fmean(values) * 100:.1f}.",)
    parts = (f"{name} {fmean(own) * 100:.1f}" for name, own in halves.items() if own)
    return (f"Mean of the pairs: {', '.join(parts)}.",)


def _grouped(run: Run, short: Mapping[str, str]) -> Iterator[Matrix]:
    for row in run.results.tasks:
        matrix = row.matrix
        if not matrix or not (row.same_language or row.cross_language):
            continue
        # Rows and columns have one order, so that the diagonal is not crossed.
        groups, languages = sorted({group for fields in matrix.values() for group in fields}), sorted(matrix)
        fields = {
            (language, group): Score(value=score.value) if score.n >= LEAST_OBSERVATIONS else Score(mark=" ")
            for language, scores in matrix.items()
            for group, score in scores.items()
        }
        title = f"{row.task} {short.get(row.metric, row.metric)} ({_conditions(row)})"
        if all(score.value is None for score in fields.values()):
            fewer = f"Every pair has fewer than {LEAST_OBSERVATIONS} queries, so there is no matrix."
            yield Matrix(title=title, corner="", columns=(), rows=(), notes=(_averages(row), fewer))
            continue
        # The longer side goes down the page, where it would be too wide for it.
        turned = len(groups) > max(WIDEST, len(languages))
        down, across = (groups, languages) if turned else (languages, groups)
        yield Matrix(
            title=title,
            corner="target \\ query language" if turned else "query \\ target language",
            columns=tuple(across),
            rows=tuple(
                (
                    own,
                    tuple(fields.get((other, own) if turned else (own, other), Score()) for other in across),
                )
                for own in down
            ),
            notes=(_averages(row), f"Blank: fewer than {LEAST_OBSERVATIONS} queries."),
        )


def _conditions(row: TaskScore) -> str:
    return f"{row.protocol} {conditions_of(row.view)}".rstrip()


def _tests(run: Run) -> Iterator[Matrix]:
    """Yield error rates by language and group.

    They come from a metric with groups whose name ends with ``_error``, and from the metric of the same name that
    ends with ``_floor``: the part of the error that no system can avoid.
    """
    rows = [row for row in run.results.tasks if row.matrix]
    for row in rows:
        stem, ending, _ = row.metric.rpartition("_error")
        own = (row.task, row.protocol, row.method, row.view)
        floors = [
            other
            for other in rows
            if other.metric == f"{stem}_floor"
            and (other.task, other.protocol, other.method, other.view) == own
        ]
        if not ending or not floors:
            continue
        matrix, floor = row.matrix, floors[0].matrix
        groups = tuple(dict.fromkeys(group for fields in matrix.values() for group in fields))
        means = {code: fmean(field.value for field in fields.values()) for code, fields in matrix.items()}
        lines: list[tuple[str, tuple[Score, ...]]] = []
        for code in sorted(matrix, key=lambda code: (means[code], code)):
            errors = (_error(matrix[code].get(group), floor.get(code, {}).get(group)) for group in groups)
            lines.append((code, (*errors, Score(value=means[code]))))
        average = (mean_score(column) for column in zip(*(scores for _, scores in lines), strict=True))
        cases = sum(field.n for fields in matrix.values() for field in fields.values())
        yield Matrix(
            title=f"{row.task} error rate ({_conditions(row)})",
            corner="language \\ test",
            columns=(*(group.replace("_", " ") for group in groups), "avg"),
            rows=(*lines, ("Avg", tuple(average))),
            notes=(
                f"Share of {cases:,} test cases with a wrong answer, best language first.",
                "In brackets: the floor, the share of cases that no system can pass.",
            ),
            heat=True,
        )


def _error(field: GroupValue | None, floor: GroupValue | None) -> Score:
    if field is None:
        return Score()
    least = 0.0 if floor is None else floor.value
    mark = f" [{least * 100:.1f}]" if least > 0 else ""
    return Score(value=field.value, interval=field.ci, mark=mark)


def _averages(row: TaskScore) -> str:
    parts = [
        f"{name} {half['micro'] * 100:.1f} (macro {half['macro'] * 100:.1f})"
        for half, name in ((row.same_language, "same language"), (row.cross_language, "across languages"))
        if half is not None and half["micro"] is not None and half["macro"] is not None
    ]
    return f"Over all queries (micro): {', '.join(parts)}."
