"""Texts that contexts are made of, in the folder ``OneRuler/data`` of the authors: books, prompts, nouns and words."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from harness import DataError, MissingDataError
from harness_long_context.metrics import LANGUAGES

UNSPACED: Final = frozenset({"zh", "ja"})
"""Languages whose sentences are joined without a space."""
STOPS: Final = {"zh": "。", "ja": "。", "fa": "۔"}
"""What ends a needle; a full stop in all other languages."""
NOUNS: Final = "vocab/100_noun_list_translated.tsv"
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'»”’)]*(?= )|[。！？।॥۔؟][」』”’]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageTexts:
    """The texts of one language."""

    language: str
    sentences: Sequence[str]
    """Of its book, in order."""
    nouns: Sequence[str]
    """Keys of needles; the same places are the same concept in all languages."""
    needle_prompt: Mapping[str, str]
    """The parts of the authors' prompt for needles, by name."""
    word_prompt: str
    """The authors' prompt for frequent words, with ``{context}``."""
    words: Sequence[str]
    """Nouns, adjectives and verbs, sorted; empty where the folder has no dictionary of the language."""

    def joined(self, sentences: Sequence[str]) -> str:
        """Return sentences as running text."""
        return ("" if self.language in UNSPACED else " ").join(sentences)


def read_material(folder: Path, language: str) -> LanguageTexts:
    """Return the texts of a language.

    Raises:
        MissingDataError: If a file is missing.
        DataError: If one cannot be read.
    """
    books = sorted((folder / "books" / language).glob("*.txt"))
    if not books:
        raise MissingDataError(
            f"There is no book below {str(folder / 'books' / language)!r}.",
            hint="--texts takes the folder OneRuler/data of https://github.com/mungg/OneRuler",
        )
    prompts = folder / "prompt" / language
    return LanguageTexts(
        language=language,
        sentences=split_sentences(" ".join(map(_text, books))),
        nouns=[row[language] for row in _nouns(folder / NOUNS)],
        needle_prompt=_parts(prompts / "niah.txt"),
        word_prompt=_text(prompts / "cwe.txt"),
        words=_words(folder / "vocab" / "dictionaries" / LANGUAGES[language]["dictionary"]),
    )


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, whose whitespace is collapsed, cut after the marks that end them."""
    text = " ".join(text.split())
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    pieces = (text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [piece for piece in pieces if piece]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise MissingDataError(f"The file {str(path)!r} is missing.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error


def _parts(path: Path) -> dict[str, str]:
    try:
        parts: dict[str, Any] = json.loads(_text(path))
    except ValueError as error:
        raise DataError(f"{path} is no JSON: {error}.") from error
    return {name: str(text) for name, text in parts.items()}


@cache
def _nouns(path: Path) -> list[dict[str, str]]:
    """Return the nouns whose translations differ from those of all others, in every language of the file."""
    reader = csv.DictReader(_text(path).splitlines(), delimiter="\t")
    codes = [name for name in reader.fieldnames or () if name in LANGUAGES]
    rows = [{code: (row[code] or "").strip() for code in codes} for row in reader]
    counts = Counter((code, noun) for row in rows for code, noun in row.items())
    return [row for row in rows if all(noun and counts[code, noun] == 1 for code, noun in row.items())]


def _words(folder: Path) -> list[str]:
    """Return the words of a dictionary without digits and separators of answers."""
    words: set[str] = set()
    for path in sorted(folder.glob("*.csv")):
        rows = csv.DictReader(_text(path).splitlines())
        words |= {row["words"] for row in rows if row["pos"] in {"noun", "adjective", "verb"}}
    return sorted(word for word in words if word and not re.search(r"[\d,]", word))
