"""The six released tests as the products that the released generator makes of them, language by language.

The functions of the tests are those of ``multichecklist/generate_test_utils.py``, whose reading of the placeholders
they follow to the letter: a cell is for a fill-in where its list of placeholders has the English one anywhere, and
questions are paired with answers by position. A test is one product, or the sum of several: one for every state,
profession, animal or group of adjectives, each with its own contexts, questions and fill-ins. `_join` writes the sum
as one template; parts that only some of the products have get a condition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from harness_checklist.released_sheet import (
    FIRST_ANIMALS,
    PROPERTIES,
    RULES,
    Sheet,
    SheetCell,
    SheetTest,
    separator,
)
from harness_checklist.suite import (
    Condition,
    ContextTemplate,
    FillIn,
    Form,
    ListedFillIn,
    PairFillIn,
    QuestionTemplate,
    TestTemplate,
)

CHOICE: Final = "variant"
"""The slot that chooses between variants, where no fill-in distinguishes them."""
_Element = TypeVar("_Element", bound=Hashable)
_ARTICLE: Final = ("a ", "an ")
_WITH_ARTICLE: Final = ("obj", "profession", "animal", "vehicle")


_ALL = frozenset(PROPERTIES)


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


def _listed(entries: Iterable[Value]) -> ListedFillIn:
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


def _join(products: Sequence[Product], key: str, *, male: bool, balance: str | None = None) -> TestTemplate:
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


def _paired(
    questions: Iterable[SheetCell], answers: Iterable[SheetCell]
) -> tuple[tuple[SheetCell, SheetCell], ...]:
    return tuple(zip(questions, answers, strict=False))


def _plain(test: SheetTest, language: str, fields: Iterable[str], lists: SheetTest | None = None) -> Product:
    """Return the one product, without conditions, of a language; `lists` has the fill-ins of another test."""
    between = separator(language)
    return Product(
        contexts=tuple(test.filled(language, "Context")),
        pairs=_paired(test.filled(language, "Question"), test.filled(language, "Answer")),
        fills={
            "s" if field == "state" else field: values(
                field, (lists or test).filled(language, field), between if field == "adj" else None
            )
            for field in fields
        },
    )


def comparisons(sheet: Sheet, test: SheetTest, language: str) -> TestTemplate:
    """Return the test of comparatives; its question may depend on the adjective."""
    plain = _plain(test, language, ["adj"])
    if language not in RULES.languages["comparison_questions"]:
        return _join([plain], "adj", male=True)
    questions: dict[str, list[SheetCell]] = {}
    for cell in test.of(language, "Question"):
        questions.setdefault(cell.placeholders, []).append(cell)
    shared = [cell for cell in questions.pop("", []) if cell.text]
    products = []
    for placeholders, cells in questions.items():
        # The English adjective is searched with the space before it.
        meant = [value for value in plain.fills["adj"] if value.cell.english.split(",")[1] in placeholders]
        pairs = _paired([*cells, *shared], test.filled(language, "Answer"))
        products.append(replace(plain, pairs=pairs, fills={"adj": meant}))
    return _join(products, "adj", male=True, balance="variants")


def intensifiers(sheet: Sheet, test: SheetTest, language: str) -> TestTemplate:
    """Return the test of intensifiers; its contexts and questions may depend on the state."""
    plain = _plain(test, language, ["state", "very", "somewhat"])
    if language not in RULES.languages["intensifier_states"]:
        return _join([plain], "s", male=True)
    products = []
    for state in plain.fills["s"]:
        contexts = _listed_for(test.of(language, "Context"), state.id)
        questions = _listed_for(test.of(language, "Question"), state.id)
        pairs = _paired(questions, test.filled(language, "Answer"))
        products.append(Product(contexts=contexts, pairs=pairs, fills={**plain.fills, "s": [state]}))
    return _join(products, "s", male=True, balance="s")


def _listed_for(cells: Iterable[SheetCell], english: str) -> tuple[SheetCell, ...]:
    """Return the cells whose placeholders list a fill-in, once for every time that they do."""
    return tuple(cell for cell in cells for name in cell.placeholders.split(", ") if name == english)


def job_vs_nationality(sheet: Sheet, test: SheetTest, language: str) -> TestTemplate:
    """Return the test of jobs; nationality, contexts and questions may depend on the profession."""
    plain = _plain(test, language, ["nationality", "profession"])
    if language not in RULES.languages["profession_forms"]:
        return _join([plain], "profession", male=True)
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
    return _join(products, "profession", male=True, balance="profession")


def _fits(test: SheetTest, language: str, english: str) -> Callable[[str], Sequence[SheetCell]]:
    return lambda field: [cell for cell in test.of(language, field) if cell.is_for(english)]


def animal_vs_vehicles(sheet: Sheet, test: SheetTest, language: str) -> TestTemplate:
    """Return one of the two tests of animals and vehicles; the first holds the fill-ins of both."""
    lists = sheet.tests[FIRST_ANIMALS]
    plain = _plain(test, language, ["animal", "vehicle"], lists)
    if language in RULES.languages["animal_lists"]:
        chosen = {field: _named_for_test(sheet, test, language, field) for field in plain.fills}
        return _join([replace(plain, fills=chosen)], "animal", male=False)
    if language in RULES.languages["animal_contexts"]:
        products = []
        for animal in plain.fills["animal"]:
            contexts = tuple(_fits(test, language, animal.cell.english)("Context"))
            products.append(replace(plain, contexts=contexts, fills={**plain.fills, "animal": [animal]}))
        return _join(products, "animal", male=False, balance="animal")
    if language in RULES.languages["two_answers"] and test is lists:
        return _join(_by_context(test, language, plain), "animal", male=False)
    return _join([plain], "animal", male=False)


def _by_context(test: SheetTest, language: str, plain: Product) -> list[Product]:
    """Return a product for each of two contexts; the column of placeholders holds the answers to the second."""
    questions = test.of(language, "Question")
    second = [
        SheetCell(text=cell.placeholders, placeholders="", english=cell.english, place=cell.place)
        for cell in test.of(language, "Answer")
    ]
    answers = (test.filled(language, "Answer"), second)
    return [
        replace(plain, contexts=(context,), pairs=_paired(questions, context_answers))
        for context, context_answers in zip(plain.contexts, answers, strict=False)
    ]


def _named_for_test(sheet: Sheet, test: SheetTest, language: str, field: str) -> list[Value]:
    """Return the fill-ins whose placeholders list an English context of the test, or nothing; each text once.

    The released generator holds the fill-ins, which it reads without the empty cells, against the placeholders of all
    cells: mostly those of another fill-in, and often none.
    """
    lists = sheet.tests[FIRST_ANIMALS]
    contexts = [cell.english for cell in test.filled(language, "Context")]
    by_texts: dict[tuple[str, ...], Value] = {}
    chosen = values(field, lists.filled(language, field))
    for value, cell in zip(chosen, lists.of(language, field), strict=False):
        if not cell.placeholders or any(context in cell.placeholders for context in contexts):
            by_texts.setdefault(value.texts, value)
    return list(by_texts.values())


# Properties -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Question:
    """A question with the properties that it asks for, and the objects that it can be asked of (None: all)."""

    cell: SheetCell
    properties: frozenset[str]
    objects: frozenset[str] | None = None

    def when(self, attribute: str, of: Sequence[str]) -> Condition:
        """Return the condition for questions about the property ``p.p1`` or ``p.p2``."""
        condition = {} if self.properties >= set(of) else {f"p.{attribute}": self.properties & set(of)}
        return condition if self.objects is None else {**condition, "obj": self.objects}


def properties(sheet: Sheet, test: SheetTest, language: str) -> TestTemplate:
    """Return the test of properties; questions, attributes and contexts may depend on each other.

    Where questions depend on the property, the first question has to ask for ``{p.p1}`` and the second for
    ``{p.p2}``, and both orders of two properties are drawn; everywhere else the two keep the order of the sheet.
    """
    objects = _objects(test, language)
    if language in RULES.languages["property_forms"]:
        return _with_forms(test, language, objects)
    property_names = _named(test, language)
    plain = _plain(test, language, PROPERTIES)
    if language not in RULES.languages["object_contexts"]:
        product = replace(plain, fills={"obj": objects, **plain.fills})
        return _with_pair(_join([product], "obj", male=False), property_names, ordered=True)
    products = [
        replace(
            plain,
            contexts=tuple(_fits(test, language, obj.cell.english)("Context")),
            fills={"obj": [obj], **plain.fills},
        )
        for obj in objects
    ]
    return _with_pair(_join(products, "obj", male=False, balance="obj"), property_names, ordered=True)


def _objects(test: SheetTest, language: str) -> list[Value]:
    """Return the objects with as many aligned forms as the templates name; a sheet may have more, for other cases."""
    objects = values("obj", test.filled(language, "obj"), separator(language))
    templates = [cell.text for kind in ("Context", "Question", "Answer") for cell in test.of(language, kind)]
    used = [index for index in range(10) if any(f"{{obj[{index}]}}" in text for text in templates)]
    return [replace(value, texts=value.texts[: max(used, default=0) + 1]) for value in objects]


def _named(test: SheetTest, language: str) -> list[Value]:
    """Return the names of the properties: the texts that are there, in their order, for the five properties."""
    cells = test.filled(language, "property")
    return [
        Value(id=name, texts=(cell.text,), cell=cell) for name, cell in zip(PROPERTIES, cells, strict=False)
    ]


def _with_pair(
    template: TestTemplate, named: Sequence[Value], *, ordered: bool, of: Iterable[str] | None = None
) -> TestTemplate:
    """Return a template with its pair of properties, named as far as a text names them."""
    texts = [text for item in template.questions for text in (item.ask, item.answer)]
    texts += [item.text for item in template.contexts]
    is_named = any(f"{{p.{attribute}}}" in text for text in texts for attribute in ("p1", "p2"))
    chosen = tuple(of if of is not None else (value.id for value in named))
    fills: dict[str, FillIn] = {
        name: fill for name, fill in template.fills.items() if name not in _ALL or name in chosen
    }
    if is_named:
        fills["property"] = _listed(value for value in named if value.id in chosen)
    fills["p"] = PairFillIn(of=chosen, named="property" if is_named else None, ordered=ordered)
    return template.model_copy(update={"fills": fills})


def _with_forms(test: SheetTest, language: str, objects: Sequence[Value]) -> TestTemplate:
    first, second = _questions(test, language, objects)
    covered = frozenset().union(*(question.properties for question in (*first, *second)))
    of = [name for name in PROPERTIES if name in covered]
    answers = test.filled(language, "Answer")
    question_templates = tuple(
        QuestionTemplate(ask=question.cell.text, answer=answer.text, when=question.when(attribute, of)).at(
            question.cell.place
        )
        for questions, answer, attribute in zip((first, second), answers, ("p1", "p2"), strict=False)
        for question in questions
    )
    # The released generator draws equally many cases of every pair of questions, and of every object.
    template = _join(_by_object(test, language, objects), "obj", male=False).model_copy(
        update={
            "contexts": _contexts(test, language, first, of),
            "questions": question_templates,
            "balance": "obj" if len(first) == len(second) == 1 else "variants",
        }
    )
    template = _with_pair(template, _named(test, language), ordered=False, of=of)
    return _guarded(template, first, second, of)


def _questions(
    test: SheetTest, language: str, objects: Sequence[Value]
) -> tuple[list[_Question], list[_Question]]:
    """Return the questions for the first property and those for the second; equal texts count once."""
    by_text: dict[str, _Question] = {}
    for cell in test.filled(language, "Question"):
        asked_properties = frozenset(name.strip() for name in cell.placeholders.strip().split(", "))
        meant, of = (asked_properties, None) if cell.placeholders else (_ALL, None)
        if language == "ru" and "age" in asked_properties:
            meant = frozenset({"age"})
            of = frozenset(value.id for value in objects if value.cell.english in cell.placeholders)
        before = by_text.get(cell.text)
        if before is not None:
            meant |= before.properties
        by_text[cell.text] = _Question(before.cell if before else cell, meant & _ALL, of)
    questions = list(by_text.values())
    if language == "ru":
        # Its questions name no property: each is asked first and second.
        return questions, questions
    first = [question for question in questions if "p1" in question.cell.text]
    return first, [question for question in questions if "p2" in question.cell.text]


def _by_object(test: SheetTest, language: str, objects: Sequence[Value]) -> list[Product]:
    """Return a product for every object, with the attributes that agree with it."""
    products = []
    for obj in objects:
        fits = _fits(test, language, obj.cell.english)
        fills = {"obj": [obj], **{name: values(name, fits(name)) for name in PROPERTIES}}
        products.append(Product(contexts=tuple(test.filled(language, "Context")), pairs=(), fills=fills))
    return products


def _contexts(
    test: SheetTest, language: str, first: Sequence[_Question], of: Sequence[str]
) -> tuple[ContextTemplate, ...]:
    """Return the contexts; the Dutch ones depend on whether the first property is the material."""
    cells = test.filled(language, "Context")
    material = frozenset().union(*(item.properties for item in first if "material" in item.properties))
    templates = []
    for cell in cells:
        when: Condition = {}
        if language == "nl":
            is_material = "material" in cell.placeholders.split(", ")
            when = {"p.p1": material if is_material else frozenset(of) - material}
        templates.append(ContextTemplate(text=cell.text, when=when).at(cell.place))
    return tuple(templates)


def _guarded(
    template: TestTemplate, first: Sequence[_Question], second: Sequence[_Question], of: Sequence[str]
) -> TestTemplate:
    """Return a template in which no object can be drawn with properties that two questions do not ask for."""
    fill = template.fills["obj"]
    assert isinstance(fill, ListedFillIn)
    values = {}
    for entry in fill.entries:
        whens: Condition = {}
        for attribute, questions in (("p1", first), ("p2", second)):
            covered = frozenset().union(
                *(item.properties for item in questions if item.objects is None or entry.id in item.objects)
            )
            if not covered >= set(of):
                whens[f"p.{attribute}"] = covered & set(of)
        values[entry.id] = tuple(
            form.model_copy(update={"when": {**form.when, **whens}}) for form in entry.forms
        )
    guarded = ListedFillIn(values=values).at(fill.place)
    return template.model_copy(update={"fills": {**template.fills, "obj": guarded}})


BUILDERS: Final[Mapping[str, Callable[[Sheet, SheetTest, str], TestTemplate]]] = {
    "comparisons": comparisons,
    "intensifiers": intensifiers,
    "properties": properties,
    "job_vs_nationality": job_vs_nationality,
    "animal_vs_vehicles": animal_vs_vehicles,
    "animal_vs_vehicles_2": animal_vs_vehicles,
}
"""Test id -> the function that makes its template from the sheet, its rows, and a language."""
