"""The equity report of runs: a table by language for every way in which a task was run, and one over all tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from harness.errors import DataError
from harness.languages.table import recorded_name
from harness.reporting.equity.cost import Cost, cost_of
from harness.reporting.equity.premium import REFERENCE, ItemCost, Premium, by_id, premium_of
from harness.reporting.system_name import system_names
from harness.storage.records import read_tokens
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

__all__ = ["Correlation", "EquityReport", "EquityRow", "EquityTable", "correlation_of", "equity_report"]

LEAST_LANGUAGES = 5
"""Of a correlation."""
DIFFERENT = "the languages of this task have different items"


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
    tasks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By language, whose texts are counted; empty for one task."""

    @property
    def title(self) -> str:
        """What it is of, without the system."""
        return " ".join(
            part for part in (self.task or "all tasks", self.protocol, self.method, self.view) if part
        )

    def scripts(self) -> dict[str, tuple[tuple[EquityRow, ...], Cost]]:
        """Return the rows of every script and their sums; the script with most languages first."""
        found: dict[str, list[EquityRow]] = {}
        for row in self.rows:
            found.setdefault(row.script, []).append(row)
        ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
        return {script: (tuple(rows), sum((row.cost for row in rows), Cost())) for script, rows in ordered}


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
        own = list(reader.tables())
        if own:
            tables += own
            overall.append(reader.overall())
        elif any(cell.status == "ok" for cell in run.cells):
            notes.append(f"{system}: no ledger: the model counts no sub-words, or its tasks name no texts")
    return EquityReport(overall=tuple(overall), tables=tuple(tables), notes=tuple(notes))


class _Reader:
    """Reads the cells of one run; the sub-words of items are read once per cell."""

    def __init__(self, run: Run, system: str) -> None:
        self._run = run
        self._system = system
        self._read: dict[str, ItemCost] = {}
        self._groups: dict[tuple[str, str, str, str], dict[str, list[CellResult]]] = {}
        for cell in run.cells:
            if cell.status == "ok" and cost_of(run, cell) is not None:
                view = json.dumps(cell.view, sort_keys=True)
                key = (cell.task, str(cell.protocol), str(cell.method), view)
                self._groups.setdefault(key, {}).setdefault(cell.language, []).append(cell)

    def tables(self) -> Iterator[EquityTable]:
        """Yield one table for every task, protocol, method and view."""
        for (task, protocol, method, view), languages in self._groups.items():
            rows = [self._row(task, code, cells, languages) for code, cells in languages.items()]
            yield EquityTable(
                system=self._system,
                task=task,
                protocol=protocol,
                method=method,
                view=" ".join(f"{name}={value}" for name, value in json.loads(view).items()),
                rows=_ordered(rows),
                correlation=correlation_of(rows, self._run.manifest.tasks[task].headline[0]),
            )

    def overall(self) -> EquityTable:
        """Return the table over all tasks: texts count once, however often they were asked."""
        costs: dict[str, dict[Any, Cost]] = {}
        pairs: dict[str, dict[Any, tuple[ItemCost, ItemCost]]] = {}
        scripts: dict[str, str] = {}
        tasks: dict[str, set[str]] = {}
        for (task, *_, view), languages in self._groups.items():
            if self._is_crossed(task, json.loads(view)):
                continue
            for code, cells in languages.items():
                cost = self._cost(cells[:1])
                key = (task, cells[0].ledger["bytes"], cells[0].ledger["tokens"])
                costs.setdefault(code, {}).setdefault(key, cost)
                scripts[code] = self._script(task, code)
                tasks.setdefault(code, set()).add(task)
                pair = self._pair(task, cells, languages)
                if not isinstance(pair, str):
                    pairs.setdefault(code, {}).setdefault(key, pair)
        rows = []
        for code, own in costs.items():
            found = (
                premium_of(list(pairs[code].values()))
                if code in pairs
                else Premium(reason="no parallel task")
            )
            rows.append(
                EquityRow(
                    code=code,
                    name=self._name(code),
                    script=scripts[code],
                    cost=sum(own.values(), Cost()),
                    premium=found,
                )
            )
        found_in = {code: frozenset(names) for code, names in tasks.items()}
        return EquityTable(system=self._system, rows=_ordered(rows), tasks=found_in)

    def _row(
        self, task: str, code: str, cells: Sequence[CellResult], languages: Mapping[str, Sequence[CellResult]]
    ) -> EquityRow:
        metric = self._run.manifest.tasks[task].headline[0]
        values = [cell.metrics[metric].value for cell in cells if metric in cell.metrics]
        return EquityRow(
            code=code,
            name=self._name(code),
            script=self._script(task, code),
            cost=self._cost(cells),
            premium=self._premium(task, cells, languages),
            score=fmean(values) if values else None,
            answers=_answers(cells, "answers"),
            reasoning=_answers(cells, "reasoning"),
            seeds=_seeds(cells),
        )

    def _cost(self, cells: Sequence[CellResult]) -> Cost:
        """Return what the cells of one language cost, which differ in their seeds."""
        return sum((cost for cell in cells if (cost := cost_of(self._run, cell)) is not None), Cost())

    def _premium(
        self, task: str, cells: Sequence[CellResult], languages: Mapping[str, Sequence[CellResult]]
    ) -> Premium:
        pair = self._pair(task, cells, languages)
        if isinstance(pair, str):
            return Premium(reason=pair)
        found = premium_of([pair])
        if found.tokens is None:
            return found
        own, english = self._cost(cells), self._cost(languages[REFERENCE])
        same = pair[0].keys() == pair[1].keys()
        timed = own.is_timed and english.is_timed and own.seconds_per_item and english.seconds_per_item
        return replace(
            found,
            bytes=(own.bytes / own.items) / (english.bytes / english.items)
            if same and english.bytes
            else None,
            seconds=own.seconds_per_item / english.seconds_per_item if timed and same else None,  # type: ignore[operator]
        )

    def _pair(
        self, task: str, cells: Sequence[CellResult], languages: Mapping[str, Sequence[CellResult]]
    ) -> tuple[ItemCost, ItemCost] | str:
        """Return the items of one language and of English, or why they cannot be compared."""
        if not self._run.manifest.tasks[task].parallel:
            return DIFFERENT
        if REFERENCE not in languages:
            return "the run has no English items of this task"
        try:
            return self._items(cells[0]), self._items(languages[REFERENCE][0])
        except DataError:
            return "the run's records are missing or broken"

    def _items(self, cell: CellResult) -> ItemCost:
        if cell.digest not in self._read:
            self._read[cell.digest] = by_id(read_tokens(self._run.records_of(cell)))
        return self._read[cell.digest]

    def _is_crossed(self, task: str, view: Mapping[str, str]) -> bool:
        """Return whether the items of a view are in several languages, as questions about other languages' texts."""
        return any(axis in view for axis in self._run.manifest.tasks[task].axes)

    def _name(self, code: str) -> str:
        return recorded_name(code, (own.names for own in self._run.manifest.tasks.values()))

    def _script(self, task: str, code: str) -> str:
        found = self._run.manifest.tasks[task].languages.get(code)
        return str(found[1]) if found else "Zyyy"


def _seeds(cells: Sequence[CellResult]) -> int:
    return len({cell.seed for cell in cells})


def _answers(cells: Sequence[CellResult], part: str) -> Mapping[str, Any] | None:
    """Return the counts of the answers, or of the reasoning, of all seeds together."""
    found = [counts for cell in cells if (counts := cell.ledger.get(part)) is not None]
    if not found:
        return None
    return {
        "answers": sum(counts["answers"] for counts in found),
        "target": found[0].get("target"),
        "detector": found[0]["detector"],
        **{name: _added([counts[name] for counts in found]) for name in ("languages", "scripts")},
    }


def _added(counts: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    known = [own for own in counts if own is not None]
    return {name: sum(own[name] for own in known) for name in known[0]} if known else None


def _ordered(rows: Sequence[EquityRow]) -> tuple[EquityRow, ...]:
    return tuple(sorted(rows, key=lambda row: (row.script, row.code)))


def correlation_of(rows: Sequence[EquityRow], metric: str) -> Correlation | None:
    """Return how scores go with the premium; without premiums with the fertility, where words are words."""
    with_premium = [(row.score, row.premium.tokens) for row in rows]
    with_fertility = [(row.score, row.cost.fertility) for row in rows if not row.cost.counts_letters]
    for of, pairs in (("premium", with_premium), ("fertility", with_fertility)):
        known = [(score, cost) for score, cost in pairs if score is not None and cost is not None]
        scores, costs = [score for score, _ in known], [cost for _, cost in known]
        if len(known) >= LEAST_LANGUAGES and len(set(scores)) > 1 and len(set(costs)) > 1:
            from scipy.stats import spearmanr

            value = float(spearmanr(scores, costs).statistic)
            return Correlation(metric=metric, of=of, value=value, languages=len(known))
    return None
