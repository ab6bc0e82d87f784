"""Summary: what a text says is written in a sentence or a few, in its language (XL-Sum)."""

from __future__ import annotations

from typing import Literal

from harness.kinds.methods import generate_method
from harness.kinds.source_text import language_name, predict, writing_kind
from harness.specs.schema import TaskSpec


class SummarySpec(TaskSpec):
    """The spec of a summarisation task."""

    kind: Literal["summary"]

    def row_words(self, language: str) -> dict[str, str]:
        """Return the English name of the language, for both sides."""
        name = language_name(self, language)
        return {"source_name": name, "target_name": name}


METHODS = (generate_method("summary", predict),)

KIND = writing_kind("summary", SummarySpec, "a text is summarised in its language")
