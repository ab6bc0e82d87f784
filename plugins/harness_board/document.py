"""What a board holds: systems, tasks, languages and scores, as the page's script reads them.

Scores are in points (percent), as papers print them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from harness.reporting.equity.report import EquityReport
from harness.reporting.model import Section

__all__ = ["COLUMNS", "Board", "Extension", "Score", "System", "TaskColumn", "board_rows"]

Value = TypeVar("Value")

SCHEMA = 1
DIGITS = 4
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
    run: str = ""
    year: int | None = None
    scores: tuple[Score, ...] = ()
    absences: dict[str, str] = field(default_factory=dict)
    """Task, or task:language -> why there is no score."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """`harness_board.metadata.SystemMetadata` as plain values; empty where none was given."""


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

    def content(self) -> dict[str, Any]:
        """Return what the page holds as JSON: names once, scores as arrays in the order of each task's languages."""
        tasks = [{**_task(task), "by_language": self.language_headline(task)} for task in self.tasks]
        return {
            "schema": SCHEMA,
            "title": self.title,
            "suite": self.suite,
            "categories": {name: list(names) for name, names in self.categories.items()},
            "tasks": tasks,
            "languages": [{"code": code, **about} for code, about in self.languages.items()],
            "systems": [_system(system) for system in self.systems],
            "scores": [
                _score(index, score, task)
                for index, system in enumerate(self.systems)
                for task in self.tasks
                for score in system.scores
                if score.task == task.task
            ],
            "diagnosis": list(self.diagnosis),
            "examples": self.examples,
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

    def only(self, *, tasks: Sequence[str] | None = None, languages: Sequence[str] | None = None) -> Board:
        """Return the board with some tasks, or with some languages' scores alone: what a page of a site needs."""
        kept = tuple(task for task in self.tasks if tasks is None or task.task in tasks)
        names = {task.task for task in kept}
        is_whole = tasks is None and languages is None
        rows = tuple(
            row
            for row in self.diagnosis
            if row.get("task") in names and (languages is None or row.get("language") in languages)
        )
        lists = {task: own for task, own in self.checklists.items() if task in names and languages is None}
        return replace(
            self,
            tasks=kept,
            systems=tuple(_cut(system, names, languages) for system in self.systems),
            extensions=self.extensions if is_whole else (),
            diagnosis=rows,
            examples=self.examples if self.diagnosis else {},
            checklists=lists,
        )


def _task(task: TaskColumn) -> dict[str, Any]:
    plain = asdict(task)
    for name in ("added", "marks", "described", "chance"):
        if name == "described" or plain[name] in ((), {}, None):
            del plain[name]
    return plain


def _system(system: System) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(system).items() if key not in {"scores", "metadata"}}
    return {
        key: value for key, value in {**plain, **system.metadata}.items() if value not in (None, "", {}, [])
    }


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


def _cut(system: System, tasks: Collection[str], languages: Sequence[str] | None) -> System:
    def some(values: dict[str, Value]) -> dict[str, Value]:
        return {code: own for code, own in values.items() if languages is None or code in languages}

    scores = (
        replace(
            score,
            by_language=some(score.by_language),
            se_by_language=some(score.se_by_language),
            interval_by_language=some(score.interval_by_language),
        )
        for score in system.scores
        if score.task in tasks
    )
    absences = {}
    for key, reason in system.absences.items():
        task, _, code = key.partition(":")
        if task in tasks and (languages is None or not code or code in languages):
            absences[key] = reason
    return replace(system, scores=tuple(scores), absences=absences)


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
