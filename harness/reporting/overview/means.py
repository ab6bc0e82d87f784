"""Scores and means of runs with their marks: unreadable answers, items of another origin, other cells; differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from harness.reporting.blocks.number import Score
from harness.reporting.blocks.words import Remark, counted, remark_of
from harness.reporting.overview.column import (
    Column,
    cells_of,
    conditions_of,
    group_pairs,
    once_per_run,
    short_protocol,
    train_names,
)
from harness.scores.aggregation import CellGroups, cells_of_row, group_cells
from harness.statistics import NORMAL, wilson
from harness.storage.results import CellResult, Difference, SuiteSummary, TaskScore, TaskSummary
from harness.storage.run_folder import Run

UNREADABLE = "unreadable"
"""Shown instead of a score."""
WITH_UNREADABLE = "?"
"""The mark of a mean over cells of which some are unreadable."""
MOST_UNPARSED = 0.5
"""Share of a cell's answers above which it is unreadable, where no rule could read them, cut or whole."""
ADDED = "⁺"
"""The mark of languages that another package or file added to the task."""
PROVENANCE_MARKS = {"machine-translated": "†", "post-edited": "‡"}


# Answers that could not be read; cells that mostly have such answers have no score of their task ----------------


def unread_count(cell: CellResult) -> int:
    """Return how many answers of a cell could not be read, or were cut before they could be."""
    return cell.unparsed + cell.unanswered


def is_unreadable(cell: CellResult) -> bool:
    """Return whether more than half of a finished cell's answers could not be read."""
    return cell.status == "ok" and bool(unread_count(cell) > MOST_UNPARSED * cell.n)


def marked_mean(score: Score, languages: Collection[str], unreadable: Collection[str]) -> Score:
    """Return the mean over some languages with a mark where some are unreadable; no score where all are."""
    if score.value is None or not set(languages) & set(unreadable):
        return score
    if set(languages) <= set(unreadable):
        return Score(mark=UNREADABLE)
    return replace(score, mark=f"{score.mark}{WITH_UNREADABLE}")


# Items that are not the benchmark's own text: machine-translated, post-edited, added by others ------------------


def origin_mark(cell: CellResult, spec: TaskSummary) -> str:
    """Return the marks of a cell's score.

    None for what a translator made in the run itself, which the head of its column shows. Cells of older runs have
    no provenance, and no mark for it.

    Args:
        cell: One of ``results.json``.
        spec: What the manifest says of its task.
    """
    mark = "" if is_variant(cell) else PROVENANCE_MARKS.get(cell.provenance or "", "")
    return mark + (ADDED if is_added(cell.language, spec) else "")


def is_added(code: str, spec: TaskSummary) -> bool:
    """Return whether a fragment added the language to its task."""
    published = spec.published_languages or ()
    return bool(published) and code not in published


def published_means(
    run: Run, rows: Sequence[TaskScore | None], label: str
) -> list[tuple[str, tuple[Score, ...]]]:
    """Return the row of means over the published languages, where added ones are in the means of some column.

    Args:
        run: Whose means they are.
        rows: By column: its row of ``results.json``.
        label: What the row of means over all languages is called.
    """
    means, is_extended = [], False
    for row in rows:
        if row is None:
            means.append(Score())
            continue
        spec = run.manifest.tasks[row.task]
        values = [value for code, value in row.by_language.items() if not is_added(code, spec)]
        is_whole = len(values) == len(row.by_language)
        is_extended |= not is_whole
        means.append(Score(row.value if is_whole else fmean(values) if values else None))
    return [(f"{label} without {ADDED}", tuple(means))] if is_extended else []


def is_variant(cell: CellResult) -> bool:
    """Return whether a translator made the items of a cell in the run itself."""
    return "translated" in (cell.data or {})


# Means of runs in columns -------------------------------------------------------------------------------------

ColumnPlace = tuple[str, str, str, str]
"""Task, protocol, view and metric of a column."""
Items = Mapping[str, tuple[int, str | None]]
"""By language: the number of items, and the digest of the data; all seeds have the same."""
OTHER_CELLS = "~"
"""A mean over other languages or items than the first run's."""
OTHER_PROTOCOL = "§"
"""A mean under another protocol, or with another prompt, than the column's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanRow:
    """The row of ``results.json`` that one column shows for one run."""

    row: TaskScore | None
    differences: Mapping[str, str] = field(default_factory=dict)
    """By mark: what differs from the first run, and which of its cells are unreadable."""
    unreadable: frozenset[str] = frozenset()
    """Languages of its unreadable cells."""
    is_collapsed: bool = False
    """Whether the model gives one answer to nearly all items of the source language."""

    @property
    def mark(self) -> str:
        """The marks after its number, apart from that of unreadable cells."""
        return "".join(mark for mark in self.differences if mark != WITH_UNREADABLE)

    @property
    def score(self) -> Score:
        """Its mean with the interval, without marks; nothing where it has no row."""
        return Score() if self.row is None else Score(self.row.value, interval=self.row.ci)

    @property
    def transfer_gap(self) -> float | None:
        """The score of the source language minus the mean of the others; none where answers say nothing."""
        return None if self.row is None or self.unreadable or self.is_collapsed else self.row.transfer_gap

    @property
    def gap(self) -> Score:
        """The transfer gap of its row with the interval, without marks."""
        if self.row is None:
            return Score()
        difference = self.row.transfer_gap_interval
        return Score(self.row.transfer_gap, interval=None if difference is None else difference.ci)

    def marked(self, score: Score) -> Score:
        """Return a score with the marks of this row."""
        if score.value is None or self.row is None:
            return score
        return marked_mean(replace(score, mark=self.mark), self.row.by_language, self.unreadable)


def row_of(run: Run, column: Column) -> TaskScore | None:
    """Return the row of ``results.json`` that holds the mean of a column.

    A baseline may have another method than the run: then it is the first row of the task, protocol, view and metric.
    """
    rows = _rows(run).get(_place(column), [])
    same = [row for row in rows if row.method == column.method]
    return next(iter([*same, *rows]), None)


def cells_of_mean(run: Run, row: TaskScore) -> dict[str, list[CellResult]]:
    """Return the cells of a run whose mean a row is, by language."""
    return cells_of_row(row, _groups(run))


@once_per_run
def _groups(run: Run) -> CellGroups:
    return group_cells(run.cells)


@once_per_run
def _rows(run: Run) -> dict[ColumnPlace, list[TaskScore]]:
    return group_pairs((_place(row), row) for row in run.results.tasks)


def _place(row: TaskScore | Column) -> ColumnPlace:
    view = row.view if isinstance(row, Column) else conditions_of(row.view)
    return row.task, row.protocol, view, row.metric


def mean_row(run: Run, first: Run, column: Column, columns: Sequence[Column]) -> MeanRow:
    """Return the mean of a run in a column.

    Where it has no row of the column's protocol and prompt, one of the same task, items and metric takes its place,
    unless that has a column of its own: so the baselines of a prompted model have a number.

    Args:
        run: Whose mean it is.
        first: The run whose cells the others' are compared with; it may be `run`.
        column: Of the report.
        columns: All of the report.
    """
    row, differences = row_of(run, column), dict[str, str]()
    if row is None and run is not first and (row := _substitute(run, column, columns)):
        substitute = (column.task, row.protocol, conditions_of(row.view))
        differences[OTHER_PROTOCOL] = " ".join(filter(None, substitute))
    if row is None:
        return MeanRow(row=None)
    if run is not first and (of_first := row_of(first, column)):
        difference = _difference(_items(run, row), _items(first, of_first))
        differences |= {OTHER_CELLS: f"{column.task} {difference}"} if difference else {}
    by_language, source = cells_of_mean(run, row), run.manifest.tasks[row.task].source
    codes = [code for code, cells in by_language.items() if any(map(is_unreadable, cells))]
    if codes and len(codes) < len(by_language):
        differences[WITH_UNREADABLE] = f"{row.task} {' '.join(codes)}"
    is_collapsed = any(cell.collapse for cell in by_language.get(source or "", ()))
    return MeanRow(row=row, differences=differences, unreadable=frozenset(codes), is_collapsed=is_collapsed)


def _substitute(run: Run, column: Column, columns: Sequence[Column]) -> TaskScore | None:
    spec = run.manifest.tasks.get(column.task)
    # Conditions that change the items of the task; others, such as the prompt, change how it is asked.
    axes = {"variant", "translator", "split", *(spec.axes if spec else ())}

    def item_view(view: str) -> set[str]:
        return {condition for condition in view.split(" ") if condition.partition("=")[0] in axes}

    places = set(map(_place, columns))
    for row in run.results.tasks:
        place = task, _, view, metric = _place(row)
        is_same = (task, metric) == (column.task, column.metric) and item_view(view) == item_view(column.view)
        if is_same and place not in places:
            return row
    return None


def _items(run: Run, row: TaskScore) -> Items:
    cells = {code: seeds[0] for code, seeds in cells_of_mean(run, row).items()}
    return {code: (cell.n, (cell.data or {}).get("digest")) for code, cell in cells.items()}


def _difference(items: Items, firsts: Items) -> str:
    """Return how cells differ from those of the first run; empty where they are the same."""
    if items == firsts:
        return ""
    size, first_size = (
        f"{counted(len(by_language), 'language')}, {counted(sum(count for count, _ in by_language.values()), 'item')}"
        for by_language in (items, firsts)
    )
    if size != first_size:
        return f"{size} (first run: {first_size})"
    return f"{size} of other {'languages' if set(items) != set(firsts) else 'data'}"


def mean_remarks(rows: Iterable[tuple[str, Sequence[MeanRow]]]) -> list[Remark]:
    """Return a remark for every mark that rows have, with what differs; rows are (label, one field per column)."""
    by_mark = group_pairs(
        (mark, f"{label}, {difference}")
        for label, fields in rows
        for mean in fields
        for mark, difference in mean.differences.items()
    )
    distinct = {mark: list(dict.fromkeys(labels)) for mark, labels in by_mark.items()}
    return [
        remark_of(f"mean {mark}", names="; ".join(labels), means=counted(len(labels), "mean"))
        for mark, labels in distinct.items()
    ]


def mean_labels(runs: Sequence[Run]) -> tuple[list[str], list[Remark]]:
    """Return the label of every run's row of means, and a remark for each name that several runs share."""
    models = [run.manifest.model_name for run in runs]
    labels, remarks, counts = ["mean"], list[Remark](), Counter(models[:1])
    for run, model, name in zip(runs[1:], models[1:], train_names(runs)[1:], strict=True):
        counts[model] += 1
        label = f"mean {model}"
        if name:  # A label is short: the model of the first run needs no name.
            label = f"mean {name}" if model == models[0] else f"{label} ({name})"
        elif counts[model] > 1:
            label = f"{label} ({counts[model]})"
            remarks.append(Remark(f"{label}: {run.path}"))
        labels.append(label)
    return labels, remarks


# Differences of two scores: those of languages as the run keeps them, others from their standard errors -----------


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A score in [0, 1] with what is known of its uncertainty."""

    value: float
    se: float | None = None
    interval: tuple[float, float] | None = None
    """95 %."""
    draws: int = 0
    """Clusters, or single items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A score minus another one, as fractions."""

    difference: float
    low: float
    high: float
    p: float
    """Two-sided; of the normal distribution where it is not one that the run keeps."""
    is_paired: bool = False
    """Whether it is over the same items in both, as in parallel tasks."""


def contrast(one: Estimate, other: Estimate) -> Contrast | None:
    """Return the first minus the second, with a 95 % interval and p.

    The interval recovers the variances from the two intervals, each of its own kind (MOVER; Zou and Donner 2008).
    Where both are of the same items it is too wide rather than too narrow. None where an error or interval is unknown,
    or both errors are 0.
    """
    if one.se is None or other.se is None or one.interval is None or other.interval is None:
        return None
    if (se := math.hypot(one.se, other.se)) == 0:
        return None
    difference = one.value - other.value
    return Contrast(
        difference=difference,
        low=difference - math.hypot(one.value - one.interval[0], other.interval[1] - other.value),
        high=difference + math.hypot(one.interval[1] - one.value, other.value - other.interval[0]),
        p=math.erfc(abs(difference) / se / math.sqrt(2)),
    )


def from_others(run: Run, column: Column, code: str, codes: Sequence[str]) -> Contrast | None:
    """Return a language minus the mean of the others, as the run keeps it where these are its languages.

    Runs of older versions and means over fewer languages have it from the scores' own intervals, unpaired.
    """
    row, mean = row_of(run, column), mean_of_others(run, column, code, codes)
    score = score_of(run, column, code)
    scored = {*_scores(run, column, codes), *([code] if score is not None else [])}
    if row is not None and scored == set(row.by_language) and (kept := row.from_others.get(code)):
        return _kept(kept)
    return None if score is None or mean is None else contrast(score, mean)


def from_source(run: Run, column: Column, code: str, source: str) -> Contrast | None:
    """Return a language minus the source language, as the run keeps it, or from the scores' own intervals."""
    row, score, origin = row_of(run, column), score_of(run, column, code), score_of(run, column, source)
    if score is None or origin is None:
        return None
    difference = row.from_source.get(code) if row is not None else None
    return contrast(score, origin) if difference is None else _kept(difference)


def _kept(difference: Difference) -> Contrast | None:
    if difference.ci is None or difference.p is None:
        return None
    low, high = difference.ci
    is_paired = str(difference.ci_method).startswith("paired")
    return Contrast(difference=difference.value, low=low, high=high, p=difference.p, is_paired=is_paired)


@once_per_run
def score_of(run: Run, column: Column, code: str) -> Estimate | None:
    """Return the score of one language; that of several seeds is their mean, with the interval that the run keeps.

    Unreadable cells have none.
    """
    cells = cells_of(run, column, code)
    if any(map(is_unreadable, cells)):
        return None
    scored = [cell for cell in cells if cell.status == "ok" and column.metric in cell.metrics]
    values = [cell.metrics[column.metric] for cell in scored]
    if len(scored) == 1:
        [cell], [score] = scored, values
        interval, draws = score.ci, score.clusters or cell.n
        is_clustered = bool(run.manifest.specs.get(cell.task, {}).get("cluster")) and not score.clusters
        if interval is None and score.ci_method == "constant" and not is_clustered and draws:
            # Draws that are all wrong or all right have the interval of Wilson.
            interval = wilson(score.value * draws, draws) if score.value in {0.0, 1.0} else None
        se = score.se
        if not se and interval is not None:
            # Where all items are equal, the error is that of the reach of the interval, not 0.
            se = max(score.value - interval[0], interval[1] - score.value) / NORMAL
        return Estimate(value=score.value, se=se, interval=interval, draws=draws)
    row = row_of(run, column) if values else None
    if row is not None and (mean := row.over_seeds.get(code)):
        return Estimate(value=row.by_language[code], se=mean.se, interval=mean.ci, draws=mean.clusters or 0)
    return Estimate(value=fmean(score.value for score in values)) if values else None


@once_per_run
def _scores(run: Run, column: Column, codes: Sequence[str]) -> dict[str, Estimate]:
    """Return the scores of those languages that have one."""
    return {code: score for code in codes if (score := score_of(run, column, code)) is not None}


@once_per_run
def mean_of_others(run: Run, column: Column, code: str, codes: Sequence[str]) -> Estimate | None:
    """Return the unweighted mean of the other languages, whose errors are taken as independent."""
    scores = [score for language, score in _scores(run, column, codes).items() if language != code]
    if not scores:
        return None
    value = fmean(score.value for score in scores)
    errors = [score.se for score in scores if score.se is not None]
    if len(errors) < len(scores):
        return Estimate(value=value)
    se = math.hypot(*errors) / len(scores)
    interval = (max(0.0, value - NORMAL * se), min(1.0, value + NORMAL * se))
    return Estimate(value=value, se=se, interval=interval, draws=min(score.draws for score in scores))


# Published scores --------------------------------------------------------------------------------------------
#
# One is shown in the columns of its task, metric and conditions, under its protocol or another one that fine-tunes,
# which its label then names. Next to a mean over fewer languages than the task has it is the mean over the same
# languages, or marked where these are not printed.

PUBLISHED = "published "
"""How the labels of their rows begin."""
NOT_COMPARABLE = "°"
"""The mark of a number that its document calls not comparable."""
Document = Mapping[str, Any]
FITTED = frozenset({"zero_shot_transfer", "translate_train", "translate_train_all", "in_language"})
"""Protocols of fine-tuned models, whose rows the papers print in one table (Ruder et al. 2021, Table 4)."""
TRANSLATORS = frozenset({"translator", "train_translator"})
"""Conditions that published scores do not name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(Column):
    """A column of means over some languages."""

    method: str = ""
    view: str = ""
    languages: frozenset[str] = frozenset()
    """Those of the run's mean; empty where they are not known."""
    published: frozenset[str] = frozenset()
    """Those of the task; empty where they are not known."""


def place_of(column: Column, row: TaskScore | None, spec: TaskSummary | None) -> Place:
    """Return the place of a column over the languages of a run's mean; those that others added do not count."""
    published = frozenset(spec.published_languages if spec is not None else ())
    scored = frozenset(row.by_language if row is not None else ())
    return Place(**asdict(column), languages=scored & (published or scored), published=published)


def is_shown(item: Document, protocols: Collection[str]) -> bool:
    """Return whether a document stands next to runs under some protocols."""
    protocol = item["protocol"]
    return (
        protocol == "human"
        or protocol in protocols
        or (protocol in FITTED and not FITTED.isdisjoint(protocols))
    )


def published_label(item: Document, protocols: Collection[str]) -> str:
    """Return the label of a row: the system, with its protocol where the columns have another."""
    protocol = item["protocol"]
    setting = "" if protocol in {*protocols, "human"} else f", {short_protocol(protocol) or 'zero-shot'}"
    return f"{PUBLISHED}{item['label']}{setting}"


def published_score(item: Document | None, place: Place) -> Score:
    """Return the score of a document in a column, marked; nothing where it has none under these conditions."""
    value = None if item is None else _entry(item, "scores", place)
    if item is None or value is None or not is_shown(item, {place.protocol}):
        return Score()
    if _conditions(item, place.task) != _conditions_named(place.view.split(" ")):
        return Score()
    mark = NOT_COMPARABLE if place.task in item["comparable"] else ""
    table, codes = by_language(item, place), place.languages
    if codes and codes < set(table):
        value = fmean(table[code] for code in codes)
    elif table and place.published and place.published.isdisjoint(table):
        return Score()  # another benchmark of the task's format
    elif codes and codes != set(table) and not (codes >= place.published and set(table) < codes):
        # The mean of a table of which a part could be read is over all languages.
        mark = OTHER_CELLS + mark
    return Score(value / 100, mark=mark)


def by_language(item: Document, place: Place) -> Mapping[str, float]:
    """Return the printed scores of a document by language, in percent; empty where there are none."""
    table: Mapping[str, float] = _entry(item, "languages", place) or {}
    return table


def _entry(item: Document, name: str, place: Place) -> Any:
    """Return the entry of a document for a task and metric; None where it prints nothing."""
    return item.get(name, {}).get(place.task, {}).get(place.metric)


def published_systems(
    published: Sequence[Document], places: Sequence[Place]
) -> dict[str, list[Document | None]]:
    """Return by label the document that each place shows; documents of one label fill one row together.

    Where two sources have a score of one label in one place, the row of the second names its source.
    """
    protocols = {column.protocol for column in places}
    rows: dict[str, list[Document | None]] = {}
    for item in published:
        filled = [published_score(item, column).value is not None for column in places]
        if not any(filled):
            continue
        label = published_label(item, protocols)
        if any(document and mine for document, mine in zip(rows.get(label, ()), filled, strict=False)):
            label = f"{label}, {item['source'].partition(',')[0]}"
        before = rows.get(label, [None] * len(places))
        rows[label] = [item if mine else document for document, mine in zip(before, filled, strict=True)]
    return rows


def published_rows(
    published: Sequence[Document], places: Sequence[Place]
) -> list[tuple[str, tuple[Score, ...]]]:
    """Return the row of every published system with a score in some place."""
    systems = published_systems(published, places)
    return [(label, tuple(map(published_score, items, places))) for label, items in systems.items()]


def published_groups(
    published: Sequence[Document], place: Place, groups: Sequence[str]
) -> Iterator[tuple[str, tuple[Score, ...]]]:
    """Yield for every system with printed scores by group their means over the languages of a place, and its mean."""
    for item in published:
        total, tables = published_score(item, place), _entry(item, "groups", place)
        if total.value is not None and tables:
            codes = place.languages if place.languages <= set(tables) else set(tables)
            columns = ([tables[code][group] for code in codes if group in tables[code]] for group in groups)
            means = [Score(fmean(values) / 100, mark=total.mark) if values else Score() for values in columns]
            yield published_label(item, {place.protocol}), (*means, total)


def is_shown_in_suite(item: Document, suite: SuiteSummary, protocol: str, view: Mapping[str, str]) -> bool:
    """Return whether a document has scores under the conditions of a suite's row, next to those of the suite itself."""
    conditions = _conditions_named(_parts(view))
    return (
        item.get("suite") == suite.suite
        and is_shown(item, {protocol})
        and all(
            _conditions(item, task) - _parts(suite.views.get(task, {})) == conditions
            for task in item["scores"]
            if task in suite.tasks
        )
    )


def _conditions(item: Document, task: str) -> set[str]:
    return _parts(item.get("views", {}).get(task, {}))


def _parts(view: Mapping[str, str]) -> set[str]:
    return {f"{name}={value}" for name, value in view.items()}


def _conditions_named(parts: Iterable[str]) -> set[str]:
    """Return the conditions that published scores name."""
    return {condition for condition in parts if condition and condition.partition("=")[0] not in TRANSLATORS}


def shown_documents(published: Sequence[Document], places: Sequence[Place]) -> Iterator[Document]:
    """Yield the documents that some place shows."""
    return (
        item
        for item in published
        if any(published_score(item, column).value is not None for column in places)
    )
