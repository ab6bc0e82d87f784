"""Tables of words, which the terminal, Markdown, LaTeX and the HTML page print alike."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TextRow", "TextTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRow:
    """One row; a row without fields is the heading of the rows after it."""

    label: str
    fields: tuple[str, ...] = ()
    level: int = 0
    """How far it is indented."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """One table of a section."""

    title: str
    corner: str
    heads: tuple[str, ...]
    rows: tuple[TextRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def plain_heads(self) -> list[str]:
        """The heads on one line each; a word that is broken with a hyphen is joined."""
        return [head.replace("-\n", "").replace("\n", " ") for head in self.heads]
