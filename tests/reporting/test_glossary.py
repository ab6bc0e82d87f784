"""The glossary of a page: only words that it uses, and no word that `docs/concepts.md` defines otherwise."""

from __future__ import annotations

import re
from pathlib import Path

from harness.reporting.blocks.model import Fold, Note, Table
from harness.reporting.overview.provenance import TERMS, glossary_blocks

CONCEPTS = Path(__file__).parents[2] / "docs" / "concepts.md"


def _words(meaning: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", meaning.lower()))


def test_a_page_explains_the_words_that_it_uses() -> None:
    inside = Fold(title="Buckets", blocks=[Note("one bucket, q = 0.01")])
    [table] = glossary_blocks([inside])
    assert isinstance(table, Table)
    assert [row.label for row in table.rows] == ["bucket", "q"]
    assert glossary_blocks([Note("nothing special")]) == []


def test_terms_of_the_concepts_page_mean_the_same() -> None:
    text = CONCEPTS.read_text(encoding="utf-8")
    entries = re.findall(r"^- \*\*(\w+)\*\*: (.*?)(?=^- \*\*|^## )", text, re.MULTILINE | re.DOTALL)
    defined = {term.lower(): " ".join(meaning.split()) for term, meaning in entries}
    shared = {term: meaning for term, _, meaning in TERMS if term in defined}
    assert {"cluster", "gold", "pool", "premium", "fertility", "floor", "shot"} <= set(shared)
    for term, meaning in shared.items():
        own, theirs = _words(meaning), _words(defined[term])
        assert len(own & theirs) >= len(own) / 2, term
