"""Templates: text with slots, parsed once; no code, no attributes, no loops.

``{premise}`` is a field of the item or a literal, ``{premise|strip|lower_first}`` a field through filters,
``{connective[question]}`` the literal ``connective.VALUE``, where VALUE is what the item has in its field
``question``. ``{{`` and ``}}`` are braces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from harness.errors import Problem, SpecError, UnknownNameError
from harness.languages.character import first_letter, lower_first, upper_first

_BEFORE_MARK = re.compile(r" (['.,])")
_WORD = re.compile(r"[\w\u0300-\u036f]+")
_FULL_STOPS = ".\u3002\u0964\u06d4\uff0e\uff61\u2026"
"""Of Latin, Chinese and Japanese, Devanagari and Bengali, Urdu; full and half width; the ellipsis."""
_SLOT = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"([A-Za-z][A-Za-z0-9_]*)(?:\[([A-Za-z][A-Za-z0-9_]*)\])?((?:\|[a-z_]+)*)")


def _lower_start(text: str, language: str = "") -> str:
    """Return the text with a small first letter, unless its first word is ``I``, ``I'm`` or has more capitals."""
    word = _WORD.match(text)
    tail = word.group()[len(first_letter(text, language)) :] if word else ""
    if not tail or tail != tail.lower():
        return text
    small = lower_first(text, language)
    # Python makes two characters of the Turkish capital with a dot.
    return small.replace("i\u0307", "i", 1) if text[0] == "\u0130" else small


def _lower_root(text: str) -> str:
    """Return the text with a small first letter by the rules of no language, as lm-evaluation-harness does it."""
    return text[:1].lower() + text[1:]


def _drop_last(text: str) -> str:
    return text[:-1]


def _drop_stop(text: str) -> str:
    """Return the text without a final ``.``, ``,`` or ``;``."""
    return text[:-1] if text.endswith((".", ",", ";")) else text


def _drop_period(text: str) -> str:
    """Return the text without the full stops and spaces at its end, in any script of the benchmarks."""
    return text.rstrip(_FULL_STOPS + " ")


def _detokenise(text: str) -> str:
    """Undo the spaces of Penn Treebank tokens; lm-evaluation-harness ``general_detokenize``."""
    text = (
        text.replace(" n't", "n't")
        .replace(" )", ")")
        .replace("( ", "(")
        .replace('" ', '"')
        .replace(' "', '"')
    )
    return _BEFORE_MARK.sub(r"\1", text)


def _pad_marks(text: str) -> str:
    r"""Return the text with spaces around all that is no letter, mark, digit or underscore; T5's SQuAD format.

    Python's ``\\w`` does not match combining marks, so they are put back to their words: mT5's own rule.
    """
    return " ".join(text.translate(_PADDED).split())


class _Padding(dict[int, str]):
    """Code point -> itself, or itself between spaces; found out once for every character that occurs."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        plain = character.isspace() or _is_word(character)
        self[code] = character if plain else f" {character} "
        return self[code]


_PADDED = _Padding()


def _is_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LMN"


def _paragraph(text: str) -> str:
    """Return the text and a blank line after it, nothing for an empty text."""
    return f"{text}\n\n" if text else ""


FILTERS: Final[Mapping[str, Callable[..., str]]] = MappingProxyType(
    {
        "detokenise": _detokenise,
        "drop_last": _drop_last,
        "drop_period": _drop_period,
        "drop_stop": _drop_stop,
        "lower_first": lower_first,
        "lower_first_root": _lower_root,
        "lower_start": _lower_start,
        "pad_marks": _pad_marks,
        "paragraph": _paragraph,
        "strip": str.strip,
        "upper_first": upper_first,
    }
)
"""By name; those of `_CASED` also take the language of the text."""
_CASED: Final = frozenset({"lower_first", "lower_start", "upper_first"})


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
        applied.append(partial(FILTERS[item], language=language) if item in _CASED else FILTERS[item])
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
