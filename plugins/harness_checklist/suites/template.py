"""Template texts: ``{slot}``, ``{slot1}``, ``{adj[0]}``, ``{p.v1}``, ``{obj[1]|capitalise}``; ``{{`` is a brace."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter

from harness import UsageError

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
