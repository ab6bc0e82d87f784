"""First view of a run: one row per task, how complete the run is, and the four numbers that a reader sees first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from harness.languages.table import known_languages
from harness.reporting.blocks.model import Tile
from harness.reporting.blocks.number import Score, percent, signed, uncertainty
from harness.reporting.blocks.words import counted
from harness.reporting.overview.column import Column, cells_of, group_pairs
from harness.reporting.overview.means import (
    PUBLISHED,
    Contrast,
    cells_of_mean,
    from_others,
    is_unreadable,
    mean_of_others,
    place_of,
    published_rows,
    score_of,
)
from harness.reporting.overview.missing import is_missing
from harness.reporting.overview.run_remarks import SIGNIFICANT, sampled_items
from harness.reporting.overview.summary import Material, Summary
from harness.statistics import NORMAL, benjamini_hochberg
from harness.storage.results import MetricValue
from harness.storage.run_folder import Run

WEAKEST = 3
"""Languages that a row names."""
FEWEST_TASKS = 3
"""A language is compared with the others over as many tasks, where any language has them."""
FEWEST_LANGUAGES = 3
BASELINES = 2
BINOMIAL = "wilson"
"""How the interval of single right and wrong items was made: their number has a binomial distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """How much of what was planned has a score; what a task never had, such as a language, is not planned."""

    scored: int
    missing: Mapping[str, int]
    """Number of cells that failed, were skipped, have answers without labels, and that the run did not come to."""
    tasks: tuple[int, int]
    """Tasks with a score, of all that were asked for."""
    languages: tuple[int, int]
    """Languages with a score, of all that were asked for."""

    @property
    def cells(self) -> int:
        """All cells that were asked for."""
        return self.scored + sum(self.missing.values())

    @property
    def phrases(self) -> str:
        """``5 of 6 tasks, 9 of 10 languages``."""
        counts = ((*self.tasks, "task"), (*self.languages, "language"))
        return ", ".join(f"{scored} of {counted(total, noun)}" for scored, total, noun in counts)

    @property
    def is_whole(self) -> bool:
        """Whether every cell has a score."""
        return self.scored == self.cells


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageGlance:
    """One language of a task."""

    code: str
    name: str
    family: str
    score: Score
    """Without a value where it has none; the mark says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGlance:
    """One task under one protocol, method and view, by its first headline metric."""

    column: Column
    mean: Score
    further: tuple[tuple[str, Score], ...]
    """The means of its other headline metrics, and of those that were added when it was scored."""
    transfer_gap: float | None
    """The score of the source language minus the mean of the others, as a fraction; None for a collapsed model."""
    source: str | None
    """The language that the model was trained in."""
    chance: float | None
    languages: tuple[LanguageGlance, ...]
    """In the order of the summary: by family, then code."""
    averaged: tuple[str, ...]
    """Codes of the languages in the mean."""
    baselines: tuple[tuple[str, float], ...]
    """Name and mean of every further run."""
    published: tuple[tuple[str, float], ...]
    """Name and published mean of every system, as fractions."""
    items: int
    seconds: float
    by_prompt: tuple[float, ...] = ()
    """The means of all prompts that the same items were asked with; `mean` is theirs where there are several."""

    @property
    def label(self) -> str:
        """The task with its metric, and the number of its prompts in place of one of them."""
        if not self.by_prompt:
            return self.column.plain_title
        words = _without_prompt(self.column.plain_title)
        return f"{words}, mean of {len(self.by_prompt)} prompts"

    @property
    def spread(self) -> str:
        """``40.1 to 51.0 by prompt``; empty for one prompt."""
        ends = f"{percent(min(self.by_prompt))} to {percent(max(self.by_prompt))}" if self.by_prompt else ""
        return ends and f"{ends} by prompt"

    @property
    def chance_text(self) -> str:
        """``chance 33.3``; empty where it is not known."""
        return "" if self.chance is None else f"chance {percent(self.chance)}"

    @property
    def scored(self) -> list[LanguageGlance]:
        """The languages with a score."""
        return [language for language in self.languages if language.score.value is not None]

    @property
    def weakest(self) -> list[LanguageGlance]:
        """The three languages with the lowest scores, the lowest first; none of fewer than three, or of equal ones."""
        ranked = sorted(self.scored, key=lambda language: (language.score.value or 0.0, language.code))
        is_ranked = len(ranked) >= WEAKEST and ranked[0].score.value != ranked[-1].score.value
        return ranked[:WEAKEST] if is_ranked else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """The first look at a run."""

    name: str
    """The model without its folder."""
    tasks: tuple[TaskGlance, ...]
    completeness: Completeness
    adds_metrics: bool
    """Whether ``harness score`` added metrics, which a reader has asked for."""
    samples: tuple[str, ...]
    """In what way cells have only a part of their items."""

    @property
    def averaged(self) -> list[TaskGlance]:
        """One row of every task that has a mean: its first, with the mean over its prompts where it has several."""
        rows = group_pairs((task.column.task, task) for task in self.tasks if task.mean.value is not None)
        return [
            over_prompts([task for task in tasks if are_alike(task.column, tasks[0].column)])
            for tasks in rows.values()
        ]

    @property
    def mean(self) -> Score:
        """The mean of the tasks that have one."""
        return mean_over_tasks([task.mean for task in self.averaged])

    def mean_name(self, count: str) -> str:
        """Return the name of `mean` in reports: no suite's flat score, which counts all metrics of a task."""
        ending = " by their first metric" if any(task.further for task in self.averaged) else ""
        return f"Mean of {count} tasks{ending}"

    @property
    def gap(self) -> tuple[float, int] | None:
        """The mean transfer gap of the tasks that have one, and how many these are."""
        gaps = [task.transfer_gap for task in self.averaged if task.transfer_gap is not None]
        return (fmean(gaps), len(gaps)) if gaps else None


def mean_over_tasks(means: Sequence[Score]) -> Score:
    """Return the mean of the tasks' means, which are taken as independent; its interval where all have one."""
    if not means:
        return Score()
    reaches = [mean.reach for mean in means if mean.reach is not None]
    value = fmean(mean.value for mean in means if mean.value is not None)
    half = math.hypot(*reaches) / len(means) if len(reaches) == len(means) else None
    return Score(value, interval=_around(value, half))


def are_alike(column: Column, other: Column) -> bool:
    """Return whether two columns differ in nothing but their prompt."""
    return replace(column, view=_without_prompt(column.view)) == replace(
        other, view=_without_prompt(other.view)
    )


def _without_prompt(words: str) -> str:
    return " ".join(word for word in words.split(" ") if not word.startswith("prompt="))


def over_prompts(tasks: Sequence[TaskGlance]) -> TaskGlance:
    """Return one row for the prompts of a task; they share their items, so the errors are not independent."""
    if len(tasks) == 1:
        return tasks[0]
    values = [task.mean.value for task in tasks if task.mean.value is not None]
    reaches = [task.mean.reach for task in tasks if task.mean.reach is not None]
    gaps = [task.transfer_gap for task in tasks if task.transfer_gap is not None]
    value, marks = fmean(values), dict.fromkeys(mark for task in tasks for mark in task.mean.mark)
    interval = _around(value, fmean(reaches) if len(reaches) == len(tasks) else None)
    return replace(
        tasks[0],
        mean=Score(value, interval=interval, mark="".join(marks)),
        transfer_gap=fmean(gaps) if len(gaps) == len(tasks) else None,
        by_prompt=tuple(values),
    )


def _around(value: float, half: float | None) -> tuple[float, float] | None:
    return None if half is None else (max(0.0, value - half), min(1.0, value + half))


def glance(runs: Sequence[Run], summary: Summary) -> Glance:
    """Return the first look at the first run; `summary` is that of the same runs, the further ones its baselines.

    Columns that a section of a plugin shows in its own way, such as probes of layers, have no row.
    """
    run = runs[0]
    groups = group_pairs(
        (replace(column, metric=""), index)
        for index, column in enumerate(summary.columns)
        if column.key not in summary.covered
    )
    return Glance(
        name=run.manifest.model_name,
        tasks=tuple(_task(run, summary, indices) for indices in groups.values()),
        completeness=completeness(run),
        adds_metrics=any(spec.shown for spec in run.manifest.tasks.values()),
        samples=tuple(sampled_items(run)),
    )


def completeness(run: Run) -> Completeness:
    """Return how much of what was asked of a run has a score."""
    cells = [cell for cell in run.cells if cell.is_scored or is_missing(cell)]
    scored = [cell for cell in cells if cell.is_scored]
    statuses, stopped = Counter(cell.status for cell in cells), sum(cell.is_stopped for cell in run.cells)
    return Completeness(
        scored=len(scored),
        missing={
            "failed": statuses["failed"],
            "skipped": statuses["skipped"] - stopped,
            "without labels": statuses["ok"] - len(scored),
            "not reached": stopped,
        },
        tasks=(len({cell.task for cell in scored}), len({cell.task for cell in cells})),
        languages=(len({cell.language for cell in scored}), len({cell.language for cell in cells})),
    )


def _task(run: Run, summary: Summary, indices: Sequence[int]) -> TaskGlance:
    """Return the row of a task, of whose metrics the columns have these indices."""
    first, columns = indices[0], [summary.columns[index] for index in indices]
    column, spec = columns[0], run.manifest.tasks[columns[0].task]
    (_, fields), *baselines = summary.systems
    means, row = [fields[index].marked(fields[index].score) for index in indices], fields[first].row
    cells = [cell for cell in cells_of(run, column) if cell.status == "ok"]
    codes = {cell.language for cell in run.cells if cell.task == column.task}
    averaged = set() if row is None else set(cells_of_mean(run, row))
    languages = [language for language in summary.languages if language[0] in codes]
    published = published_rows(run.manifest.published, [place_of(column, row, spec)])
    return TaskGlance(
        column=column,
        mean=means[0],
        further=tuple(zip((further.metric for further in columns[1:]), means[1:], strict=True)),
        transfer_gap=fields[first].transfer_gap,
        source=spec.source,
        chance=summary.chances[first],
        languages=tuple(
            LanguageGlance(code=code, name=name, family=family, score=scores[first])
            for code, name, family, scores in languages
        ),
        averaged=tuple(code for code, *_ in languages if code in averaged),
        baselines=tuple(
            (label.removeprefix("mean "), mean.value)
            for label, further in baselines
            if (mean := further[first].row) is not None
        ),
        published=tuple(
            (label.removeprefix(PUBLISHED), score.value)
            for label, [score] in published
            if score.value is not None
        ),
        items=sum(cell.n for cell in cells),
        seconds=sum(cell.seconds for cell in cells),
    )


# Tiles, and the tests behind them ----------------------------------------------------------------------------


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
    tasks = first.averaged
    title, baselines = first.mean_name(str(len(tasks))), _baselines(material, tasks)
    candidates = (
        _suite(material) or _mean_tile(tasks, first.mean, title, baselines),
        _gap_tile(material.runs[0], tasks),
        _weakest(material, first),
        _chance(material),
    )
    return [tile for tile in candidates if tile is not None]


def _pair(material: Material, first: Glance) -> list[Tile]:
    """Return the means of two runs and what they lose on leaving the source language, both named.

    They are over the tasks that both have under one protocol and with the same cells; nothing where there are none.
    """
    pairs = [[_of_run(material, run, task) for run in material.runs] for task in first.averaged]
    rows = [[row for row in pair if row is not None] for pair in pairs if None not in pair]
    means, gaps = [], []
    for run, tasks in zip(material.runs, zip(*rows, strict=True), strict=False):
        name, mean = f"{material.name(run)}: ", mean_over_tasks([task.mean for task in tasks])
        means.append(_mean_tile(tasks, mean, f"Mean of {len(tasks)} tasks", name=name))
        gaps.append(_gap_tile(run, tasks, name))
    return [tile for tile in (*means, *gaps) if tile is not None]


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


def _suite(material: Material) -> Tile | None:
    """Return the score of the first suite that has one, with those of the baselines."""
    rows = [(run, row) for run in material.every for row in run.results.suites if row.paper.value is not None]
    score = next((row for run, row in rows if run is material.runs[0]), None)
    if score is None:
        return None
    key = (score.suite, score.protocol, score.view)
    baselines = [
        f"{run.manifest.model_name} baseline {percent(row.paper.value)}"
        for run, row in rows
        if run not in material.runs and (row.suite, row.protocol, row.view) == key
    ]
    fewer = [] if score.complete else ["fewer languages"]
    note = "; ".join(["mean of the categories", *fewer, *baselines[:BASELINES]])
    return _score_tile(f"Score on {score.suite}", Score(score.paper.value, score.paper.ci), note)


def _score_tile(title: str, score: Score, note: str) -> Tile:
    small = "" if score.value is None else uncertainty(score.value, score.interval)
    return Tile(title=title, value=percent(score.value), small=small, note=note)


def _mean_tile(
    tasks: Sequence[TaskGlance], mean: Score, title: str, note: str = "", *, name: str = ""
) -> Tile | None:
    """Return the mean of tasks, which has `title`; that of one task has its name, spread and chance instead."""
    if mean.value is None:
        return None
    if len(tasks) == 1:
        [task] = tasks
        title, note = task.label, "; ".join(filter(None, [task.spread, task.chance_text, note]))
    return _score_tile(f"{name}{title}", mean, note)


def _baselines(material: Material, tasks: Sequence[TaskGlance]) -> str:
    """Return the means of the baselines over the same tasks; those that miss one of them are not shown."""
    labels = []
    for run in material.every:
        rows = [material.mean(run, task.column).row for task in tasks] if run not in material.runs else []
        values = [row.value for row in rows if row is not None]
        if values and len(values) == len(tasks):
            labels.append(f"{run.manifest.model_name} baseline {percent(fmean(values))}")
    return ", ".join(labels[:BASELINES])


def _gap_tile(run: Run, tasks: Sequence[TaskGlance], name: str = "") -> Tile | None:
    """Return how much lower the other languages score than the one the model was trained in."""
    gaps = [(task, task.transfer_gap) for task in tasks if task.transfer_gap is not None]
    if not gaps:
        return None
    gap, count = fmean(size for _, size in gaps), len(gaps)
    sources = {task.source for task, _ in gaps}
    [code] = sources if len(sources) == 1 else [None]
    table = known_languages()
    language = table.get(code).name if code is not None and code in table else "the source language"
    half = _half([from_others(run, task.column, task.source or "", task.averaged) for task, _ in gaps])
    trained = any(task.column.protocol not in {"prompted", "frozen"} for task, _ in gaps)
    verb = "Lost on leaving" if gap >= 0 else "Gained on leaving"
    return Tile(
        title=f"{name}{verb} {language}" if trained else f"{name}Other languages against {language}",
        value=signed(-gap).replace("-", "\u2212") if percent(gap) != "0.0" else "0.0",
        small="" if half is None else f"±{percent(half)}",
        note="transfer gap of 1 task" if count == 1 else f"mean transfer gap of {count} tasks",
    )


def _half(contrasts: Sequence[Contrast | None]) -> float | None:
    """Return half the interval of the mean of independent differences; None where one is not known."""
    halves = [(contrast.high - contrast.low) / 2 for contrast in contrasts if contrast is not None]
    return math.hypot(*halves) / len(halves) if len(halves) == len(contrasts) else None


def lags(material: Material, first: Glance) -> list[Lag]:
    """Return how far every language is from the others, the lowest first; nothing for fewer than three languages.

    Languages have the tasks that most of the comparison needs: three, or as many as any language has.
    """
    run, candidates = material.runs[0], []
    for code, name, _ in material.languages:
        pairs = [
            (score.value - mean.value, from_others(run, task.column, code, task.averaged))
            for task in first.averaged
            if (score := score_of(run, task.column, code)) is not None
            and (mean := mean_of_others(run, task.column, code, task.averaged)) is not None
        ]
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
    mean, half = fmean(difference for difference, _ in pairs), _half([contrast for _, contrast in pairs])
    p = math.erfc(NORMAL * abs(mean) / half / math.sqrt(2)) if half else 1.0
    return Lag(code=code, name=name, tasks=len(pairs), mean=mean, half=half), p


def _weakest(material: Material, first: Glance) -> Tile | None:
    ranked = lags(material, first)
    if not any(lag.half is not None for lag in ranked):
        return None
    lowest = ranked[0]
    half = "" if lowest.half is None else f" ±{percent(lowest.half)}"
    size = f"{signed(lowest.mean)}{half}".replace("-", "\u2212")
    title = f" ({min(FEWEST_TASKS, lowest.tasks)} tasks or more)" if lowest.tasks > 1 else ""
    value, note = lowest.name, f"{size} against the others, {counted(lowest.tasks, 'task')}"
    if lowest.q > SIGNIFICANT or lowest.mean >= 0:
        why = "within the noise" if lowest.half is not None else "its error is not known"
        value, note = "Not clear", f"the lowest is {lowest.name}, {size}: {why}"
    return Tile(title=f"Weakest language{title}", value=value, note=note)


def _chance(material: Material) -> Tile | None:
    above, tested = above_chance(material.runs[0], material.summary)
    title, note = "Cells above chance, tested", "a cell is one task in one language"
    return Tile(title=title, value=f"{above} of {tested}", note=note) if tested else None


def above_chance(run: Run, summary: Summary) -> tuple[int, int]:
    """Return how many cells of a run are measurably above chance, of how many whose metric has a known chance.

    Benjamini-Hochberg is over the one-sided tests of all of them.
    """
    values = list(_tested(run, summary))
    rates = benjamini_hochberg(values).tolist() if values else []
    return sum(rate <= SIGNIFICANT for rate in rates), len(values)


def _tested(run: Run, summary: Summary) -> Iterator[float]:
    """Yield p of every cell; one answer to nearly all items is not above chance, whatever it scores."""
    for column, chance in zip(summary.columns, summary.chances, strict=True):
        for cell in cells_of(run, column) if chance is not None and column.key not in summary.covered else ():
            score = cell.metrics.get(column.metric)
            if score is not None and cell.status == "ok" and not is_unreadable(cell):
                yield 1.0 if cell.collapse else chance_p(score, chance or 0.0, cell.n)


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
