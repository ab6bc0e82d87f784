"""The six released tests as the products that the released generator makes of them, language by language.

Every function below is one of those of ``multichecklist/generate_test_utils.py``, whose reading of the placeholders it
follows to the letter: a cell is for a fill-in where its list of placeholders has the English one anywhere, and
questions are paired with answers by position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from harness_checklist.released import rule
from harness_checklist.released.product import Product, Value, join, values
from harness_checklist.released.property import properties
from harness_checklist.released.sheet import Cell, Sheet, SheetTest
from harness_checklist.suites.suite import TestTemplate

__all__ = ["BUILDERS"]


def _paired(questions: Iterable[Cell], answers: Iterable[Cell]) -> tuple[tuple[Cell, Cell], ...]:
    return tuple(zip(questions, answers, strict=False))


def _plain(test: SheetTest, language: str, slots: Mapping[str, str], separator: str | None = None) -> Product:
    """Return the one product, without conditions, of a language: slot -> the field that fills it."""
    return Product(
        contexts=tuple(test.filled(language, "Context")),
        pairs=_paired(test.filled(language, "Question"), test.filled(language, "Answer")),
        fills={slot: values(field, test.filled(language, field), separator) for slot, field in slots.items()},
    )


def comparisons(sheet: Sheet, test: SheetTest, language: str) -> TestTemplate:
    """Return the test of comparatives; its question may depend on the adjective."""
    separator = rule.separator(language)
    if language not in rule.COMPARISON_QUESTIONS:
        return join([_plain(test, language, {"adj": "adj"}, separator)], "adj", male=True)
    questions: dict[str, list[Cell]] = {}
    for cell in test.of(language, "Question"):
        questions.setdefault(cell.placeholders, []).append(cell)
    shared = [cell for cell in questions.pop("", []) if cell.text]
    adjectives = values("adj", test.filled(language, "adj"), separator)
    products = []
    for placeholders, cells in questions.items():
        # The English adjective is searched with the space before it.
        meant = [value for value in adjectives if value.cell.english.split(",")[1] in placeholders]
        products.append(
            Product(
                contexts=tuple(test.filled(language, "Context")),
                pairs=_paired([*cells, *shared], test.filled(language, "Answer")),
                fills={"adj": meant},
            )
        )
    return join(products, "adj", male=True, balance="variants")


def intensifiers(sheet: Sheet, test: SheetTest, language: str) -> TestTemplate:
    """Return the test of intensifiers; its contexts and questions may depend on the state."""
    slots = {"s": "state", "very": "very", "somewhat": "somewhat"}
    plain = _plain(test, language, slots)
    if language not in rule.INTENSIFIER_STATES:
        return join([plain], "s", male=True)
    products = []
    for state in plain.fills["s"]:
        contexts = _listed_for(test.of(language, "Context"), state.id)
        questions = _listed_for(test.of(language, "Question"), state.id)
        pairs = _paired(questions, test.filled(language, "Answer"))
        products.append(Product(contexts=contexts, pairs=pairs, fills={**plain.fills, "s": [state]}))
    return join(products, "s", male=True, balance="s")


def _listed_for(cells: Iterable[Cell], english: str) -> tuple[Cell, ...]:
    """Return the cells whose placeholders list a fill-in, once for every time that they do."""
    return tuple(cell for cell in cells for name in cell.placeholders.split(", ") if name == english)


def job_vs_nationality(sheet: Sheet, test: SheetTest, language: str) -> TestTemplate:
    """Return the test of jobs; nationality, contexts and questions may depend on the profession."""
    slots = {"nationality": "nationality", "profession": "profession"}
    plain = _plain(test, language, slots)
    if language not in rule.PROFESSION_FORMS:
        return join([plain], "profession", male=True)
    products = []
    for profession in plain.fills["profession"]:
        fits = _fits(test, language, profession.cell.english)
        products.append(
            Product(
                contexts=tuple(fits("Context")),
                pairs=_paired(fits("Question"), test.filled(language, "Answer")),
                fills={
                    "nationality": values("nationality", fits("nationality")),
                    "profession": [profession],
                },
            )
        )
    return join(products, "profession", male=True, balance="profession")


def _fits(test: SheetTest, language: str, english: str) -> Callable[[str], Sequence[Cell]]:
    return lambda field: [cell for cell in test.of(language, field) if cell.is_for(english)]


def animal_vs_vehicles(sheet: Sheet, test: SheetTest, language: str) -> TestTemplate:
    """Return one of the two tests of animals and vehicles; the first holds the fill-ins of both."""
    lists = sheet.tests[_ANIMALS]
    slots = {"animal": "animal", "vehicle": "vehicle"}
    fills = {slot: values(field, lists.filled(language, field)) for slot, field in slots.items()}
    answers = test.filled(language, "Answer")
    plain = Product(
        contexts=tuple(test.filled(language, "Context")),
        pairs=_paired(test.filled(language, "Question"), answers),
        fills=fills,
    )
    if language in rule.ANIMAL_LISTS:
        chosen = {field: _named_for_test(sheet, test, language, field) for field in slots.values()}
        product = Product(contexts=plain.contexts, pairs=plain.pairs, fills=chosen)
        return join([product], "animal", male=False)
    if language in rule.ANIMAL_CONTEXTS:
        products = []
        for animal in fills["animal"]:
            fits = _fits(test, language, animal.cell.english)
            products.append(
                Product(
                    contexts=tuple(fits("Context")), pairs=plain.pairs, fills={**fills, "animal": [animal]}
                )
            )
        return join(products, "animal", male=False, balance="animal")
    if language in rule.TWO_ANSWERS and test is lists:
        return join(_by_context(test, language, plain), "animal", male=False)
    return join([plain], "animal", male=False)


_ANIMALS: Final = next(test.name for test in rule.RELEASED_TESTS if test.id == "animal_vs_vehicles")


def _by_context(test: SheetTest, language: str, plain: Product) -> list[Product]:
    """Return a product for each of two contexts; the column of placeholders holds the answers to the second."""
    asked = test.of(language, "Question")
    second = [
        Cell(text=cell.placeholders, placeholders="", english=cell.english, place=cell.place)
        for cell in test.of(language, "Answer")
    ]
    answers = (test.filled(language, "Answer"), second)
    return [
        Product(contexts=(context,), pairs=_paired(asked, given), fills=plain.fills)
        for context, given in zip(plain.contexts, answers, strict=False)
    ]


def _named_for_test(sheet: Sheet, test: SheetTest, language: str, field: str) -> list[Value]:
    """Return the fill-ins whose placeholders list an English context of the test, or nothing; each text once.

    The released generator holds the fill-ins, which it reads without the empty cells, against the placeholders of all
    cells: mostly those of another fill-in, and often none.
    """
    lists = sheet.tests[_ANIMALS]
    contexts = [cell.english for cell in test.filled(language, "Context")]
    found: dict[tuple[str, ...], Value] = {}
    chosen = values(field, lists.filled(language, field))
    for value, cell in zip(chosen, lists.of(language, field), strict=False):
        if not cell.placeholders or any(context in cell.placeholders for context in contexts):
            found.setdefault(value.texts, value)
    return list(found.values())


BUILDERS: Final[Mapping[str, Callable[[Sheet, SheetTest, str], TestTemplate]]] = {
    "comparisons": comparisons,
    "intensifiers": intensifiers,
    "properties": properties,
    "job_vs_nationality": job_vs_nationality,
    "animal_vs_vehicles": animal_vs_vehicles,
    "animal_vs_vehicles_2": animal_vs_vehicles,
}
"""Test id -> the function that makes its template from the sheet, its rows, and a language."""
