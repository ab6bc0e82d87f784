"""Faults of templates: unknown slots, missing values, cycles, variants that never apply. All of a test at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness import Problem, SpecError, near_names
from harness_checklist.suite import (
    NAME_SLOTS,
    Condition,
    FillInEntry,
    Form,
    LanguageSuite,
    ListedFillIn,
    Names,
    PairFillIn,
    SourcePlace,
    TestTemplate,
)
from harness_checklist.template import (
    Placeholder,
    Space,
    TemplateError,
    forms_behind,
    parse,
    slots_of,
    split_number,
)

PAIR_ATTRIBUTES = ("p1", "v1", "p2", "v2")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a test, and its place."""

    message: str
    place: SourcePlace | None = None


def check_test(spoken: LanguageSuite, test_id: str) -> None:
    """Raise `SpecError` with all faults of a test in one language."""
    faults = [
        Problem(message=fault.message, line=fault.place.line if fault.place else None, key=test_id)
        for fault in faults_of(spoken.tests[test_id], spoken.names)
    ]
    if faults:
        source = spoken.place.path if spoken.place else f"Test {test_id!r} in {spoken.language!r}"
        raise SpecError(source, faults)


def faults_of(test: TestTemplate, names: Names) -> Iterator[Fault]:
    """Yield all faults of a test in one language."""
    checker = _Checker(test, names)
    faults = [Fault(message, location or test.place) for message, location in checker.faults()]
    yield from faults
    if not faults:
        for subject, when, location in _variants(test):
            if when and not checker.space.is_met(when):
                needed = ", ".join(f"{key} is {' or '.join(sorted(ids))}" for key, ids in when.items())
                yield Fault(f"{subject} never applies: no draw has {needed}", location)


def placeholders(text: str) -> tuple[Placeholder, ...]:
    """Return the placeholders of a text; none where it cannot be parsed."""
    try:
        return parse(text).placeholders
    except TemplateError:
        return ()


def condition_ids(test: TestTemplate, names: Names, key: str) -> frozenset[str]:
    """Return the ids that a key of a condition may have; none for an unknown slot."""
    slot, _, attribute = key.partition(".")
    name = split_number(slot)[0]
    fill = test.fills.get(name)
    if isinstance(fill, ListedFillIn):
        return frozenset(fill.values)
    if isinstance(fill, PairFillIn):
        listed = [test.fills.get(member) for member in fill.of]
        values = [item.values for item in listed if isinstance(item, ListedFillIn)]
        return frozenset(fill.of) if attribute.startswith("p") else frozenset().union(*values)
    if attribute:
        return frozenset(("male", "female") if test.names == "any" else (test.names,))
    return frozenset(_drawn_names(test, names, name) if name in NAME_SLOTS else ())


def _drawn_names(test: TestTemplate, names: Names, slot: str) -> Sequence[str]:
    if slot == "last_name":
        return names.last
    male = names.male if test.names != "female" else ()
    return (*male, *(names.female if test.names != "male" else ()))


def _variants(test: TestTemplate) -> Iterator[tuple[str, Condition, SourcePlace | None]]:
    for context in test.contexts:
        yield "the context", context.when, context.place
    for question in test.questions:
        yield "the question", question.when, question.place
    for name in {split_number(slot)[0] for slot in slots_of(test)}:
        fill = test.fills.get(name)
        for entry in fill.entries if isinstance(fill, ListedFillIn) else ():
            for form in entry.forms:
                yield f"a form of {entry.id!r}", form.when, form.place


class _Checker:
    """Looks at one part after the other; the methods below `faults` yield messages."""

    def __init__(self, test: TestTemplate, names: Names) -> None:
        self.test = test
        self.names = names
        self.slots = [*test.fills, *NAME_SLOTS]

    @cached_property
    def space(self) -> Space:
        return Space(self.test, self.names)

    def faults(self) -> Iterator[tuple[str, SourcePlace | None]]:
        test = self.test
        for section in ("contexts", "questions"):
            if not getattr(test, section):
                yield f"the test has no {section}", None
        for context in test.contexts:
            for message in (*self._texts((context.text,)), *self._condition(context.when)):
                yield message, context.place
        for question in test.questions:
            for message in (*self._texts((question.ask, question.answer)), *self._condition(question.when)):
                yield message, question.place
        for name, fill in test.fills.items():
            messages = self._pair(name, fill) if isinstance(fill, PairFillIn) else self._listed(name, fill)
            for message in (*_name(name), *messages, *self._cycle(name)):
                yield message, fill.place
            size = _size(fill) if isinstance(fill, ListedFillIn) else 0
            for entry in fill.entries if isinstance(fill, ListedFillIn) else ():
                for number, form in enumerate(entry.forms):
                    for message in (*self._form(name, size, entry, number), *self._condition(form.when)):
                        yield message, form.place
        for message in (*self._zips(), *self._balance()):
            yield message, None

    def _texts(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            if "{" in text or "}" in text:
                try:
                    for placeholder in parse(text).placeholders:
                        yield from self._placeholder(placeholder)
                except TemplateError as error:
                    yield from (f"{text!r}: {fault}" for fault in error.faults)

    def _placeholder(self, item: Placeholder) -> Iterator[str]:
        braced = f"{{{item.reference}}}"
        fill = self.test.fills.get(item.slot)
        if fill is None and item.slot not in NAME_SLOTS:
            yield f"{braced}: no fill-in named {item.slot!r}{did_you_mean(item.slot, self.slots)}"
        elif fill is None:
            if item.attribute is not None or item.index:
                yield f"{braced}: a name has neither attributes nor further forms"
            elif not _drawn_names(self.test, self.names, item.slot):
                kind = "last" if item.slot == "last_name" else self.test.names
                which = "" if kind == "any" else f"{kind} "
                yield f"{braced} has no values: the language has no {which}names"
        elif isinstance(fill, PairFillIn):
            yield from self._pair_placeholder(item, fill, braced)
        elif item.attribute is not None:
            yield f"{braced}: {item.slot!r} is no pair and has no {item.attribute!r}"
        elif item.index >= (size := _size(fill)) > 0:
            forms = "1 form" if size == 1 else f"{size} aligned forms"
            yield f"{braced}: {item.slot!r} has {forms}, counted from 0"

    def _pair_placeholder(self, item: Placeholder, fill: PairFillIn, braced: str) -> Iterator[str]:
        if item.attribute is None:
            yield f"{braced}: {item.slot!r} is a pair: write {{{item.key}.v1}}"
        elif item.attribute not in PAIR_ATTRIBUTES:
            yield f"{braced}: a pair has no {item.attribute!r}; it has {', '.join(PAIR_ATTRIBUTES)}"
        elif item.attribute[0] == "p" and fill.named is None:
            yield f"{braced}: the pair {item.slot!r} has no 'named'"
        else:
            for source in fill.of if item.attribute[0] == "v" else (fill.named,):
                listed = self.test.fills.get(str(source))
                if isinstance(listed, ListedFillIn) and item.index >= _size(listed) > 0:
                    yield f"{braced}: {source!r} has no form {item.index}, counted from 0"

    def _listed(self, name: str, fill: ListedFillIn) -> Iterator[str]:
        if not fill.entries:
            yield f"the fill-in {name!r} has no values"
        for entry in fill.entries:
            if not entry.forms:
                yield f"{name}: {entry.id!r} has no forms"

    def _form(self, name: str, size: int, entry: FillInEntry, number: int) -> Iterator[str]:
        form = entry.forms[number]
        if len(form.texts) != size:
            yield f"{name}: {entry.id!r} has {len(form.texts)} aligned forms where the first has {size}"
        yield from self._texts(form.texts)
        if any(_covers(earlier, form) for earlier in entry.forms[:number]):
            yield f"{name}: a form of {entry.id!r} never applies: an earlier one applies wherever it does"

    def _pair(self, name: str, fill: PairFillIn) -> Iterator[str]:
        if len(fill.of) < 2 or len(set(fill.of)) < len(fill.of):
            yield f"the pair {name!r} needs two or more different fill-ins"
        listed = [key for key, item in self.test.fills.items() if isinstance(item, ListedFillIn)]
        for member in (*fill.of, *((fill.named,) if fill.named else ())):
            if member not in listed:
                yield f"the pair {name!r} names {member!r}, which is no listed fill-in{did_you_mean(member, listed)}"
        naming = self.test.fills.get(fill.named or "")
        if isinstance(naming, ListedFillIn):
            for member in set(fill.of) - naming.values.keys():
                yield f"the pair {name!r}: {fill.named!r} has no name for {member!r}"

    def _zips(self) -> Iterator[str]:
        zipped: set[str] = set()
        for members in self.test.zips:
            sizes = {}
            for name in members:
                fill = self.test.fills.get(name)
                if isinstance(fill, ListedFillIn):
                    sizes[name] = len(fill.entries)
                else:
                    yield f"zip: {name!r} is no listed fill-in{did_you_mean(name, self.test.fills)}"
                if name in zipped:
                    yield f"zip: {name!r} is zipped twice"
                zipped.add(name)
            if len(set(sizes.values())) > 1:
                lengths = ", ".join(f"{name} {size}" for name, size in sizes.items())
                yield f"zip: fill-ins of unequal length: {lengths}"

    def _balance(self) -> Iterator[str]:
        if self.test.balance not in (None, "variants"):
            yield from self._key(str(self.test.balance), "balance")

    def _condition(self, when: Condition) -> Iterator[str]:
        for key, allowed in when.items():
            faults = list(self._key(key, "when"))
            yield from faults
            if not faults and not allowed:
                yield f"when: {key} names no ids"
            valid_ids = allowed if faults else condition_ids(self.test, self.names, key)
            for name in sorted(allowed - valid_ids):
                yield f"when: {key} has no {name!r}, so it never applies for it{did_you_mean(name, valid_ids)}"

    def _key(self, key: str, setting: str) -> Iterator[str]:
        slot, _, attribute = key.partition(".")
        name = split_number(slot)[0]
        fill = self.test.fills.get(name)
        if fill is None and name not in NAME_SLOTS:
            yield f"{setting}: no slot named {slot!r}{did_you_mean(name, self.slots)}"
        elif isinstance(fill, PairFillIn):
            if attribute not in PAIR_ATTRIBUTES and (attribute or setting == "when"):
                yield f"{setting}: {slot!r} is a pair: write {slot}.p1 or {slot}.v1"
        elif attribute and not (name == "first_name" and attribute == "gender"):
            yield f"{setting}: {slot!r} has no {attribute!r}"
        elif fill is None and not _drawn_names(self.test, self.names, name):
            yield f"{setting}: {slot!r} has no values: the language has no names for it"

    def _cycle(self, name: str) -> Iterator[str]:
        """Yield the shortest way from a fill-in back to itself; each cycle at its first fill-in alone."""
        paths: list[tuple[str, ...]] = [(name,)]
        visited = {name}
        while paths:
            path = paths.pop(0)
            inner = {
                item.slot
                for form in forms_behind(path[-1], self.test)
                for text in form.texts
                for item in placeholders(text)
            }
            if name in inner:
                if name == min(path, key=list(self.test.fills).index):
                    yield f"fill-ins form a cycle: {' -> '.join((*path, name))}"
                return
            paths += [(*path, slot) for slot in sorted(inner - visited) if slot in self.test.fills]
            visited |= inner


def _name(name: str) -> Iterator[str]:
    if name in NAME_SLOTS:
        yield f"the fill-in {name!r} is taken: names fill it"
    elif not name.isidentifier() or split_number(name)[1] is not None:
        yield f"a fill-in cannot be named {name!r}: expected letters and _, no digit at the end"


def _covers(earlier: Form, later: Form) -> bool:
    """Return whether the earlier of two forms applies wherever the later one does."""
    return all(key in later.when and later.when[key] <= ids for key, ids in earlier.when.items())


def _size(fill: ListedFillIn) -> int:
    return len(fill.entries[0].forms[0].texts) if fill.entries and fill.entries[0].forms else 0


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a clause with the names that look like one; empty where none does."""
    near = near_names(name, known)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
