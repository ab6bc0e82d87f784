"""The choices of a task file as one template: the shared text, and the parts that differ."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness_lm_eval.expression import (
    Field,
    Items,
    Part,
    UnsupportedError,
    joined,
    split_template,
    text_parts,
)

__all__ = ["Choices", "letter_fields", "read_choices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """All choices of a task: ``before + middle + after``, the middles in the order of lm-eval's indices."""

    before: tuple[Part, ...]
    after: tuple[Part, ...]
    words: tuple[str, ...] = ()
    """The middles where they are words; empty where they are fields."""
    fields: tuple[str, ...] = ()
    """The middles where they are fields of the item."""
    filters: tuple[str, ...] = ()
    """Filters of all these fields."""

    @property
    def literal(self) -> bool:
        """Whether no choice has a field in it, so that a target may be the text of a choice."""
        return bool(self.words) and not any(isinstance(part, Field) for part in (*self.before, *self.after))

    def texts(self) -> tuple[str, ...]:
        """Return the choices' texts; only of literal ones."""
        before, after = ("".join(map(str, parts)) for parts in (self.before, self.after))
        return tuple(f"{before}{word}{after}" for word in self.words)

    def names(self) -> tuple[str, ...]:
        """Return names for our labels: the fields, or what the words say, or ``choice_0`` and so on."""
        if self.fields:
            return self.fields
        start = _common(self.words)
        end = _common([word[len(start) :][::-1] for word in self.words])
        named = [_slug(word[len(start) : len(word) - len(end)]) for word in self.words]
        if all(named) and len(set(named)) == len(named):
            return tuple(named)
        return tuple(f"choice_{index}" for index in range(len(self.words)))


def _common(texts: Sequence[str]) -> str:
    count = 0
    while all(len(text) > count and text[count] == texts[0][count] for text in texts):
        count += 1
    # Only whole words are dropped: "hopeful" and "hopeless" keep their beginning.
    return re.sub(r"\w*$", "", texts[0][:count])


def _slug(text: str) -> str:
    return "_".join(re.findall(r"[a-z0-9]+", text.lower())) if text.isascii() else ""


def read_choices(value: Any) -> Choices:
    """Return the choices of ``doc_to_choice``; raises `UnsupportedError` for other than a few simple texts."""
    texts = _texts(value)
    if len(texts) < 2:
        raise UnsupportedError(f"{len(texts)} choice: expected at least two")
    before = _shared(texts)
    rest = [text[len(before) :] for text in texts]
    after = _shared([text[::-1] for text in rest])[::-1]
    middles = [text[: len(text) - len(after)] for text in rest]
    if any(middles[:index].count(middle) for index, middle in enumerate(middles)):
        raise UnsupportedError("two choices that are the same")
    if all(len(middle) <= 1 and all(isinstance(part, str) for part in middle) for middle in middles):
        words = tuple("".join(map(str, middle)) for middle in middles)
        return Choices(before=tuple(before), after=tuple(after), words=words)
    fields = [middle[0] for middle in middles if len(middle) == 1 and isinstance(middle[0], Field)]
    names = tuple(str(field.path[0]) for field in fields)
    if (
        len(fields) != len(middles)
        or len({field.filters for field in fields}) > 1
        or len(set(names)) < len(names)
    ):
        raise UnsupportedError("choices that differ in more than one field or one piece of text each")
    return Choices(before=tuple(before), after=tuple(after), fields=names, filters=fields[0].filters)


def _texts(value: Any) -> list[list[Part]]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        # lm-eval takes the texts of a YAML list as they are; braces in them mean nothing.
        if not all(isinstance(item, str | int | float) and not isinstance(item, bool) for item in value):
            raise UnsupportedError("a list of anything but texts (quote yes, no, true and false)")
        if not all(isinstance(item, str) for item in value):
            raise UnsupportedError("a list with numbers, which lm-eval cannot rank: quote them")
        return [[item] if item else [] for item in value]
    if not isinstance(value, str):
        raise UnsupportedError(f"expected a list of choices, found {value!r}")
    pieces = [piece for piece in split_template(value) if not isinstance(piece, str) or piece.strip()]
    if len(pieces) != 1 or not isinstance(pieces[0], Items):
        raise UnsupportedError(
            f"{value!r}: expected a list of choices; one field with a list of its own for every item "
            "is not supported"
        )
    return [joined(text_parts(item)) for item in pieces[0].items]


def _shared(texts: Sequence[Sequence[Part]]) -> list[Part]:
    count = 0
    while all(len(text) > count and text[count] == texts[0][count] for text in texts):
        count += 1
    return list(texts[0][:count])


def letter_fields(choices: Choices, text: Sequence[Part]) -> tuple[str, ...]:
    """Return the fields after the letters in a text, as in ``A: {{option_a}}``; empty without them.

    Only for choices that are the letters from A on: the letters are ranked, and the choices are the fields.
    """
    if not choices.literal or choices.texts() != tuple(string.ascii_uppercase[: len(choices.words)]):
        return ()
    found: dict[str, str] = {}
    for before, field in itertools.pairwise(text):
        if isinstance(before, str) and isinstance(field, Field):
            match = re.search(r"(?:^|[\s(])([A-Z])[.:)]\s*$", before)
            if match is not None:
                found.setdefault(match.group(1), str(field.path[0]))
    fields = tuple(found.get(letter, "") for letter in choices.words)
    return fields if all(fields) and len(set(fields)) == len(fields) else ()
