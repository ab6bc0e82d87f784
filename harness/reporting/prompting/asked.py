"""The section on how items were asked: answers that could not be read, several answers, and several prompts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any

from harness.analysis.comparison import compare_group
from harness.analysis.systems import SystemGroup, group_systems
from harness.metrics.naming import metric_name
from harness.registry.discovery import discover
from harness.registry.registry import Registry
from harness.reporting.blocks.model import BLANK, Block, Table, TableRow
from harness.reporting.blocks.number import p_text, percent, signed, signed_interval, uncertainty
from harness.reporting.formats import SectionReport
from harness.reporting.overview.column import conditions_of
from harness.reporting.overview.unreadable import unread_count
from harness.statistics import holm
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

DEFAULT = "default"
REPEAT_NOTE = (
    "pass@k: the chance that at least one of k answers is right, estimated without bias (Chen et al. 2021); "
    "majority: the answer that was given most often, the first one at a tie. Intervals draw items with all answers."
)
PROMPT_NOTE = (
    "Spread: the best prompt minus the worst; the best of several prompts is chosen on the test items."
)
UNREAD_NOTE = (
    "Percent of the items: the answer could not be read, or was cut before it could be. harness report RUN "
    "--unreadable lists them."
)
PAIR_NOTE = "p: of a paired permutation test, adjusted by Holm's method for all pairs of the task's prompts."


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptScores:
    """Scores of the prompts of one task in one language, as fractions."""

    task: str
    conditions: str
    metric: str
    language: str
    scores: Mapping[str, float]
    """By preset."""

    @property
    def best(self) -> str:
        """The preset with the highest score, the first one at a tie."""
        return max(self.scores, key=self.scores.__getitem__)

    @property
    def mean(self) -> float:
        """The mean over the presets."""
        return fmean(self.scores.values())

    @property
    def spread(self) -> float:
        """The highest score minus the lowest."""
        return max(self.scores.values()) - min(self.scores.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPair:
    """Two prompts on the same items: the second one's score minus the first one's, over all common languages."""

    task: str
    metric: str
    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p: float | None
    """Adjusted for all pairs of the task."""


def read_asked(runs: Sequence[Run]) -> SectionReport | None:
    """Return the main run's unreadable answers, repeats and prompts; None where it has none of these."""
    run = runs[0]
    unread = list(_unread_cells(run))
    repeated = [
        cell for cell in run.cells if cell.is_scored and any("pass@" in name for name in cell.metrics)
    ]
    prompts = list(prompt_scores(run))
    if not unread and not repeated and not prompts:
        return None
    pairs = prompt_pairs(run) if prompts else []
    blocks: list[Block] = [
        *_unread_tables(unread),
        *_repeat_tables(run, repeated),
        *_prompt_tables(prompts),
        *_pair_tables(pairs),
    ]
    notes = [*([REPEAT_NOTE] if repeated else []), *([PROMPT_NOTE, PAIR_NOTE] if prompts else [])]
    return SectionReport(blocks=blocks, notes=notes, rows=lambda: _rows(unread, repeated, prompts, pairs))


# Answers that could not be read ------------------------------------------------------------------------


def _unread_cells(run: Run) -> Iterator[CellResult]:
    """Yield the cells of every task and view with an answer that could not be read, its other languages too."""
    prompted = [cell for cell in run.cells if cell.status == "ok" and cell.prompt is not None and cell.n]
    titles = {_title(cell) for cell in prompted if unread_count(cell)}
    return (cell for cell in prompted if _title(cell) in titles)


def _unread_tables(cells: Sequence[CellResult]) -> Iterator[Table]:
    """Yield a table with a row for each language and a column for each task and view."""
    if not cells:
        return
    titles = list(dict.fromkeys(map(_title, cells)))
    rows = []
    for code in dict.fromkeys(cell.language for cell in cells):
        fields = []
        for title in titles:
            group = [cell for cell in cells if cell.language == code and _title(cell) == title]
            unread, items = sum(map(unread_count, group)), sum(cell.n for cell in group)
            fields.append(f"{percent(unread / items)} ({unread:,} of {items:,})" if group else BLANK)
        rows.append(TableRow(label=code, fields=tuple(fields)))
    heads = tuple(title.replace(" ", "\n") for title in titles)
    yield Table(
        title="Unreadable answers, %",
        corner="language",
        heads=heads,
        rows=tuple(rows),
        notes=(UNREAD_NOTE,),
        divided=True,
    )


def _title(cell: CellResult) -> str:
    return f"{cell.task} {conditions_of(cell.view)}".rstrip()


# Repeats -----------------------------------------------------------------------------------------------


def _repeat_tables(run: Run, cells: Sequence[CellResult]) -> Iterator[Table]:
    by_title: dict[str, list[CellResult]] = {}
    for cell in cells:
        by_title.setdefault(_title(cell), []).append(cell)
    for title, group in by_title.items():
        names = [
            name
            for name in group[0].metrics
            if "@" in name and name.partition("@")[0] in {"pass", "majority"}
        ]
        metric = run.manifest.tasks[group[0].task].headline[0]
        heads = [f"mean {metric_name(metric)}", *names]
        rows = [
            TableRow(label=cell.language, fields=tuple(_score(cell, name) for name in (metric, *names)))
            for cell in group
        ]
        yield Table(
            title=f"{title}: several answers per item",
            corner="language",
            heads=tuple(heads),
            rows=tuple(rows),
        )


def _score(cell: CellResult, name: str) -> str:
    if name not in cell.metrics:
        return BLANK
    score = cell.metrics[name]
    return f"{percent(score.value)} {uncertainty(score.value, score.ci)}".rstrip()


# Prompts -----------------------------------------------------------------------------------------------


def prompt_scores(run: Run) -> Iterator[PromptScores]:
    """Yield the scores of every language that was asked with several prompts, by its first headline metric."""
    groups: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for cell in run.cells:
        # A task without scored cells is not in the manifest.
        if cell.prompt is None or not cell.is_scored:
            continue
        metric = run.manifest.tasks[cell.task].headline[0]
        if metric not in cell.metrics:
            continue
        view = {name: value for name, value in cell.view.items() if name != "prompt"}
        key = (cell.task, f"{cell.protocol} {cell.method} {json.dumps(view, sort_keys=True)}", cell.language)
        by_preset = groups.setdefault(key, {})
        by_preset.setdefault(_preset(cell.view), []).append(cell.metrics[metric].value)
    for (task, conditions, language), scores in groups.items():
        if len(scores) > 1:
            yield PromptScores(
                task=task,
                conditions=conditions_of(json.loads(conditions.split(" ", 2)[2])),
                metric=run.manifest.tasks[task].headline[0],
                language=language,
                scores={preset: fmean(values) for preset, values in scores.items()},
            )


def prompt_pairs(run: Run) -> list[PromptPair]:
    """Return the differences of all pairs of prompts whose systems differ in nothing else, with adjusted p."""
    metrics = Registry(discover()).metrics
    adjusted: list[PromptPair] = []
    for group in group_systems([run], least=1):
        pairs = []
        for numbers in _alike(group):
            for first, second in combinations(numbers, 2):
                chosen = replace(group, systems=(group.systems[second], group.systems[first]))
                compared = compare_group(chosen, metrics)
                if compared is None or not compared.items:
                    continue
                difference = compared.scores[0].differences[1]
                if difference is None:
                    continue
                names = [_preset(next(iter(system.cells.values())).view) for system in chosen.systems]
                pairs.append(
                    PromptPair(
                        task=group.title,
                        metric=compared.scores[0].metric,
                        first=names[1],
                        second=names[0],
                        difference=difference.value,
                        low=difference.low,
                        high=difference.high,
                        p=difference.p,
                    )
                )
        adjusted += _adjusted(pairs)
    return adjusted


def _alike(group: SystemGroup) -> list[list[int]]:
    """Return the numbers of systems that differ in their prompt alone."""
    by_rest: dict[str, list[int]] = {}
    for number, system in enumerate(group.systems):
        cell = next(iter(system.cells.values()))
        view = {name: value for name, value in cell.view.items() if name != "prompt"}
        if cell.prompt is not None:
            key = json.dumps([cell.protocol, cell.method, cell.seed, view], sort_keys=True)
            by_rest.setdefault(key, []).append(number)
    return list(by_rest.values())


def _adjusted(pairs: Sequence[PromptPair]) -> list[PromptPair]:
    p_values = [pair.p for pair in pairs if pair.p is not None]
    adjusted = iter(holm(p_values).tolist() if p_values else ())
    return [pair if pair.p is None else replace(pair, p=next(adjusted)) for pair in pairs]


def _prompt_tables(scores: Sequence[PromptScores]) -> Iterator[Table]:
    by_title: dict[str, list[PromptScores]] = {}
    for score in scores:
        by_title.setdefault(f"{score.task} {score.conditions}".rstrip(), []).append(score)
    for title, languages in by_title.items():
        presets = list(dict.fromkeys(name for score in languages for name in score.scores))
        rows = [
            TableRow(
                label=score.language,
                fields=(
                    *(percent(score.scores.get(name)) for name in presets),
                    score.best,
                    percent(score.mean),
                    percent(score.spread),
                ),
            )
            for score in languages
        ]
        yield Table(
            title=f"{title}: {metric_name(languages[0].metric)} by prompt",
            corner="language",
            heads=(*presets, "best", "mean", "spread"),
            rows=tuple(rows),
            words=frozenset({len(presets)}),
        )


def _pair_tables(pairs: Sequence[PromptPair]) -> Iterator[Table]:
    for task in dict.fromkeys(pair.task for pair in pairs):
        rows = [
            TableRow(
                label=f"{pair.second} - {pair.first}",
                fields=(signed(pair.difference), signed_interval(pair.low, pair.high), p_text(pair.p)),
            )
            for pair in pairs
            if pair.task == task
        ]
        heads = ("difference", "95 % interval", "p")
        yield Table(title=f"{task}: prompts compared", corner="prompts", heads=heads, rows=tuple(rows))


def _preset(view: Mapping[str, str]) -> str:
    return view.get("prompt", DEFAULT)


def _rows(
    unread: Sequence[CellResult],
    repeated: Sequence[CellResult],
    prompts: Sequence[PromptScores],
    pairs: Sequence[PromptPair],
) -> list[dict[str, Any]]:
    """Return rows of plain values: unread answers, repeats and prompts by language, and pairs of prompts."""
    missed = [
        {
            "about": "unread",
            "task": cell.task,
            "view": dict(cell.view),
            "language": cell.language,
            "items": cell.n,
            "unread": unread_count(cell),
        }
        for cell in unread
    ]
    answers = [
        {
            "about": "repeats",
            "task": cell.task,
            "view": dict(cell.view),
            "language": cell.language,
            **{name: score.value for name, score in cell.metrics.items()},
        }
        for cell in repeated
    ]
    scored = [
        {
            "about": "prompts",
            "task": prompt.task,
            "view": prompt.conditions,
            "language": prompt.language,
            "metric": prompt.metric,
            **prompt.scores,
            "best": prompt.best,
            "mean": prompt.mean,
            "spread": prompt.spread,
        }
        for prompt in prompts
    ]
    compared = [
        {"about": "pairs", "task": pair.task, "metric": pair.metric, "first": pair.first, "second": pair.second,
         "difference": pair.difference, "low": pair.low, "high": pair.high, "p": pair.p}
        for pair in pairs
    ]  # fmt: skip
    return [*missed, *answers, *scored, *compared]
