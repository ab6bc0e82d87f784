"""A small sheet in the layout of the released templates, with words of its own, for tests to change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

COMPARISONS = "A is COMP than B. Who is more / less COMP?"
INTENSIFIERS = "Intensifiers (very, super, extremely) and reducers (somewhat, kinda, etc)?"
PROPERTIES = "size, shape, age, color"
JOBS = "Profession vs nationality"
ANIMALS = "Animal vs Vehicle"
ANIMALS_2 = "Animal vs Vehicle v2"

ROWS = [
    tuple(line.split("\t"))
    for line in Path(__file__).with_name("released_sheet.tsv").read_text(encoding="utf-8").splitlines()
]
"""Field and English text."""
NAMES = {
    "en": {"male": ["Ben", "Tom"], "female": ["Ann", "Eve"], "last": ["Li"]},
    "ru": {"male": ["Иван", "Олег"], "female": ["Анна"], "last": ["Ли"]},
}


@dataclass
class SheetText:
    """The rows of `ROWS` in English and further columns, line by line."""

    header: list[str] = field(default_factory=lambda: ["Field", "en"])
    rows: list[list[str]] = field(default_factory=lambda: [list(row) for row in ROWS])

    def language(
        self, code: str, *variants: Mapping[int, tuple[str, str]], placeholders: bool = True
    ) -> SheetText:
        """Add a language: its first column repeats the English, but for the lines that the first variant gives.

        Further variants are further columns; a line gives text and placeholders.
        """
        for number, changed in enumerate(variants or ({},)):
            self.header += [code, f"{code}-placeholders"] if placeholders else [code]
            for line, row in enumerate(self.rows, 2):
                opens = row[0] in ("Name", "Capability", "")
                usual = ("", "") if number or opens else (row[1], _named(code, line))
                text, named = changed.get(line, usual)
                row.extend([text, named] if placeholders else [text])
        return self

    def line(self, kind: str, english: str) -> int:
        """Return the line of the first row of a field with this English text."""
        return next(line for line, row in enumerate(self.rows, 2) if row[:2] == [kind, english])

    def write(self, folder: Path) -> Path:
        """Write the sheet and the names next to it."""
        path = folder / "checklist_templates.tsv"
        lines = ["\t".join(row) for row in [self.header, *self.rows]]
        path.write_bytes("\r\n".join(lines).encode())
        (folder / "names_by_language.json").write_text(
            json.dumps(NAMES, ensure_ascii=False), encoding="utf-8"
        )
        return path


def _named(code: str, line: int) -> str:
    """Return the placeholders of a line where the released generator takes a cell for those alone that it names."""
    if code in ("ja", "ta", "ru", "hu", "pt") and line == at("Question", "Who is not so {adj[1]}?"):
        return "older, old, tougher, tough, kinder, kind"
    states = range(at("Name", INTENSIFIERS), at("state", "glad"))
    if code in ("de", "ru", "ja", "vi") and line in states and ROWS[line - 2][0] in ("Context", "Question"):
        return "glad, open"
    return ""


def at(kind: str, english: str) -> int:
    """Return the line of a row of `ROWS`."""
    return SheetText().line(kind, english)
