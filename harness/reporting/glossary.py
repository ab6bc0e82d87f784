"""The words of a report that a newcomer may not know, one line each; `docs/concepts.md` has the long form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.reporting.model import Block, Charts, Fold, Note, Notes, Table, as_field, rows_of

__all__ = ["TERMS", "glossary_blocks"]

TERMS = (
    ("accuracy (acc)", r"accuracy|\bacc\b", "the share of items that are answered right"),
    (
        "F1",
        r"\bF1\b|_f1\b",
        "the harmonic mean of precision (how much of what was marked is right) and recall",
    ),
    (
        "EM",
        r"\bEM\b|exact_match",
        "exact match: the share of answers that equal a gold answer, word for word",
    ),
    (
        "mAP",
        r"\bmAP\b|\bmap_at",
        "mean average precision: how high the right candidates stand, over all queries",
    ),
    (
        "MRR",
        r"\bMRR\b|\bmrr_at",
        "one divided by the rank of the first right candidate, averaged over queries",
    ),
    ("95 % interval", r"95 %|±", "from where to where the score could be if other items had been drawn"),
    ("baseline", r"\bbaselines?\b", "a system that needs no model, such as the most frequent label"),
    (
        "bucket",
        r"\bbuckets?\b",
        "items that are alike in one attribute; XS, S, L and XL hold about as many items each",
    ),
    ("calibration", r"calibration", "whether a model that is 80 % sure is right in 80 % of the cases"),
    ("cell", r"\bcells?\b", "one task in one language under one protocol, method, seed and view"),
    ("chance", r"\bchance\b", "the score of guessing"),
    ("cluster", r"\bclusters?\b", "items that belong together; intervals and tests draw whole clusters"),
    ("confusion", r"confusion", "which wrong labels stand where another one is right"),
    ("fertility", r"\bfertility\b", "the number of sub-words per word"),
    ("fit", r"\bfits?\b", "how a model was trained for a task"),
    ("floor", r"\bfloor\b", "the error rate that the templates of a checklist force on every system"),
    ("gold", r"\bgold\b", "the correct answer of an item, as the data file gives it"),
    (
        "Holm",
        r"\bHolm\b",
        "p, made larger for the number of tests, so that a chance find among them stays unlikely",
    ),
    ("p", r"\bp\b", "how often chance alone makes a difference at least this large"),
    ("pool", r"\bpool\b", "the set of candidates that a retrieval task ranks"),
    (
        "premium",
        r"\bpremium\b",
        "the number of sub-words in a language, divided by the number for the same items in English",
    ),
    ("prompted", r"\bprompted\b", "not trained: the model ranks answers or writes one"),
    ("protocol", r"\bprotocols?\b", "a named combination of training and method that a benchmark prescribes"),
    (
        "q",
        r"\bq\b",
        "p after Benjamini and Hochberg: among findings with q up to 0.05, about 5 % are due to chance",
    ),
    ("shot", r"\bshots?\b", "an example with its answer, put into the prompt before the item"),
    ("significant", r"\bsignificant", "hardly due to chance: q, or p after Holm, is at most 0.05"),
    ("transfer gap", r"\btransfer gap", "the score of the source language minus the mean of the others"),
    (
        "variant",
        r"\bvariants?\b",
        "another version of the same test items, such as repaired questions or a translation",
    ),
    (
        "view",
        r"\bviews?\b",
        "the other settings that change a score, such as the prompt or the number of shots",
    ),
    ("zero_shot_transfer", r"zero_shot_transfer", "trained on the source language (English), tested on all"),
)
"""Term, the pattern that says whether a page uses it, and what it means."""


def glossary_blocks(blocks: Iterable[Block]) -> list[Block]:
    """Return the meaning of every term that the blocks use; nothing where they use none."""
    text = "\n".join(_texts(blocks))
    rows = [(term, meaning) for term, pattern, meaning in TERMS if re.search(pattern, text)]
    table = Table(
        title="Words of this page",
        untitled=True,
        corner="word",
        heads=("meaning",),
        rows=rows_of(rows),
        words=frozenset({0}),
    )
    return [table] if rows else []


def _texts(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the words of blocks but for the texts of items."""
    for block in blocks:
        if isinstance(block, Note):
            yield block.text
        elif isinstance(block, Notes):
            yield from block.texts
        elif isinstance(block, Fold):
            yield from (block.title, block.soft)
            yield from _texts(block.blocks)
        elif isinstance(block, Charts):
            yield from (chart.title for chart in block.charts)
        elif isinstance(block, Table):
            yield from (block.title, block.corner, *block.plain_heads, *block.notes)
            yield from (str(as_field(row.label)) for row in block.rows if row.depth == 0)
