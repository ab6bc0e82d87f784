"""Matrices: scores by two conditions, such as question x answer language, or models x categories of a suite."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from statistics import fmean
from typing import Any

from harness.metrics.metric import metric_name
from harness.reporting.blocks.number import Score, mean_score, uncertainty
from harness.reporting.overview.column import conditions_of, group_pairs, list_names
from harness.reporting.overview.means import (
    ADDED,
    NOT_COMPARABLE,
    OTHER_CELLS,
    UNREADABLE,
    WITH_UNREADABLE,
    Place,
    is_shown_in_suite,
    is_unreadable,
    published_groups,
    published_label,
    published_rows,
)
from harness.scores.aggregation import overall, task_scores
from harness.storage.results import CellResult, GroupValue, SuiteScore, SuiteSummary, TaskScore, TaskSummary
from harness.storage.run_folder import Run

Row = tuple[str, tuple[Score, ...]]
"""A label with a score per column."""
Items = Mapping[tuple[str, str], tuple[int, str | None]]
"""By task and language: the number of items, and the digest of the data."""
LEAST_OBSERVATIONS = 10
"""Fields with fewer observations stay blank, as in XTREME-R's Figure 4 and Table 9."""
SMALL = 12
"""Matrices with at most so many rows and columns belong into the summary."""
FEWER = "~"
"""The mark of an average over fewer tests, or languages, than the others."""
WIDEST = 8
"""So many columns are readable at 80 characters."""
UNREADABLE_NOTE = "with unreadable cells, which say nothing about the task"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Scores of one metric by two conditions."""

    title: str
    corner: str
    """Names of the rows and the columns."""
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    """Empty where all fields would be blank; the notes say why."""
    notes: tuple[str, ...] = ()
    name: str = ""
    """The task whose axis it is, or the suite; empty for a metric by group."""
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
    crossed = ((task, spec) for task, spec in run.manifest.tasks.items() if is_crossed(spec))
    return (*(matrix for pair in crossed for matrix in _crossed(run, *pair)), *_grouped(run), *_tests(run))


# Tasks with an axis ------------------------------------------------------------------------------------------


def _crossed(run: Run, task: str, spec: TaskSummary) -> Iterator[Matrix]:
    [axis] = spec.axes
    task_cells = [cell for cell in run.cells if cell.task == task]
    # Seeds, protocols and variants of a pair count once.
    planned = {(cell.language, cell.view[axis]) for cell in task_cells if axis in cell.view}
    by_conditions = group_pairs(
        ((str(cell.protocol), _view_without(axis, cell)), cell) for cell in task_cells if cell.status == "ok"
    )
    for (protocol, view), cells in by_conditions.items():
        pairs = group_pairs(((cell.language, cell.view[axis]), cell) for cell in cells)
        for metric in spec.shown or spec.headline:
            fields = {pair: score for pair, seeds in pairs.items() if (score := _field(seeds, metric))}
            if not fields:
                continue
            name = f"{task} {metric_name(metric)} ({f'{protocol} {view}'.rstrip()})"
            title = f"{name}, {len(fields)} of {len(planned)} pairs"
            matrix = _of_pairs(fields, title, axis, is_by_language=_is_by_language(fields, spec))
            published = frozenset(spec.published_languages)
            base = Place(task=task, protocol=protocol, metric=metric, published=published)
            codes = group_pairs((column, row) for row, column in fields)
            places = [
                replace(base, view=f"{view} {axis}={column}".lstrip(), languages=frozenset(codes[column]))
                for column in matrix.columns
            ]
            rows = (*matrix.rows, *published_rows(run.manifest.published, places))
            yield replace(matrix, name=task, rows=rows)


def _view_without(axis: str, cell: CellResult) -> str:
    return conditions_of({name: value for name, value in cell.view.items() if name != axis})


def _is_by_language(fields: Iterable[tuple[str, str]], spec: TaskSummary) -> bool:
    return not {value for _, value in fields}.isdisjoint(spec.languages)


def _of_pairs(
    fields: Mapping[tuple[str, str], Score], title: str, axis: str, *, is_by_language: bool
) -> Matrix:
    """Return the matrix of scores by language and value of an axis, with their mean."""
    rows, values = (list(dict.fromkeys(names)) for names in zip(*fields, strict=True))
    columns = [*(code for code in rows if code in values), *(code for code in values if code not in rows)]
    scores = [
        (row == column, score.value) for (row, column), score in fields.items() if score.value is not None
    ]
    halves = (
        ("same language", [value for is_same, value in scores if is_same]),
        ("across languages", [value for is_same, value in scores if not is_same]),
    )
    means = ", ".join(f"{name} {fmean(half) * 100:.1f}" for name, half in halves if half)
    if scores and not is_by_language:
        means = f"{fmean(value for _, half in halves for value in half) * 100:.1f}"
    return Matrix(
        title=title,
        corner=f"language \\ {axis.replace('_', ' ')}",
        columns=tuple(columns),
        rows=tuple((row, tuple(fields.get((row, column), Score()) for column in columns)) for row in rows),
        notes=(f"Mean{' of the pairs' if is_by_language else ''}: {means}.",) if scores else (),
    )


def _field(cells: Sequence[CellResult], metric: str) -> Score | None:
    """Return the score of one pair over its seeds; None where the metric is missing."""
    values = [cell.metrics[metric].value for cell in cells if metric in cell.metrics]
    if not values:
        return None
    if any(map(is_unreadable, cells)):
        return Score(mark=UNREADABLE)
    return Score(fmean(values), mark="*" if any(cell.stands_in for cell in cells) else "")


# Metrics by group --------------------------------------------------------------------------------------------


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
            pair: Score(value.value) if value.n >= LEAST_OBSERVATIONS else Score(mark=" ")
            for pair, value in fields.items()
        }
        blank = all(score.value is None for score in scores.values())
        fewer, averages = f"fewer than {LEAST_OBSERVATIONS} queries", tuple(_averages(row))
        means = (f"{name} {micro * 100:.1f} (macro {macro * 100:.1f})" for name, micro, macro in averages)
        yield Matrix(
            title=f"{row.task} {metric_name(row.metric)} ({_conditions(row)})",
            corner="target \\ query language" if turned else "query \\ target language",
            columns=() if blank else tuple(across),
            rows=tuple(
                (line, tuple(scores.get((line, column), Score()) for column in across))
                for line in ([] if blank else down)
            ),
            notes=(
                f"Over all queries (micro): {'; '.join(means)}.",
                f"Every pair has {fewer}, so there is no matrix." if blank else f"Blank: {fewer}.",
            ),
            counts={pair: value.n for pair, value in fields.items()},
            averages=averages,
        )


def _conditions(row: TaskScore) -> str:
    return f"{row.protocol} {conditions_of(row.view)}".rstrip()


def _averages(row: TaskScore) -> Iterator[tuple[str, float, float]]:
    """Yield the means of a metric by group over all pairs, same-language pairs and others."""
    fields = [value for values in row.matrix.values() for value in values.values()]
    total = sum(value.n for value in fields)
    every = {"macro": fmean(value.value for value in fields)}
    every |= {"micro": sum(value.value * value.n for value in fields) / total} if total else {}
    halves: Mapping[str, Mapping[str, float | None] | None] = {
        "all": every,
        "same language": row.same_language,
        "across languages": row.cross_language,
    }
    for name, half in halves.items():
        micro, macro = ((half or {}).get(mean) for mean in ("micro", "macro"))
        if micro is not None and macro is not None:
            yield name, micro, macro


def _tests(run: Run) -> Iterator[Matrix]:
    """Yield error rates by language and group.

    They come from a metric with groups whose name ends with ``_error``, and from the metric of the same name that
    ends with ``_floor``: the part of the error that no system can avoid.
    """
    rows = {
        ((row.task, row.protocol, row.method, conditions_of(row.view)), row.metric): row
        for row in reversed(run.results.tasks)
        if row.matrix
    }
    for (key, metric), row in reversed(rows.items()):
        stem, ending, _ = metric.rpartition("_error")
        if ending and (floor := rows.get((key, f"{stem}_floor"))):
            declared = run.manifest.specs.get(row.task, {}).get("groups") or ()
            yield _errors(row, floor, declared, run.manifest.published)


def _errors(
    row: TaskScore, floor: TaskScore, declared: Iterable[str], published: Sequence[Mapping[str, Any]]
) -> Matrix:
    matrix = row.matrix
    groups = tuple(dict.fromkeys([*declared, *(group for fields in matrix.values() for group in fields)]))
    means = {code: fmean(value.value for value in fields.values()) for code, fields in matrix.items()}
    lines: list[Row] = []
    for code in sorted(matrix, key=lambda code: (means[code], code)):
        least = floor.matrix.get(code, {})
        errors = (_error(matrix[code].get(group), least.get(group)) for group in groups)
        fewer = FEWER if len(matrix[code]) < len(groups) else ""
        lines.append((code, (*errors, Score(means[code], mark=fewer))))
    average = tuple(map(_mean_error, zip(*(scores for _, scores in lines), strict=True)))
    cases = sum(value.n for fields in matrix.values() for value in fields.values())
    notes = [
        f"Share of {cases:,} test cases with a wrong answer, best language first.",
        "In brackets: the floor, the share of cases that no system can pass.",
    ]
    if FEWER in average[-1].mark:
        notes.append(f"{FEWER} an average over fewer than {len(groups)} tests, or languages.")
    view, languages = conditions_of(row.view), frozenset(matrix)
    place = Place(task=row.task, protocol=row.protocol, view=view, metric=row.metric, languages=languages)
    return Matrix(
        title=f"{row.task} error rate ({_conditions(row)})",
        corner="language \\ test",
        columns=(*(group.replace("_", " ") for group in groups), "avg"),
        rows=(*lines, ("Avg", average), *published_groups(published, place, groups)),
        notes=tuple(notes),
        heat=True,
    )


def _mean_error(scores: Sequence[Score]) -> Score:
    """Return the mean of a column, with a mark where a language has none or one over fewer tests."""
    is_whole = all(score.value is not None and FEWER not in score.mark for score in scores)
    mean = mean_score(scores)
    return mean if is_whole or mean.value is None else replace(mean, mark=FEWER)


def _error(value: GroupValue | None, floor: GroupValue | None) -> Score:
    if value is None:
        return Score()
    mark = "" if floor is None or floor.value <= 0 else f" [{floor.value * 100:.1f}]"
    return Score(value.value, interval=value.ci, mark=mark)


# Suites: models against categories ---------------------------------------------------------------------------


def suite_tables(runs: Sequence[Run], published: Sequence[Mapping[str, Any]]) -> tuple[Matrix, ...]:
    """Return a table for every suite row of the first run, the others' and the published scores under it."""
    return tuple(_suite(row, runs, published) for row in runs[0].results.suites)


def suite_row(run: Run, row: SuiteScore) -> SuiteScore | None:
    """Return the scores of a run in the suite and under the conditions of a row; None where it has none."""
    key = (row.suite, row.protocol, row.view)
    rows = (score for score in run.results.suites if (score.suite, score.protocol, score.view) == key)
    return next(rows, None)


def _suite(row: SuiteScore, runs: Sequence[Run], published: Sequence[Mapping[str, Any]]) -> Matrix:
    [suite] = [summary for summary in runs[0].manifest.suites if summary.suite == row.suite]
    rows: list[Row] = []
    first, notes = _included(runs[0], row), _notes(row, suite)
    if unreadable := _unreadable(first):
        notes.append(f"{WITH_UNREADABLE} {UNREADABLE_NOTE}: {', '.join(unreadable)}.")
    for run in runs:
        name, score, cells = run.manifest.model_name, suite_row(run, row), _included(run, row)
        scores = _of_run(score, suite, _unreadable(cells))
        if run is not runs[0] and (difference := _difference(name, score, _items(cells), _items(first))):
            notes.append(difference)
            scores = tuple(
                value if value.value is None or "~" in value.mark else replace(value, mark=f"{value.mark}~")
                for value in scores
            )
        rows.append((name, scores))
        if extended := _extended(score, suite):
            rows.append((f"{name} {ADDED}", extended))
    overall_scores = published_overall(published, suite, row, runs[0].manifest.tasks)
    rows += [pair for pair in overall_scores.items() if any(score.value is not None for score in pair[1])]
    view = "".join(f", {name}={value}" for name, value in sorted(row.view.items()))
    return Matrix(
        name=row.suite,
        title=f"Suite {row.suite} ({row.protocol}{view})",
        corner="model",
        columns=("overall", "flat", *(name.replace("_", " ") for name in suite.categories)),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _included(run: Run, row: SuiteScore) -> list[CellResult]:
    """Return the cells that a row of suites may include."""
    return [
        cell
        for cell in run.cells
        if cell.status == "ok"
        and cell.task in row.tasks
        and cell.protocol == row.protocol
        and cell.view.get("variant") == row.view.get("variant")
    ]


def _items(cells: Sequence[CellResult]) -> Items:
    return {(cell.task, cell.language): (cell.n, cell.data.get("digest")) for cell in cells}


def _difference(name: str, score: SuiteScore | None, items: Items, firsts: Items) -> str:
    """Return why a further run's row cannot be compared with the first run's; empty where it can."""
    if score is None:
        return f"{name} has no score of this suite under this protocol and these conditions."
    differing = {task for (task, _), _ in items.items() ^ firsts.items()}
    tasks = list_names(task for task, _ in [*firsts, *items] if task in differing)
    return tasks and f"~ {name}: over other languages, items or data than the first row in {tasks}."


def _unreadable(cells: Sequence[CellResult]) -> list[str]:
    return list(dict.fromkeys(cell.task for cell in cells if is_unreadable(cell)))


def _scores(
    values: Sequence[float | None], marks: Sequence[str], intervals: Sequence[tuple[float, float] | None] = ()
) -> tuple[Score, ...]:
    """Return the overall, flat and category scores of a row."""
    fields = zip_longest(values, marks, intervals)
    return tuple(
        Score() if value is None else Score(value, interval, mark) for value, mark, interval in fields
    )


def _of_run(row: SuiteScore | None, suite: SuiteSummary, unreadable: Collection[str]) -> tuple[Score, ...]:
    if row is None:
        return (Score(),) * (len(suite.categories) + 2)
    paper, flat, mark = row.paper, row.flat, "" if row.complete else "~"
    return _scores(
        [paper.value, flat.value, *(paper.categories[name] for name in suite.categories)],
        [mark + WITH_UNREADABLE * (not set(unreadable).isdisjoint(tasks)) for tasks in _tasks(suite)],
        [paper.ci, flat.ci, *map(paper.category_intervals.get, suite.categories)],
    )


def _tasks(suite: SuiteSummary) -> list[Sequence[str]]:
    """Return the tasks of every column."""
    return [suite.tasks, suite.tasks, *suite.categories.values()]


def _extended(row: SuiteScore | None, suite: SuiteSummary) -> tuple[Score, ...]:
    """Return the scores with added languages, without categories in older runs; empty where there are none."""
    if row is None or (extended := row.extended) is None:
        return ()
    values = [extended.paper.value, extended.flat.value, *map(extended.categories.get, suite.categories)]
    return _scores(values, [ADDED] * len(values)) if any(value is not None for value in values) else ()


def published_overall(
    published: Sequence[Mapping[str, Any]],
    suite: SuiteSummary,
    row: SuiteScore,
    specs: Mapping[str, TaskSummary],
) -> dict[str, tuple[Score, ...]]:
    """Return by label the overall, flat and category scores of published systems, marked next to a partial row."""
    mark = "" if row.complete else OTHER_CELLS
    return {
        published_label(document, {str(row.protocol)}): _published(document, suite, specs, mark)
        for document in published
        if is_shown_in_suite(document, suite, str(row.protocol), row.view)
    }


def _published(
    document: Mapping[str, Any], suite: SuiteSummary, specs: Mapping[str, TaskSummary], mark: str
) -> tuple[Score, ...]:
    printed = document["scores"]
    headlines = {
        task: suite.headline(task, specs[task].headline if task in specs else [*printed.get(task, {})])
        for task in suite.tasks
    }
    scores = overall(task_scores(printed, headlines), suite.tasks, suite.categories)
    values = [scores.paper, scores.flat, *(scores.categories[name] for name in suite.categories)]
    return _scores(
        [value and value / 100 for value in values],
        [mark + NOT_COMPARABLE * bool(set(document["comparable"]) & set(tasks)) for tasks in _tasks(suite)],
    )


def _notes(row: SuiteScore, suite: SuiteSummary) -> list[str]:
    flat = f"flat: the mean of the suite's {len(suite.tasks)} task scores, each over all metrics that count"
    count = len(suite.categories)
    notes = [
        f"overall: the mean of the {count} categories; {flat}." if count else f"{flat}; it has no categories."
    ]
    if row.missing:
        has = "has" if len(row.missing) == 1 else "have"
        notes.append(f"No overall score: {', '.join(row.missing)} {has} none.")
    counts = [(task, count["languages"], count["of"]) for task, count in row.tasks.items()]
    if fewer := ", ".join(f"{task} {number}/{of}" for task, number, of in counts if number < of):
        notes.append(
            f"~ over fewer languages than the suite has, not comparable with published scores: {fewer}."
        )
    if row.extended is not None and _extended(row, suite):
        added = "; ".join(f"{task} {' '.join(codes)}" for task, codes in row.extended.languages.items())
        text = f"{ADDED} with languages that others added, not comparable with published scores"
        notes.append(f"{text}{added and ': '}{added}.")
    intervals = ", ".join(
        f"{name} {uncertainty(score.value, score.ci)}"
        for name, score in (("overall", row.paper), ("flat", row.flat))
        if score.value is not None and score.ci is not None
    )
    if intervals:
        notes.append(f"95 % interval (± half of it), tasks taken as independent: {intervals}.")
    return notes
