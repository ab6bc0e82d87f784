"""The cross products of the released generator, and how they become one declared template.

The released generator builds a test as one product, or as the sum of several: one for every state, profession, animal
or group of adjectives, each with its own contexts, questions and fill-ins. `join` writes the sum as one template; parts
that only some of the products have get a condition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from harness_checklist.released.sheet import SheetCell
from harness_checklist.suites.suite import (
    Condition,
    ContextTemplate,
    FillIn,
    Form,
    ListedFillIn,
    QuestionTemplate,
    TestTemplate,
)

CHOICE: Final = "variant"
"""The slot that chooses between variants, where no fill-in distinguishes them."""
_Element = TypeVar("_Element", bound=Hashable)
_ARTICLE: Final = ("a ", "an ")
_WITH_ARTICLE: Final = ("obj", "profession", "animal", "vehicle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A fill-in: its id, its aligned forms, and the cell that it comes from."""

    id: str
    texts: tuple[str, ...]
    cell: SheetCell


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """Contexts x questions with the fill-ins that are drawn for them."""

    contexts: tuple[SheetCell, ...]
    pairs: tuple[tuple[SheetCell, SheetCell], ...]
    """Questions with their answers."""
    fills: Mapping[str, Sequence[Value]]


def template_text(text: str) -> str:
    """Return a template as we write it.

    CheckList's ``{a:animal}`` puts an English article before the fill-in, here "a" as in the released suites.
    """
    return text.replace("{a:", "a {")


def english_id(field: str, english: str) -> str:
    """Return the id of a fill-in: its first English form, without its article where it has one (``guinea pig``)."""
    first = english.split(", ", maxsplit=1)[0].strip()
    if field in _WITH_ARTICLE:
        for article in _ARTICLE:
            first = first.removeprefix(article)
    return first


def values(field: str, cells: Iterable[SheetCell], separator: str | None = None) -> list[Value]:
    """Return the fill-ins of cells; the second of a row is ``id/2``, and so on."""
    counts: Counter[str] = Counter()
    fill_ins = []
    for cell in cells:
        name = english_id(field, cell.english)
        counts[name] += 1
        texts = (cell.text,) if separator is None else tuple(cell.text.split(separator))
        number = counts[name]
        fill_ins.append(Value(id=name if number == 1 else f"{name}/{number}", texts=texts, cell=cell))
    return fill_ins


def listed(entries: Iterable[Value]) -> ListedFillIn:
    """Return values as a fill-in without conditions."""
    return ListedFillIn(values={value.id: (_form(value, {}),) for value in entries})


def _form(value: Value, when: Condition) -> Form:
    return Form(texts=value.texts, when=when).at(value.cell.place)


class _Chooser:
    """Selects products by a condition: on the fill-ins of `key`, or on `CHOICE` where these overlap."""

    def __init__(self, products: Sequence[Product], key: str) -> None:
        ids = [frozenset(value.id for value in product.fills[key]) for product in products]
        self.disjoint = sum(map(len, ids)) == len(frozenset().union(*ids))
        self.slot = key if self.disjoint else CHOICE
        self.ids = ids if self.disjoint else [frozenset({str(number)}) for number in range(1, len(ids) + 1)]

    def when(self, members: Iterable[int], slot: str = "") -> Condition:
        """Return the condition that selects these products; an empty one for the slot that chooses."""
        chosen = frozenset(members)
        if slot == self.slot or len(chosen) == len(self.ids):
            return {}
        return {self.slot: frozenset().union(*(self.ids[member] for member in chosen))}


def _members(
    lists: Sequence[Sequence[_Element]], where: Callable[[_Element], tuple[int, ...]]
) -> dict[tuple[_Element, int], list[int]]:
    """Return the items of all lists with the lists that have them; an item that a list has twice comes twice."""
    members: dict[tuple[_Element, int], list[int]] = {}
    for index, elements in enumerate(lists):
        counts: Counter[_Element] = Counter()
        for element in elements:
            counts[element] += 1
            members.setdefault((element, counts[element]), []).append(index)
    return dict(sorted(members.items(), key=lambda item: (where(item[0][0]), item[0][1])))


def _where(cell: SheetCell) -> tuple[int, ...]:
    return (cell.place.line or 0, cell.place.column or 0)


def join(products: Sequence[Product], key: str, *, male: bool, balance: str | None = None) -> TestTemplate:
    """Return the template whose draws are those of all products together.

    The fill-ins of `key` distinguish the products; where two products share a fill-in, a slot `CHOICE` is added,
    and cases are drawn from its values in equal parts.
    """
    chooser = _Chooser(products, key)
    contexts = _members([item.contexts for item in products], _where)
    pairs = _members([item.pairs for item in products], lambda pair: _where(pair[0]))
    slots = dict.fromkeys(slot for item in products for slot in item.fills)
    fills: dict[str, FillIn] = {slot: _merged(products, slot, chooser) for slot in slots}
    if not chooser.disjoint:
        numbers = [str(number) for number in range(1, len(products) + 1)]
        fills[CHOICE] = ListedFillIn(values={number: (Form(texts=(number,)),) for number in numbers})
    return TestTemplate(
        contexts=tuple(
            ContextTemplate(text=template_text(cell.text), when=chooser.when(members)).at(cell.place)
            for (cell, _), members in contexts.items()
        ),
        questions=tuple(
            QuestionTemplate(
                ask=template_text(ask.text), answer=template_text(answer.text), when=chooser.when(members)
            ).at(ask.place)
            for ((ask, answer), _), members in pairs.items()
        ),
        fills=fills,
        names="male" if male else "any",
        balance=balance if chooser.disjoint else CHOICE,
    )


def _merged(products: Sequence[Product], slot: str, chooser: _Chooser) -> ListedFillIn:
    """Return the fill-ins of a slot, each with its forms in the products that have it, in the order of the sheet."""
    members: dict[str, dict[tuple[str, ...], list[int]]] = {}
    values: dict[tuple[str, tuple[str, ...]], Value] = {}
    for index, product in enumerate(products):
        for value in product.fills[slot]:
            members.setdefault(value.id, {}).setdefault(value.texts, []).append(index)
            values.setdefault((value.id, value.texts), value)
    first = {
        name: min(_where(values[name, texts].cell) for texts in by_texts)
        for name, by_texts in members.items()
    }
    return ListedFillIn(
        values={
            name: tuple(
                _form(values[name, texts], chooser.when(those, slot))
                for texts, those in members[name].items()
            )
            for name in sorted(members, key=first.__getitem__)
        }
    )
