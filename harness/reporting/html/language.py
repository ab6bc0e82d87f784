"""A page for every language that answers why it is weak: scores and gaps, weakest buckets, worst items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.analysis.diagnosis import LEAST_ITEMS
from harness.languages.table import known_languages
from harness.reporting.column import Column
from harness.reporting.contrast import Estimate, contrast
from harness.reporting.html.estimate import mean_of_others, score_of
from harness.reporting.html.items import WorstItem, item_element
from harness.reporting.html.layout import anchor, fold, section, table
from harness.reporting.html.material import Material, script_of
from harness.reporting.html.weakness import Row, Weakness, by_attribute, interval_of
from harness.reporting.item_origin import is_added
from harness.reporting.markup.element import Child, Element, element
from harness.reporting.mean_row import row_of
from harness.reporting.number import NOTHING, interval_text, percent, signed
from harness.storage.run_folder import Run

__all__ = ["language_section"]

BUCKETS = 10
"""Attributes that are shown for each language, those with the widest spread first."""
FEWEST = 5
"""Buckets with fewer items are not shown."""
LEGEND = (
    "Differences are in points, with 95 % intervals that take the two sides as independent: too wide, rather than too "
    "narrow, where languages share their items. Sentences restate only what stays significant after Benjamini and "
    f"Hochberg over the whole report, in buckets of at least {LEAST_ITEMS} items."
)


def language_section(
    material: Material,
    weakness: Weakness,
    items: Mapping[str, Sequence[WorstItem]],
    sentences: Mapping[str, Sequence[str]],
) -> Element | None:
    """Return the pages of all languages, folded; None where no language has a cell."""
    pages = [
        _page(material, weakness, code, name, family, items.get(code, ()), sentences.get(code, ()))
        for code, name, family in material.languages
    ]
    if not pages:
        return None
    return section("languages", "Languages: why is one weak?", element("p", LEGEND, class_="note"), pages)


def _page(
    material: Material,
    weakness: Weakness,
    code: str,
    name: str,
    family: str,
    items: Sequence[WorstItem],
    sentences: Sequence[str],
) -> Element:
    script = script_of(material.runs[0], code)
    branch = known_languages().get(code).branch if code in known_languages() else ""
    facts = ", ".join(part for part in (family, branch, f"script {script}", *_made(material, code)) if part)
    title = element("span", f"{name} ({code})", _brief(material, code), role="heading", aria_level=3)
    found = (
        element("ul", [element("li", text) for text in sentences], class_="findings") if sentences else None
    )
    return fold(
        title,
        element("p", facts, class_="soft"),
        found or element("p", "No difference of this language is significant."),
        _scores(material, code, name),
        _buckets(weakness, code),
        _items(items),
        identifier=anchor("language", code),
    )


def _made(material: Material, code: str) -> list[str]:
    """Return how the texts in one language were made, by task: ``human-translated: xnli, xquad``."""
    tasks: dict[str, dict[str, None]] = {}
    for cell in material.runs[0].cells:
        provenance = cell.get("provenance")
        if (
            cell["language"] == code
            and cell["status"] == "ok"
            and provenance
            and not cell["data"].get("translated")
        ):
            added = is_added(code, material.runs[0].manifest["tasks"][cell["task"]])
            named = f"{cell['task']} (added by others)" if added else cell["task"]
            tasks.setdefault(provenance, {})[named] = None
    return [f"{provenance}: {' '.join(names)}" for provenance, names in sorted(tasks.items())]


def _brief(material: Material, code: str) -> Element | None:
    """Return the scores in one language in a few words, for the line that opens its page."""
    run, texts = material.runs[0], []
    for column in material.summary.columns:
        found = score_of(run, column, code)
        if found is not None:
            texts.append(f"{column.title.replace(chr(10), ' ')} {percent(found.value)}")
    return element("span", f" {', '.join(texts)}", class_="soft") if texts else None


def _scores(material: Material, code: str, name: str) -> Element | None:
    rows = [
        row
        for column in material.columns
        for run in material.runs
        if (row := _score_row(material, run, column, code)) is not None
    ]
    heads = (
        "task",
        "system",
        "score",
        "95 % interval",
        "mean of the others",
        "difference",
        "source",
        "difference",
    )
    caption = (
        f"Scores of {name} next to the mean of the other languages and the language of the training data"
    )
    return table(caption, heads, rows, texts={1}) if rows else None


def _score_row(material: Material, run: Run, column: Column, code: str) -> tuple[str, ...] | None:
    own = score_of(run, column, code)
    if own is None:
        return None
    row = row_of(run, column)
    codes = list(row["by_language"]) if row is not None else []
    others = mean_of_others(run, column, code, codes)
    origin = run.manifest["tasks"][column.task].get("source")
    source = score_of(run, column, origin) if origin and origin != code else None
    return (
        column.title.replace("\n", " "),
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


def _buckets(weakness: Weakness, code: str) -> Element | None:
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
    caption = f"Where it is weakest (buckets of fewer than {LEAST_ITEMS} items say little)"
    return table(caption, heads, shown, texts={1, 2, 6}) if shown else None


def _value(row: Row) -> float:
    return float(row["value"])


def _bucket_fields(row: Row) -> Iterator[str]:
    yield interval_of(row)
    yield f"{row['n']:,}"
    yield percent(row["value"])
    yield interval_text(row["ci"])


def _items(items: Sequence[WorstItem]) -> Child:
    if not items:
        return None
    tasks: dict[str, list[WorstItem]] = {}
    for item in items:
        tasks.setdefault(item.title, []).append(item)
    return [
        fold(f"Worst items: {task} ({len(own)})", [_scrolled(item) for item in own])
        for task, own in tasks.items()
    ]


def _scrolled(item: WorstItem) -> Element:
    label = f"{item.title}, item {item.record.id[:200]}"
    return element("div", item_element(item), class_="scroll", tabindex=0, role="region", aria_label=label)
