"""Tagged sentences as text, in both directions: what prompts ask for, and what a model wrote.

``word_TAG word_TAG`` is structure prompting (Blevins et al. 2023; MEGA), ``PER: name $$ LOC: name`` is mT5's format
of named entities. A text that does not fit its sentence is not read at all: never cut, padded or guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.languages.character import is_extender, is_unspaced, is_wordlike
from harness.metrics.chunk import chunks

__all__ = ["SEPARATOR", "entity_text", "read_entities", "read_spans", "read_tagged", "tagged_text"]

SEPARATOR = " $$ "
_ENTITY = re.compile(r"\s*([^\s:]+)\s*:\s*(.+?)\s*", re.DOTALL)


def tagged_text(tokens: Sequence[str], tags: Sequence[str]) -> str:
    """Return ``word_TAG`` for every token, joined by spaces."""
    return " ".join(f"{token}_{tag}" for token, tag in zip(tokens, tags, strict=True))


def read_tagged(text: str, tokens: Sequence[str], tags: Sequence[str]) -> list[str] | None:
    """Return the tag of every token, or None where the text does not hold exactly these tokens, each with a tag.

    A word of the text is split at its last ``_``; the tag must be one of `tags`.
    """
    words = text.split()
    expected = [word for token in tokens for word in token.split()]
    if len(words) != len(tokens) or len(expected) != len(tokens):
        return None
    found = []
    for word, token in zip(words, tokens, strict=True):
        before, separator, tag = word.rpartition("_")
        if not separator or before != token or tag not in tags:
            return None
        found.append(tag)
    return found


def entity_text(tokens: Sequence[str], tags: Sequence[str]) -> str:
    """Return ``TYPE: words`` for every entity of BIO tags, in their order, joined by ``$$``; ``none`` without any."""
    if any(tag != "O" and tag[:2] not in {"B-", "I-"} for tag in tags):
        return ""
    found = [f"{kind}: {' '.join(tokens[start : end + 1])}" for kind, start, end in chunks(list(tags))]
    return SEPARATOR.join(found) or "none"


def read_entities(text: str, tokens: Sequence[str], types: Sequence[str]) -> list[str] | None:
    """Return BIO tags, or None where an entity is not of the form ``TYPE: words`` or not in the sentence.

    Entities are matched with whole tokens, each behind the one before it of the same words, so that repeated mentions
    are found in their order. ``none`` and an empty text are no entity.
    """
    tags = ["O"] * len(tokens)
    if text.strip().casefold() in {"", "none"}:
        return tags
    for part in text.split(SEPARATOR.strip()):
        match = _ENTITY.fullmatch(part)
        if match is None or match.group(1) not in types:
            return None
        start = _place(match.group(2).split(), tokens, tags)
        if start is None:
            return None
        words = len(match.group(2).split())
        tags[start : start + words] = [f"B-{match.group(1)}"] + [f"I-{match.group(1)}"] * (words - 1)
    return tags


def read_spans(text: str, source: str, types: Sequence[str]) -> list[tuple[int, int, str]] | None:
    """Return (start, end, type) of the entities in raw text, or None where one is not in the text, or not of the form.

    An entity is where its words are, unchanged, between borders of words: ``Ann`` is not found in ``Anna``. In
    scripts without spaces every place is such a border. Repeated mentions are found in their order.
    """
    if text.strip().casefold() in {"", "none"}:
        return []
    found: list[tuple[int, int, str]] = []
    for part in text.split(SEPARATOR.strip()):
        match = _ENTITY.fullmatch(part)
        if match is None or match.group(1) not in types:
            return None
        taken = {offset for start, end, _ in found for offset in range(start, end)}
        place = _free_place(match.group(2), source, taken)
        if place is None:
            return None
        found.append((*place, match.group(1)))
    return sorted(found)


def _free_place(words: str, source: str, taken: set[int]) -> tuple[int, int] | None:
    start = source.find(words)
    while start >= 0:
        end = start + len(words)
        if not taken & set(range(start, end)) and _is_border(source, start) and _is_border(source, end):
            return start, end
        start = source.find(words, start + 1)
    return None


def _is_border(text: str, offset: int) -> bool:
    if not 0 < offset < len(text):
        return True
    before, after = text[offset - 1], text[offset]
    if is_extender(after):
        return False
    return not (is_wordlike(before) or is_extender(before)) or not is_wordlike(after) or is_unspaced(after)


def _place(words: Sequence[str], tokens: Sequence[str], tags: Sequence[str]) -> int | None:
    """Return where the words are first found among the tokens that have no tag yet."""
    for start in range(len(tokens) - len(words) + 1):
        end = start + len(words)
        if list(tokens[start:end]) == list(words) and all(tag == "O" for tag in tags[start:end]):
            return start
    return None
