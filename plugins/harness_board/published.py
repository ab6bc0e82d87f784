"""Published scores: of the documents that task specs ship, and of tables: ``--from-scores FILE.tsv``.

Tables are tab-separated values, in percent. The header decides which of three layouts it is; empty fields and ``NA``
are scores that are not known:

========================================  =====================================================================
``model task metric language score``      one score per row; ``setting`` and ``language`` are optional
``model setting xnli xquad_f1 ...``       one system a row, one task (and metric) a column
``model en ar bg ...``                    one system a row, one language a column; the file is named after the
                                          task and metric: ``table19_xquad_f1.tsv``, ``xnli.tsv``
========================================  =====================================================================

``avg``, ``avg_printed``, ``mean_of_cells`` and ``note`` are no tasks: a printed average counts where cells are
missing, notes are shown.

What the maker of a system states about it is a file too: ``--metadata model.yaml``. Amounts of data are a value and a
unit, since papers print tokens, bytes and sentence pairs side by side (XTREME-R, Table 13): numbers of different units
are never compared.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import Field

from harness import DataError, UsageError
from harness.languages import known_languages
from harness.reporting import few_items
from harness.specs import Catalog, PublishedSpec, SpecModel, read_model
from harness.statistics import wilson
from harness_board.document import Score, System, TaskColumn

Unit = Literal["tokens", "words", "characters", "bytes", "sentences", "sentence_pairs", "documents"]
ASIDE = frozenset({"model", "setting", "avg", "avg_printed", "mean_of_cells", "note"})
LONG = ("model", "task", "metric", "score")
SHORT_METRICS = {"em": "exact_match", "f1": "f1", "acc": "accuracy"}
SUFFIXES = {
    "translate-train-all": "translate_train_all",
    "translate-train": "translate_train",
    "translate-test": "translate_test",
    "zero-shot": "zero_shot_transfer",
}
"""Settings as tables write them, in their own column or after the name of a model."""


class Amount(SpecModel):
    """So much data, in one of a few units."""

    value: Annotated[float, Field(gt=0)]
    unit: Unit


class Parameters(SpecModel):
    """The size of a model."""

    total: Annotated[int, Field(gt=0)]
    active: Annotated[int, Field(gt=0)] | None = None
    """Those that one token passes through, where experts are chosen among."""


class SystemMetadata(SpecModel):
    """One system; every key but `name` is optional."""

    name: str
    """As the board calls the system: ``hf:xlm-roberta-base``, ``XLM-R Large``."""
    applies_to: tuple[str, ...] = ()
    """Further names of it."""
    label: str | None = None
    """What the board shall call it instead."""
    parameters: Parameters | None = None
    monolingual: Amount | None = None
    """Data of the pre-training in single languages."""
    parallel: Amount | None = None
    fine_tuning: str | None = None
    """Data of the fine-tuning, in words."""
    languages_seen: Annotated[int, Field(gt=0)] | tuple[str, ...] | None = None
    """Of the pre-training: how many, or their codes."""
    transfer: Literal["zero_shot", "translate_train", "translate_test", "in_language", "few_shot"] | None = (
        None
    )
    licence: str | None = None
    year: Annotated[int, Field(ge=1950, le=2100)] | None = None
    paper: str | None = None
    url: Annotated[str, Field(pattern="^(https://|http://)")] | None = None
    contamination: str | None = None
    """What is known of test data among the training data."""
    reported: Literal["self_reported", "reproduced"] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the systems that it is about."""
        return (self.name, *self.applies_to)

    def plain(self) -> dict[str, Any]:
        """Return the fields that a page needs."""
        found = self.model_dump(mode="json", exclude_none=True, exclude={"name", "applies_to", "label"})
        if self.parameters is not None:
            found["parameters"] = self.parameters.total
            if self.parameters.active is not None:
                found["active"] = self.parameters.active
        if isinstance(self.languages_seen, tuple):
            found["languages_seen"] = len(self.languages_seen)
        return found


def read_metadata(path: Path) -> SystemMetadata:
    """Return a metadata file; raises `UsageError`, and `SpecError` with all its faults and their lines."""
    return read_model(SystemMetadata, path, "metadata file")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """One score of a file: by language, or of a whole task (no language)."""

    model: str
    setting: str
    task: str
    metric: str
    """As the file names it; empty for the task's own."""
    language: str
    value: float
    printed: bool = False
    """Whether it is a printed average, next to cells by language."""
    note: str = ""
    place: str = ""
    """File and line."""


def read_scores(path: Path) -> list[ScoreTable]:
    """Return the scores of a file, or of all ``.tsv`` files of a folder; raises `UsageError` or `DataError`."""
    if path.is_dir():
        files = sorted(path.glob("*.tsv"))
        if not files:
            raise UsageError(f"The folder {str(path)!r} holds no .tsv file.")
        return [row for file in files for row in _file(file, strict=False)]
    if not path.is_file():
        raise UsageError(f"The score file {str(path)!r} does not exist.")
    return list(_file(path, strict=True))


def _file(path: Path, *, strict: bool) -> Iterator[ScoreTable]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    head, *rows = [*csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)] or [[]]
    columns = [name for name in head if name not in ASIDE]
    if "model" not in head or not columns or len(set(head)) < len(head):
        if not strict:
            return
        raise DataError(
            f"{path}:1: expected tab-separated columns with 'model' and scores; found {', '.join(head) or 'nothing'}."
        )
    for number, fields in enumerate(rows, start=2):
        if any(fields):
            if len(fields) > len(head):
                raise DataError(f"{path}:{number}: expected {len(head)} columns, found {len(fields)}.")
            row = dict.fromkeys(head, "") | dict(zip(head, fields, strict=False))
            yield from _row(row, columns, path, number, strict=strict)


def _row(
    row: Mapping[str, str], columns: Sequence[str], path: Path, number: int, *, strict: bool
) -> Iterator[ScoreTable]:
    model, setting = _setting(row["model"], row.get("setting", ""))
    if set(columns) >= {"task", "metric"} or "score" in columns:
        missing = [name for name in LONG if name not in row]
        if missing:
            raise DataError(f"{path}:1: a file with one score per row has no column {', '.join(missing)}.")
        scores = [(row["task"], row["metric"], row.get("language", ""), "score", False)]
    elif all(name in known_languages().listed for name in columns):
        task, _, metric = re.sub(r"^table\d+_", "", path.stem).partition("_")
        scores = [(task, metric, code, code, False) for code in columns]
        scores.append((task, metric, "", "avg_printed" if "avg_printed" in row else "avg", True))
    elif strict or {"avg", "setting"} & set(row):
        parts = {name: name.partition("_") for name in columns}
        scores = [(task, metric, "", name, False) for name, (task, _, metric) in parts.items()]
    else:
        return  # a table of something else in the same folder
    place = f"{path}:{number}"
    shared = {"model": model, "setting": setting, "note": row.get("note", ""), "place": place}
    for task, metric, language, column, printed in scores:
        value = _number(row.get(column, ""), place, column)
        if value is not None:
            yield ScoreTable(
                task=task, metric=metric, language=language, value=value, printed=printed, **shared
            )


def _setting(model: str, setting: str) -> tuple[str, str]:
    for suffix, protocol in SUFFIXES.items():
        if model.endswith(f" {suffix}"):
            return model.removesuffix(f" {suffix}"), protocol
        if setting == suffix:
            base, several, _ = model.partition(", multilingual")
            return base, f"{protocol}_all" if several else protocol
    return model, setting


def _number(text: str, place: str, column: str) -> float | None:
    if text.strip() in {"", "NA", "-", "N/A"}:
        return None
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{place}: expected a score in column {column!r}, found {text!r}.") from error
    if not 0 <= value <= 100:
        raise DataError(f"{place}: expected percent in column {column!r}, found {text}.")
    return value


def table_systems(
    rows: Iterable[ScoreTable], columns: Mapping[str, TaskColumn], renamed: Mapping[str, str]
) -> list[System]:
    """Return the systems of score files, in the order in which they are met.

    Args:
        rows: What `read_scores` returned, of all files.
        columns: The known tasks by name; a task that is not known takes the file's metrics as they are.
        renamed: A model's name in a file -> its name on the board.
    """
    rows = list(rows)
    stated = {(renamed.get(row.model, row.model), row.setting) for row in rows}
    usual = "zero_shot_transfer"
    systems: dict[tuple[str, str], dict[tuple[str, str], list[ScoreTable]]] = {}
    for row in rows:
        name = renamed.get(row.model, row.model)
        metric = _metric(row, columns.get(row.task))
        # A protocol that no row of the model states is not known.
        setting = row.setting or (usual if (name, usual) in stated else "")
        systems.setdefault((name, setting), {}).setdefault((row.task, metric), []).append(row)
    return [
        System(
            label=label,
            origin="file",
            protocol=setting,
            scores=tuple(_score(*key, own, columns.get(key[0])) for key, own in by_task.items()),
            metadata={"reported": "self_reported"},
        )
        for (label, setting), by_task in systems.items()
    ]


def _metric(row: ScoreTable, column: TaskColumn | None) -> str:
    """Return the metric of the task that a file's short name means; raises `DataError` where none fits."""
    if column is None:
        return row.metric or "score"
    if not row.metric and len(column.headline) > 1:
        names = [f"{row.task}_{_short(name)}" for name in column.headline]
        raise DataError(
            f"{row.place}: {row.task!r} has {len(names)} scores ({', '.join(column.headline)}); none is named.",
            hint=f"Name the file or the column {' or '.join(names)}.",
        )
    if not row.metric:
        return column.headline[0]
    wanted = SHORT_METRICS.get(row.metric, row.metric)
    fitting = [name for name in column.metrics if name == wanted or name.endswith(f"_{wanted}")]
    if not fitting:
        raise DataError(
            f"{row.place}: a score is named {row.task}_{row.metric}, but {row.task!r} has {', '.join(column.metrics)}."
        )
    return fitting[0]


def _short(metric: str) -> str:
    """Return the name that files give a metric."""
    for short, name in SHORT_METRICS.items():
        if metric in {name, short} or metric.endswith(f"_{name}"):
            return short
    return metric


def _score(task: str, metric: str, rows: Sequence[ScoreTable], column: TaskColumn | None) -> Score:
    """Return one score: the table of tasks before a printed average, that before the mean of the cells."""
    cells = {row.language: row.value for row in rows if row.language}
    stated = [row.value for row in rows if not row.language and not row.printed]
    printed = [row.value for row in rows if row.printed]
    expected = set(column.languages) if column is not None else set(cells)
    is_whole = bool(stated or printed) or expected <= set(cells)
    mean = next(iter([*stated, *printed]), fmean(cells.values()) if cells else None)
    notes = list(dict.fromkeys(row.note for row in rows if row.note))
    if stated and printed and abs(stated[0] - printed[0]) > 0.05:
        notes.append(f"another table prints {printed[0]:g}")
    note = "; ".join(notes)
    return Score(task=task, metric=metric, mean=mean, by_language=cells, is_whole=is_whole, note=note)


# Documents of task specs ------------------------------------------------------------------------------


def published_systems(catalog: Catalog, suite: str, means: Collection[str] = ()) -> list[System]:
    """Return the systems that were published on a suite, or on a task; raises `UnknownNameError` for neither.

    Args:
        catalog: The installed tasks and suites.
        suite: The name of the suite or task.
        means: Metrics that are means of item scores: they have errors where the number of items is known.
    """
    if suite in catalog.names("task"):
        languages: Mapping[str, Sequence[str]] = {}
        documents = [item for item in catalog.published_for() if suite in item.scores]
    else:
        languages, documents = catalog.suite(suite).languages, catalog.published_for(suite)
    systems = []
    for item in documents:
        scores = []
        for task, metrics in item.scores.items():
            release = _release_items(catalog, task, languages.get(task))
            for metric in metrics:
                counts, is_parallel = release if metric in means else ({}, False)
                scores.append(_published_score(item, task, metric, counts, is_parallel))
        systems.append(
            System(
                label=item.label,
                origin="published",
                protocol=item.protocol,
                view=_view(item),
                scores=tuple(scores),
                metadata={"paper": item.source, "fine_tuning": item.recipe, "reported": "self_reported"},
            )
        )
    return systems


def _view(item: PublishedSpec) -> str:
    """Return the conditions that all tasks of a system share."""
    views = [item.views.get(task, {}).items() for task in item.scores]
    shared = set(views[0]).intersection(*views[1:])
    return " ".join(f"{name}={value}" for name, value in sorted(shared))


def _release_items(
    catalog: Catalog, task: str, languages: Iterable[str] | None
) -> tuple[dict[str, int | None], bool]:
    """Return the items of each language in the first release of a task that has it, and whether they are parallel."""
    if task not in catalog.names("task"):
        return {}, False
    entry = catalog.task(task)
    codes = languages or [code for code in entry.spec.languages if code not in entry.added]
    releases = entry.spec.releases.values()
    counts = {code: next(filter(None, (release.count(code) for release in releases)), None) for code in codes}
    return counts, entry.spec.parallel


def _published_score(
    item: PublishedSpec, task: str, metric: str, release: Mapping[str, int | None], parallel: bool
) -> Score:
    """Return one published score; the mean of n items has the error of a share of n, sqrt(p (1 - p) / n).

    No item score in [0, 1] with this mean varies more than one that is either 0 or 1.
    """
    notes = [f"Not comparable: {item.comparable[task]}."] if task in item.comparable else []
    notes += [f"Erratum: {item.errata[task]}."] if task in item.errata else []
    cells = dict(item.languages.get(task, {}).get(metric, {}))
    counts: Mapping[str, int | None] = item.items.get(task, {})
    se = None
    if counts:
        notes.append(f"{few_items(task, item.items[task])}.")
    elif task not in item.comparable and item.protocol != "human" and any(release.values()):
        counts = release
        notes.append("Error: of as many independent items as the release has.")
        se = _task_error(cells, release, parallel=parallel)
    known = {code: n for code in cells if (n := counts.get(code)) is not None}
    ends = {code: wilson(cells[code] / 100 * n, n) for code, n in known.items()}
    return Score(
        task=task,
        metric=metric,
        mean=item.scores[task][metric],
        se=se,
        by_language=cells,
        se_by_language={code: math.sqrt(cells[code] * (100 - cells[code]) / n) for code, n in known.items()},
        interval_by_language={code: (100 * low, 100 * high) for code, (low, high) in ends.items()},
        reason=item.comparable.get(task, ""),
        note=" ".join(notes),
    )


def _task_error(
    cells: Mapping[str, float], counts: Mapping[str, int | None], *, parallel: bool
) -> float | None:
    """Return the standard error of a mean over languages; None where the items of one are not known.

    A language without a printed score has the largest error, that of 50. The translations of an item are one draw: the
    error of their mean is at most the mean of their errors.
    """
    sizes = [(cells.get(code, 50.0), n) for code, n in counts.items() if n is not None]
    if len(sizes) < len(counts):
        return None
    errors = [math.sqrt(value * (100 - value) / n) for value, n in sizes]
    return fmean(errors) if parallel else math.hypot(*errors) / len(errors)


def published_metadata() -> list[SystemMetadata]:
    """Return the metadata of published systems in this package."""
    folder = resources.files("harness_board") / "metadata"
    return [read_metadata(path) for path in sorted(Path(str(folder)).glob("*.yaml"))]


def catalog_tasks(catalog: Catalog, names: Iterable[str]) -> dict[str, TaskColumn]:
    """Return those of the named tasks that are installed, with the languages that the task itself has."""
    installed = set(catalog.names("task"))
    entries = {name: catalog.task(name) for name in dict.fromkeys(names) if name in installed}
    return {
        name: TaskColumn(
            task=name,
            metrics=tuple(spec.metrics),
            headline=tuple(spec.headline),
            languages=tuple(code for code in spec.languages if code not in entry.added),
            source=spec.transfer.source if spec.transfer is not None else None,
            chance=None if spec.chance is None else spec.chance * 100,
        )
        for name, entry in entries.items()
        for spec in [entry.spec]
    }
