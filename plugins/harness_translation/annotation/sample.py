"""The draw of the items to relabel: at random, or by strata.

Sheets of different texts share no item, so that no annotator sees the same item in two texts; the human evaluation of
the translation-errors paper (EACL 2024, section 4.1) is drawn in the same way. The weight of a row is the number of
items of its stratum that it represents.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from harness import UsageError
from harness.data import draw
from harness_translation.annotation.item import AnnotationItem, TextItems
from harness_translation.annotation.key import Sheet, SheetRow, row_name, sheet_names

Allocation = Literal["proportional", "equal"]
ALL: Final = "all"
"""The one stratum of a simple random sample."""


def draw_sheets(
    texts: Sequence[TextItems],
    *,
    size: int,
    seed: int,
    stratify: str | None = None,
    allocation: Allocation = "proportional",
) -> tuple[Sheet, ...]:
    """Return the sheet of every text, in the order of the texts.

    Args:
        texts: The texts to draw from; items of a parallel task are the same in all of them.
        size: Items per sheet.
        seed: The seed of all draws.
        stratify: ``label`` or an attribute of the items; None draws a simple random sample.
        allocation: Rows per stratum: ``proportional`` to its size, or ``equal`` for all.

    Raises:
        UsageError: If a text has too few items that are in no other sheet, an item does not have the attribute,
            or a stratum would get no row.
    """
    if size < 1:
        raise UsageError(f"--size must be at least 1, got {size}.")
    used: dict[str, set[str]] = defaultdict(set)
    sheets = []
    for text, name in zip(texts, sheet_names(texts, seed), strict=True):
        # Ids mean the same items in all texts of a parallel task, else in all texts of one language.
        used_ids = used[text.task if text.parallel else f"{text.task}\0{text.language}"]
        free = [item for item in text.items if item.id not in used_ids]
        if size > len(free):
            raise UsageError(
                f"{text} has {len(free)} items that are in no other sheet; --size {size} needs {size}.",
                hint="Give a smaller --size or fewer texts.",
            )
        rows = _draw_rows(text, free, size, seed, stratify, allocation)
        used_ids |= {row.id for row in rows}
        sheets.append(
            Sheet(
                name=name,
                task=text.task,
                language=text.language,
                view=dict(text.view),
                labels=text.labels,
                provenance=text.provenance,
                design="simple" if stratify is None else f"stratified by {stratify}",
                population=len(text.items),
                rows=tuple(sorted(rows, key=lambda row: row.row)),
            )
        )
    names = [row.row for sheet in sheets for row in sheet.rows]
    if len(set(names)) != len(names):
        raise UsageError("Two rows would have the same digest.", hint="Give another --seed.")
    return tuple(sheets)


def _draw_rows(
    text: TextItems,
    free: Sequence[AnnotationItem],
    size: int,
    seed: int,
    stratify: str | None,
    allocation: Allocation,
) -> list[SheetRow]:
    population = Counter(_stratum(item, stratify, text) for item in text.items)
    strata: dict[str, list[AnnotationItem]] = {name: [] for name in population}
    for item in free:
        strata[_stratum(item, stratify, text)].append(item)
    rows = []
    for name, count in sorted(_allocate(population, size, allocation).items()):
        items = strata[name]
        if not 0 < count <= len(items):
            raise UsageError(
                f"{text}: the stratum {name!r} would get {count} of its {population[name]} items; "
                f"{len(items)} of them are in no other sheet.",
                hint="Change --size, or stratify by another attribute.",
            )
        language = None if text.parallel else text.language
        drawn = draw([item.id for item in items], count, seed=seed, task=text.task, language=language)
        rows += [
            SheetRow(
                row=row_name(text, item.id, seed),
                id=item.id,
                gold=item.gold,
                stratum=name,
                weight=population[name] / count,
                fields=dict(item.fields),
                choices=dict(item.choices),
            )
            for item in (items[index] for index in drawn)
        ]
    return rows


def _stratum(item: AnnotationItem, name: str | None, text: TextItems) -> str:
    if name is None:
        return ALL
    if name == "label":
        return item.gold
    if name not in item.attributes:
        names = ", ".join(["label", *sorted(item.attributes)])
        raise UsageError(f"The items of {text} have no attribute {name!r} to stratify by; known: {names}.")
    return item.attributes[name]


def _allocate(population: Mapping[str, int], size: int, allocation: Allocation) -> dict[str, int]:
    """Return the rows of every stratum, which sum up to `size`: quotas, rounded by their largest remainders."""
    total = sum(population.values())
    quotas = {
        name: size / len(population) if allocation == "equal" else size * count / total
        for name, count in population.items()
    }
    rows = {name: int(quota) for name, quota in quotas.items()}
    order = sorted(quotas, key=lambda name: (rows[name] - quotas[name], name))
    for name in order[: size - sum(rows.values())]:
        rows[name] += 1
    return rows
