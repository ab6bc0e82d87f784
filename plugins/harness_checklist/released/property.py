"""The released test of properties: an object has two of five properties, and a question asks for each of them.

Follows ``generate_properties_tests`` of ``multichecklist/generate_test_utils.py``. Where questions depend on the
property, the first question has to ask for ``{p.p1}`` and the second for ``{p.p2}``, and both orders of two properties
are drawn; everywhere else the two keep the order of the sheet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness_checklist.released import rule
from harness_checklist.released.product import Product, Value, join, listed, values
from harness_checklist.released.sheet import Cell, Sheet, SheetTest
from harness_checklist.suites.suite import (
    Condition,
    ContextTemplate,
    FillIn,
    ListedFillIn,
    PairFillIn,
    QuestionTemplate,
    TestTemplate,
)

__all__ = ["properties"]

_ALL = frozenset(rule.PROPERTIES)


@dataclass(frozen=True, slots=True)
class _Question:
    """A question with the properties that it asks for, and the objects that it can be asked of (None: all)."""

    cell: Cell
    properties: frozenset[str]
    objects: frozenset[str] | None = None

    def when(self, attribute: str, of: Sequence[str]) -> Condition:
        """Return the condition for questions about the property ``p.p1`` or ``p.p2``."""
        found = {} if self.properties >= set(of) else {f"p.{attribute}": self.properties & set(of)}
        return found if self.objects is None else {**found, "obj": self.objects}


def properties(sheet: Sheet, test: SheetTest, language: str) -> TestTemplate:
    """Return the test of properties; questions, attributes and contexts may depend on each other."""
    objects = _objects(test, language)
    if language in rule.PROPERTY_FORMS:
        return _with_forms(test, language, objects)
    contexts = tuple(test.filled(language, "Context"))
    pairs = tuple(zip(test.filled(language, "Question"), test.filled(language, "Answer"), strict=False))
    named = _named(test, language)
    attributes = {name: values(name, test.filled(language, name)) for name in rule.PROPERTIES}
    if language not in rule.OBJECT_CONTEXTS:
        product = Product(contexts=contexts, pairs=pairs, fills={"obj": objects, **attributes})
        return _with_pair(join([product], "obj", male=False), named, ordered=True)
    products = [
        Product(
            contexts=tuple(cell for cell in test.of(language, "Context") if cell.is_for(one.cell.english)),
            pairs=pairs,
            fills={"obj": [one], **attributes},
        )
        for one in objects
    ]
    return _with_pair(join(products, "obj", male=False, balance="obj"), named, ordered=True)


def _objects(test: SheetTest, language: str) -> list[Value]:
    """Return the objects with as many aligned forms as the templates name; a sheet may have more, for other cases."""
    found = values("obj", test.filled(language, "obj"), rule.separator(language))
    templates = [cell.text for kind in ("Context", "Question", "Answer") for cell in test.of(language, kind)]
    used = [index for index in range(10) if any(f"{{obj[{index}]}}" in text for text in templates)]
    return [replace(value, texts=value.texts[: max(used, default=0) + 1]) for value in found]


def _named(test: SheetTest, language: str) -> list[Value]:
    """Return what the properties are called: the texts that are there, in their order, for the five properties."""
    cells = test.filled(language, "property")
    return [
        Value(id=name, texts=(cell.text,), cell=cell)
        for name, cell in zip(rule.PROPERTIES, cells, strict=False)
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
        fills["property"] = listed(value for value in named if value.id in chosen)
    fills["p"] = PairFillIn(of=chosen, named="property" if is_named else None, ordered=ordered)
    return replace(template, fills=fills)


def _with_forms(test: SheetTest, language: str, objects: Sequence[Value]) -> TestTemplate:
    first, second = _cached_models(test, language, objects)
    covered = frozenset().union(*(question.properties for question in (*first, *second)))
    of = [name for name in rule.PROPERTIES if name in covered]
    answers = test.filled(language, "Answer")
    asked = tuple(
        QuestionTemplate(
            ask=question.cell.text,
            answer=answer.text,
            when=question.when(attribute, of),
            place=question.cell.place,
        )
        for questions, answer, attribute in zip((first, second), answers, ("p1", "p2"), strict=False)
        for question in questions
    )
    # The released generator draws equally many cases of every pair of questions, and of every object.
    template = replace(
        join(_by_object(test, language, objects), "obj", male=False),
        contexts=_contexts(test, language, first, of),
        questions=asked,
        balance="obj" if len(first) == len(second) == 1 else "variants",
    )
    template = _with_pair(template, _named(test, language), ordered=False, of=of)
    return _guarded(template, first, second, of)


def _cached_models(
    test: SheetTest, language: str, objects: Sequence[Value]
) -> tuple[list[_Question], list[_Question]]:
    """Return the questions for the first property and those for the second; equal texts count once."""
    found: dict[str, _Question] = {}
    for cell in test.filled(language, "Question"):
        named = frozenset(name.strip() for name in cell.placeholders.strip().split(", "))
        meant, of = (named, None) if cell.placeholders else (_ALL, None)
        if language == "ru" and "age" in named:
            meant = frozenset({"age"})
            of = frozenset(value.id for value in objects if value.cell.english in cell.placeholders)
        before = found.get(cell.text)
        if before is not None:
            meant |= before.properties
        found[cell.text] = _Question(before.cell if before else cell, meant & _ALL, of)
    questions = list(found.values())
    if language == "ru":
        # Its questions name no property: each is asked first and second.
        return questions, questions
    first = [question for question in questions if "p1" in question.cell.text]
    return first, [question for question in questions if "p2" in question.cell.text]


def _by_object(test: SheetTest, language: str, objects: Sequence[Value]) -> list[Product]:
    """Return a product for every object, with the attributes that agree with it."""
    return [
        Product(
            contexts=tuple(test.filled(language, "Context")),
            pairs=(),
            fills={
                "obj": [one],
                **{
                    name: values(
                        name, [cell for cell in test.of(language, name) if cell.is_for(one.cell.english)]
                    )
                    for name in rule.PROPERTIES
                },
            },
        )
        for one in objects
    ]


def _contexts(
    test: SheetTest, language: str, first: Sequence[_Question], of: Sequence[str]
) -> tuple[ContextTemplate, ...]:
    """Return the contexts; the Dutch ones depend on whether the first property is the material."""
    cells = test.filled(language, "Context")
    material = frozenset().union(*(item.properties for item in first if "material" in item.properties))
    found = []
    for cell in cells:
        when: Mapping[str, frozenset[str]] = {}
        if language == "nl":
            is_material = "material" in cell.placeholders.split(", ")
            when = {"p.p1": material if is_material else frozenset(of) - material}
        found.append(ContextTemplate(text=cell.text, when=when, place=cell.place))
    return tuple(found)


def _guarded(
    template: TestTemplate, first: Sequence[_Question], second: Sequence[_Question], of: Sequence[str]
) -> TestTemplate:
    """Return a template in which no object can be drawn with properties that two questions do not ask for."""
    fill = template.fills["obj"]
    assert isinstance(fill, ListedFillIn)
    entries = []
    for entry in fill.entries:
        whens = {}
        for attribute, questions in (("p1", first), ("p2", second)):
            asked = frozenset().union(
                *(item.properties for item in questions if item.objects is None or entry.id in item.objects)
            )
            if not asked >= set(of):
                whens[f"p.{attribute}"] = asked & set(of)
        forms = tuple(replace(form, when={**form.when, **whens}) for form in entry.forms)
        entries.append(replace(entry, forms=forms))
    return replace(template, fills={**template.fills, "obj": replace(fill, entries=tuple(entries))})
