"""Tagged sentences as text, in both directions: what prompts ask for, and what a model wrote.

``word_TAG word_TAG`` is structure prompting (Blevins et al. 2023; MEGA), ``PER: name $$ LOC: name`` is mT5's format
of named entities. A text that does not fit its sentence is not read at all: never cut, padded or guessed.

What is written here is read back, whatever the tokens hold. A text is compared with its sentence and never split at
white space, ``_``, ``:`` or ``$$``, which tokens may hold: numbers have U+202F in French, names U+3000 in Japanese.
White space of any kind and length is equal, since models write a plain space for it, and so are the forms of Unicode.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from harness.languages.character import is_extender, is_unspaced, is_wordlike
from harness.metrics.chunk import chunks

SEPARATOR = " $$ "
Stretch = tuple[int, int]
"""Start and end of an entity, in tokens or in characters."""


def one_line(text: str) -> str:
    """Return a text with spaces for its line ends, of any kind: most written answers end with their line."""
    return " ".join(text.splitlines())


def _plain(text: str) -> str:
    """Return a text in NFC with plain spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def tagged_text(tokens: Sequence[str], tags: Sequence[str]) -> str:
    """Return ``word_TAG`` for every token, joined by spaces."""
    return " ".join(f"{one_line(token)}_{tag}" for token, tag in zip(tokens, tags, strict=True))


def read_tagged(text: str, tokens: Sequence[str], tags: Sequence[str]) -> list[str] | None:
    """Return the tag of every token, or None where the text does not hold exactly these tokens, each with a tag.

    The tag is one of `tags`, and white space or the end of the text follows it.
    """
    remaining = _plain(text)
    longest_first = sorted(tags, key=len, reverse=True)
    read: list[str] = []
    for word in map(_plain, tokens):
        if not remaining.startswith(word):
            return None
        remaining = f"{remaining[len(word) :].lstrip()} "
        tag = next((tag for tag in longest_first if remaining.startswith(f"_{_plain(tag)} ")), None)
        if tag is None:
            return None
        remaining = remaining[len(_plain(tag)) + 2 :].rstrip()
        read.append(tag)
    return None if remaining else read


def entity_text(tokens: Sequence[str], tags: Sequence[str]) -> str:
    """Return ``TYPE: words`` for every entity of BIO tags, in their order, joined by ``$$``; ``none`` without any."""
    if any(tag != "O" and tag[:2] not in {"B-", "I-"} for tag in tags):
        return ""
    return span_text([(kind, " ".join(tokens[start : end + 1])) for kind, start, end in chunks(list(tags))])


def span_text(entities: Sequence[tuple[str, str]]) -> str:
    """Return ``TYPE: words`` for every (type, words), joined by ``$$``; ``none`` without any."""
    return SEPARATOR.join(f"{kind}: {one_line(words)}" for kind, words in entities) or "none"


def read_entities(text: str, tokens: Sequence[str], types: Sequence[str]) -> list[str] | None:
    """Return BIO tags, or None where an entity is not of the form ``TYPE: words`` or not in the sentence.

    Entities are matched with whole tokens. Each is sought behind the one before it and then from the beginning, so
    that repeated mentions are read in their order. ``none`` and an empty text are no entity.
    """

    def stretches(words: str, begin: int) -> Iterator[Stretch]:
        for form in (one_line, _plain):
            entity = form(words)
            for start in [*range(begin, len(tokens)), *range(begin)]:
                # A blank token at the beginning of an entity cannot be seen in its plain words.
                if form is _plain and entity and not tokens[start].strip():
                    continue
                for end in range(start + 1, len(tokens) + 1):
                    stretch = form(" ".join(tokens[start:end]))
                    if stretch == entity:
                        yield start, end
                    if len(stretch) > len(entity):
                        break

    entities = _read_stretches(text, types, " ".join(tokens), stretches)
    if entities is None:
        return None
    tags = ["O"] * len(tokens)
    for start, end, kind in entities:
        tags[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    return tags


def read_spans(text: str, source: str, types: Sequence[str]) -> list[tuple[int, int, str]] | None:
    """Return (start, end, type) of the entities in raw text, or None where one is not in the text, or not of the form.

    An entity is where its words are, between borders of words: ``Ann`` is not found in ``Anna``. In scripts without
    spaces every place is such a border. They are sought in the order of `read_entities`.
    """

    def stretches(words: str, begin: int) -> Iterator[Stretch]:
        plain = r"\s+".join(map(re.escape, words.split()))
        for pattern in dict.fromkeys((re.escape(words.strip(" \n")), plain)):
            matches = [match.span(1) for match in re.finditer(f"(?=({pattern}))", source) if match[1]]
            matches.sort(key=lambda stretch: (stretch[0] < begin, stretch))
            yield from (span for span in matches if all(_is_border(source, end) for end in span))

    entities = _read_stretches(text, types, source, stretches)
    return None if entities is None else sorted(entities)


def _read_stretches(
    text: str, types: Sequence[str], source: str, stretches: Callable[[str, int], Iterator[Stretch]]
) -> list[tuple[int, int, str]] | None:
    """Return (start, end, type) of every entity of a text; None where one cannot be read.

    Args:
        text: What was written.
        types: Those that entities may have.
        source: The sentence: its own ``$$`` may be part of an entity.
        stretches: From the words of an entity, and the end of the one before, to where it may be, best first.
    """
    if text.strip().casefold() in {"", "none"}:
        return []
    names = "|".join(map(re.escape, sorted(types, key=len, reverse=True))) or "(?!)"
    header = re.compile(rf"\s*({names})\s*: ?(.*)", re.DOTALL)
    mark = SEPARATOR.strip()
    pieces = text.split(mark)
    entities: list[tuple[int, int, str]] = []
    covered: set[int] = set()
    while pieces:
        for count in range(min(len(pieces), 1 + source.count(mark)), 0, -1):
            match = header.fullmatch(mark.join(pieces[:count]))
            if match is None:
                continue
            words = match[2] if count == len(pieces) else match[2].removesuffix(" ")
            begin = entities[-1][1] if entities else 0
            free = (
                candidate for candidate in stretches(words, begin) if covered.isdisjoint(range(*candidate))
            )
            if (stretch := next(free, None)) is not None:
                break
        else:
            return None
        entities.append((*stretch, match[1]))
        covered.update(range(*stretch))
        del pieces[:count]
    return entities


def _is_border(text: str, offset: int) -> bool:
    if not 0 < offset < len(text):
        return True
    before, after = text[offset - 1], text[offset]
    if is_extender(after):
        return False
    return not (is_wordlike(before) or is_extender(before)) or not is_wordlike(after) or is_unspaced(after)
