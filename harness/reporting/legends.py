"""The sentences under the tables of reports: ``legends.md`` has them all, so that a writer of one sees the others."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def _sections() -> dict[str, tuple[str, ...]]:
    text = resources.files("harness.reporting").joinpath("legends.md").read_text(encoding="utf-8")
    sections = (section.partition("\n") for section in text.split("\n## ")[1:])
    return {
        name: tuple(" ".join(part.split()) for part in body.strip().split("\n\n"))
        for name, _, body in sections
    }


def legend_paragraphs(name: str) -> tuple[str, ...]:
    """Return the paragraphs of a section."""
    return _sections()[name]


def legend(name: str, **values: object) -> str:
    """Return a section as one paragraph, with values in the place of their names in braces."""
    return " ".join(_sections()[name]).format(**values)
