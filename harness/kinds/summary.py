"""Summary: what a text says is written in a sentence or a few, in its language (XL-Sum) or another (CrossSum-IN)."""

from __future__ import annotations

from typing import Literal

from harness.kinds.methods import generate_method
from harness.kinds.source_text import language_name, predict, writing_kind
from harness.specs.schema import Code, TaskSpec


class SummarySpec(TaskSpec):
    """The spec of a summarisation task."""

    kind: Literal["summary"]
    source_language: Code | None = None
    """The language of all texts, where it is not that of their summaries."""

    def row_words(self, language: str) -> dict[str, str]:
        """Return the English names of the languages of the text and of the summary."""
        source = self.source_language or language
        return {"source_name": language_name(self, source), "target_name": language_name(self, language)}


METHODS = (generate_method("summary", predict),)

KIND = writing_kind("summary", SummarySpec, "a text is summarised in its language")
