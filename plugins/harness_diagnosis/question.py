"""The type of a question (XTREME-R's qType): its question word in English, whatever language it is asked in."""

from __future__ import annotations

import csv
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from harness.data import FeatureContext, Items
from harness.languages import words
from harness_diagnosis.length import word_lists

UNKNOWN = "not known"
"""The type of a question with no English translation in the run and no word of ``question_words.tsv``."""


def question_type(items: Items, context: FeatureContext) -> list[str | None] | None:
    """Return the type of every question: the first word of the English question (XTREME-R, appendix K).

    A question in another language has the type of the English item with its id, in parallel sets whose run has
    English. Otherwise the first question word of ``question_words.tsv`` decides; without one the type is `UNKNOWN`.
    """
    questions = items.texts("question")
    if questions is None:
        return None
    if items.language.code == "en":
        return _first_words(items)
    english = context.english()
    aligned = {} if english is None else dict(zip(english.ids, _first_words(english) or (), strict=False))
    return [
        aligned.get(identifier) or _listed_type(question, items.language.code)
        for identifier, question in zip(items.ids, questions, strict=True)
    ]


def _first_words(items: Items) -> list[str | None] | None:
    lists = word_lists(items, "question", lambda: items.texts("question"))
    return None if lists is None else [words[0] if words else None for words in lists]


def _listed_type(question: str, language: str) -> str:
    """Return the type of the first question word in a question, of the longest one where several begin there."""
    text = f" {_spaced(question)} "
    matches = [
        (start, -len(word), name)
        for word, name in _question_words().get(language, ())
        if (start := text.find(word)) >= 0
    ]
    return min(matches)[2] if matches else UNKNOWN


def _spaced(text: str) -> str:
    return " ".join(words([unicodedata.normalize("NFC", text).lower()])[0])


@cache
def _question_words() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return by language its question words between spaces, each with its type; beginnings of words end openly."""
    table = resources.files(__package__).joinpath("question_words.tsv").read_text(encoding="utf-8")
    by_language: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in csv.DictReader(table.splitlines(), delimiter="\t"):
        for entry in row["words"].split():
            end = "" if entry.endswith("*") else " "
            word = _spaced(entry.rstrip("*").replace("_", " "))
            by_language[row["language"]].append((f" {word}{end}", row["type"]))
    return by_language
