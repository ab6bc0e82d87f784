"""The equity report of runs: a table by language for every way in which a task was run, and one over all tasks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import fmean
from typing import Any

from harness.errors import DataError
from harness.languages.table import recorded_name
from harness.reporting.cost.cost import REFERENCE, Cost, ItemCost, Premium, by_id, cost_of, premium_of
from harness.reporting.overview.system_name import system_names
from harness.storage.records import read_tokens
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

LEAST_LANGUAGES = 5
"""Of a correlation."""
Languages = Mapping[str, Sequence[CellResult]]
"""By language: its cells, which differ in their seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityRow:
    """One language."""

    code: str
    name: str
    script: str
    cost: Cost
    premium: Premium
    score: float | None = None
    """The first headline metric, in [0, 1]: the mean over seeds."""
    answers: Mapping[str, Any] | None = None
    """`AnswerLanguages.to_json` of generated answers."""
    reasoning: Mapping[str, Any] | None = None
    """The same of the reasoning before them; None where no model reasoned."""
    seeds: int = 1
    """How many the cost is a sum over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Spearman's rank correlation of scores with the premium, or with the fertility, over languages."""

    metric: str
    of: str
    value: float
    languages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityTable:
    """The languages of one task as one system ran it; of all tasks where `task` is empty."""

    system: str
    task: str = ""
    protocol: str = ""
    method: str = ""
    view: str = ""
    rows: tuple[EquityRow, ...]
    """By script, then by code."""
    correlation: Correlation | None = None
    has_different_tasks: bool = False
    """Whether the texts of one language are of other tasks than those of another."""

    @property
    def title(self) -> str:
        """Task, protocol, method and view, without the system."""
        return " ".join(filter(None, (self.task or "all tasks", self.protocol, self.method, self.view)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityReport:
    """The tables of all runs."""

    overall: tuple[EquityTable, ...]
    """One for every system."""
    tables: tuple[EquityTable, ...]
    notes: tuple[str, ...]

    def __bool__(self) -> bool:
        """Return whether anything was counted."""
        return bool(self.tables)


def equity_report(runs: Sequence[Run]) -> EquityReport:
    """Return the report of runs; systems that count no sub-words, and runs of older versions, have a note instead."""
    overall, tables, notes = [], [], []
    for run, system in zip(runs, system_names(runs), strict=True):
        reader = _Reader(run, system)
        by_task = list(reader.tables())
        if by_task:
            tables += by_task
            overall.append(reader.overall())
        elif any(cell.status == "ok" for cell in run.cells):
            notes.append(f"{system}: no ledger: the model counts no sub-words, or its tasks name no texts")
    return EquityReport(overall=tuple(overall), tables=tuple(tables), notes=tuple(notes))


class _Reader:
    """Reads the cells of one run; the sub-words of items are read once per cell."""

    def __init__(self, run: Run, system: str) -> None:
        self._run = run
        self._system = system
        self._items: dict[str, ItemCost] = {}
        self._costs = {
            cell.digest: cost
            for cell in run.cells
            if cell.status == "ok" and (cost := cost_of(run, cell)) is not None
        }
        self._groups: dict[tuple[str, str, str, str], dict[str, list[CellResult]]] = {}
        for cell in run.cells:
            if cell.status == "ok" and cell.digest in self._costs:
                view = json.dumps(cell.view, sort_keys=True)
                key = (cell.task, str(cell.protocol), str(cell.method), view)
                self._groups.setdefault(key, {}).setdefault(cell.language, []).append(cell)

    def tables(self) -> Iterator[EquityTable]:
        """Yield one table for every task, protocol, method and view."""
        for (task, protocol, method, view), languages in self._groups.items():
            metric = self._run.manifest.tasks[task].headline[0]
            rows = [
                self._row(
                    task,
                    code,
                    cost=self._cost(cells),
                    premium=self._premium(task, cells, languages),
                    score=_mean([cell.metrics[metric].value for cell in cells if metric in cell.metrics]),
                    answers=_answers(cells, "answers"),
                    reasoning=_answers(cells, "reasoning"),
                    seeds=len({cell.seed for cell in cells}),
                )
                for code, cells in languages.items()
            ]
            yield EquityTable(
                system=self._system,
                task=task,
                protocol=protocol,
                method=method,
                view=" ".join(f"{name}={value}" for name, value in json.loads(view).items()),
                rows=_ordered(rows),
                correlation=correlation_of(rows, metric),
            )

    def overall(self) -> EquityTable:
        """Return the table over all tasks: texts count once, however often they were asked.

        Items in several languages, as questions about texts of other languages, are not in it.
        """
        costs: dict[str, dict[Any, Cost]] = defaultdict(dict)
        pairs: dict[str, dict[Any, tuple[ItemCost, ItemCost]]] = defaultdict(dict)
        tasks: dict[str, list[str]] = defaultdict(list)
        for (task, *_, view), languages in self._groups.items():
            if not json.loads(view).keys().isdisjoint(self._run.manifest.tasks[task].axes):
                continue
            for code, cells in languages.items():
                key = (task, cells[0].ledger["bytes"], cells[0].ledger["tokens"])
                costs[code].setdefault(key, self._cost(cells[:1]))
                tasks[code].append(task)
                pair = self._pair(task, cells, languages)
                if not isinstance(pair, str):
                    pairs[code].setdefault(key, pair)
        none = Premium(reason="no parallel task")
        rows = [
            self._row(
                tasks[code][-1],
                code,
                cost=sum(by_text.values(), Cost()),
                premium=premium_of([*pairs[code].values()]) if code in pairs else none,
            )
            for code, by_text in costs.items()
        ]
        different = len({frozenset(names) for names in tasks.values()}) > 1
        return EquityTable(system=self._system, rows=_ordered(rows), has_different_tasks=different)

    def _row(self, task: str, code: str, **columns: Any) -> EquityRow:
        tasks = self._run.manifest.tasks
        name = recorded_name(code, (summary.names for summary in tasks.values()))
        _, script = tasks[task].languages.get(code) or ("", "Zyyy")
        return EquityRow(code=code, name=name, script=script, **columns)

    def _cost(self, cells: Sequence[CellResult]) -> Cost:
        return sum((self._costs[cell.digest] for cell in cells), Cost())

    def _premium(self, task: str, cells: Sequence[CellResult], languages: Languages) -> Premium:
        pair = self._pair(task, cells, languages)
        if isinstance(pair, str):
            return Premium(reason=pair)
        premium = premium_of([pair])
        if premium.tokens is None or pair[0].keys() != pair[1].keys():
            return premium
        cost, english = self._cost(cells), self._cost(languages[REFERENCE])
        is_timed = cost.is_timed and english.is_timed and cost.seconds and english.seconds
        return replace(
            premium,
            bytes=(cost.bytes / cost.items) / (english.bytes / english.items) if english.bytes else None,
            seconds=(cost.seconds / cost.items) / (english.seconds / english.items) if is_timed else None,
        )

    def _pair(
        self, task: str, cells: Sequence[CellResult], languages: Languages
    ) -> tuple[ItemCost, ItemCost] | str:
        """Return the items of one language and of English, or why they cannot be compared."""
        if not self._run.manifest.tasks[task].parallel:
            return "the languages of this task have different items"
        if REFERENCE not in languages:
            return "the run has no English items of this task"
        pair = (cells[0], languages[REFERENCE][0])
        try:
            for cell in pair:
                if cell.digest not in self._items:
                    self._items[cell.digest] = by_id(read_tokens(self._run.records_of(cell)))
        except DataError:
            return "the run's records are missing or broken"
        return self._items[pair[0].digest], self._items[pair[1].digest]


def _ordered(rows: Sequence[EquityRow]) -> tuple[EquityRow, ...]:
    return tuple(sorted(rows, key=attrgetter("script", "code")))


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _answers(cells: Sequence[CellResult], part: str) -> Mapping[str, Any] | None:
    """Return the counts of the answers, or of the reasoning, of all seeds together."""
    counts = [cell.ledger[part] for cell in cells if cell.ledger.get(part) is not None]
    if not counts:
        return None
    total: dict[str, Any] = {name: counts[0].get(name) for name in ("target", "detector")}
    total["answers"] = sum(seed["answers"] for seed in counts)
    for name in ("languages", "scripts"):
        seeds = [seed[name] for seed in counts if seed[name] is not None]
        total[name] = {group: sum(seed[group] for seed in seeds) for group in seeds[0]} if seeds else None
    return total


def correlation_of(rows: Sequence[EquityRow], metric: str) -> Correlation | None:
    """Return how scores go with the premium; without premiums with the fertility, where words are words."""
    with_premium = [(row.score, row.premium.tokens) for row in rows]
    with_fertility = [(row.score, row.cost.fertility) for row in rows if not row.cost.counts_letters]
    for of, pairs in (("premium", with_premium), ("fertility", with_fertility)):
        complete = [pair for pair in pairs if None not in pair]
        if len(complete) < LEAST_LANGUAGES:
            continue
        scores, costs = zip(*complete, strict=True)
        if len(set(scores)) > 1 and len(set(costs)) > 1:
            from scipy.stats import spearmanr

            value = float(spearmanr(scores, costs).statistic)
            return Correlation(metric=metric, of=of, value=value, languages=len(complete))
    return None
