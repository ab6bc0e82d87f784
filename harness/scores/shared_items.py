"""How the scores of tasks correlate because the tasks share items, for the intervals of suites and categories.

Scores are linearised: to first order, a score varies by the sum of what its items contribute (the influence values of
Davison and Hinkley 1997, section 2.7.2). The contributions of the same draws of items to two tasks give their
correlation. For means of items the linearisation is exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from harness.metrics.metric import Metric
from harness.scores.aggregation import Correlations, cells_of_row, group_cells
from harness.scores.language_items import LanguageItems, Locate, item_contributions, read_language_items
from harness.statistics import ClusterCodes, linked_codes, score_correlations
from harness.storage.records import read_ids
from harness.storage.results import CellResult, TaskScore, TaskSummary
from harness.table import NamedTable

Floats = npt.NDArray[np.float64]
LONG_ID = 16
"""Ids of so many characters name the same item wherever they occur; shorter ones, such as row numbers, do not."""


def task_correlations(
    rows: Sequence[TaskScore],
    *,
    cells: Sequence[CellResult],
    tasks: Mapping[str, TaskSummary],
    locate: Locate,
    metrics: NamedTable[Metric],
) -> Correlations:
    """Return the correlations of the scores of tasks that share items, by pairs of tasks in the order of the rows.

    Two tasks share the items of a language that have the same data and id, or the same long id. Pairs without shared
    items, or whose records do not say which these are, are not in the result.

    Args:
        rows: The headline scores of the tasks of a suite; a task's score is their mean.
        cells: Those of the run.
        tasks: Summaries of the tasks.
        locate: Finds the records of a cell.
        metrics: The registry's, for set-level metrics.
    """
    groups = group_cells(cells)
    of_rows = [cells_of_row(row, groups) for row in rows]
    sharing = _sharing(zip((row.task for row in rows), of_rows, strict=True), locate)
    contributions: dict[str, list[_Contributions]] = defaultdict(list)
    unusable = set()
    for row, by_language in zip(rows, of_rows, strict=True):
        if any(row.task in pair for pair in sharing):
            for language, seed_cells in by_language.items():
                items = read_language_items(language, seed_cells, row.metric, locate)
                values = (
                    None
                    if isinstance(items, str)
                    else item_contributions(items.scores.mean(axis=0), row.metric, metrics)
                )
                if isinstance(items, str) or values is None:
                    unusable.add(row.task)
                    break
                contribution = _Contributions(
                    items=items, task=tasks[row.task], cell=seed_cells[0], values=values / len(by_language)
                )
                contributions[row.task].append(contribution)
    return _correlations(
        {task: per_language for task, per_language in contributions.items() if task not in unusable}, sharing
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contributions:
    """Contributions of the items of a language to the score of a task."""

    items: LanguageItems
    task: TaskSummary
    cell: CellResult
    values: Floats
    """Shape (n,)."""


def _sharing(
    rows: Iterator[tuple[str, Mapping[str, Sequence[CellResult]]]], locate: Locate
) -> list[tuple[str, str]]:
    """Return the pairs of tasks that share items of some language."""
    names: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for task, by_language in rows:
        for language, seed_cells in by_language.items():
            if not names[task][language] and (path := locate(seed_cells[0])).is_file():
                names[task][language] = {
                    _data(seed_cells[0]),
                    *(name for name in read_ids(path) if _is_long(name)),
                }
    return [
        (first, second)
        for first, second in combinations(names, 2)
        if any(not names[first][code].isdisjoint(names[second][code]) for code in [*names[first]])
    ]


def _is_long(identifier: str) -> bool:
    return len(identifier) >= LONG_ID


def _data(cell: CellResult) -> str:
    """Return a key that is the same for two cells with the same data."""
    return str(cell.data.get("digest") or f"{cell.task} {cell.language}")


def _correlations(
    by_task: Mapping[str, Sequence[_Contributions]], sharing: Sequence[tuple[str, str]]
) -> Correlations:
    pairs = [pair for pair in sharing if pair[0] in by_task and pair[1] in by_task]
    if not pairs:
        return {}
    codes = _draws([contribution for members in by_task.values() for contribution in members])
    values = [
        np.concatenate([contribution.values for contribution in members]) for members in by_task.values()
    ]
    index_of = {task: index for index, task in enumerate(by_task)}
    matrix = score_correlations(values, np.split(codes, np.cumsum([len(column) for column in values])[:-1]))
    return {(first, second): float(matrix[index_of[first], index_of[second]]) for first, second in pairs}


def _draws(contributions: Sequence[_Contributions]) -> npt.NDArray[np.int64]:
    """Return the number of every item's draw: shared items, translations and items of a cluster are one."""
    items, translations, clusters = ClusterCodes(), ClusterCodes(), ClusterCodes()
    for contribution in contributions:
        language_items, language, data = (
            contribution.items,
            contribution.items.language,
            _data(contribution.cell),
        )
        items.add([f"{language if _is_long(name) else data} {name}" for name in language_items.ids])
        linked = contribution.task.parallel and language not in contribution.task.unpaired
        translations.add(
            [f"{contribution.cell.task} {name}" if linked else None for name in language_items.ids]
        )
        clusters.add([None if key is None else f"{data} {key}" for key in language_items.clusters])
    return linked_codes(items.codes(), translations.codes(), clusters.codes())
