"""Pre-tokens: the pieces of a raw text that a tagger tags where no gold tokens are given."""

from __future__ import annotations

from dataclasses import dataclass

from harness.languages.character import ZERO_WIDTH_JOINER, is_blank, is_extender, is_unspaced, is_wordlike


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretoken:
    """A piece of a text, ``text[start:end]`` in Unicode code points."""

    start: int
    end: int
    unspaced: bool
    """Whether it is one character of a script without spaces, so a word may continue in the next one."""


def pretokens(text: str) -> list[Pretoken]:
    """Return the pre-tokens of a text, by a rule that knows neither its language nor its gold tokens.

    A maximal run of letters and numbers is one. In scripts that put no space between words (Han, Hiragana,
    Katakana, Thai, Lao, Khmer, Myanmar) every letter is one. Every other character that is not white space is one.
    Marks and format characters (joiners, direction marks) stay with what they follow; where they follow nothing,
    they begin the run of letters that comes next, and format characters with no such run are skipped. A symbol
    that follows a zero width joiner stays with the symbol before it (emoji).

    Source: categories of the Unicode Character Database; the attachment of marks and formats is rule WB4 of Unicode
    Standard Annex 29. XTREME-R (Ruder et al., 2021, section 3) asks for full text and prescribes no such rule.
    """
    tokens: list[Pretoken] = []
    start, is_run, unspaced = -1, False, False
    for position, character in enumerate(text):
        if is_blank(character):
            _close(tokens, text, start, position, unspaced)
            start = -1
        elif is_extender(character):
            if start < 0:
                start, is_run, unspaced = position, True, False
        elif is_unspaced(character) or not is_wordlike(character):
            is_joined = start >= 0 and text[position - 1] == ZERO_WIDTH_JOINER
            if is_joined and not (is_run or unspaced or is_unspaced(character)):
                continue
            _close(tokens, text, start, position, unspaced)
            start, is_run, unspaced = position, False, is_unspaced(character)
        elif start < 0 or not is_run:
            _close(tokens, text, start, position, unspaced)
            start, is_run, unspaced = position, True, False
    _close(tokens, text, start, len(text), unspaced)
    return tokens


def _close(found: list[Pretoken], text: str, start: int, end: int, unspaced: bool) -> None:
    if start >= 0 and not _is_invisible(text[start:end]):
        found.append(Pretoken(start=start, end=end, unspaced=unspaced))


def _is_invisible(piece: str) -> bool:
    """Return whether a piece holds format characters only."""
    return all(is_extender(character) and not character.isprintable() for character in piece)
