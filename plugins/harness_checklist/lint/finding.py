"""Findings of a lint: one record per fault, and the meaning of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["KINDS", "Finding"]

KINDS: Final[Mapping[str, str]] = {
    "bad-template": "Templates that cannot be filled: no case can be made",
    "missing-test": "Tests that are missing in a language",
    "empty": "Cases without examples: no variant of the templates applies; they count as failed",
    "contradictory": "Cases in which one context and question has two answers: no model can pass",
    "unanswerable": "Cases whose answer is no span of the context: a model that copies cannot pass",
    "inside-word": "Cases whose answer is in the context only inside longer words",
    "same-question": "Two questions of a test read the same and have different answers",
    "unfilled-placeholder": "Braces left in generated text",
    "placeholders-differ": "Placeholders other than in any text of the source language",
    "uncovered-fill-in": "Fill-ins without a variant",
    "example-count": "Cases with more or fewer examples than usual: variants overlap, or are missing",
    "doubled-example": "Cases that ask the same question about the same context twice",
    "doubled-case": "Cases with the same texts as another case",
    "equal-variants": "Variants with the same text that apply at once",
    "equal-fill-ins": "Fill-ins of one slot that read the same",
    "equal-properties": "Properties of a pair that are called the same, so that one question has two answers",
    "shared-fill-in": "Fill-ins that two slots of one text share",
    "empty-fill-in": "Fill-ins without text, or with nothing but articles and punctuation",
    "foreign-script": "Words in a script that the language is not written in",
    "mixed-script": "Words with letters of two scripts",
    "leaked-article": "English articles in texts of another language",
    "source-word": "Words of the source language in a translated text",
    "foreign-names": "Names in a script that the language is not written in",
    "borrowed-names": "Languages without names of their own",
    "missing-space": "Missing spaces next to placeholders or after sentences",
    "missing-full-stop": "Contexts with fewer sentences than those of the source language",
    "spelling": "Texts that differ from another text of the test by marks on letters only",
    "stray-space": "Spaces that do not belong: doubled, at an end, before punctuation, between Han or kana",
    "stray-character": "Backslashes, control characters, doubled full stops and others that do not belong in text",
}
"""The kinds of findings, the gravest first, each with what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault of a suite or of its cases."""

    kind: str
    """A key of `KINDS`."""
    language: str
    test: str
    """Empty where it is about the language as a whole (its names)."""
    message: str
    """A sentence."""
    place: str = ""
    """``file:line:column`` of a template, or the id of a case; empty where neither is known."""
    count: int = 1
    """How many cases, names or fill-ins have it."""
    example: str = ""
    """A text that shows it."""

    def as_row(self) -> dict[str, str | int]:
        """Return the finding as a plain object."""
        return {
            "kind": self.kind,
            "language": self.language,
            "test": self.test,
            "message": self.message,
            "place": self.place,
            "count": self.count,
            "example": self.example,
        }
