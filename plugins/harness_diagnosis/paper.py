"""The edges that XTREME-R prints in its Tables 25 (XQuAD) and 26 (WikiANN), by language and attribute.

Errata. On the real English XQuAD, whose 1,190 questions they are of, the edges give equal counts for the context length
only: with tokens split at spaces the buckets of questions hold 400, 399, 321 and 70, those of answers 727, 337, 109
and 17. The context edges of Chinese, [3, 8] to (17, 144], are of text split at spaces. Three cells cannot be used as
printed: BLEU_AQ of Hindi, where L ends at .19 and XL begins at .019; that of Arabic, whose XL (.293, .246] is empty;
and that of English, whose XS cannot be read in the copy at hand, where other languages have 0. ``printed.tsv``
gives them as they must be meant (.019; an XL up to 1; 0) and says so. The last bucket of each attribute is open above
and the first one below: values outside of the printed range have a bucket too.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Final

from harness.data import Bucket

TASKS: Final = {"xquad": "25", "wikiann": "26"}
"""The task of each table."""


def printed_edges(attribute: str) -> Callable[[str, str], Sequence[Bucket] | None]:
    """Return what gives the printed edges of an attribute for a task and language, None where none are printed."""

    def edges(task: str, language: str) -> Sequence[Bucket] | None:
        return _table().get((TASKS.get(task, ""), language, attribute))

    return edges


@cache
def _table() -> dict[tuple[str, str, str], tuple[Bucket, ...]]:
    text = resources.files(__package__).joinpath("printed.tsv").read_text(encoding="utf-8")
    found: dict[tuple[str, str, str], tuple[Bucket, ...]] = {}
    rows = csv.DictReader((line for line in text.splitlines() if not line.startswith("#")), delimiter="\t")
    for row in rows:
        key = (row["table"], row["language"], row["attribute"])
        bucket = Bucket(
            name=row["bucket"],
            low=float(row["low"]),
            high=float(row["high"]),
            low_closed=row["low_closed"] == "1",
        )
        found[key] = (*found.get(key, ()), bucket)
    return {key: _open(buckets) for key, buckets in found.items()}


def _open(buckets: tuple[Bucket, ...]) -> tuple[Bucket, ...]:
    """Return the buckets with the first one open below and the last one above."""
    first, last = buckets[0], buckets[-1]
    opened = Bucket(name=first.name, low=float("-inf"), high=first.high, low_closed=True)
    closed = Bucket(name=last.name, low=last.low, high=float("inf"), low_closed=last.low_closed)
    return (opened, *buckets[1:-1], closed)
