"""A page for every language that answers why it is weak: scores and gaps, weakest buckets, worst items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.analysis.diagnosis import LEAST_ITEMS
from harness.languages.table import known_languages
from harness.reporting.column import Column
from harness.reporting.contrast import Estimate, contrast, mean_of_others, score_of
from harness.reporting.item_origin import is_added
from harness.reporting.items import WorstItem, item_table
from harness.reporting.material import Material, script_of
from harness.reporting.mean_row import row_of
from harness.reporting.model import Block, Fold, Note, Notes, Table, anchor, rows_of
from harness.reporting.number import NOTHING, interval_text, percent, signed
from harness.reporting.weakness import Row, Weakness, by_attribute, interval_of
from harness.storage.run_folder import Run

__all__ = ["language_blocks"]

BUCKETS = 10
"""Attributes that are shown for each language, those with the widest spread first."""
FEWEST = 5
"""Buckets with fewer items are not shown."""
NOT_SIGNIFICANT = "No difference of this language is significant."
LEGEND = (
    "Differences are in points, with 95 % intervals that take the two sides as independent: too wide, rather than too "
    "narrow, where languages share their items. Sentences restate only what stays significant after Benjamini and "
    f"Hochberg over the whole report, in buckets of at least {LEAST_ITEMS} items."
)


def language_blocks(
    material: Material,
    weakness: Weakness,
    items: Mapping[str, Sequence[WorstItem]],
    sentences: Mapping[str, Sequence[str]],
) -> list[Block]:
    """Return the pages of all languages, folded; nothing where no language has a cell."""
    pages = [
        Fold(
            title=f"{name} ({code})",
            soft=_brief(material, code),
            blocks=[
                Note(_facts(material, code, family), "soft"),
                Notes(found, "findings") if (found := sentences.get(code)) else Note(NOT_SIGNIFICANT),
                *_scores(material, code, name),
                *_buckets(weakness, code),
                *_items(items.get(code, ())),
            ],
            anchor=anchor("language", code),
            heading=True,
        )
        for code, name, family in material.languages
    ]
    return [Note(LEGEND, "note"), *pages] if pages else []


def _facts(material: Material, code: str, family: str) -> str:
    branch = known_languages().get(code).branch if code in known_languages() else ""
    script = f"script {script_of(material.runs[0], code)}"
    return ", ".join(part for part in (family, branch, script, *_made(material, code)) if part)


def _made(material: Material, code: str) -> list[str]:
    """Return how the texts in one language were made, by task: ``human-translated: xnli, xquad``."""
    tasks: dict[str, dict[str, None]] = {}
    for cell in material.runs[0].cells:
        provenance = cell.provenance
        if cell.language == code and cell.status == "ok" and provenance and not cell.data.get("translated"):
            added = is_added(code, material.runs[0].manifest.tasks[cell.task])
            named = f"{cell.task} (added by others)" if added else cell.task
            tasks.setdefault(provenance, {})[named] = None
    return [f"{provenance}: {' '.join(names)}" for provenance, names in sorted(tasks.items())]


def _brief(material: Material, code: str) -> str:
    """Return the scores in one language in a few words, for the line that opens its page."""
    found = ((column, score_of(material.runs[0], column, code)) for column in material.summary.columns)
    return ", ".join(f"{column.plain_title} {percent(own.value)}" for column, own in found if own is not None)


def _scores(material: Material, code: str, name: str) -> list[Block]:
    rows = [
        row
        for column in material.columns
        for run in material.runs
        if (row := _score_row(material, run, column, code)) is not None
    ]
    return _table(
        f"Scores of {name} next to the mean of the other languages and the language of the training data",
        (
            "task",
            "system",
            "score",
            "95 % interval",
            "mean of the others",
            "difference",
            "source",
            "difference",
        ),
        rows,
        words={0},
    )


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], words: set[int]) -> list[Block]:
    corner, *further = heads
    table = Table(
        title=title, corner=corner, heads=tuple(further), rows=rows_of(rows), words=frozenset(words)
    )
    return [table] if rows else []


def _score_row(material: Material, run: Run, column: Column, code: str) -> tuple[str, ...] | None:
    own = score_of(run, column, code)
    if own is None:
        return None
    row = row_of(run, column)
    codes = list(row.by_language) if row is not None else []
    others = mean_of_others(run, column, code, codes)
    origin = run.manifest.tasks[column.task].source
    source = score_of(run, column, origin) if origin and origin != code else None
    return (
        column.plain_title,
        material.name(run),
        percent(own.value),
        interval_text(own.interval),
        percent(others.value if others else None),
        _difference(own, others),
        f"{origin} {percent(source.value)}" if source else NOTHING,
        _difference(own, source),
    )


def _difference(own: Estimate, other: Estimate | None) -> str:
    if other is None:
        return NOTHING
    found = contrast(own, other)
    if found is None:
        return signed(own.value - other.value)
    return f"{signed(found.difference)} ({signed(found.low)} to {signed(found.high)})"


def _buckets(weakness: Weakness, code: str) -> list[Block]:
    """Return the weakest and the strongest bucket of the attributes in which one language differs most."""
    rows = [
        row
        for row in (weakness.runs[0] if weakness.runs else ())
        if row["kind"] == "single" and row["language"] == code and row["value"] is not None
    ]
    found = []
    for (task, _, attribute), buckets in by_attribute(rows).items():
        full = [row for row in buckets if row["n"] >= FEWEST]
        if len(full) > 1:
            low, high = min(full, key=_value), max(full, key=_value)
            found.append((high["value"] - low["value"], task, attribute, low, high))
    found.sort(key=lambda one: (-one[0], one[1], one[2]))
    shown = [
        (
            task,
            f"{attribute}: {weakness.title(attribute)}",
            *_bucket_fields(low),
            *_bucket_fields(high),
            signed(-difference),
        )
        for difference, task, attribute, low, high in found[:BUCKETS]
        if difference > 0
    ]
    heads = (
        "task",
        "attribute",
        *("weakest bucket", "n", "score", "95 % interval"),
        *("best bucket", "n", "score", "95 % interval"),
        "difference",
    )
    title = f"Where it is weakest (buckets of fewer than {LEAST_ITEMS} items say little)"
    return _table(title, heads, shown, words={0, 1, 5})


def _value(row: Row) -> float:
    return float(row["value"])


def _bucket_fields(row: Row) -> Iterator[str]:
    yield interval_of(row)
    yield f"{row['n']:,}"
    yield percent(row["value"])
    yield interval_text(row["ci"])


def _items(items: Sequence[WorstItem]) -> list[Block]:
    tasks: dict[str, list[WorstItem]] = {}
    for item in items:
        tasks.setdefault(item.title, []).append(item)
    return [
        Fold(title=f"Worst items: {task} ({len(own)})", blocks=[item_table(item) for item in own])
        for task, own in tasks.items()
    ]
