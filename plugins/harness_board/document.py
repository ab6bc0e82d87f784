"""Content of a board: systems, tasks, languages and scores, as the page's script reads them.

Scores are in points (percent), as papers print them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from itertools import accumulate, groupby, zip_longest
from typing import Any

from harness.metrics import metric_name
from harness.reporting import EquityReport, Section

SCHEMA = 1
DIGITS = 3
"""Of a score in points: far below any difference that means something, and half the size of the page."""
BUCKET_DIGITS = 5
"""Of the fractions of a diagnosis."""
SHARED = ("kind", "task", "language", "system", "systems", "attribute", "metric")
OF_BUCKET = ("bucket", "n", "value", "values", "ci", "difference", "p", "q", "examples")
MOST_TEXT = 500_000
"""Characters of examples on a page. Every bucket gets its first example before any gets its second."""
COLUMNS = (
    "system protocol view method source year parameters monolingual monolingual_unit parallel parallel_unit "
    "languages_seen licence task metric language value se complete comparable note"
).split()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskColumn:
    """One task of a board."""

    task: str
    category: str = ""
    metrics: tuple[str, ...]
    headline: tuple[str, ...]
    """The task's score is their mean."""
    languages: tuple[str, ...]
    """The languages that the task's score is a mean over."""
    source: str | None = None
    """The language that is transferred from."""
    chance: float | None = None
    """What guessing scores in the first headline metric, in points; None where it is not known."""
    added: tuple[str, ...] = ()
    """Languages that others added: they are shown, and in no mean of the task."""
    marks: dict[str, str] = field(default_factory=dict)
    """Language -> the marks of its scores, as `harness.reporting.origin_mark` returns them."""
    described: dict[str, dict[str, str]] = field(default_factory=dict)
    """Name, family and script of languages that are not in the language table."""

    @property
    def shown(self) -> tuple[str, ...]:
        """All languages that have a place on the board."""
        return (*self.languages, *(code for code in self.added if code not in self.languages))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One metric of one system on one task."""

    task: str
    metric: str
    mean: float | None
    """Of the task: as printed or stored; None where it is not known."""
    se: float | None = None
    low: float | None = None
    high: float | None = None
    by_language: dict[str, float] = field(default_factory=dict)
    se_by_language: dict[str, float] = field(default_factory=dict)
    interval_by_language: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The ends of the 95 % interval."""
    is_whole: bool = True
    """Whether the mean is over all languages of the task."""
    reason: str = ""
    """Why its source calls it not comparable; scores of one reason are comparable with each other."""
    is_starred: bool = False
    """Whether it is not comparable with the other rows of its task: it has ``°`` and is not ranked or subtracted."""
    note: str = ""
    """What a reader must know: not comparable, an erratum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One row of the board."""

    label: str
    origin: str
    """``run``, ``published`` or ``file``."""
    protocol: str = ""
    method: str = ""
    adapter: str = ""
    view: str = ""
    path: str = ""
    """The model as its manifest names it, which is not published: it may be a path or an address."""
    run: str = ""
    year: int | None = None
    scores: tuple[Score, ...] = ()
    absences: dict[str, str] = field(default_factory=dict)
    """Task, or task:language -> why there is no score."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """`harness_board.published.SystemMetadata` as plain values; empty where none was given."""

    @property
    def source(self) -> str:
        """Where the scores are from, as the page prints it: `origin`, or ``baseline``."""
        return "baseline" if self.adapter == "baseline" else self.origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Everything that one board shows."""

    title: str
    tasks: tuple[TaskColumn, ...]
    systems: tuple[System, ...]
    languages: dict[str, dict[str, str]]
    """Code -> name, family, script."""
    suite: str = ""
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    diagnosis: tuple[dict[str, Any], ...] = ()
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The items that rows of `diagnosis` name: task/language/id -> inputs, reference, predictions."""
    extended: Section | None = None
    """Means with languages that others added, next to the means without them."""
    checklists: dict[str, tuple[Section, ...]] = field(default_factory=dict)
    """Task -> the errors and failing cases of every run, for tasks that are checklists."""
    equity: EquityReport | None = None
    """What the languages cost the runs."""
    date: date | None = None
    """When the newest of its runs was made; None without runs."""

    def content(self) -> dict[str, Any]:
        """Return the page's content as JSON: names once, scores as arrays in the order of each task's languages."""
        metrics = [name for task in self.tasks for name in task.metrics]
        metrics += [row["metric"] for row in self.diagnosis if row.get("metric")]
        reasons = list(dict.fromkeys(why for system in self.systems for why in system.absences.values()))
        return {
            "schema": SCHEMA,
            "title": self.title,
            "suite": self.suite,
            "categories": self.categories,
            "tasks": [_task(task) | {"by_language": self.language_headline(task)} for task in self.tasks],
            "languages": [{"code": code, **about} for code, about in self.languages.items()],
            "metrics": {name: metric_name(name) for name in dict.fromkeys(metrics)},
            "reasons": reasons,
            "systems": [_system(system, reasons) for system in self.systems],
            "scores": [
                _score(index, score, task.shown)
                for index, system in enumerate(self.systems)
                for task in self.tasks
                for score in system.scores
                if score.task == task.task
            ],
            **packed(self.diagnosis, self.examples),
        }

    def language_headline(self, task: TaskColumn) -> list[str]:
        """Return the headline metrics that some system has by language: what a score in one language averages."""
        scores = [score for system in self.systems for score in system.scores if score.task == task.task]
        by_language = {score.metric for score in scores if score.by_language}
        return [metric for metric in task.headline if metric in by_language] or list(task.headline)


def _task(task: TaskColumn) -> dict[str, Any]:
    empty = {name for name in ("added", "marks", "chance") if getattr(task, name) in ((), {}, None)}
    return {name: value for name, value in asdict(task).items() if name not in {"described", *empty}}


def _system(system: System, reasons: Sequence[str]) -> dict[str, Any]:
    names = ("label", "origin", "protocol", "method", "adapter", "view", "run", "year")
    absences = {key: reasons.index(reason) for key, reason in system.absences.items()}
    plain = {name: getattr(system, name) for name in names} | {"absences": absences} | system.metadata
    return {key: value for key, value in plain.items() if value not in (None, "", {}, [])}


def _score(index: int, score: Score, codes: Sequence[str]) -> list[Any]:
    """Return [system, task, metric, mean, se, low, high, whole, note, values, ses, lows, highs].

    What holds nothing at the end is cut.
    """
    lows, highs = ({code: ends[at] for code, ends in score.interval_by_language.items()} for at in (0, 1))
    numbers = _rounded([score.mean, score.se, score.low, score.high], DIGITS)
    columns = [
        _rounded([values.get(code) for code in codes], DIGITS) if values else None
        for values in (score.by_language, score.se_by_language, lows, highs)
    ]
    is_whole = 2 if score.is_starred else int(score.is_whole)
    row = [index, score.task, score.metric, *numbers, is_whole, score.note, *columns]
    while row[-1] is None:
        row.pop()
    return row


def _rounded(value: Any, digits: int) -> Any:
    """Return a value with its floats rounded, those of a list too."""
    if isinstance(value, float):
        return round(value, digits)
    return [_rounded(item, digits) for item in value] if isinstance(value, list | tuple) else value


# The rows of a diagnosis and their examples: names once, buckets as arrays -------------------------------


def packed(rows: Sequence[Mapping[str, Any]], examples: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``diagnosis``, one entry per group of buckets, and ``examples``, which buckets name by their place."""
    named = ([key for key in row.get("examples") or () if isinstance(key, str)] for row in rows)
    keys = list(dict.fromkeys(key for turn in zip_longest(*named) for key in turn if key in examples))
    lengths = accumulate(len(str(examples[key])) for key in keys)
    keys = [key for key, length in zip(keys, lengths, strict=True) if length <= MOST_TEXT]
    places: dict[Any, int] = {key: place for place, key in enumerate(keys)}
    groups = []
    for shared, members in groupby(rows, key=lambda row: [row.get(name) for name in SHARED]):
        buckets = list(members)
        columns = [name for name in OF_BUCKET if any(row.get(name) is not None for row in buckets)]
        about = {name: value for name, value in zip(SHARED, shared, strict=True) if value is not None}
        values = [[_bucket_value(row, name, places) for name in columns] for row in buckets]
        groups.append({**about, "columns": columns, "buckets": values})
    return {"diagnosis": groups, "examples": [examples[key] for key in keys]}


def _bucket_value(row: Mapping[str, Any], name: str, places: Mapping[str, int]) -> Any:
    """Return a value of a bucket: of its examples the places, but one that a row holds itself stays as it is."""
    if name != "examples":
        return _rounded(row.get(name), BUCKET_DIGITS)
    examples: Iterable[Any] = row.get(name) or ()
    pairs = (item if isinstance(item, dict) else places.get(item) for item in examples)
    return [item for item in pairs if item is not None]


# Rows of plain values: what ``--csv`` and ``--json`` write ------------------------------------------------


def board_rows(board: Board) -> list[dict[str, Any]]:
    """Return one row for every task score (no language) and every language's score, as fractions in [0, 1]."""
    rows = []
    for system in board.systems:
        stated, amounts = system.metadata, ("monolingual", "parallel")
        data = [stated.get(name, {}).get(key) for name in amounts for key in ("value", "unit")]
        about = [system.label, system.protocol, system.view, system.method, system.source, system.year]
        about += [stated.get("parameters"), *data, stated.get("languages_seen"), stated.get("licence")]
        for score in system.scores:
            values = [("", score.mean, score.se, score.is_whole)] if score.mean is not None else []
            errors = score.se_by_language
            values += [(code, value, errors.get(code), True) for code, value in score.by_language.items()]
            for code, value, se, is_whole in values:
                numbers = (value / 100, None if se is None else se / 100)
                own = (score.task, score.metric, code, *numbers, is_whole, not score.is_starred, score.note)
                rows.append(dict(zip(COLUMNS, (*about, *own), strict=True)))
    return rows
