"""The cost of texts and of the languages of runs: sums over items, their ratios, and the premium over English.

The report has a table by language for every way in which a task was run, and one over all tasks.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from statistics import fmean
from typing import Any

import numpy as np

from harness.errors import DataError
from harness.languages.table import recorded_name
from harness.reporting.overview.column import conditions_of, system_names
from harness.storage.records import ItemTokens, read_tokens
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

REFERENCE = "en"
"""The language that costs 1."""

ItemCost = Mapping[str, tuple[int, Hashable]]
"""By item id: its sub-words, and what is resampled together with it."""
LEAST_LANGUAGES = 5
"""Of a correlation."""
SHARES_OF_RIGHT = ("accuracy", "exact_match", "exact_value", "top1_accuracy")
"""Metrics that are the share of correct answers among the items."""
Languages = Mapping[str, Sequence[CellResult]]
"""By language: its cells, which differ in their seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Sums over items; those of several cells add up with ``+``. Ratios are None where they would divide by zero."""

    items: int = 0
    words: int = 0
    unspaced: int = 0
    """How many of the words are single letters of a script without spaces."""
    characters: int = 0
    bytes: int = 0
    tokens: int = 0
    unknown: int | None = 0
    truncated: int = 0
    truncated_of: int = 0
    """Items of which it is known whether the model saw all of them."""
    prompts: int | None = 0
    """Tokens of the prompts, with their instructions and shots; None where they were not counted."""
    generated: int = 0
    reasoned: int | None = 0
    """How many of the generated tokens are of the reasoning before answers; None where a server did not say."""
    seconds: float = 0.0
    right: float | None = 0.0
    """Correct answers; None where the metrics are no share of correct answers."""
    watts: float | None = None
    """The power that the machine is said to draw."""
    is_timed: bool = True
    """Whether the seconds are those of all items: no answer was known before, or asked once for several items."""

    def __add__(self, other: Cost) -> Cost:
        """Return the sums of both."""
        pairs = {name: (value, getattr(other, name)) for name, value in asdict(self).items()}
        sums: dict[str, Any] = {name: None if None in pair else sum(pair) for name, pair in pairs.items()}
        both = {"is_timed": self.is_timed and other.is_timed, "watts": self.watts or other.watts}
        return Cost(**{**sums, **both})

    @property
    def fertility(self) -> float | None:
        """Sub-words a word (Ács 2019; Rust et al. 2021)."""
        return self.tokens / self.words if self.words else None

    @property
    def counts_letters(self) -> bool:
        """Whether most words are single letters, so that the fertility is not that of words."""
        return 2 * self.unspaced > self.words

    @property
    def tokens_per_character(self) -> float | None:
        """Sub-words a character, marks not counted as characters of their own."""
        return self.tokens / self.characters if self.characters else None

    @property
    def bytes_per_token(self) -> float | None:
        """UTF-8 bytes a sub-word."""
        return self.bytes / self.tokens if self.tokens else None

    @property
    def unknown_share(self) -> float | None:
        """Share of the sub-words that are the unknown token; None where the adapter does not report it."""
        return None if self.unknown is None or not self.tokens else self.unknown / self.tokens

    @property
    def truncated_share(self) -> float | None:
        """Share of the items that the model did not see all of."""
        return self.truncated / self.truncated_of if self.truncated_of else None

    @property
    def tokens_per_second(self) -> float | None:
        """Sub-words of the items' texts a second of the cell; None where not all items are timed."""
        return self.tokens / self.seconds if self.seconds and self.is_timed else None

    @property
    def tokens_per_correct_answer(self) -> float | None:
        """Tokens read (of prompts, else of the texts alone) and written, per correct answer."""
        read = self.tokens if self.prompts is None else self.prompts
        return (read + self.generated) / self.right if self.right else None

    @property
    def seconds_per_correct_answer(self) -> float | None:
        """Seconds of the cell per correct answer; None where not all items are timed."""
        return self.seconds / self.right if self.right and self.seconds and self.is_timed else None

    @property
    def watt_hours_per_correct_answer(self) -> float | None:
        """Energy per correct answer at the given power, in watt-hours; None without one, or without seconds."""
        seconds = self.seconds_per_correct_answer
        return None if seconds is None or self.watts is None else seconds * self.watts / 3600


def cost_of(run: Run, cell: CellResult, watts: float | None = None) -> Cost | None:
    """Return the cost of a finished cell; None where nothing was counted, as by older versions and by baselines.

    Args:
        run: The run of the cell.
        cell: A finished cell.
        watts: The power that its machine draws, if the energy is asked for.
    """
    ledger = cell.ledger or {}
    if "tokens" not in ledger:
        return None
    shares = (cell.metrics[name].value for name in SHARES_OF_RIGHT if name in cell.metrics)
    share = next(shares, None)
    counted = ("items", "words", "unspaced", "characters", "bytes", "tokens", "unknown")
    try:
        content = json.loads((run.path / "cells" / f"{cell.digest}.json").read_text(encoding="utf-8"))
        is_timed = int(content["cell"]["requests"]["reused"]) == 0
    except (OSError, ValueError, LookupError, TypeError):
        is_timed = False
    return Cost(
        **{name: ledger[name] for name in counted},
        truncated=ledger["truncated"] or 0,
        truncated_of=0 if ledger["truncated"] is None else ledger["items"],
        prompts=ledger.get("prompt_tokens"),
        generated=cell.tokens,
        reasoned=cell.reasoning_tokens,
        seconds=cell.seconds,
        right=None if share is None else share * cell.n,
        watts=watts,
        is_timed=is_timed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Premium:
    """The cost relative to English, or why there is none.

    Petrov et al. 2023, "Language Model Tokenizers Introduce Unfairness Between Languages", section 3: the tokens of a
    text divided by those of the same text in the reference language. Here it is the ratio of the sums over the items
    that both languages have, so that a long item counts by its length and the English premium is 1 exactly.
    """

    tokens: float | None = None
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval."""
    items: int = 0
    """Items that both languages have."""
    bytes: float | None = None
    seconds: float | None = None
    reason: str = ""
    """Why there is no premium."""


def by_id(counts: ItemTokens) -> ItemCost:
    """Return the sub-words of the items that were counted."""
    return {
        name: (tokens, name if cluster is None else ("cluster", cluster))
        for name, cluster, tokens in zip(counts.ids, counts.clusters, counts.tokens, strict=True)
        if tokens is not None
    }


def premium_of(pairs: Sequence[tuple[ItemCost, ItemCost]]) -> Premium:
    """Return the premium over one or several parallel tests: of each, the language's items and the English ones.

    The interval is that of a ratio of means by linearisation, over clusters (Cochran 1977, section 6.4), with
    Student's t; there is none for one cluster, and none where both sides are equal item by item.
    """
    shared = [
        (count, reference[name][0], (test, cluster))
        for test, (language, reference) in enumerate(pairs)
        for name, (count, cluster) in language.items()
        if name in reference
    ]
    if not shared:
        return Premium(reason="no item has an English version in the run")
    total = sum(english for _, english, _ in shared)
    if not total:
        return Premium(reason="the English items have no token")
    ratio = sum(count for count, _, _ in shared) / total
    by_cluster: dict[Hashable, float] = defaultdict(float)
    for count, english, cluster in shared:
        by_cluster[cluster] += count - ratio * english
    residuals = np.array([*by_cluster.values()])
    size = len(residuals)
    if size < 2 or not residuals.any():
        return Premium(tokens=ratio, items=len(shared))
    from scipy.special import stdtrit

    error = float(np.sqrt(size / (size - 1) * (residuals**2).sum())) / total
    reach = float(stdtrit(size - 1, 0.975)) * error
    return Premium(tokens=ratio, low=ratio - reach, high=ratio + reach, items=len(shared))


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


def equity_report(runs: Sequence[Run], *, watts: float | None = None) -> EquityReport:
    """Return the report of runs; systems that count no sub-words, and runs of older versions, have a note instead.

    With the power that the machines draw, in watts, costs have an energy.
    """
    overall, tables, notes = [], [], []
    for run, system in zip(runs, system_names(runs), strict=True):
        reader = _Reader(run, system, watts)
        by_task = list(reader.tables())
        if by_task:
            tables += by_task
            overall.append(reader.overall())
        elif any(cell.status == "ok" for cell in run.cells):
            notes.append(f"{system}: no ledger: the model counts no sub-words, or its tasks name no texts")
    return EquityReport(overall=tuple(overall), tables=tuple(tables), notes=tuple(notes))


class _Reader:
    """Reads the cells of one run; the sub-words of items are read once per cell."""

    def __init__(self, run: Run, system: str, watts: float | None) -> None:
        self._run = run
        self._system = system
        self._items: dict[str, ItemCost] = {}
        self._costs = {
            cell.digest: cost
            for cell in run.cells
            if cell.status == "ok" and (cost := cost_of(run, cell, watts)) is not None
        }
        self._groups: dict[tuple[str, str, str, str], dict[str, list[CellResult]]] = {}
        for cell in run.cells:
            if cell.digest in self._costs:
                view = json.dumps(cell.view, sort_keys=True)
                key = (cell.task, str(cell.protocol), str(cell.method), view)
                self._groups.setdefault(key, {}).setdefault(cell.language, []).append(cell)

    def tables(self) -> Iterator[EquityTable]:
        """Yield one table for every task, protocol, method and view."""
        for (task, protocol, method, view), languages in self._groups.items():
            metric = self._run.manifest.tasks[task].headline[0]
            rows = []
            for code, cells in languages.items():
                scores = [cell.metrics[metric].value for cell in cells if metric in cell.metrics]
                texts = {name: _answers(cells, name) for name in ("answers", "reasoning")}
                seeds, premium = len({cell.seed for cell in cells}), self._premium(task, cells, languages)
                score, cost = fmean(scores) if scores else None, self._cost(cells)
                rows.append(
                    self._row(task, code, cost=cost, premium=premium, score=score, seeds=seeds, **texts)
                )
            yield EquityTable(
                system=self._system,
                task=task,
                protocol=protocol,
                method=method,
                view=conditions_of(json.loads(view)),
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
