"""Templates: text with slots, parsed once; no code, no attributes, no loops.

``{premise}`` is a field of the item or a literal, ``{premise|strip|lower_first}`` a field through filters,
``{connective[question]}`` the literal ``connective.VALUE``, where VALUE is what the item has in its field
``question``. ``{{`` and ``}}`` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from harness.errors import Problem, SpecError, UnknownNameError
from harness.prompts.filter import CASED, FILTERS

_SLOT = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"([A-Za-z][A-Za-z0-9_]*)(?:\[([A-Za-z][A-Za-z0-9_]*)\])?((?:\|[a-z_]+)*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A place that a value is put into."""

    name: str
    selector: str | None
    """The field whose value selects among the literals ``name.VALUE``."""
    filters: tuple[Callable[[str], str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names that must be known for it; those of selected literals are known by item only."""
        return (self.name,) if self.selector is None else (self.selector,)


Part = str | Slot


class Template:
    """A parsed template."""

    def __init__(self, parts: Iterable[Part], *, owner: str) -> None:
        """Keep the parts; `parse` makes them from a text."""
        self.parts = _joined(parts)
        self.owner = owner

    @classmethod
    def parse(cls, text: str, *, owner: str, language: str = "") -> Template:
        """Return the template of a text; raises `SpecError` for a brace that is no slot, or an unknown filter.

        `language` is that of the items: filters that change the case of letters follow it.
        """
        segments: list[Part] = []
        end = 0
        for match in _SLOT.finditer(text):
            segments.append(text[end : match.start()])
            end = match.end()
            if match.group() in {"{{", "}}"}:
                segments.append(match.group()[0])
            elif match.group(1) is None:
                raise _fault(
                    owner,
                    f"single brace at character {match.start() + 1} of {text!r}; write it twice",
                )
            else:
                segments.append(_slot(match.group(1), owner, language))
        segments.append(text[end:])
        return cls(segments, owner=owner)

    @property
    def names(self) -> frozenset[str]:
        """The names of fields and literals that it uses."""
        return frozenset(
            name for segment in self.parts if isinstance(segment, Slot) for name in segment.names
        )

    @property
    def tables(self) -> frozenset[str]:
        """The names of the literal tables that items select from: ``connective``."""
        return frozenset(
            segment.name
            for segment in self.parts
            if isinstance(segment, Slot) and segment.selector is not None
        )

    def bind(self, literals: Mapping[str, str]) -> Template:
        """Return the template with the literals put in, filters applied; item fields stay slots."""
        segments: list[Part] = []
        for segment in self.parts:
            if isinstance(segment, Slot) and segment.selector is None and segment.name in literals:
                segments.append(_filtered(literals[segment.name], segment))
            else:
                segments.append(segment)
        return Template(segments, owner=self.owner)

    def render(self, values: Mapping[str, str], literals: Mapping[str, str] | None = None) -> str:
        """Return the text for one item; raises `SpecError` for a field or literal without a value.

        Args:
            values: The fields of the item.
            literals: Where slots with a selector look.
        """
        try:
            return "".join(
                [
                    segment if isinstance(segment, str) else _value(segment, values, literals)
                    for segment in self.parts
                ]
            )
        except KeyError as error:
            name = str(error.args[0])
            names = sorted({*values, *(literals or {})})
            raise _fault(
                self.owner, str(UnknownNameError("field or literal of the template", name, names))
            ) from error


def _value(slot: Slot, values: Mapping[str, str], literals: Mapping[str, str] | None) -> str:
    if slot.selector is None:
        return _filtered(values[slot.name], slot)
    return _filtered((literals or {})[f"{slot.name}.{values[slot.selector]}"], slot)


def _filtered(text: str, slot: Slot) -> str:
    for apply in slot.filters:
        text = apply(text)
    return text


def _slot(text: str, owner: str, language: str) -> Slot:
    match = _NAME.fullmatch(text)
    if match is None:
        raise _fault(
            owner, f"the slot {{{text}}} is not of the form {{name}}, {{name|filter}} or {{literal[field]}}"
        )
    name, selector, filters = match.groups()
    applied: list[Callable[[str], str]] = []
    for item in filters.split("|")[1:]:
        if item not in FILTERS:
            raise _fault(owner, str(UnknownNameError("template filter", item, FILTERS)))
        applied.append(partial(FILTERS[item], language=language) if item in CASED else FILTERS[item])
    return Slot(name=name, selector=selector, filters=tuple(applied))


def _joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    joined: list[Part] = []
    for segment in parts:
        if isinstance(segment, str) and joined and isinstance(joined[-1], str):
            joined[-1] += segment
        elif segment != "":
            joined.append(segment)
    return tuple(joined)


def _fault(owner: str, message: str) -> SpecError:
    return SpecError(owner, [Problem(message=message)])
