"""Published scores next to those of runs.

A published score is shown in the columns of its task, metric and conditions, under its protocol or another one that
fine-tunes, which its label then names. Next to a mean over fewer languages than the task has it is the mean over the
same languages, or marked where these are not printed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from harness.reporting.blocks.number import Score
from harness.reporting.overview.column import Column, short_protocol
from harness.reporting.overview.mean_row import OTHER_CELLS
from harness.storage.results import SuiteSummary, TaskScore, TaskSummary

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
    return f"published {item['label']}{setting}"


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
