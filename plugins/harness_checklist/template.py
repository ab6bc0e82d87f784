"""Template texts with their slots, and the space of draws that the slots of a test span.

A text holds ``{slot}``, ``{slot1}``, ``{adj[0]}``, ``{p.v1}``, ``{obj[1]|capitalise}``; ``{{`` is a brace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, permutations
from math import prod
from operator import itemgetter

from harness import UsageError
from harness_checklist.suite import (
    NAME_SLOTS,
    Condition,
    FillInEntry,
    Form,
    Gender,
    ListedFillIn,
    Names,
    PairFillIn,
    TestTemplate,
)

_PLACEHOLDER = re.compile(
    r"""\s* (?P<slot>[^\W\d]\w*?) (?P<number>[0-9]*)
        (?: \[ (?P<first>[0-9]+) \] )? (?: \. (?P<attribute>\w+) )? (?: \[ (?P<second>[0-9]+) \] )?
        (?: \s* \| \s* (?P<transform>\w+) )? \s*""",
    re.VERBOSE,
)
_BRACE = re.compile(r"\{\{|\}\}|\{|\}")
_INNER = re.compile(r"([^{}]*)\}")
_DOTTED_I = frozenset({"az", "tr"})
"""Languages that capitalise i to a dotted capital (Unicode SpecialCasing, section Language-Sensitive Mappings)."""


def capitalise(text: str, language: str) -> str:
    """Return the text with its first character as a title-case letter; Turkish i keeps its dot."""
    head, tail = text[:1], text[1:]
    if head == "i" and language in _DOTTED_I:
        return "\u0130" + tail
    return head.title() + tail


TRANSFORMS: Mapping[str, Callable[[str, str], str]] = {"capitalise": capitalise}
"""Name after the bar -> the function of a text and its language."""


class TemplateError(UsageError):
    """A template text that cannot be parsed; all its faults."""

    def __init__(self, text: str, faults: tuple[str, ...]) -> None:
        super().__init__(f"The template {text!r} cannot be read: {'; '.join(faults)}.")
        self.faults = faults


@dataclass(frozen=True, kw_only=True)
class Placeholder:
    """One placeholder of a template."""

    slot: str
    """The name without its number: that of the fill-in."""
    number: int | None = None
    index: int = 0
    """Which of the aligned forms."""
    attribute: str | None = None
    transform: str | None = None

    @cached_property
    def key(self) -> str:
        """The slot with its number: equal keys are one draw."""
        return self.slot if self.number is None else f"{self.slot}{self.number}"

    @cached_property
    def entry(self) -> str:
        """The key with the attribute: that of its fill-in in `Option.entries`."""
        return self.key if self.attribute is None else f"{self.key}.{self.attribute}"

    @cached_property
    def reference(self) -> str:
        """The canonical text between the braces: equal references have equal values in a draw."""
        index = f"[{self.index}]" if self.index else ""
        return f"{self.entry}{index}{'' if self.transform is None else f'|{self.transform}'}"


@dataclass(frozen=True, kw_only=True)
class TextTemplate:
    """A parsed text: literals around placeholders, ``len(literals) == len(placeholders) + 1``."""

    text: str
    literals: tuple[str, ...]
    placeholders: tuple[Placeholder, ...]

    @cached_property
    def _fill(self) -> Callable[[Mapping[str, str]], str]:
        literals = [literal.replace("%", "%%") for literal in self.literals]
        if not self.placeholders:
            only = self.literals[0]
            return lambda values: only
        get = itemgetter(*(placeholder.reference for placeholder in self.placeholders))
        pattern = "%s".join(literals)
        return lambda values: pattern % get(values)

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with the values of all references; raises `KeyError` where one is missing."""
        return self._fill(values)


def split_number(name: str) -> tuple[str, int | None]:
    """Return a slot name and the number at its end: ``first_name1`` -> ``("first_name", 1)``."""
    bare = name.rstrip("0123456789")
    return (bare, int(name[len(bare) :])) if bare and bare != name else (name, None)


@lru_cache(maxsize=65536)
def parse(text: str) -> TextTemplate:
    """Return the parsed template; raises `TemplateError` with all faults."""
    literals, placeholders, faults = [""], [], []
    position = 0
    while match := _BRACE.search(text, position):
        literals[-1] += text[position : match.start()]
        position = match.end()
        if len(match.group()) == 2:
            literals[-1] += match.group()[0]
            continue
        inner = None if match.group() == "}" else _INNER.match(text, position)
        if inner is None:
            problem = "closes nothing" if match.group() == "}" else "is not closed"
            where = f"character {match.start() + 1}"
            faults.append(f"{match.group()!r} ({where}) {problem}: write {match.group() * 2!r} for a brace")
            continue
        position = inner.end()
        placeholder = _placeholder(inner.group(1))
        if isinstance(placeholder, str):
            faults.append(placeholder)
        else:
            placeholders.append(placeholder)
            literals.append("")
    literals[-1] += text[position:]
    if faults:
        raise TemplateError(text, tuple(faults))
    return TextTemplate(text=text, literals=tuple(literals), placeholders=tuple(placeholders))


def _placeholder(inner: str) -> Placeholder | str:
    """Return the placeholder between two braces, or what is wrong with it."""
    match = _PLACEHOLDER.fullmatch(inner)
    if match is None or (match["first"] and match["second"]) or (match["first"] and match["attribute"]):
        shapes = "{slot}, {slot1}, {slot[1]}, {pair.v1} or {slot|capitalise}"
        return f"{{{inner}}} is no placeholder: expected {shapes}"
    transform = match["transform"]
    if transform is not None and transform not in TRANSFORMS:
        return f"{{{inner}}}: no transformation named {transform!r}; known: {', '.join(TRANSFORMS)}"
    return Placeholder(
        slot=match["slot"],
        number=int(match["number"]) if match["number"] else None,
        index=int(match["first"] or match["second"] or 0),
        attribute=match["attribute"],
        transform=transform,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One value of a group of slots."""

    ids: Mapping[str, str]
    """Condition key (``adj``, ``p.v1``) -> fill-in id; these are a case's `fills`."""
    entries: Mapping[str, FillInEntry]
    """The same keys -> the fill-in whose forms are shown."""
    gender: str | None = None
    """Of a first name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Slots that are drawn together: one slot, or those of a zip."""

    slots: tuple[str, ...]
    family: str
    """Groups of one family are numbered draws of the same fill-ins: they never take the same option."""
    options: tuple[Option, ...]


class Space:
    """The product of all groups of a test.

    Slots that no text, condition or form of the test names are not drawn.
    """

    def __init__(self, test: TestTemplate, names: Names) -> None:
        self.groups = tuple(_groups(test, names))
        self.group_of = {slot: number for number, group in enumerate(self.groups) for slot in group.slots}
        self.size = prod(len(group.options) for group in self.groups)
        self._sets: dict[tuple[str, frozenset[str]], tuple[int, frozenset[int]]] = {}

    def options_where(self, key: str, allowed: frozenset[str]) -> tuple[int, frozenset[int]]:
        """Return the number of the group that a condition key belongs to, and its options that meet it."""
        if (key, allowed) not in self._sets:
            number = self.group_of[key.partition(".")[0]]
            met = (i for i, option in enumerate(self.groups[number].options) if _id(option, key) in allowed)
            self._sets[key, allowed] = (number, frozenset(met))
        return self._sets[key, allowed]

    def value_of(self, key: str, number: int) -> str:
        """Return the id under a key of an option of its group; a pair without attribute is its two fill-ins."""
        option = self.groups[self.group_of[key.partition(".")[0]]].options[number]
        id_ = _id(option, key)
        return f"{option.ids[key + '.p1']} {option.ids[key + '.p2']}" if id_ is None else id_

    def is_met(self, when: Condition) -> bool:
        """Whether a condition holds for any option of each group, numbered draws not compared."""
        met: dict[int, frozenset[int]] = {}
        for key, allowed in when.items():
            number, options = self.options_where(key, allowed)
            met[number] = met.get(number, options) & options
        return all(met.values())


def _id(option: Option, key: str) -> str | None:
    return option.gender if key.endswith(".gender") else option.ids.get(key)


def slots_of(test: TestTemplate) -> list[str]:
    """Return the slots that texts, conditions and the forms they lead to name, in order of appearance."""
    slots: dict[str, None] = {}
    for context in test.contexts:
        _add(slots, (context.text,), context.when, test)
    for question in test.questions:
        _add(slots, (question.ask, question.answer), question.when, test)
    return list(slots)


def _add(reached: dict[str, None], texts: Iterable[str], when: Condition, test: TestTemplate) -> None:
    slots = [placeholder.key for text in texts if "{" in text for placeholder in parse(text).placeholders]
    slots += [key.partition(".")[0] for key in when]
    for slot in slots:
        if slot not in reached:
            reached[slot] = None
            for form in forms_behind(split_number(slot)[0], test):
                _add(reached, form.texts, form.when, test)


def forms_behind(name: str, test: TestTemplate) -> Iterator[Form]:
    """Yield all forms that a slot of this fill-in can show; none for names and unknown slots."""
    fill = test.fills.get(name)
    listed = [fill]
    if isinstance(fill, PairFillIn):
        inner = (*fill.of, *(() if fill.named is None else (fill.named,)))
        listed = [test.fills.get(member) for member in inner]
    for item in listed:
        if isinstance(item, ListedFillIn):
            for entry in item.entries:
                yield from entry.forms


def _groups(test: TestTemplate, names: Names) -> Iterator[Group]:
    slots = slots_of(test)
    zipped = {name: members for members in test.zips for name in members}
    done: set[str] = set()
    for slot in slots:
        if slot in done:
            continue
        name, number = split_number(slot)
        suffix = "" if number is None else str(number)
        members = [member + suffix for member in zipped.get(name, (name,)) if member + suffix in slots]
        done.update(members)
        family = "+".join(zipped.get(name, (name,)))
        yield Group(slots=tuple(members), family=family, options=tuple(_options(members, test, names)))


def _options(members: list[str], test: TestTemplate, names: Names) -> Iterator[Option]:
    first = split_number(members[0])[0]
    fill = test.fills.get(first)
    if fill is None:
        yield from _name_options(members[0], first, test.names, names)
    elif isinstance(fill, PairFillIn):
        yield from _pair_options(members[0], fill, test.fills)
    else:
        columns = [test.fills[split_number(slot)[0]] for slot in members]
        listed = [column.entries for column in columns if isinstance(column, ListedFillIn)]
        for row in zip(*listed, strict=True):
            chosen = dict(zip(members, row, strict=True))
            yield Option(ids={slot: entry.id for slot, entry in chosen.items()}, entries=chosen)


def _name_options(slot: str, name: str, gender: Gender, names: Names) -> Iterator[Option]:
    if name not in NAME_SLOTS:
        raise KeyError(name)
    lists: list[tuple[str | None, tuple[str, ...]]] = [(None, names.last)]
    if name == "first_name":
        both = {"male": names.male, "female": names.female}
        lists = [(key, texts) for key, texts in both.items() if gender in (key, "any")]
    emitted: set[str] = set()
    for key, texts in lists:
        for text in texts:
            # A name in both lists is drawn once: either agreement is right for it.
            if text not in emitted:
                emitted.add(text)
                yield Option(ids={slot: text}, entries={slot: _name_entry(text)}, gender=key)


@lru_cache(maxsize=1 << 16)
def _name_entry(name: str) -> FillInEntry:
    return FillInEntry(name, (Form(texts=(name.replace("{", "{{").replace("}", "}}"),)),))


def _pair_options(
    slot: str, fill: PairFillIn, fills: Mapping[str, ListedFillIn | PairFillIn]
) -> Iterator[Option]:
    naming = fills.get(fill.named) if fill.named is not None else None
    titles = {entry.id: entry for entry in naming.entries} if isinstance(naming, ListedFillIn) else {}
    couples = combinations(fill.of, 2) if fill.ordered else permutations(fill.of, 2)
    for p1, p2 in couples:
        first, second = fills[p1], fills[p2]
        if not (isinstance(first, ListedFillIn) and isinstance(second, ListedFillIn)):
            raise KeyError(slot)
        for v1 in first.entries:
            for v2 in second.entries:
                ids = {f"{slot}.p1": p1, f"{slot}.v1": v1.id, f"{slot}.p2": p2, f"{slot}.v2": v2.id}
                entries = {f"{slot}.v1": v1, f"{slot}.v2": v2}
                if titles:
                    entries |= {f"{slot}.p1": titles[p1], f"{slot}.p2": titles[p2]}
                yield Option(ids=ids, entries=entries)
