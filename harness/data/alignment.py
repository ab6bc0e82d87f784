"""Where tokens are in a text: found in a given text, or in one that is put together from them.

Offsets count Unicode code points, ``text[start:end]``.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.languages.character import is_blank, is_unspaced
from harness.languages.table import known_languages

Offsets = tuple[tuple[int, int], ...]

_ZERO_WIDTH_NON_JOINER = "\u200c"
_CLOSING = frozenset(".,;:!?)]}%…”’»،؛؟۔।॥၊။、。，．；：！？）］｝」』】》〉")
"""Tokens of these alone have no space before them."""
_OPENING = frozenset("([{“‘„«¿¡（［｛「『【《〈")
"""Tokens of these alone have no space after them."""
_PHRASE_SPACED = frozenset({"my"})
"""Languages whose words no space separates, but whose published tokens are what stood between spaces."""


def locate(tokens: Sequence[str], text: str) -> Offsets:
    """Return the (start, end) of every token in a text that holds them in their order and nothing else.

    White space and U+200C (zero width non-joiner) may be between the tokens, and inside of a token on one side
    only: the preparation of XTREME deletes both from tokens. Raises `ValueError`, which names the token and what
    is there instead, where the text continues with something else.
    """
    offsets = []
    position = 0
    for number, token in enumerate(tokens, start=1):
        start, before = None, position
        for character in token:
            index = _next(text, position, character)
            if index is None:
                if _is_skipped(character):
                    continue
                raise ValueError(f"token {number}, {token!r}, is not at {_ahead(text, before)}")
            start = index if start is None else start
            position = index + 1
        if start is None:
            raise ValueError(f"token {number}, {token!r}, has no visible character")
        offsets.append((start, position))
    remaining = [character for character in text[position:] if not _is_skipped(character)]
    if remaining:
        raise ValueError(f"no token is left for {_ahead(text, position)}")
    return tuple(offsets)


def _next(text: str, position: int, character: str) -> int | None:
    while position < len(text) and text[position] != character and _is_skipped(text[position]):
        position += 1
    return position if position < len(text) and text[position] == character else None


def _is_skipped(character: str) -> bool:
    return character == _ZERO_WIDTH_NON_JOINER or is_blank(character)


def _ahead(text: str, position: int) -> str:
    while position < len(text) and _is_skipped(text[position]):
        position += 1
    if position == len(text):
        return "the end of the text"
    return f"{text[position : position + 20]!r}, character {position}"


def detokenise(tokens: Sequence[str], language: str) -> tuple[str, Offsets]:
    """Return a text made of tokens, and the (start, end) of every token in it.

    The tokens are unchanged in it, so the text can be taken apart again by the offsets. There is no space at all
    in languages whose `segmentation` is ``character``, Burmese excepted, whose tokens in WikiANN are the phrases
    between spaces. In other languages one space separates tokens, except before a token of closing punctuation
    (``. , ; : ! ? ) ] }`` ``%`` and similar signs of other scripts) and after a token of opening punctuation
    (``( [ {``). Straight quotes open or close and keep both spaces. In a language that the table does not have,
    two tokens have no space between them where letters of a script without spaces meet. Raises `ValueError` for an
    empty token.
    """
    pieces: list[str] = []
    offsets: list[tuple[int, int]] = []
    position = 0
    before = ""
    for number, token in enumerate(tokens, start=1):
        if not token:
            raise ValueError(f"token {number} is empty")
        if before and _has_space(before, token, language):
            pieces.append(" ")
            position += 1
        pieces.append(token)
        offsets.append((position, position + len(token)))
        position += len(token)
        before = token
    return "".join(pieces), tuple(offsets)


def _has_space(before: str, token: str, language: str) -> bool:
    table = known_languages()
    if language in table:
        if table.get(language).segmentation == "character" and language not in _PHRASE_SPACED:
            return False
    elif is_unspaced(before[-1]) and is_unspaced(token[0]):
        return False
    return not (_CLOSING.issuperset(token) or _OPENING.issuperset(before))
