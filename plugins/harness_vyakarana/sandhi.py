"""Sandhi of Tamil: final consonants that repeat the first consonant of the next word.

A replaced word has the final consonant of its donor, and the word after it may change: the consonant is made to
repeat the next consonant, and is dropped before any other letter. Forms of the cases and verb forms that the language
definition names get one.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_vyakarana.conllu import Token
from harness_vyakarana.grammar import Sandhi

__all__ = ["apply_sandhi", "bare"]


def bare(form: str, lemma: str, sandhi: Sandhi) -> str:
    """Return a form without its final sandhi consonant; a lemma that ends in one has none."""
    endings = tuple(consonant + sandhi.suffix for consonant in sandhi.consonants)
    if form.endswith(endings) and not lemma.endswith(endings):
        return form[: -len(endings[0])]
    return form


def apply_sandhi(tokens: Sequence[Token], sandhi: Sandhi, changed: Sequence[bool]) -> list[Token]:
    """Return the lines of a sentence in which changed words, and the words before them, fit the next word.

    Words inside multi-word tokens stay: their surface comes from the donor.
    """
    made = list(tokens)
    surface, inside = [], 0
    for position, token in enumerate(tokens):
        span = token.span
        if span is not None:
            inside = span[1]
            surface.append(position)
        elif token.is_word and int(token.id) > inside:
            surface.append(position)
    for position, following in zip(surface, [*surface[1:], None], strict=True):
        touched = changed[position] or (following is not None and changed[following])
        token = tokens[position]
        if not touched or not token.is_word:
            continue
        stem = bare(token.form, token.lemma, sandhi)
        if stem == token.form and not _gets_consonant(token, stem, sandhi):
            continue
        first = "" if following is None else tokens[following].form[:1]
        ending = first + sandhi.suffix if first in sandhi.consonants else ""
        made[position] = token._replace(form=stem + ending)
    return made


def _gets_consonant(token: Token, stem: str, sandhi: Sandhi) -> bool:
    if token.feature("Case") in sandhi.cases and stem.endswith(sandhi.endings):
        return True
    return stem.endswith(sandhi.verb_forms.get(token.feature("VerbForm") or "", ()))
