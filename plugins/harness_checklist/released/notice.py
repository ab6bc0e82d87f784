"""What a reader of the released sheet would not expect of the suite: one sentence for each kind of surprise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from harness_checklist.released import rule
from harness_checklist.released.check import SLOT_OF_FIELD, known_words, placeholder_words
from harness_checklist.released.product import english_id
from harness_checklist.released.rule import RELEASED_TESTS, ReleasedTest
from harness_checklist.released.sheet import TEMPLATE_FIELDS, Sheet, SheetTest
from harness_checklist.suites.suite import Condition, ListedFillIn, PairFillIn, Suite, TestTemplate

__all__ = ["sheet_notices"]

_HONOURED: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "comparisons": {"Question": rule.COMPARISON_QUESTIONS},
    "intensifiers": dict.fromkeys(("Context", "Question"), rule.INTENSIFIER_STATES),
    "properties": {
        **dict.fromkeys(("Question", *rule.PROPERTIES), rule.PROPERTY_FORMS),
        "Context": rule.OBJECT_CONTEXTS | {"nl"},
    },
    "job_vs_nationality": dict.fromkeys(("Context", "Question", "nationality"), rule.PROFESSION_FORMS),
    "animal_vs_vehicles": {
        "Context": rule.ANIMAL_CONTEXTS,
        **dict.fromkeys(("animal", "vehicle"), rule.ANIMAL_LISTS),
        "Answer": rule.TWO_ANSWERS,
    },
    "animal_vs_vehicles_2": {"Context": rule.ANIMAL_CONTEXTS},
}
"""Test -> field -> the languages in which its placeholders count."""


def sheet_notices(sheet: Sheet, suite: Suite) -> Iterator[str]:
    """Yield the sentences, in the order of the tests."""
    for test in RELEASED_TESTS:
        if test.name in sheet.tests:
            rows = sheet.tests[test.name]
            templates = {code: spoken.tests[test.id] for code, spoken in suite.languages.items()}
            yield from _ignored(rows, test, sheet.languages)
            yield from _misread(test, sheet.languages)
            yield from _undrawn(rows, test, templates)
            yield from _unmet(test, templates)
            yield from _doubled(test, templates)
            yield from _further_forms(rows, test, templates)
            yield from _articles(rows, test, sheet.languages)
    yield from _unknown(sheet)


def _listed(by_language: Mapping[str, Iterable[str]]) -> str:
    return "; ".join(f"{', '.join(names)} in {language}" for language, names in by_language.items() if names)


def _ignored(rows: SheetTest, test: ReleasedTest, languages: Iterable[str]) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for language in languages:
        for field in (*TEMPLATE_FIELDS, *test.fields):
            honoured = language in _HONOURED[test.id].get(field, ())
            if not honoured and any(cell.placeholders for cell in rows.of(language, field)):
                found.setdefault(language, []).append(repr(field))
    if found:
        yield (
            f"{test.title}: the released generator ignores the placeholders of {_listed(found)}, so their variants "
            "apply to every fill-in."
        )


def _misread(test: ReleasedTest, languages: Iterable[str]) -> Iterator[str]:
    found = [language for language in languages if language in rule.ANIMAL_LISTS]
    if test.id == "animal_vs_vehicles" and found:
        yield (
            f"{test.title} and {test.title} 2: the released generator holds animals and vehicles in "
            f"{', '.join(found)} against the placeholders of other cells, "
            "so both tests have the forms that are meant for one."
        )


def _undrawn(rows: SheetTest, test: ReleasedTest, templates: Mapping[str, TestTemplate]) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for language, template in templates.items():
        pair = template.fills.get("p")
        for field in test.fields:
            fill = template.fills.get(SLOT_OF_FIELD.get(field, field))
            if field in rule.PROPERTIES and isinstance(pair, PairFillIn) and field not in pair.of:
                found.setdefault(language, []).append(f"every {field}")
            elif field != "property" and isinstance(fill, ListedFillIn):
                drawn = {entry.id.partition("/")[0] for entry in fill.entries}
                said = dict.fromkeys(english_id(field, cell.english) for cell in rows.filled(language, field))
                found.setdefault(language, []).extend(repr(name) for name in said if name not in drawn)
    if any(found.values()):
        yield f"{test.title}: the released generator never draws {_listed(found)}."


def _applies(when: Condition, slot: str, name: str) -> bool:
    return slot not in when or name in when[slot]


def _unmet(test: ReleasedTest, templates: Mapping[str, TestTemplate]) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for language, template in templates.items():
        slot = template.balance or ""
        fill = template.fills.get(slot)
        for entry in fill.entries if isinstance(fill, ListedFillIn) else ():
            contexts = any(_applies(item.when, slot, entry.id) for item in template.contexts)
            questions = any(_applies(item.when, slot, entry.id) for item in template.questions)
            if not (contexts and questions):
                found.setdefault(language, []).append(repr(entry.id))
    if found:
        yield f"{test.title}: no context or no question applies to {_listed(found)}; these cases are empty."


def _doubled(test: ReleasedTest, templates: Mapping[str, TestTemplate]) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for language, template in templates.items():
        slot = template.balance or ""
        fill = template.fills.get(slot)
        names = [entry.id for entry in fill.entries] if isinstance(fill, ListedFillIn) else []
        counts = {name: sum(_applies(item.when, slot, name) for item in template.contexts) for name in names}
        usual = sorted(counts.values())[len(counts) // 2] if counts else 0
        more = [repr(name) for name, count in counts.items() if count > usual]
        if more:
            found[language] = more
    if found:
        yield f"{test.title}: more variants than usual apply to {_listed(found)}; these cases have more examples."


def _further_forms(
    rows: SheetTest, test: ReleasedTest, templates: Mapping[str, TestTemplate]
) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for language, template in templates.items():
        for field in ("adj", "obj"):
            fill = template.fills.get(field)
            if field in test.fields and isinstance(fill, ListedFillIn):
                kept = len(fill.entries[0].forms[0].texts)
                between = rule.separator(language)
                cut = sum(cell.text.count(between) >= kept for cell in rows.filled(language, field))
                if cut:
                    found[language] = [f"{cut} {field}"]
    if found:
        yield (
            f"{test.title}: the separator gives more forms than the templates name; these are dropped: "
            f"{_listed(found)}."
        )


def _articles(rows: SheetTest, test: ReleasedTest, languages: Iterable[str]) -> Iterator[str]:
    found = [
        language
        for language in languages
        if any("{a:" in cell.text for kind in TEMPLATE_FIELDS for cell in rows.of(language, kind))
    ]
    if found:
        yield f"{test.title}: '{{a:...}}' puts the English article 'a' into templates in {', '.join(found)}."


def _unknown(sheet: Sheet) -> Iterator[str]:
    found: dict[str, dict[str, None]] = {}
    for test in RELEASED_TESTS:
        if test.name not in sheet.tests:
            continue
        known = known_words(sheet, test)
        for language, fields in sheet.tests[test.name].cells.items():
            for field, cells in fields.items():
                for cell in cells:
                    if field == "Answer" or not cell.placeholders:
                        continue
                    for word in placeholder_words(cell.placeholders, known):
                        if word not in known:
                            found.setdefault(word, {})[language] = None
    if found:
        words = "; ".join(f"{word!r} in {', '.join(codes)}" for word, codes in found.items())
        yield f"These placeholders are not English fill-ins; only English fill-ins inside them are found: {words}."
