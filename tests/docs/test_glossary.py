"""Each term of the documentation is defined once, in the glossary, and no page uses another word for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.page import DOCS, PAGES, ROOT, page_name

SYNONYMS = {
    "task": ("exercise", "assignment"),
    "kind": ("sort of task", "type of task", "task type", "task family"),
    "suite": ("bundle of tasks", "collection of tasks", "benchmark suite"),
    "adapter": ("adaptor", "connector", "driver", "model wrapper"),
    "capability": ("ability", "abilities", "deed", "deeds"),
    "fit": ("training state", "trained state", "trained copy"),
    "method": ("technique", "way of asking", "manner"),
    "protocol": ("regime", "scenario", "evaluation mode", "training set-up"),
    "view": ("cell options", "further conditions of a cell"),
    "cell": ("grid point", "field of the plan", "task-language pair"),
    "run": ("experiment", "evaluation run", "scored folder"),
    "variant": ("versions of the same items", "edition of the items"),
    "preset": ("prompt variant", "prompt name", "prompt style"),
    "shot": ("demonstration", "exemplar", "in-context example", "few-shot example"),
    "gold": ("ground truth", "right answer", "true answer", "reference answer"),
    "pool": ("pool of candidates", "candidate set", "candidate list", "candidate pool"),
    "cluster": ("group of items", "linked items", "block of items"),
    "premium": ("token overhead", "tokenizer tax", "surcharge"),
    "fertility": ("split rate", "sub-word rate", "pieces per word"),
    "floor": ("unavoidable error", "minimum error", "least error", "error bound"),
}
"""Every term, with other words for it, which pages do not use."""
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def name_of(page: Path) -> str:
    return page_name(page) if page.is_relative_to(DOCS) else page.name


def prose(page: Path) -> str:
    """Return the text of a page in lower case on one line, without its code."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^( *)```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    return " ".join(re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text).lower().split())


def definitions() -> list[str]:
    """Return the terms that the glossary defines, in its order."""
    text = (DOCS / "concepts.md").read_text(encoding="utf-8")
    glossary = text.partition("\n## Glossary\n")[2].partition("\n## ")[0]
    return [term.lower() for term in re.findall(r"^- \*\*([^*]+)\*\*: \S", glossary, flags=re.MULTILINE)]


def test_every_term_has_one_definition() -> None:
    assert sorted(definitions()) == sorted(SYNONYMS)

    words = [word for others in SYNONYMS.values() for word in others]
    assert len(set(words)) == len(words)
    assert not set(words) & set(SYNONYMS)


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_pages_use_the_terms_of_the_glossary(page: Path) -> None:
    text = prose(page)
    used = {
        word: term
        for term, others in SYNONYMS.items()
        for word in others
        if re.search(rf"\b{re.escape(word)}\b", text)
    }
    assert used == {}, "use the terms of docs/concepts.md#glossary instead"
