"""The draw of the items to relabel: at random, by strata, or suspects with a random control.

Sheets of different texts share no item, so that no annotator sees the same item in two texts; the human evaluation of
the translation-errors paper (EACL 2024, section 4.1) is drawn in the same way. The weight of a row is the number of
items of its stratum that it represents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from harness import UsageError
from harness.data.sampling import draw
from harness_translation.annotation.item import AnnotationItem, SheetText, TextItems

__all__ = ["ALL", "CONTROL", "SUSPECT", "Allocation", "DrawnItem", "Sample", "draw_samples"]

Allocation = Literal["proportional", "equal"]
ALL: Final = "all"
"""The one stratum of a simple random sample."""
SUSPECT: Final = "suspect"
CONTROL: Final = "control"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnItem:
    """One item of a sheet."""

    item: AnnotationItem
    stratum: str
    weight: float
    """The number of items of the test set that it represents."""
    rank: int | None = None
    """Place among the suspects, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The items of one sheet."""

    source: TextItems
    design: str
    """``simple``, ``stratified by label`` or ``suspects``."""
    drawn: tuple[DrawnItem, ...]


def draw_samples(
    texts: Sequence[TextItems],
    *,
    size: int,
    seed: int,
    stratify: str | None = None,
    allocation: Allocation = "proportional",
    suspects: Mapping[int, Sequence[str]] | None = None,
    control_share: float = 0.5,
) -> list[Sample]:
    """Return the sample of every text, in the order of the texts.

    Args:
        texts: The texts to draw from; items of a parallel task are the same in all of them.
        size: Items per sheet.
        seed: The seed of all draws.
        stratify: ``label`` or an attribute of the items; None draws a simple random sample.
        allocation: Rows per stratum: ``proportional`` to its size, or ``equal`` for all.
        suspects: Ids of suspects, the worst first, by the number of the text.
        control_share: Share of a sheet that is drawn at random from the items that are not its suspects.

    Raises:
        UsageError: If a text has too few items that are in no other sheet, an item does not have the attribute,
            or a stratum would get no row.
    """
    if size < 1:
        raise UsageError(f"--size must be at least 1, got {size}.")
    taken: dict[str, set[str]] = defaultdict(set)
    chosen = {
        number: _take_suspects(text, ids, size - _controls(size, control_share), taken[_pool(text)])
        for number, text in enumerate(texts)
        if (ids := (suspects or {}).get(number)) is not None
    }
    samples = []
    for number, text in enumerate(texts):
        used = taken[_pool(text)]
        own = chosen.get(number, [])
        left = [item for item in text.items if item.id not in used]
        wanted = size - len(own)
        if wanted > len(left):
            raise UsageError(
                f"{text.text} has {len(left)} items that are in no other sheet; --size {size} needs {wanted}.",
                hint="Give a smaller --size or fewer texts.",
            )
        if number in chosen:
            drawn = own + _weighted(_draw(left, wanted, seed, text), CONTROL, len(text.items) - len(own))
            design = "suspects"
        else:
            drawn = _draw_strata(text, left, wanted, seed, stratify, allocation)
            design = "simple" if stratify is None else f"stratified by {stratify}"
        used |= {one.item.id for one in drawn}
        samples.append(Sample(source=text, design=design, drawn=tuple(drawn)))
    return samples


def _pool(text: TextItems) -> str:
    """Return the key of texts whose ids mean the same items: the task if it is parallel, else its task and language."""
    return text.text.task if text.parallel else f"{text.text.task}\0{text.text.language}"


def _controls(size: int, share: float) -> int:
    if not 0 < share < 1:
        raise UsageError(f"--control-share must be above 0 and below 1, got {share}.")
    return min(size - 1, max(1, round(size * share)))


def _take_suspects(text: TextItems, ids: Sequence[str], wanted: int, used: set[str]) -> list[DrawnItem]:
    known = {item.id: item for item in text.items}
    unknown = [identifier for identifier in ids if identifier not in known]
    if unknown:
        raise UsageError(
            f"{len(unknown)} suspects are not items of {text.text}; the first id is {unknown[0]!r}."
        )
    ranked = [(rank, known[identifier]) for rank, identifier in enumerate(dict.fromkeys(ids), start=1)]
    free = [(rank, item) for rank, item in ranked if item.id not in used][:wanted]
    if not free:
        raise UsageError(
            f"No suspect of {text.text} is left for its sheet: all of them are in another sheet."
        )
    used |= {item.id for _, item in free}
    return [DrawnItem(item=item, stratum=SUSPECT, weight=1.0, rank=rank) for rank, item in free]


def _draw(items: Sequence[AnnotationItem], count: int, seed: int, text: TextItems) -> list[AnnotationItem]:
    language = None if text.parallel else text.text.language
    kept = draw([item.id for item in items], count, seed=seed, task=text.text.task, language=language)
    return [items[index] for index in kept]


def _weighted(items: Sequence[AnnotationItem], stratum: str, population: int) -> list[DrawnItem]:
    return [DrawnItem(item=item, stratum=stratum, weight=population / len(items)) for item in items]


def _draw_strata(
    text: TextItems,
    left: Sequence[AnnotationItem],
    size: int,
    seed: int,
    stratify: str | None,
    allocation: Allocation,
) -> list[DrawnItem]:
    if stratify is None:
        return _weighted(_draw(left, size, seed, text), ALL, len(text.items))
    population: dict[str, int] = defaultdict(int)
    for item in text.items:
        population[_stratum(item, stratify, text.text)] += 1
    free: dict[str, list[AnnotationItem]] = {name: [] for name in population}
    for item in left:
        free[_stratum(item, stratify, text.text)].append(item)
    rows = _allocate(population, size, allocation)
    drawn: list[DrawnItem] = []
    for name, count in sorted(rows.items()):
        if not 0 < count <= len(free[name]):
            raise UsageError(
                f"{text.text}: the stratum {name!r} would get {count} of its {population[name]} items; "
                f"{len(free[name])} of them are in no other sheet.",
                hint="Change --size, or stratify by another attribute.",
            )
        drawn += _weighted(_draw(free[name], count, seed, text), name, population[name])
    return drawn


def _stratum(item: AnnotationItem, name: str, text: SheetText) -> str:
    if name == "label":
        return item.gold
    if name not in item.attributes:
        known = ", ".join(["label", *sorted(item.attributes)])
        raise UsageError(
            f"The items of {text} have no attribute {name!r} to stratify by; known: {known}.",
            hint="Give a file with the stratum of each item: --strata FILE.",
        )
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
