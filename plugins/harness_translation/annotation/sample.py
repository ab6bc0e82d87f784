"""The draw of the items to relabel: at random, or by strata.

Sheets of different texts share no item, so that no annotator sees the same item in two texts; the human evaluation of
the translation-errors paper (EACL 2024, section 4.1) is drawn in the same way. The weight of a row is the number of
items of its stratum that it represents.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import UnknownNameError, UsageError
from harness.data import draw
from harness_translation.annotation.item import AnnotationItem, TextItems
from harness_translation.annotation.key import Sheet, SheetRow, row_name, sheet_names

Allocation = Literal["proportional", "equal"]
ALL: Final = "all"
"""The one stratum of a simple random sample."""


class ListedItem(BaseModel):
    """One line of a list of items that were chosen elsewhere, as ``harness suspects`` writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    language: str
    id: str
    stratum: str = ALL
    weight: float = Field(default=1.0, gt=0)
    """The number of items of its stratum that it represents."""


def read_listed(path: Path) -> dict[tuple[str, str], list[ListedItem]]:
    """Return the items of a file of JSON lines by task and language; raises `UsageError` for a faulty line."""
    listed: dict[tuple[str, str], list[ListedItem]] = defaultdict(list)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The list of items {str(path)!r} cannot be read: {error}.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = ListedItem.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "the line"
            raise UsageError(f"{path}:{number}: {field}: {first['msg']}.") from error
        if any(item.id == other.id for other in listed[(item.task, item.language)]):
            raise UsageError(
                f"{path}:{number}: the item {item.id!r} of {item.task}:{item.language} is listed twice."
            )
        listed[(item.task, item.language)].append(item)
    if not listed:
        raise UsageError(f"The list of items {str(path)!r} is empty.")
    return listed


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
        design = "simple" if stratify is None else f"stratified by {stratify}"
        sheets.append(_sheet(text, name, rows, design))
    names = [row.row for sheet in sheets for row in sheet.rows]
    if len(set(names)) != len(names):
        raise UsageError("Two rows would have the same digest.", hint="Give another --seed.")
    return tuple(sheets)


def listed_sheets(
    texts: Sequence[TextItems], listed: Mapping[tuple[str, str], Sequence[ListedItem]], *, seed: int
) -> tuple[Sheet, ...]:
    """Return the sheets of items that a list names, in the order of the texts; those without any get none.

    Args:
        texts: The texts that have the items.
        listed: The items by task and language.
        seed: Of the names of rows.

    Raises:
        UsageError: If a text that the list names is missing or there are two of it, or it does not have an item.
    """
    kept = [text for text in texts if (text.task, text.language) in listed]
    names = [f"{text.task}:{text.language}" for text in kept]
    for task, language in listed:
        if names.count(f"{task}:{language}") != 1:
            raise UsageError(
                f"The list of items has some of {task}:{language}, of which there are "
                f"{names.count(f'{task}:{language}')} texts, not one.",
                hint="Choose tasks, languages or a variant so that one is left.",
            )
    sheets = []
    for text, name in zip(kept, sheet_names(kept, seed), strict=True):
        by_id = {item.id: item for item in text.items}
        rows = []
        for entry in listed[(text.task, text.language)]:
            if entry.id not in by_id:
                raise UnknownNameError(f"item of {text}", entry.id, by_id)
            rows.append(_row(text, by_id[entry.id], entry.stratum, entry.weight, seed))
        sheets.append(_sheet(text, name, rows, "stratified by the list of items"))
    return tuple(sheets)


def _row(text: TextItems, item: AnnotationItem, stratum: str, weight: float, seed: int) -> SheetRow:
    return SheetRow(
        row=row_name(text, item.id, seed),
        id=item.id,
        gold=item.gold,
        digest=item.digest,
        stratum=stratum,
        weight=weight,
        fields=dict(item.fields),
        choices=dict(item.choices),
    )


def _sheet(text: TextItems, name: str, rows: Sequence[SheetRow], design: str) -> Sheet:
    return Sheet(
        name=name,
        task=text.task,
        language=text.language,
        view=dict(text.view),
        labels=text.labels,
        provenance=text.provenance,
        design=design,
        population=len(text.items),
        rows=tuple(sorted(rows, key=lambda row: row.row)),
    )


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
            _row(text, item, name, population[name] / count, seed)
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
