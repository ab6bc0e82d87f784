"""How answers are compared in one language: which articles are dropped, which punctuation is stripped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

__all__ = ["Match", "Profile"]

Match = Literal["word", "start", "anywhere"]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The normalisation of answers in one language, as in ``clean`` in the released ``generate_test_utils.py``.

    Every article is replaced by a space, then `strip` is removed from both ends. Nothing is lower-cased
    and no Unicode form changes, unless `casefold` says so.
    """

    articles: tuple[str, ...] = ()
    match: Match = "word"
    """``word``: between word boundaries; ``start``: after a word boundary; ``anywhere``: even inside words."""
    strip: str = ",. "
    casefold: bool = False

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        if not self.articles:
            return None
        forms = "|".join(re.escape(form) for form in sorted(self.articles, key=len, reverse=True))
        edges = {"word": (r"\b(?:", r")\b"), "start": (r"\b(?:", ")"), "anywhere": ("(?:", ")")}
        before, after = edges[self.match]
        return re.compile(before + forms + after)

    def clean(self, text: str) -> str:
        """Return the text as it is compared: two answers are the same where their cleaned texts are equal."""
        if self._pattern is not None:
            text = self._pattern.sub(" ", text)
        text = text.strip(self.strip)
        return text.casefold() if self.casefold else text
