"""Content of a board: systems, tasks, languages and scores, as the page's script reads them, and runs as systems.

A run has a system for every protocol and view, and the rows of a diagnosis with examples.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from itertools import accumulate, groupby, zip_longest
from typing import Any

from harness import Run, UsageError, grouped
from harness.languages import known_languages, recorded_name
from harness.metrics import metric_name
from harness.reporting import (
    ADDED,
    PROVENANCE_MARKS,
    EquityReport,
    Section,
    conditions_of,
    is_added,
    origin_mark,
)
from harness.scores import CellGroups, cells_of_row, group_cells
from harness.storage import ItemRecord, TaskScore

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

OTHER_SPLIT = "*"
LEGEND = {
    OTHER_SPLIT: "scored on another split than test (hover shows in which system)",
    **{mark: f"{made} test items" for made, mark in PROVENANCE_MARKS.items()},
    ADDED: "added to the task by others, in none of its means",
}
KINDS = ("single", "pairwise", "data")
"""What a board shows of a diagnosis; rows of other kinds (calibration, confusion) belong to reports."""
KEPT = "kind task language system systems attribute bucket n metric value values ci difference p q examples".split()
MOST_VALUES = 12
"""Values of an attribute whose values are names; the others are counted together."""
SHOWN = 3
"""Examples of a bucket that a board keeps."""
LONGEST = 600
"""Characters of one text of an example; what follows stays in the run's records."""


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


def run_tasks(run: Run) -> list[TaskColumn]:
    """Return the tasks of a run, as its manifest describes them."""
    columns = []
    for task, spec in run.manifest.tasks.items():
        rows = (row for row in run.results.tasks if row.task == task)
        scored = dict.fromkeys(code for row in rows for code in row.by_language)
        described = {
            code: {"name": recorded_name(code, [spec.names]), "family": family, "script": script}
            for code, (family, script) in spec.languages.items()
            if code not in known_languages()
        }
        columns.append(
            TaskColumn(
                task=task,
                metrics=tuple(spec.metrics),
                headline=tuple(spec.headline),
                languages=tuple(spec.published_languages or scored),
                source=spec.source,
                chance=_points(spec.chance),
                added=tuple(code for code in scored if is_added(code, spec)),
                marks=language_marks(run, task),
                described=described,
            )
        )
    return columns


def language_marks(run: Run, task: str) -> dict[str, str]:
    """Return the marks of a task's languages; those without marks are skipped."""
    marks: dict[str, str] = {}
    for cell in run.cells:
        if cell.task == task and cell.status == "ok":
            split = OTHER_SPLIT if cell.stands_in else ""
            letters = marks.get(cell.language, "") + split + origin_mark(cell, run.manifest.tasks[task])
            marks[cell.language] = "".join(dict.fromkeys(letters))
    return {code: letters for code, letters in marks.items() if letters}


def run_systems(run: Run) -> list[System]:
    """Return the systems of a run; conditions that cross every language (an axis) are left to its report."""
    plain = (row for row in run.results.tasks if not set(row.view) & set(run.manifest.tasks[row.task].axes))
    conditions = grouped(((row.protocol, conditions_of(row.view)), row) for row in plain)
    groups = group_cells(run.cells)
    model, about = run.results.model, run.results.run
    systems = []
    for (protocol, view), rows in conditions.items():
        methods = sorted({row.method for row in rows})
        # Where a task was run with several methods, each is a system.
        several = len({(row.task, row.method) for row in rows}) > len({row.task for row in rows})
        for chosen in [[method] for method in methods] if several else [methods]:
            systems.append(
                System(
                    label=run.manifest.model_name,
                    path=run.manifest.model,
                    origin="run",
                    protocol=_true_protocol(protocol, rows, run),
                    method=" + ".join(chosen),
                    adapter=model.adapter,
                    view=view,
                    run=about.id,
                    year=int(about.created[:4]),
                    scores=tuple(_cell_score(row, run, groups) for row in rows if row.method in chosen),
                    absences=_absences(run, protocol),
                    metadata={"parameters": model.parameters} if model.parameters else {},
                )
            )
    return systems


def _true_protocol(protocol: str, rows: Sequence[TaskScore], run: Run) -> str:
    """Return ``in_language`` where a system is tested in its training language alone: nothing is transferred."""
    is_transfer = any(set(row.by_language) - {run.manifest.tasks[row.task].source} for row in rows)
    return protocol if is_transfer or protocol != "zero_shot_transfer" else "in_language"


def created_on(moment: str) -> date:
    """Return the day of a date and time in ISO 8601."""
    return date.fromisoformat(moment[:10])


def _cell_score(row: TaskScore, run: Run, groups: CellGroups) -> Score:
    cells = cells_of_row(row, groups)
    # An error over items is not one over seeds.
    values = {code: own[0].metrics[row.metric] for code, own in cells.items() if len(own) == 1}
    other_split = [code for code, own in cells.items() if any(cell.stands_in for cell in own)]
    # Languages that fragments added are not compared; the error of a mean that counts them is not kept.
    expected = set(run.manifest.tasks[row.task].published_languages) or set(row.by_language)
    published = [value for code, value in row.by_language.items() if code in expected]
    is_published = len(published) == len(row.by_language)
    mean = row.value if is_published else sum(published) / len(published) if published else None
    low, high = (row.ci if is_published else None) or (None, None)
    ends = {code: value.ci for code, value in values.items() if value.ci}
    return Score(
        task=row.task,
        metric=row.metric,
        mean=_points(mean),
        se=_points(row.se if is_published else None),
        low=_points(low),
        high=_points(high),
        by_language={code: value * 100 for code, value in row.by_language.items()},
        se_by_language={code: value.se * 100 for code, value in values.items() if value.se is not None},
        interval_by_language={code: (low * 100, high * 100) for code, (low, high) in ends.items()},
        is_whole=expected <= set(row.by_language),
        note=f"scored on another split than test: {' '.join(other_split)}" if other_split else "",
    )


def _points(value: float | None) -> float | None:
    return None if value is None else value * 100


def _absences(run: Run, protocol: str) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for cell in run.cells:
        if cell.status != "ok" and cell.protocol in {protocol, None}:
            reasons.setdefault(f"{cell.task}:{cell.language}", f"{cell.status}: {cell.reason}"[:300])
    return reasons


def with_diagnosis(board: Board, rows: Iterable[Mapping[str, Any]], runs: Sequence[Run]) -> Board:
    """Return the board with rows of a diagnosis; the items that they name are taken from the runs' records."""
    buckets = []
    for row in rows:
        view = conditions_of(row.get("view") or {})
        for bucket in _buckets(row) if row["kind"] in KINDS else ():
            attribute = f"{row['attribute']} ({view})" if view else row["attribute"]
            # Items are named by their ids; an example that is in the row itself stays as it is.
            cell = f"{row['task']}/{row.get('language') or ''}"
            examples = (row.get("examples") or [])[:SHOWN]
            examples = [item if isinstance(item, dict) else f"{cell}/{item}" for item in examples]
            values = {name: bucket[name] for name in KEPT if bucket.get(name) is not None}
            buckets.append(values | {"attribute": attribute, "examples": examples})
    if not buckets:
        return board
    keys = {key for row in buckets for key in row["examples"] if isinstance(key, str)}
    return replace(board, diagnosis=tuple(buckets), examples=_examples(keys, runs))


def diagnosed(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the diagnosis of every run, of the first against each other one, and of the first one's data.

    Raises `UsageError` for no runs; a pair that cannot be compared is skipped.
    """
    from harness import open_session
    from harness.analysis import DiagnosisOptions, diagnose

    if not runs:
        raise UsageError("--with-diagnosis needs runs: published scores have no items.")
    registry = open_session().registry
    options = DiagnosisOptions(examples=SHOWN)
    rows = diagnose(runs[:1], registry, options, data_only=True).rows()
    rows += [row for run in runs for row in diagnose([run], registry, options).rows()]
    for other in runs[1:]:
        with suppress(UsageError):
            rows += diagnose([runs[0], other], registry, options).rows()
    return rows


def _buckets(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the row, or one for each bin of a distribution."""
    if "histogram" not in row:
        yield row
        return
    bins = [(_bin(edges), edges[-1]) for edges in row["histogram"]]
    if len(bins) < 2:
        return  # an attribute that is the same for all items is no distribution
    if len(row["histogram"][0]) == 2 and len(bins) > MOST_VALUES:
        bins[MOST_VALUES:] = [("others", sum(count for _, count in bins[MOST_VALUES:]))]
    for name, count in bins:
        yield {**row, "bucket": name, "n": count, "metric": "items"}


def _bin(edges: Sequence[Any]) -> str:
    if len(edges) == 2 or edges[0] == edges[1]:
        return f"{edges[0]:g}" if isinstance(edges[0], int | float) else str(edges[0])
    return f"{edges[0]:.3g} to {edges[1]:.3g}"


def _examples(keys: Set[str], runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    cells = {tuple(key.split("/", 2)[:2]) for key in keys}
    examples: dict[str, dict[str, Any]] = {}
    for run in runs:
        for cell in run.cells:
            # A row over all languages names items without their language: the first language that has it is shown.
            codes = [code for code in (cell.language, "") if (cell.task, code) in cells]
            for record in run.records(cell) if cell.status == "ok" and codes else ():
                for key in (f"{cell.task}/{code}/{record.id}" for code in codes):
                    if key not in keys:
                        continue
                    if key not in examples:
                        examples[key] = _example(record, cell.language)
                    if examples[key]["language"] == cell.language:
                        predictions = examples[key]["predictions"]
                        predictions.setdefault(run.manifest.model_name, _cut(record.prediction))
    return examples


def _example(record: ItemRecord, language: str) -> dict[str, Any]:
    inputs = record.fields.get("inputs")
    fields = inputs if isinstance(inputs, Mapping) else record.fields
    return {
        "id": record.id,
        "language": language,
        "inputs": {name: _cut(value) for name, value in fields.items()},
        "reference": _cut(record.reference),
        "predictions": {},
    }


def _cut(value: Any) -> str:
    """Return a field as text: the label of a classification, not the scores of all."""
    value = value["label"] if isinstance(value, Mapping) and "label" in value else value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]}… ({left:,} characters more)"
