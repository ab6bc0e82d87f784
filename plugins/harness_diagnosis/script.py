"""The script of the texts of items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.data import FeatureContext, Items
from harness.languages import SCRIPTS, script_counts, text_scripts


def item_texts(items: Items) -> list[list[str]]:
    """Return the texts that the items are of, one list a side: premise and hypothesis; question and context."""
    if items.kind == "token_tagging":
        return [[" ".join(fields.get("tokens") or ()) for fields in items.fields]]
    names = items.input_names if items.kind == "sequence_classification" else ()
    if not names:
        names = ("question", "context", "query", "text") if items.kind != "multiple_choice" else ("context",)
    found = [items.texts(name) for name in names]
    return [texts for texts in found if texts is not None]


def _sides(items: Items) -> list[list[str | None]]:
    sides: list[list[str | None]] = items.once(
        "scripts", lambda: [_distinct(texts) for texts in item_texts(items)]
    )
    return sides


def _distinct(texts: Sequence[str]) -> list[str | None]:
    every = list(dict.fromkeys(texts))
    found = dict(zip(every, text_scripts(every), strict=True))
    return [found[text] for text in texts]


def item_script(items: Items, context: FeatureContext) -> list[str | None] | None:
    """Return the scripts of the texts of every item: ``Deva``, or ``Deva+Latn`` where its sides differ."""
    sides = _sides(items)
    if not sides:
        return None
    rows = (sorted({code for code in row if code is not None}) for row in zip(*sides, strict=True))
    return ["+".join(row) or None for row in rows]


def latin_side(items: Items, context: FeatureContext) -> list[str] | None:
    """Return ``yes`` where one of the texts has letters and all are Latin, though its language is not written so.

    None for languages of Latin script, and for kinds whose items are no pair of texts.
    """
    if items.language.script in {"Latn", ""} or items.kind != "sequence_classification":
        return None
    latin = np.zeros(len(items), dtype=np.bool_)
    for texts in item_texts(items):
        counts = script_counts(texts)
        total = counts.sum(axis=1)
        latin |= (total > 0) & (counts[:, SCRIPTS.index("Latn")] == total)
    return ["yes" if own else "no" for own in latin.tolist()]
