"""What a board holds: systems, tasks, languages and scores, as the page's script reads them.

Scores are in points (percent), as papers print them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any

from harness.reporting.equity.report import EquityReport
from harness.reporting.model import Section
from harness_board.packing import packed

__all__ = ["COLUMNS", "Board", "Extension", "Score", "System", "TaskColumn", "board_rows"]

SCHEMA = 1
DIGITS = 3
"""Of a score in points: far below any difference that means something, and half the size of the page."""


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
    """Language -> the marks of its scores, as `harness.reporting.item_origin` gives them."""
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
    """The model as its run names it, where `label` is shorter."""
    run: str = ""
    year: int | None = None
    scores: tuple[Score, ...] = ()
    absences: dict[str, str] = field(default_factory=dict)
    """Task, or task:language -> why there is no score."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """`harness_board.metadata.SystemMetadata` as plain values; empty where none was given."""

    @property
    def source(self) -> str:
        """Where the scores are from, as the page prints it: `origin`, or ``baseline``."""
        return "baseline" if self.adapter == "baseline" else self.origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A score with and without the languages that others added, in points."""

    system: str
    name: str
    """``suite xtreme_r`` or ``xnli (accuracy)``."""
    published: float | None
    extended: float
    languages: str


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
    extensions: tuple[Extension, ...] = ()
    """Means with languages that others added, next to the means without them."""
    checklists: dict[str, tuple[Section, ...]] = field(default_factory=dict)
    """Task -> the errors and failing cases of every run, for tasks that are checklists."""
    equity: EquityReport | None = None
    """What the languages cost the runs."""
    date: date | None = None
    """When the newest of its runs was made; None without runs."""

    def content(self) -> dict[str, Any]:
        """Return what the page holds as JSON: names once, scores as arrays in the order of each task's languages."""
        tasks = [{**_task(task), "by_language": self.language_headline(task)} for task in self.tasks]
        absent = dict.fromkeys(reason for system in self.systems for reason in system.absences.values())
        reasons = {reason: place for place, reason in enumerate(absent)}
        return {
            "schema": SCHEMA,
            "title": self.title,
            "suite": self.suite,
            "categories": {name: list(names) for name, names in self.categories.items()},
            "tasks": tasks,
            "languages": [{"code": code, **about} for code, about in self.languages.items()],
            "reasons": list(reasons),
            "systems": [_system(system, reasons) for system in self.systems],
            "scores": [
                _score(index, score, task)
                for index, system in enumerate(self.systems)
                for task in self.tasks
                for score in system.scores
                if score.task == task.task
            ],
            **packed(self.diagnosis, self.examples),
        }

    def language_headline(self, task: TaskColumn) -> list[str]:
        """Return the headline metrics that some system has by language: what a score in one language averages."""
        known = {
            score.metric
            for system in self.systems
            for score in system.scores
            if score.task == task.task and score.by_language
        }
        return [metric for metric in task.headline if metric in known] or list(task.headline)


def _task(task: TaskColumn) -> dict[str, Any]:
    plain = asdict(task)
    for name in ("added", "marks", "described", "chance"):
        if name == "described" or plain[name] in ((), {}, None):
            del plain[name]
    return plain


def _system(system: System, reasons: dict[str, int]) -> dict[str, Any]:
    names = ("label", "origin", "protocol", "method", "adapter", "view", "path", "run", "year")
    plain = {name: getattr(system, name) for name in names}
    absences = {key: reasons[reason] for key, reason in system.absences.items()}
    found = {**plain, "absences": absences, **system.metadata}
    return {key: value for key, value in found.items() if value not in (None, "", {}, [])}


def _score(index: int, score: Score, task: TaskColumn) -> list[Any]:
    """Return [system, task, metric, mean, se, low, high, whole, note, values, ses, lows, highs].

    What holds nothing at the end is cut.
    """
    ends = score.interval_by_language
    row = [
        index,
        task.task,
        score.metric,
        _short(score.mean),
        _short(score.se),
        _short(score.low),
        _short(score.high),
        int(score.is_whole),
        score.note,
        [_short(score.by_language.get(code)) for code in task.shown] if score.by_language else None,
        [_short(score.se_by_language.get(code)) for code in task.shown] if score.se_by_language else None,
        *(
            [_short(ends[code][at]) if code in ends else None for code in task.shown] if ends else None
            for at in (0, 1)
        ),
    ]
    while row[-1] is None:
        row.pop()
    return row


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


# Rows of plain values: what ``--csv`` and ``--json`` write ------------------------------------------------

COLUMNS = "system protocol view method task metric language value se complete note".split()


def board_rows(board: Board) -> list[dict[str, Any]]:
    """Return one row for every task score (no language) and every language's score, as fractions in [0, 1]."""
    rows = []
    for system in board.systems:
        about = (system.label, system.protocol, system.view, system.method)
        for score in system.scores:
            found = [("", score.mean, score.se, score.is_whole)] if score.mean is not None else []
            errors = score.se_by_language
            found += [(code, value, errors.get(code), True) for code, value in score.by_language.items()]
            for code, value, se, is_whole in found:
                error = None if se is None else se / 100
                own = (score.task, score.metric, code, value / 100, error, is_whole, score.note)
                rows.append(dict(zip(COLUMNS, (*about, *own), strict=True)))
    return rows
