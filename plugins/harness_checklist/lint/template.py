"""Faults of the templates of a test that need no generated cases: placeholders, conditions, variants, fill-ins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness_checklist.lint.finding import Finding
from harness_checklist.suites.checking import condition_ids, faults_of, placeholders
from harness_checklist.suites.suite import (
    Condition,
    Entry,
    LanguageSuite,
    ListedFillIn,
    PairFillIn,
    Place,
    QuestionTemplate,
    TestTemplate,
)
from harness_checklist.suites.template import TemplateError, parse

_Keys = frozenset[tuple[str, int | None, str | None]]
"""Slot, number and attribute of the placeholders of a text, without their forms."""


def template_findings(
    language: LanguageSuite, test_id: str, source: LanguageSuite | None
) -> Iterator[Finding]:
    """Yield the faults of the templates of a test in one language, compared with those of the source language."""
    view = _View(language, test_id)
    for fault in faults_of(view.test, language.names):
        message = f"{fault.message[:1].upper()}{fault.message[1:]}."
        yield view.finding("bad-template", message, fault.place)
    if source is not None and source is not language and test_id in source.tests:
        yield from _placeholders(view, source.tests[test_id])
    yield from _questions(view)
    yield from _coverage(view)
    yield from _variants(view)
    yield from _equal_fills(view)
    yield from _shared_fills(view)


@dataclass(frozen=True)
class _View:
    """A test in one language."""

    language: LanguageSuite
    test_id: str

    @property
    def test(self) -> TestTemplate:
        return self.language.tests[self.test_id]

    @property
    def listed(self) -> dict[str, ListedFillIn]:
        return {slot: fill for slot, fill in self.test.fills.items() if isinstance(fill, ListedFillIn)}

    @property
    def pairs(self) -> dict[str, PairFillIn]:
        return {slot: fill for slot, fill in self.test.fills.items() if isinstance(fill, PairFillIn)}

    def finding(
        self, kind: str, message: str, place: Place | None, *, example: str = "", count: int = 1
    ) -> Finding:
        return Finding(
            kind=kind,
            language=self.language.language,
            test=self.test_id,
            message=message,
            place=str(place or self.language.place or ""),
            example=example,
            count=count,
        )

    def overlap(self, first: Condition, second: Condition) -> bool:
        """Return whether a draw may meet both."""
        both = {key: first.get(key, ids) & second.get(key, ids) for key, ids in {**first, **second}.items()}
        if not all(both.values()):
            return False
        # The two fill-ins of a pair are never the same.
        couples = [(both.get(f"{slot}.p1"), both.get(f"{slot}.p2")) for slot in self.pairs]
        return all(not (p1 and p2) or len(p1 | p2) > 1 for p1, p2 in couples)


# Placeholders ---------------------------------------------------------------------------------------------


def _keys(text: str) -> _Keys | None:
    """Return the placeholders of a text; None where it cannot be parsed."""
    try:
        return frozenset((mark.slot, mark.number, mark.attribute) for mark in parse(text).placeholders)
    except TemplateError:
        return None


def _placeholders(view: _View, source: TestTemplate) -> Iterator[Finding]:
    source_keys = [_keys(context.text) for context in source.contexts]
    for context in view.test.contexts:
        keys = _keys(context.text)
        if keys is not None and not any(_says(keys, context.when, expected) for expected in source_keys):
            message = f"The context has {_shown(keys)}; no context of the source language has just these."
            yield view.finding("placeholders-differ", message, context.place, example=context.text)
    source_pairs = [(_keys(question.ask), _keys(question.answer)) for question in source.questions]
    for question in view.test.questions:
        ask, answer = _keys(question.ask), _keys(question.answer)
        if ask is None or answer is None:
            continue
        if not any(_says(ask, question.when, first) and answer == second for first, second in source_pairs):
            message = (
                f"The question has {_shown(ask)} and its answer {_shown(answer)}; "
                "no question of the source language has just these."
            )
            yield view.finding("placeholders-differ", message, question.place, example=_asked(question))


def _asked(question: QuestionTemplate) -> str:
    return f"{question.ask} -> {question.answer}"


def _says(keys: _Keys, when: Condition, expected: _Keys | None) -> bool:
    """Return whether a text has these placeholders, or in their stead words under a condition on them."""
    return (
        expected is not None
        and keys <= expected
        and all(
            name + (f".{attribute}" if attribute else "") in when for name, _, attribute in expected - keys
        )
    )


def _shown(keys: _Keys) -> str:
    names = sorted(
        slot + ("" if number is None else str(number)) + (f".{attribute}" if attribute else "")
        for slot, number, attribute in keys
    )
    return ", ".join(f"{{{name}}}" for name in names) or "no placeholder"


# Conditions and variants ----------------------------------------------------------------------------------


def _questions(view: _View) -> Iterator[Finding]:
    first: dict[str, list[QuestionTemplate]] = {}
    for question in view.test.questions:
        for earlier in first.setdefault(question.ask, []):
            if question.answer != earlier.answer and view.overlap(question.when, earlier.when):
                message = f"The same question has the answers {earlier.answer!r} and {question.answer!r}."
                yield view.finding("same-question", message, question.place, example=question.ask)
        first[question.ask].append(question)


def _coverage(view: _View) -> Iterator[Finding]:
    """Yield fill-ins that no variant is for, where all variants depend on one and the same slot."""
    for name, texts in (("contexts", view.test.contexts), ("questions", view.test.questions)):
        keys = {tuple(text.when) for text in texts}
        if len(keys) != 1 or len(next(iter(keys))) != 1:
            continue
        (key,) = next(iter(keys))
        covered = frozenset().union(*(text.when[key] for text in texts))
        missing = sorted(condition_ids(view.test, view.language.names, key) - covered)
        if missing:
            ids = ", ".join(repr(id_) for id_ in missing)
            message = f"No variant of the {name} is for {key} = {ids}."
            yield view.finding("uncovered-fill-in", message, texts[0].place, count=len(missing))


def _variants(view: _View) -> Iterator[Finding]:
    variants = [("context", context.text, context.when, context.place) for context in view.test.contexts]
    variants += [
        ("question", _asked(question), question.when, question.place) for question in view.test.questions
    ]
    conditions: dict[str, list[Condition]] = {}
    for role, text, when, location in variants:
        if any(view.overlap(when, condition) for condition in conditions.setdefault(text, [])):
            message = f"The {role} is given twice for the same draws."
            yield view.finding("equal-variants", message, location, example=text)
        conditions[text].append(when)


# Fill-ins -------------------------------------------------------------------------------------------------


def _equal_fills(view: _View) -> Iterator[Finding]:
    naming_slots = {pair.named for pair in view.pairs.values()}
    for slot, fill in view.listed.items():
        groups: dict[tuple[tuple[str, ...], ...], list[Entry]] = {}
        for entry in fill.entries:
            groups.setdefault(tuple(form.texts for form in entry.forms), []).append(entry)
            for form in entry.forms:
                if not all(view.language.profile.clean(text) for text in form.texts):
                    message = f"{slot} {entry.id!r} has an empty form."
                    yield view.finding("empty-fill-in", message, form.place or fill.place, example=entry.id)
        kind = "equal-properties" if slot in naming_slots else "equal-fill-ins"
        for forms, group in groups.items():
            if len(group) > 1:
                text, ids = ", ".join(forms[0]), ", ".join(repr(entry.id) for entry in group)
                location = group[1].forms[0].place or fill.place
                message = f"{slot}: {ids} all read {text!r}."
                yield view.finding(kind, message, location, example=text, count=len(group) - 1)


def _shared_fills(view: _View) -> Iterator[Finding]:
    """Yield forms that two slots of one context share: the answer is ambiguous."""
    forms = {
        slot: {form.texts[0] for entry in fill.entries for form in entry.forms}
        for slot, fill in view.listed.items()
    }
    contexts = [
        {mark.slot for mark in placeholders(context.text)} & forms.keys() for context in view.test.contexts
    ]
    together = {
        (first, second): None
        for slots in contexts
        for first in sorted(slots)
        for second in slots
        if first < second
    }
    for pair in view.pairs.values():
        together |= {(first, second): None for i, first in enumerate(pair.of) for second in pair.of[i + 1 :]}
    for first, second in together:
        shared = sorted(forms.get(first, set()) & forms.get(second, set()) - {""})
        if shared:
            location = view.listed[second].place
            message = f"{first} and {second} share {', '.join(repr(form) for form in shared)}."
            yield view.finding("shared-fill-in", message, location, example=shared[0], count=len(shared))
