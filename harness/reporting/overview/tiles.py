"""The four numbers that a reader of a report sees first, and the tests behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from harness.analysis.diagnosis import SIGNIFICANCE
from harness.languages.table import known_languages
from harness.reporting.blocks.model import Tile
from harness.reporting.blocks.number import percent, signed, uncertainty
from harness.reporting.blocks.remark import counted
from harness.reporting.blocks.score import Score
from harness.reporting.overview.column import cells_of
from harness.reporting.overview.contrast import Contrast, from_others, mean_of_others, score_of
from harness.reporting.overview.glance import Glance, TaskGlance, are_alike, mean_over_tasks, over_prompts
from harness.reporting.overview.glance_blocks import headline_label, spread_text
from harness.reporting.overview.material import Material
from harness.reporting.overview.summary import Summary, chance_of
from harness.reporting.overview.unreadable import is_unreadable
from harness.statistics import NORMAL, benjamini_hochberg
from harness.storage.results import MetricValue
from harness.storage.run_folder import Run

FEWEST_TASKS = 3
"""A language is compared with the others over as many tasks, where any language has them."""
FEWEST_LANGUAGES = 3
BASELINES = 2
BINOMIAL = "wilson"
"""How the interval of single right and wrong items was made: their number has a binomial distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a language is from the mean of the others, over all its tasks."""

    code: str
    name: str
    tasks: int
    mean: float
    """Mean over tasks of its score minus that of the others, as a fraction."""
    half: float | None
    """Half the 95 % interval; None where an error is unknown."""
    q: float = 1.0
    """After Benjamini-Hochberg over all languages that are compared."""


def tiles(material: Material, first: Glance) -> list[Tile]:
    """Return the tiles that make sense for the first run: two to four where it has scores; of two runs both's."""
    if len(material.runs) == 2 and (pair := _pair(material, first)):
        return pair
    candidates = [_mean(material, first), _gap(material, first), _weakest(material, first), _chance(material)]
    return [tile for tile in candidates if tile is not None]


def _pair(material: Material, first: Glance) -> list[Tile]:
    """Return the means of two runs and what they lose on leaving the source language, both named.

    They are over the tasks that both have under one protocol and with the same cells; nothing where there are none.
    """
    pairs = [[_of_run(material, run, task) for run in material.runs] for task in first.averaged]
    columns = zip(
        *([row for row in pair if row is not None] for pair in pairs if None not in pair), strict=True
    )
    by_run = [
        (f"{material.name(run)}: ", run, tasks) for run, tasks in zip(material.runs, columns, strict=False)
    ]
    means = (
        _mean_tile(
            tasks, mean_over_tasks([task.mean for task in tasks]), f"Mean of {len(tasks)} tasks", name=name
        )
        for name, _, tasks in by_run
    )
    pair_tiles = [tile for tile in means if tile is not None]
    for name, run, tasks in by_run:
        if gaps := [task for task in tasks if task.transfer_gap is not None]:
            pair_tiles.append(_gap_tile(run, gaps, name))
    return pair_tiles


def _of_run(material: Material, run: Run, task: TaskGlance) -> TaskGlance | None:
    """Return a task of the first run as another run has it; None where its protocol or its cells are not the same."""
    columns = [column for column in material.columns if are_alike(column, task.column)]
    rows = [material.mean(run, column) for column in columns]
    if any(row.row is None or row.differences for row in rows):
        return None
    return over_prompts(
        [
            replace(task, column=column, mean=row.score, transfer_gap=row.transfer_gap, by_prompt=())
            for column, row in zip(columns, rows, strict=True)
        ]
    )


def _mean(material: Material, first: Glance) -> Tile | None:
    tasks = first.averaged
    baselines = _baselines(material, tasks)
    return _suite(material) or _mean_tile(tasks, first.mean, first.mean_name(str(len(tasks))), baselines)


def _suite(material: Material) -> Tile | None:
    """Return the score of the first suite that has one, with those of the baselines."""
    rows = [(run, row) for run in material.every for row in run.results.suites if row.paper.value is not None]
    score = next((row for run, row in rows if run is material.runs[0]), None)
    if score is None or score.paper.value is None:
        return None
    baselines = [
        f"{run.manifest.model_name} baseline {percent(row.paper.value)}"
        for run, row in rows
        if run not in material.runs
        and (row.suite, row.protocol, row.view) == (score.suite, score.protocol, score.view)
    ]
    notes = [
        "mean of the categories",
        *([] if score.complete else ["fewer languages"]),
        *baselines[:BASELINES],
    ]
    return Tile(
        title=f"Score on {score.suite}",
        value=percent(score.paper.value),
        small=uncertainty(score.paper.value, score.paper.ci),
        note="; ".join(notes),
    )


def _mean_tile(
    tasks: Sequence[TaskGlance], mean: Score, title: str, note: str = "", *, name: str = ""
) -> Tile | None:
    """Return the mean of tasks, which has `title`; that of one task has its name, spread and chance instead."""
    if mean.value is None:
        return None
    notes = [note]
    if len(tasks) == 1:
        chance = "" if tasks[0].chance is None else f"chance {percent(tasks[0].chance)}"
        title, notes = headline_label(tasks[0]), [spread_text(tasks[0]), chance, note]
    small = uncertainty(mean.value, mean.interval)
    text = "; ".join(filter(None, notes))
    return Tile(title=f"{name}{title}", value=percent(mean.value), small=small, note=text)


def _baselines(material: Material, tasks: Sequence[TaskGlance]) -> str:
    """Return the means of the baselines over the same tasks; those that miss one of them are not shown."""
    labels = []
    for run in material.every:
        if run in material.runs:
            continue
        rows = [material.mean(run, task.column).row for task in tasks]
        values = [row.value for row in rows if row is not None]
        if len(values) == len(tasks):
            labels.append(f"{run.manifest.model_name} baseline {percent(fmean(values))}")
    return ", ".join(labels[:BASELINES])


def _gap(material: Material, first: Glance) -> Tile | None:
    """Return how much lower the other languages score than the one the model was trained in."""
    tasks = [task for task in first.averaged if task.transfer_gap is not None]
    return _gap_tile(material.runs[0], tasks) if tasks else None


def _gap_tile(run: Run, tasks: Sequence[TaskGlance], name: str = "") -> Tile:
    gap, count = fmean(task.transfer_gap or 0.0 for task in tasks), len(tasks)
    sources = {task.source for task in tasks}
    [code] = sources if len(sources) == 1 else [None]
    table = known_languages()
    language = table.get(code).name if code is not None and code in table else "the source language"
    halves = [
        (difference.high - difference.low) / 2
        for task in tasks
        if (difference := _against(run, task, task.source or ""))
    ]
    half = math.hypot(*halves) / count if len(halves) == count else None
    trained = any(task.column.protocol not in {"prompted", "frozen"} for task in tasks)
    verb = "Lost on leaving" if gap >= 0 else "Gained on leaving"
    return Tile(
        title=f"{name}{verb} {language}" if trained else f"{name}Other languages against {language}",
        value=signed(-gap).replace("-", "\u2212") if percent(gap) != "0.0" else "0.0",
        small="" if half is None else f"±{percent(half)}",
        note=f"{'transfer gap of 1 task' if count == 1 else f'mean transfer gap of {count} tasks'}",
    )


def _against(run: Run, task: TaskGlance, code: str) -> Contrast | None:
    """Return a language's score in one task minus the mean of the others in the task's mean."""
    return from_others(run, task.column, code, _averaged(task))


def _averaged(task: TaskGlance) -> list[str]:
    return [language.code for language in task.languages if language.is_in_mean]


def lags(material: Material, first: Glance) -> list[Lag]:
    """Return how far every language is from the others, the lowest first; nothing for fewer than three languages.

    Languages have the tasks that most of the comparison needs: three, or as many as any language has.
    """
    run = material.runs[0]
    candidates = list[tuple[Lag, float]]()
    for code, name, _ in material.languages:
        pairs = []
        for task in first.averaged:
            score = score_of(run, task.column, code)
            mean = mean_of_others(run, task.column, code, _averaged(task))
            if score is not None and mean is not None:
                pairs.append((score.value - mean.value, _against(run, task, code)))
        if pairs:
            candidates.append(_lag(code, name, pairs))
    least = min(FEWEST_TASKS, max((lag.tasks for lag, _ in candidates), default=0))
    candidates = [(lag, p) for lag, p in candidates if lag.tasks >= least]
    if len(candidates) < FEWEST_LANGUAGES:
        return []
    rates = benjamini_hochberg([p for _, p in candidates]).tolist()
    tested = [replace(lag, q=rate) for (lag, _), rate in zip(candidates, rates, strict=True)]
    return sorted(tested, key=lambda lag: (lag.mean, lag.code))


def _lag(code: str, name: str, pairs: Sequence[tuple[float, Contrast | None]]) -> tuple[Lag, float]:
    """Return the mean difference over tasks, which are taken as independent, and its two-sided p."""
    contrasts = [difference for _, difference in pairs if difference is not None]
    mean, half, p = fmean(difference for difference, _ in pairs), None, 1.0
    if len(contrasts) == len(pairs):
        half = math.hypot(*((difference.high - difference.low) / 2 for difference in contrasts)) / len(
            contrasts
        )
        p = math.erfc(NORMAL * abs(mean) / half / math.sqrt(2)) if half else 1.0
    return Lag(code=code, name=name, tasks=len(pairs), mean=mean, half=half), p


def _weakest(material: Material, first: Glance) -> Tile | None:
    ranked = lags(material, first)
    if not any(lag.half is not None for lag in ranked):
        return None
    lowest = ranked[0]
    tasks = counted(lowest.tasks, "task")
    half = "" if lowest.half is None else f" ±{percent(lowest.half)}"
    size = f"{signed(lowest.mean)}{half}".replace("-", "\u2212")
    title = f"Weakest language ({min(FEWEST_TASKS, lowest.tasks)} tasks or more)" if lowest.tasks > 1 else ""
    if lowest.q <= SIGNIFICANCE and lowest.mean < 0:
        note = f"{size} against the others, {tasks}"
        return Tile(title=title or "Weakest language", value=lowest.name, note=note)
    why = "within the noise" if lowest.half is not None else "its error is not known"
    note = f"the lowest is {lowest.name}, {size}: {why}"
    return Tile(title=title or "Weakest language", value="Not clear", note=note)


def _chance(material: Material) -> Tile | None:
    above, tested = above_chance(material.runs[0], material.summary)
    note = "a cell is one task in one language"
    return (
        Tile(title="Cells above chance, tested", value=f"{above} of {tested}", note=note) if tested else None
    )


def above_chance(run: Run, summary: Summary) -> tuple[int, int]:
    """Return how many cells of a run are measurably above chance, of how many whose metric has a known chance.

    Benjamini-Hochberg is over the one-sided tests of all of them.
    """
    values = list(_tested(run, summary))
    rates = benjamini_hochberg(values).tolist() if values else []
    return sum(rate <= SIGNIFICANCE for rate in rates), len(values)


def _tested(run: Run, summary: Summary) -> Iterator[float]:
    """Yield p of every cell; one answer to nearly all items is not above chance, whatever it scores."""
    for column in summary.columns:
        spec = run.manifest.tasks[column.task]
        chance = chance_of(spec, column.metric)
        if chance is None or column.key in summary.covered:
            continue
        for cell in cells_of(run, column):
            score = cell.metrics.get(column.metric)
            if score is not None and cell.status == "ok" and not is_unreadable(cell):
                yield 1.0 if cell.collapse else chance_p(score, chance, cell.n)


def chance_p(score: MetricValue, chance: float, n: int) -> float:
    """Return the one-sided p of a score against that of guessing, from its own error.

    Single right and wrong items: the exact binomial test. Items that are all right: the chance of guessing every
    cluster. Others: t with one degree of freedom less than there are clusters. 1 where the error is not known.
    """
    from scipy.special import bdtrc, stdtr

    draws = score.clusters or n
    if score.value <= chance or draws < 2:
        return 1.0
    if score.ci_method == BINOMIAL:
        right = round(score.value * draws)
        return float(bdtrc(right - 1, draws, chance)) if right else 1.0
    if score.se == 0:
        return float(chance**draws) if score.value == 1.0 else 1.0
    if score.se is None:
        return 1.0
    return float(stdtr(draws - 1, (chance - score.value) / score.se))
