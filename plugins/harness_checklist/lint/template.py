"""Faults of the templates of a test that need no generated cases: placeholders, conditions, variants, fill-ins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from harness_checklist.lint.finding import Finding
from harness_checklist.suites.checking import faults_of
from harness_checklist.suites.suite import (
    NAME_SLOTS,
    Condition,
    Entry,
    LanguageSuite,
    ListedFillIn,
    PairFillIn,
    Place,
    TestTemplate,
)
from harness_checklist.suites.template import Placeholder, Template, TemplateError, parse, split_number

__all__ = ["TemplateText", "TestView", "template_findings"]

_PAIR_ATTRIBUTES: Final = ("v1", "v2", "p1", "p2")
Key = tuple[str, int | None, str | None]
"""Slot, number and attribute of a placeholder, without its form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateText:
    """One text of a test's templates."""

    role: str
    """``context``, ``question`` or ``answer``."""
    text: str
    when: Condition
    place: Place | None
    template: Template | None
    """None where it cannot be parsed."""

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """The placeholders, in their order."""
        return () if self.template is None else self.template.placeholders

    @property
    def literals(self) -> tuple[str, ...]:
        """The texts around the placeholders, one more than there are placeholders."""
        return (self.text,) if self.template is None else self.template.literals

    @property
    def keys(self) -> frozenset[Key]:
        """The slot, number and attribute of every placeholder."""
        return frozenset((mark.slot, mark.number, mark.attribute) for mark in self.placeholders)


@dataclass(frozen=True, kw_only=True)
class TestView:
    """A test in one language, with its texts parsed, and the same test in the source language."""

    __test__ = False

    language: LanguageSuite
    test_id: str
    source: TestView | None = None

    @property
    def test(self) -> TestTemplate:
        """The templates."""
        return self.language.tests[self.test_id]

    @cached_property
    def contexts(self) -> tuple[TemplateText, ...]:
        """The contexts."""
        return tuple(_parsed("context", each.text, each.when, each.place) for each in self.test.contexts)

    @cached_property
    def questions(self) -> tuple[tuple[TemplateText, TemplateText], ...]:
        """The questions, each with its answer."""
        return tuple(
            (
                _parsed("question", each.ask, each.when, each.place),
                _parsed("answer", each.answer, each.when, each.place),
            )
            for each in self.test.questions
        )

    @cached_property
    def texts(self) -> tuple[TemplateText, ...]:
        """All texts."""
        return (*self.contexts, *(text for pair in self.questions for text in pair))

    @property
    def listed(self) -> Mapping[str, ListedFillIn]:
        """The fill-ins that are lists of values."""
        return {slot: fill for slot, fill in self.test.fills.items() if isinstance(fill, ListedFillIn)}

    def finding(
        self, kind: str, message: str, place: Place | None, *, example: str = "", count: int = 1
    ) -> Finding:
        """Return a finding about this test."""
        where = str(place or self.language.place or "")
        return Finding(
            kind=kind,
            language=self.language.language,
            test=self.test_id,
            message=message,
            place=where,
            example=example,
            count=count,
        )


def _parsed(role: str, text: str, when: Condition, place: Place | None) -> TemplateText:
    try:
        return TemplateText(role=role, text=text, when=when, place=place, template=parse(text))
    except TemplateError:
        return TemplateText(role=role, text=text, when=when, place=place, template=None)


def template_findings(view: TestView) -> Iterator[Finding]:
    """Yield the faults of the templates of a test in one language."""
    yield from _faults(view)
    yield from _placeholders(view)
    yield from _questions(view)
    yield from _coverage(view)
    yield from _variants(view)
    yield from _equal_fills(view)
    yield from _shared_fills(view)


# Placeholders ---------------------------------------------------------------------------------------------


def _faults(view: TestView) -> Iterator[Finding]:
    for fault in faults_of(view.test, view.language.names):
        yield view.finding("bad-template", f"{fault.message[:1].upper()}{fault.message[1:]}.", fault.place)


def _placeholders(view: TestView) -> Iterator[Finding]:
    if view.source is None:
        return
    known = [text.keys for text in view.source.contexts]
    for text in view.contexts:
        if text.template is not None and not any(_says(text, keys) for keys in known):
            message = (
                f"The context has {_shown(text.keys)}; no context of the source language has just these."
            )
            yield view.finding("placeholders-differ", message, text.place, example=text.text)
    pairs = [(ask.keys, answer.keys) for ask, answer in view.source.questions]
    for ask, answer in view.questions:
        if ask.template is None or answer.template is None:
            continue
        if not any(_says(ask, asked) and answer.keys == answered for asked, answered in pairs):
            message = (
                f"The question has {_shown(ask.keys)} and its answer {_shown(answer.keys)}; "
                "no question of the source language has just these."
            )
            example = f"{ask.text} -> {answer.text}"
            yield view.finding("placeholders-differ", message, ask.place, example=example)


def _says(text: TemplateText, wanted: frozenset[Key]) -> bool:
    """Return whether a text has these placeholders, or in their stead words under a condition on them."""
    absent = wanted - text.keys
    return text.keys <= wanted and all(
        name + (f".{attribute}" if attribute else "") in text.when for name, _, attribute in absent
    )


def _shown(keys: frozenset[Key]) -> str:
    names = sorted(
        slot + ("" if number is None else str(number)) + (f".{attribute}" if attribute else "")
        for slot, number, attribute in keys
    )
    return ", ".join(f"{{{name}}}" for name in names) or "no placeholder"


def _questions(view: TestView) -> Iterator[Finding]:
    first: dict[str, list[tuple[TemplateText, TemplateText]]] = {}
    for ask, answer in view.questions:
        for other, other_answer in first.setdefault(ask.text, []):
            if answer.text != other_answer.text and _overlap(view, ask.when, other.when):
                message = f"The same question has the answers {other_answer.text!r} and {answer.text!r}."
                yield view.finding("same-question", message, ask.place, example=ask.text)
        first[ask.text].append((ask, answer))


# Conditions and variants ----------------------------------------------------------------------------------


def _overlap(view: TestView, one: Condition, other: Condition) -> bool:
    """Return whether a draw may meet both."""
    both = {key: one.get(key, ids) & other.get(key, ids) for key, ids in {**one, **other}.items()}
    if not all(both.values()):
        return False
    pairs = [slot for slot, fill in view.test.fills.items() if isinstance(fill, PairFillIn)]
    # The two fill-ins of a pair are never the same.
    return all(
        len(both.get(f"{slot}.p1", frozenset()) | both.get(f"{slot}.p2", frozenset())) != 1
        or not (f"{slot}.p1" in both and f"{slot}.p2" in both)
        for slot in pairs
    )


def _condition_ids(view: TestView, key: str) -> frozenset[str] | None:
    """Return the ids that a slot, or an attribute of a pair, may have; None where nothing has this name."""
    slot, _, attribute = key.partition(".")
    bare, _ = split_number(slot)
    if bare in NAME_SLOTS:
        names = view.language.names
        return frozenset(
            {"male", "female", "any"} if attribute else (*names.male, *names.female, *names.last)
        )
    fill = view.test.fills.get(slot) or view.test.fills.get(bare)
    if isinstance(fill, PairFillIn):
        return _pair_ids(view, fill, attribute)
    return None if fill is None else frozenset(entry.id for entry in fill.entries)


def _pair_ids(view: TestView, pair: PairFillIn, attribute: str) -> frozenset[str] | None:
    if attribute not in _PAIR_ATTRIBUTES:
        return None
    if attribute.startswith("p"):
        return frozenset(pair.of)
    return frozenset(entry.id for slot in pair.of for entry in _entries(view, slot))


def _entries(view: TestView, slot: str) -> tuple[Entry, ...]:
    fill = view.test.fills.get(slot)
    return fill.entries if isinstance(fill, ListedFillIn) else ()


def _coverage(view: TestView) -> Iterator[Finding]:
    """Yield fill-ins that no variant is for, where all variants depend on one and the same slot."""
    asked: dict[str, list[TemplateText]] = {"contexts": list(view.contexts)}
    asked["questions"] = [ask for ask, _ in view.questions]
    for name, texts in asked.items():
        keys = {tuple(text.when) for text in texts}
        if len(keys) != 1 or len(next(iter(keys))) != 1:
            continue
        (key,) = next(iter(keys))
        known = _condition_ids(view, key) or frozenset()
        covered = frozenset().union(*(text.when[key] for text in texts))
        missing = sorted(known - covered)
        if missing:
            shown = ", ".join(repr(one) for one in missing)
            message = f"No variant of the {name} is for {key} = {shown}."
            yield view.finding("uncovered-fill-in", message, texts[0].place, count=len(missing))


def _variants(view: TestView) -> Iterator[Finding]:
    asked = [(text.text, text) for text in view.contexts]
    asked += [(f"{ask.text} -> {answer.text}", ask) for ask, answer in view.questions]
    seen: dict[str, list[TemplateText]] = {}
    for shown, text in asked:
        if any(_overlap(view, text.when, other.when) for other in seen.setdefault(shown, [])):
            message = f"The {text.role} is given twice for the same draws."
            yield view.finding("equal-variants", message, text.place, example=shown)
        seen[shown].append(text)


# Fill-ins -------------------------------------------------------------------------------------------------


def _read_the_same(entries: tuple[Entry, ...]) -> Iterator[tuple[str, list[Entry]]]:
    groups: dict[tuple[tuple[str, ...], ...], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(tuple(form.texts for form in entry.forms), []).append(entry)
    for forms, group in groups.items():
        if len(group) > 1:
            yield ", ".join(forms[0]) if forms else "", group


def _equal_fills(view: TestView) -> Iterator[Finding]:
    named = {fill.named for fill in view.test.fills.values() if isinstance(fill, PairFillIn)}
    for slot, fill in view.listed.items():
        for entry in fill.entries:
            for form in entry.forms:
                if not form.texts or not all(view.language.profile.clean(text) for text in form.texts):
                    message = f"{slot} {entry.id!r} has an empty form."
                    yield view.finding("empty-fill-in", message, form.place or fill.place, example=entry.id)
        kind = "equal-properties" if slot in named else "equal-fill-ins"
        for text, group in _read_the_same(fill.entries):
            ids = ", ".join(repr(entry.id) for entry in group)
            place = group[1].forms[0].place if group[1].forms else fill.place
            message = f"{slot}: {ids} all read {text!r}."
            yield view.finding(kind, message, place or fill.place, example=text, count=len(group) - 1)


def _shared_fills(view: TestView) -> Iterator[Finding]:
    """Yield forms that two slots of one context share: the answer is ambiguous."""
    forms = {
        slot: {form.texts[0] for entry in fill.entries for form in entry.forms if form.texts}
        for slot, fill in view.listed.items()
    }
    slots = {mark.slot for text in view.contexts for mark in text.placeholders} & forms.keys()
    together = [
        (one, other)
        for one in sorted(slots)
        for other in sorted(slots)
        if one < other and any({one, other} <= {mark.slot for mark in t.placeholders} for t in view.contexts)
    ]
    pairs = [fill.of for fill in view.test.fills.values() if isinstance(fill, PairFillIn)]
    together += [(one, other) for of in pairs for i, one in enumerate(of) for other in of[i + 1 :]]
    for one, other in together:
        shared = sorted(forms.get(one, set()) & forms.get(other, set()) - {""})
        if shared:
            place = view.listed[other].place
            message = f"{one} and {other} share {', '.join(repr(form) for form in shared)}."
            yield view.finding("shared-fill-in", message, place, example=shared[0], count=len(shared))
