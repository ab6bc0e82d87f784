"""Findings of a lint: one record per fault, and the meaning of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "bad-template": "Templates that cannot be filled: no case can be made",
    "missing-test": "Tests that are missing in a language",
    "empty": "Cases without examples: no variant of the templates applies; they count as failed",
    "contradictory": "Cases in which one context and question has two answers: no model can pass",
    "unanswerable": "Cases whose answer is no span of the context: a model that copies cannot pass",
    "inside-word": "Cases whose answer is in the context only inside longer words",
    "unfilled-placeholder": "Braces left in generated text",
    "example-count": "Cases with more or fewer examples than usual: variants overlap, or are missing",
    "doubled-example": "Cases that ask the same question about the same context twice",
    "doubled-case": "Cases with the same texts as another case",
}
"""The kinds of findings, the gravest first, each with what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One fault of a suite or of its cases; its fields are the columns of ``--findings``."""

    kind: str
    """A key of `KINDS`."""
    language: str
    test: str
    message: str
    """A sentence."""
    place: str = ""
    """``file:line`` of a template, with the column of a sheet, or the id of a case; empty where neither is known."""
    count: int = 1
    """How many cases or fill-ins have it."""
    example: str = ""
    """A text that shows it."""
