"""The rows of a translator's sheet, and how its cells write lists, conditions and unusual texts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harness_checklist.suites.suite import Condition

__all__ = [
    "COLUMNS",
    "LEFT_OUT",
    "Row",
    "condition_text",
    "listed",
    "quoted",
    "read_condition",
    "read_listed",
    "unquoted",
]

COLUMNS: Final = ("test", "part", "id", "form", "source", "translation", "when")
"""The first columns; ``variant 2``, ``when 2``, ... and ``doubts`` follow."""
LEFT_OUT: Final = "-"
_ITEM: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^;]*?)\s*(?:;|$)')
_ID: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^,]*?)\s*(?:,|$)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: what it is, the source text, and the translation with its variants, each with its condition."""

    part: str
    test: str = ""
    id: str = ""
    form: str = ""
    source: str = ""
    texts: tuple[str, ...] = ()
    whens: tuple[str, ...] = ()

    def cells(self, width: int) -> list[str]:
        """Return the cells for `width` texts."""
        cells = [self.test, self.part, self.id, self.form, self.source]
        for number in range(width):
            cells.append(self.texts[number] if number < len(self.texts) else "")
            cells.append(self.whens[number] if number < len(self.whens) else "")
        return [*cells, ""]


def quoted(text: str) -> str:
    """Return a text as a cell, in quotation marks where it would be lost or misread without."""
    if not text or text != text.strip() or text == LEFT_OUT or text[0] in '"#' or "\n" in text:
        return json.dumps(text, ensure_ascii=False)
    return text


def unquoted(cell: str) -> str:
    """Return the text of a cell; raises `ValueError` for quotation marks that do not end."""
    if not cell.startswith('"'):
        return cell
    text = json.loads(cell)
    if not isinstance(text, str):
        raise ValueError(f"{cell!r} is no text")
    return text


def listed(items: Sequence[str]) -> str:
    """Return texts as one cell, with semicolons between them."""
    return "; ".join(
        json.dumps(item, ensure_ascii=False) if ";" in item or quoted(item) != item else item
        for item in items
    )


def read_listed(cell: str) -> tuple[str, ...]:
    """Return the texts of a cell."""
    return _split(_ITEM, cell)


def _split(pattern: re.Pattern[str], cell: str) -> tuple[str, ...]:
    found, position = [], 0
    while position < len(cell):
        match = pattern.match(cell, position)
        if match is None:
            raise ValueError(f"{cell[position:]!r} cannot be read as a list")
        found.append(unquoted(match[1]))
        position = match.end()
    return tuple(item for item in found if item)


def condition_text(when: Condition) -> str:
    """Return a condition as a cell: ``adj=older,younger; first_name.gender=male``."""
    parts = []
    for key, ids in when.items():
        shown = [
            json.dumps(one, ensure_ascii=False) if re.search(r'[,;="]', one) or one != one.strip() else one
            for one in sorted(ids)
        ]
        parts.append(f"{key}={','.join(shown)}")
    return "; ".join(parts)


def read_condition(cell: str) -> Condition:
    """Return the condition of a cell; raises `ValueError` with a description of the fault."""
    when: dict[str, frozenset[str]] = {}
    for part in re.findall(r'(?:[^;"]|"(?:[^"\\]|\\.)*")+', cell):
        key, equals, ids = part.partition("=")
        names = _split(_ID, ids.strip())
        if not equals or not key.strip() or not names:
            raise ValueError(f"{part.strip()!r} is no condition: expected slot=fill-in,fill-in")
        if key.strip() in when:
            raise ValueError(f"{key.strip()!r} is given twice in the condition")
        when[key.strip()] = frozenset(names)
    return when
