"""Matrices: languages against the values of a second axis, such as question x answer language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from harness.metrics.naming import metric_name
from harness.reporting.blocks.score import Score, mean_score
from harness.reporting.overview.column import conditions_of
from harness.reporting.overview.published import Place, published_groups, published_rows
from harness.reporting.overview.unreadable import UNREADABLE, is_unreadable
from harness.storage.results import CellResult, GroupValue, TaskScore, TaskSummary
from harness.storage.run_folder import Run

LEAST_OBSERVATIONS = 10
"""Fields with fewer observations stay blank, as in XTREME-R's Figure 4 and Table 9."""
SMALL = 12
"""Matrices with at most so many rows and columns belong into the summary."""

FEWER = "~"
"""The mark of an average over fewer tests, or languages, than the others."""
WIDEST = 8
"""So many columns are readable at 80 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Scores of one metric by two conditions."""

    title: str
    corner: str
    """Names of the rows and the columns."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Score, ...]], ...]
    """Empty where all fields would be blank; the notes say why."""
    notes: tuple[str, ...] = ()
    task: str = ""
    """Whose axis it is; empty for a metric by group."""
    heat: bool = False
    """Whether its fields are error rates that a page may colour."""
    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Queries by row and column, blank fields included; empty for other matrices."""
    averages: tuple[tuple[str, float, float], ...] = ()
    """Pairs of languages, the mean of their queries (micro) and that of the pairs (macro), as XTREME-R's Table 14."""

    @property
    def is_small(self) -> bool:
        """Whether it belongs in the summary; error rates always do."""
        return self.heat or (len(self.rows) <= SMALL and len(self.columns) <= SMALL)


def is_crossed(spec: TaskSummary) -> bool:
    """Whether a task has one axis, so that its scores are a matrix rather than a column."""
    return len(spec.axes) == 1


def matrices(run: Run) -> tuple[Matrix, ...]:
    """Return the matrices of a run: tasks with an axis, and metrics that are given by group."""
    specs = run.manifest.tasks
    crossed = (task for task, spec in specs.items() if is_crossed(spec))
    return (
        *(matrix for task in crossed for matrix in _crossed(run, task, specs[task])),
        *_grouped(run),
        *_tests(run),
    )


def _crossed(run: Run, task: str, spec: TaskSummary) -> Iterator[Matrix]:
    axis = spec.axes[0]
    # By protocol and further conditions: all seeds of every pair.
    groups: dict[tuple[str, ...], dict[tuple[str, str], list[CellResult]]] = {}
    for cell in run.cells:
        if cell.task == task and cell.status == "ok":
            settings = sorted(f"{name}={value}" for name, value in cell.view.items() if name != axis)
            pairs = groups.setdefault((str(cell.protocol), *settings), {})
            pairs.setdefault((cell.language, cell.view[axis]), []).append(cell)
    # Seeds, protocols and variants of a pair count once.
    planned = {
        (cell.language, cell.view[axis]) for cell in run.cells if cell.task == task and axis in cell.view
    }
    for conditions, pairs in groups.items():
        for metric in spec.shown or spec.headline:
            fields = {pair: score for pair, cells in pairs.items() if (score := _field(cells, metric))}
            if not fields:
                continue
            rows = list(dict.fromkeys(language for language, _ in fields))
            values = list(dict.fromkeys(value for _, value in fields))
            columns = [
                *(code for code in rows if code in values),
                *(code for code in values if code not in rows),
            ]
            yield Matrix(
                task=task,
                title=(
                    f"{task} {metric_name(metric)} ({' '.join(conditions)}), {len(fields)} of {len(planned)} pairs"
                ),
                corner=f"language \\ {axis.replace('_', ' ')}",
                columns=tuple(columns),
                rows=(
                    *((row, tuple(fields.get((row, column), Score()) for column in columns)) for row in rows),
                    *published_rows(
                        run.manifest.published,
                        [
                            Place(
                                task=task,
                                protocol=conditions[0],
                                view=" ".join([*conditions[1:], f"{axis}={column}"]),
                                metric=metric,
                                languages=frozenset(row for row in rows if (row, column) in fields),
                                published=frozenset(spec.published_languages),
                            )
                            for column in columns
                        ],
                    ),
                ),
                notes=_mean_notes(fields, by_language=not set(values).isdisjoint(spec.languages)),
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
    values = [value for half in halves.values() for value in half]
    if not values:
        return ()
    if not by_language:
        return (f"Mean: {fmean(values) * 100:.1f}.",)
    means = (f"{name} {fmean(half) * 100:.1f}" for name, half in halves.items() if half)
    return (f"Mean of the pairs: {', '.join(means)}.",)


def _grouped(run: Run) -> Iterator[Matrix]:
    for row in run.results.tasks:
        matrix = row.matrix
        if not matrix or not (row.same_language or row.cross_language):
            continue
        # Rows and columns have one order, so that the diagonal is not crossed.
        groups, languages = sorted({group for fields in matrix.values() for group in fields}), sorted(matrix)
        # The longer side goes down the page, where it would be too wide for it: XTREME-R's Table 9 has entities there.
        turned = len(groups) > max(WIDEST, len(languages))
        down, across = (groups, languages) if turned else (languages, groups)
        fields = {
            (line, column): value
            for line in down
            for column in across
            if (value := matrix[column].get(line) if turned else matrix[line].get(column))
        }
        scores = {
            pair: Score(value=value.value) if value.n >= LEAST_OBSERVATIONS else Score(mark=" ")
            for pair, value in fields.items()
        }
        blank = all(score.value is None for score in scores.values())
        fewer = f"fewer than {LEAST_OBSERVATIONS} queries"
        averages = _averages(row)
        yield Matrix(
            title=f"{row.task} {metric_name(row.metric)} ({_conditions(row)})",
            corner="target \\ query language" if turned else "query \\ target language",
            columns=() if blank else tuple(across),
            rows=tuple(
                (line, tuple(scores.get((line, column), Score()) for column in across))
                for line in ([] if blank else down)
            ),
            notes=(
                f"Over all queries (micro): {'; '.join(map(_average_text, averages))}.",
                f"Every pair has {fewer}, so there is no matrix." if blank else f"Blank: {fewer}.",
            ),
            counts={pair: value.n for pair, value in fields.items()},
            averages=averages,
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
        key = (row.task, row.protocol, row.method, row.view)
        floors = [
            candidate
            for candidate in rows
            if candidate.metric == f"{stem}_floor"
            and (candidate.task, candidate.protocol, candidate.method, candidate.view) == key
        ]
        if not ending or not floors:
            continue
        matrix, floor = row.matrix, floors[0].matrix
        declared = run.manifest.specs.get(row.task, {}).get("groups") or ()
        groups = tuple(dict.fromkeys([*declared, *(group for fields in matrix.values() for group in fields)]))
        means = {code: fmean(field.value for field in fields.values()) for code, fields in matrix.items()}
        lines: list[tuple[str, tuple[Score, ...]]] = []
        for code in sorted(matrix, key=lambda code: (means[code], code)):
            errors = (_error(matrix[code].get(group), floor.get(code, {}).get(group)) for group in groups)
            fewer = FEWER if len(matrix[code]) < len(groups) else ""
            lines.append((code, (*errors, Score(value=means[code], mark=fewer))))
        mean_column = Place(
            task=row.task,
            protocol=row.protocol,
            view=conditions_of(row.view),
            metric=row.metric,
            languages=frozenset(matrix),
        )
        average = [_mean_error(column) for column in zip(*(scores for _, scores in lines), strict=True)]
        cases = sum(field.n for fields in matrix.values() for field in fields.values())
        yield Matrix(
            title=f"{row.task} error rate ({_conditions(row)})",
            corner="language \\ test",
            columns=(*(group.replace("_", " ") for group in groups), "avg"),
            rows=(
                *lines,
                ("Avg", tuple(average)),
                *published_groups(run.manifest.published, mean_column, groups),
            ),
            notes=(
                f"Share of {cases:,} test cases with a wrong answer, best language first.",
                "In brackets: the floor, the share of cases that no system can pass.",
                *(
                    [f"{FEWER} an average over fewer than {len(groups)} tests, or languages."]
                    * (FEWER in average[-1].mark)
                ),
            ),
            heat=True,
        )


def _mean_error(scores: Sequence[Score]) -> Score:
    """Return the mean of a column, with a mark where a language has none or one over fewer tests."""
    is_whole = all(score.value is not None and FEWER not in score.mark for score in scores)
    mean = mean_score(scores)
    return mean if is_whole or mean.value is None else replace(mean, mark=FEWER)


def _error(field: GroupValue | None, floor: GroupValue | None) -> Score:
    if field is None:
        return Score()
    least = 0.0 if floor is None else floor.value
    mark = f" [{least * 100:.1f}]" if least > 0 else ""
    return Score(value=field.value, interval=field.ci, mark=mark)


def _averages(row: TaskScore) -> tuple[tuple[str, float, float], ...]:
    """Return the means of a metric by group over all pairs, same-language pairs and others."""
    fields = [value for values in row.matrix.values() for value in values.values()]
    total = sum(value.n for value in fields)
    overall = sum(value.value * value.n for value in fields) / total if total else None
    halves = {
        "all": {"micro": overall, "macro": fmean(value.value for value in fields)},
        "same language": row.same_language or {},
        "across languages": row.cross_language or {},
    }
    return tuple(
        (name, micro, macro)
        for name, half in halves.items()
        if (micro := half.get("micro")) is not None and (macro := half.get("macro")) is not None
    )


def _average_text(average: tuple[str, float, float]) -> str:
    name, micro, macro = average
    return f"{name} {micro * 100:.1f} (macro {macro * 100:.1f})"
