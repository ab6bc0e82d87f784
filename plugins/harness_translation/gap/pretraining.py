"""The pre-training size of languages: the size of CC-100 if it is known, else the number of Wikipedia articles.

``pretraining.tsv`` holds the sizes that Conneau et al. (2020, arXiv 1911.02116) print in Table 6 for CC-100, the corpus
of XLM-R. A language that is not in the table was not in that corpus: it comes after all languages of the table, ordered
by its Wikipedia articles (Ruder et al. 2021, Table 7).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from harness.languages import known_languages

Unit = Literal["GiB", "M articles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingSize:
    """The size of the pre-training text in one language."""

    code: str
    value: float
    unit: Unit
    source: str

    @property
    def text(self) -> str:
        """``5.7 GiB``, ``0.02 M art.``."""
        return f"{self.value:g} {'GiB' if self.unit == 'GiB' else 'M art.'}"


def pretraining_size(code: str) -> PretrainingSize | None:
    """Return the size of a language, by its BCP-47 code, or None if it is unknown."""
    if code in _cc100():
        return _cc100()[code]
    table = known_languages()
    articles = table.get(code).wikipedia_articles if code in table else ""
    if not articles:
        return None
    return PretrainingSize(
        code=code, value=float(articles), unit="M articles", source="Ruder et al. 2021, Table 7"
    )


def by_size(codes: Iterable[str]) -> list[str]:
    """Return languages from the largest to the smallest; those of unknown size last, by code."""
    return sorted(codes, key=lambda code: (_rank(code), code))


def _rank(code: str) -> tuple[int, float]:
    size = pretraining_size(code)
    if size is None:
        return (2, 0.0)
    return (0 if size.unit == "GiB" else 1, -size.value)


def size_ranks(codes: Sequence[str]) -> list[float]:
    """Return the ranks of languages of known size, 1 for the smallest; equal sizes share the mean of theirs."""
    keys = [_rank(code) for code in codes]
    return [
        1 + sum(peer > key for peer in keys) + (sum(peer == key for peer in keys) - 1) / 2 for key in keys
    ]


@cache
def _cc100() -> dict[str, PretrainingSize]:
    text = resources.files("harness_translation.gap").joinpath("pretraining.tsv").read_text(encoding="utf-8")
    return {
        row["code"]: PretrainingSize(
            code=row["code"], value=float(row["gib"]), unit="GiB", source=row["source"]
        )
        for row in csv.DictReader(text.splitlines(), delimiter="\t")
    }
