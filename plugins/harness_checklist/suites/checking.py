"""Faults of templates: unknown slots, missing values, cycles, variants that never apply. All of a test at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness import Problem, SpecError, near_names
from harness_checklist.suites.space import Space, forms_behind, slots_of
from harness_checklist.suites.suite import (
    NAME_SLOTS,
    Condition,
    Entry,
    Form,
    LanguageSuite,
    ListedFillIn,
    Names,
    PairFillIn,
    Place,
    QuestionTemplate,
    TestTemplate,
)
from harness_checklist.suites.template import Placeholder, TemplateError, parse, split_number

__all__ = ["Fault", "Places", "check_test", "faults_of"]

Places = Mapping[tuple[int, str | int], Place]
"""``id`` of a question or form, and which of its texts (``ask``, ``answer``, number) -> where that text begins.

Of a test: its ``zip``, its ``balance``."""
PAIR_ATTRIBUTES = ("p1", "v1", "p2", "v2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a test, and its place."""

    message: str
    place: Place | None = None

    def as_problem(self, key: str = "") -> Problem:
        """Return it as one line of a `SpecError`, the column before the message."""
        line = self.place.line if self.place else None
        column = self.place.column if self.place else None
        return Problem(message=self.message, line=line, key=f"column {column}" if column else key)


def check_test(spoken: LanguageSuite, test_id: str) -> None:
    """Raise `SpecError` with all faults of a test in one language."""
    faults = list(faults_of(spoken.tests[test_id], spoken.names))
    if faults:
        source = spoken.place.path if spoken.place else f"Test {test_id!r} in {spoken.language!r}"
        raise SpecError(source, [fault.as_problem(test_id) for fault in faults])


def faults_of(test: TestTemplate, names: Names, places: Places | None = None) -> Iterator[Fault]:
    """Yield all faults of a test in one language."""
    checker = _Checker(test, names, places or {})
    found = list(checker.faults())
    yield from found
    if not found:
        yield from checker.unmet()


class _Checker:
    def __init__(self, test: TestTemplate, names: Names, places: Places) -> None:
        self.test = test
        self.names = names
        self.places = places

    def _place(self, item: QuestionTemplate | Form, part: str | int) -> Place | None:
        known = self.places.get((id(item), part))
        return known or (None if item.place is None else replace(item.place, column=None))

    def faults(self) -> Iterator[Fault]:
        if not self.test.contexts:
            yield Fault(message="the test has no contexts")
        if not self.test.questions:
            yield Fault(message="the test has no questions")
        for context in self.test.contexts:
            yield from self._text(context.text, context.place)
            yield from self._condition(context.when, context.place)
        for question in self.test.questions:
            yield from self._text(question.ask, self._place(question, "ask"))
            yield from self._text(question.answer, self._place(question, "answer"))
            yield from self._condition(question.when, question.place)
        for name, fill in self.test.fills.items():
            yield from self._name(name, fill.place)
            yield from self._pair(name, fill) if isinstance(fill, PairFillIn) else self._listed(name, fill)
        yield from self._zips()
        yield from self._cycles()
        if self.test.balance not in (None, "variants"):
            place = self.places.get((id(self.test), "balance"))
            yield from self._key(str(self.test.balance), place, "balance")

    def _name(self, name: str, place: Place | None) -> Iterator[Fault]:
        if name in NAME_SLOTS:
            yield Fault(message=f"the fill-in {name!r} is taken: names fill it", place=place)
        elif not name.isidentifier() or split_number(name)[1] is not None:
            yield Fault(
                message=f"a fill-in cannot be named {name!r}: expected letters and _, no digit at the end",
                place=place,
            )

    def _text(self, text: str, place: Place | None) -> Iterator[Fault]:
        if "{" not in text and "}" not in text:
            return
        try:
            template = parse(text)
        except TemplateError as error:
            for fault in error.faults:
                yield Fault(message=fault.message, place=_within(place, fault.column))
            return
        for placeholder in template.placeholders:
            yield from self._placeholder(placeholder, _within(place, placeholder.column))

    def _placeholder(self, item: Placeholder, place: Place | None) -> Iterator[Fault]:
        shown = f"{{{item.reference}}}"
        fill = self.test.fills.get(item.slot)
        if fill is None and item.slot not in NAME_SLOTS:
            known = [*self.test.fills, *NAME_SLOTS]
            yield Fault(
                message=f"{shown}: no fill-in named {item.slot!r}{_near(item.slot, known)}", place=place
            )
        elif fill is None:
            yield from self._name_placeholder(item, shown, place)
        elif isinstance(fill, ListedFillIn):
            if item.attribute is not None:
                yield Fault(
                    message=f"{shown}: {item.slot!r} is no pair and has no {item.attribute!r}", place=place
                )
            elif item.index >= (size := _size(fill)) > 0:
                forms = "1 form" if size == 1 else f"{size} aligned forms"
                yield Fault(message=f"{shown}: {item.slot!r} has {forms}, counted from 0", place=place)
        else:
            yield from self._pair_placeholder(item, fill, shown, place)

    def _name_placeholder(self, item: Placeholder, shown: str, place: Place | None) -> Iterator[Fault]:
        if item.attribute is not None or item.index:
            yield Fault(message=f"{shown}: a name has neither attributes nor further forms", place=place)
        elif not self._names(item.slot):
            kind = "last" if item.slot == "last_name" else self.test.names
            which = "" if kind == "any" else f"{kind} "
            yield Fault(message=f"{shown} has no values: the language has no {which}names", place=place)

    def _names(self, slot: str) -> Sequence[str]:
        if slot == "last_name":
            return self.names.last
        gender = self.test.names
        return [
            *(self.names.male if gender != "female" else ()),
            *(self.names.female if gender != "male" else ()),
        ]

    def _pair_placeholder(
        self, item: Placeholder, fill: PairFillIn, shown: str, place: Place | None
    ) -> Iterator[Fault]:
        if item.attribute is None:
            yield Fault(message=f"{shown}: {item.slot!r} is a pair: write {{{item.key}.v1}}", place=place)
        elif item.attribute not in PAIR_ATTRIBUTES:
            known = ", ".join(PAIR_ATTRIBUTES)
            yield Fault(message=f"{shown}: a pair has no {item.attribute!r}; it has {known}", place=place)
        elif item.attribute[0] == "p" and fill.named is None:
            yield Fault(message=f"{shown}: the pair {item.slot!r} has no 'named'", place=place)
        else:
            sources = fill.of if item.attribute[0] == "v" else (fill.named,)
            for source in sources:
                listed = self.test.fills.get(str(source))
                if isinstance(listed, ListedFillIn) and item.index >= _size(listed) > 0:
                    yield Fault(
                        message=f"{shown}: {source!r} has no form {item.index}, counted from 0", place=place
                    )

    def _listed(self, name: str, fill: ListedFillIn) -> Iterator[Fault]:
        if not fill.entries:
            yield Fault(message=f"the fill-in {name!r} has no values", place=fill.place)
        seen: set[str] = set()
        size = _size(fill)
        for entry in fill.entries:
            place = entry.forms[0].place if entry.forms else fill.place
            if entry.id in seen:
                yield Fault(message=f"the fill-in {name!r} has {entry.id!r} twice", place=place)
            seen.add(entry.id)
            if not entry.forms:
                yield Fault(message=f"{name}: {entry.id!r} has no forms", place=fill.place)
            for form in entry.forms:
                if len(form.texts) != size:
                    yield Fault(
                        message=f"{name}: {entry.id!r} has {len(form.texts)} aligned forms where "
                        f"{fill.entries[0].id!r} has {size}",
                        place=form.place or fill.place,
                    )
                for number, text in enumerate(form.texts):
                    yield from self._text(text, self._place(form, number))
                yield from self._condition(form.when, form.place)
            yield from _hidden(name, entry)

    def _pair(self, name: str, fill: PairFillIn) -> Iterator[Fault]:
        if len(fill.of) < 2 or len(set(fill.of)) < len(fill.of):
            yield Fault(message=f"the pair {name!r} needs two or more different fill-ins", place=fill.place)
        for other in (*fill.of, *((fill.named,) if fill.named else ())):
            if not isinstance(self.test.fills.get(other), ListedFillIn):
                listed = [key for key, item in self.test.fills.items() if isinstance(item, ListedFillIn)]
                yield Fault(
                    message=f"the pair {name!r} names {other!r}, which is no listed fill-in{_near(other, listed)}",
                    place=fill.place,
                )
        named = self.test.fills.get(fill.named or "")
        if isinstance(named, ListedFillIn):
            for other in set(fill.of) - {entry.id for entry in named.entries}:
                yield Fault(
                    message=f"the pair {name!r}: {fill.named!r} has no name for {other!r}", place=fill.place
                )

    def _zips(self) -> Iterator[Fault]:
        place = self.places.get((id(self.test), "zip"))
        seen: set[str] = set()
        for members in self.test.zips:
            sizes = {}
            for name in members:
                fill = self.test.fills.get(name)
                if isinstance(fill, ListedFillIn):
                    sizes[name] = len(fill.entries)
                else:
                    message = f"zip: {name!r} is no listed fill-in{_near(name, self.test.fills)}"
                    yield Fault(message=message, place=place)
                if name in seen:
                    yield Fault(message=f"zip: {name!r} is zipped twice", place=place)
                seen.add(name)
            if len(set(sizes.values())) > 1:
                lengths = ", ".join(f"{name} {size}" for name, size in sizes.items())
                yield Fault(message=f"zip: fill-ins of unequal length: {lengths}", place=place)

    def _condition(self, when: Condition, place: Place | None) -> Iterator[Fault]:
        for key, allowed in when.items():
            faults = list(self._key(key, place, "when"))
            yield from faults
            if faults:
                continue
            if not allowed:
                yield Fault(message=f"when: {key} names no ids", place=place)
            known = self._ids(key)
            for name in sorted(allowed - known):
                message = f"when: {key} has no {name!r}, so it never applies for it{_near(name, known)}"
                yield Fault(message=message, place=place)

    def _key(self, key: str, place: Place | None, what: str) -> Iterator[Fault]:
        slot, _, attribute = key.partition(".")
        name = split_number(slot)[0]
        fill = self.test.fills.get(name)
        if fill is None and name not in NAME_SLOTS:
            near = _near(name, [*self.test.fills, *NAME_SLOTS])
            yield Fault(message=f"{what}: no slot named {slot!r}{near}", place=place)
        elif isinstance(fill, PairFillIn):
            if attribute not in PAIR_ATTRIBUTES and (attribute or what == "when"):
                yield Fault(message=f"{what}: {slot!r} is a pair: write {slot}.p1 or {slot}.v1", place=place)
        elif attribute and not (name == "first_name" and attribute == "gender"):
            yield Fault(message=f"{what}: {slot!r} has no {attribute!r}", place=place)
        elif fill is None and not self._names(name):
            yield Fault(
                message=f"{what}: {slot!r} has no values: the language has no names for it", place=place
            )

    def _ids(self, key: str) -> frozenset[str]:
        slot, _, attribute = key.partition(".")
        name = split_number(slot)[0]
        fill = self.test.fills.get(name)
        if fill is None:
            return frozenset(("male", "female") if attribute else self._names(name))
        if isinstance(fill, ListedFillIn):
            return frozenset(entry.id for entry in fill.entries)
        if attribute.startswith("p"):
            return frozenset(fill.of)
        listed = [item for other in fill.of if isinstance(item := self.test.fills.get(other), ListedFillIn)]
        return frozenset(entry.id for item in listed for entry in item.entries)

    def _cycles(self) -> Iterator[Fault]:
        done: set[str] = set()
        for name in self.test.fills:
            cycle = self._cycle(name, (), done)
            if cycle:
                place = self.test.fills[name].place
                yield Fault(message=f"fill-ins form a cycle: {' -> '.join(cycle)}", place=place)

    def _cycle(self, name: str, path: tuple[str, ...], done: set[str]) -> tuple[str, ...]:
        if name in path:
            return (*path[path.index(name) :], name)
        if name in done:
            return ()
        done.add(name)
        for form in forms_behind(name, self.test):
            for text in form.texts:
                if "{" in text:
                    for inner in _placeholders(text):
                        found = self._cycle(inner.slot, (*path, name), done)
                        if found:
                            return found
        return ()

    def unmet(self) -> Iterator[Fault]:
        """Yield the variants whose condition no draw meets."""
        variants: list[tuple[str, Condition, Place | None]] = [
            *(("the context", item.when, item.place) for item in self.test.contexts if item.when),
            *(("the question", item.when, item.place) for item in self.test.questions if item.when),
        ]
        used = {split_number(slot)[0] for slot in slots_of(self.test)}
        for name in used:
            fill = self.test.fills.get(name)
            entries = fill.entries if isinstance(fill, ListedFillIn) else ()
            variants += [
                (f"a form of {entry.id!r}", form.when, form.place)
                for entry in entries
                for form in entry.forms
                if form.when
            ]
        if not variants:
            return
        space = Space(self.test, self.names)
        for what, when, place in variants:
            if not space.is_met(when):
                needed = ", ".join(f"{key} is {' or '.join(sorted(ids))}" for key, ids in when.items())
                yield Fault(message=f"{what} never applies: no draw has {needed}", place=place)


def _hidden(name: str, entry: Entry) -> Iterator[Fault]:
    """Yield the forms that never apply because an earlier form always applies first."""
    for number, form in enumerate(entry.forms):
        for earlier in entry.forms[:number]:
            if _covers(earlier, form):
                yield Fault(
                    message=f"{name}: a form of {entry.id!r} never applies: an earlier one applies wherever it does",
                    place=form.place,
                )
                break


def _covers(earlier: Form, later: Form) -> bool:
    return all(key in later.when and later.when[key] <= ids for key, ids in earlier.when.items())


def _placeholders(text: str) -> tuple[Placeholder, ...]:
    try:
        return parse(text).placeholders
    except TemplateError:
        return ()


def _size(fill: ListedFillIn) -> int:
    return len(fill.entries[0].forms[0].texts) if fill.entries and fill.entries[0].forms else 0


def _near(name: str, known: object) -> str:
    near = near_names(name, list(known))  # type: ignore[call-overload]
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _within(place: Place | None, column: int) -> Place | None:
    """Return the place of a column of the text that begins at a place."""
    if place is None or place.column is None:
        return place
    return replace(place, column=place.column + column - 1)
