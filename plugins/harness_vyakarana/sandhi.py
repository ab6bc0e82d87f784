"""Final consonants that repeat the first consonant of the next word, as Tamil writes them.

A replaced word brings its own final consonant, or stands before another word than in its source: the consonant is
made to repeat what follows, and dropped before any other letter. Forms of the cases and verb forms that the language
names get one.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_vyakarana.conllu import Token
from harness_vyakarana.grammar import Sandhi

__all__ = ["bare", "with_sandhi"]


def bare(form: str, lemma: str, sandhi: Sandhi) -> str:
    """Return a form without its final sandhi consonant; a lemma that ends so has none."""
    endings = tuple(consonant + sandhi.suffix for consonant in sandhi.consonants)
    if form.endswith(endings) and not lemma.endswith(endings):
        return form[: -len(endings[0])]
    return form


def with_sandhi(tokens: Sequence[Token], sandhi: Sandhi, changed: Sequence[bool]) -> list[Token]:
    """Return the lines of a sentence in which changed words, and those before them, fit what follows.

    Words inside multi-word tokens stay: their surface came with its donor.
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
        if stem == token.form and not _takes_consonant(token, stem, sandhi):
            continue
        first = "" if following is None else tokens[following].form[:1]
        ending = first + sandhi.suffix if first in sandhi.consonants else ""
        made[position] = token._replace(form=stem + ending)
    return made


def _takes_consonant(token: Token, stem: str, sandhi: Sandhi) -> bool:
    if token.feature("Case") in sandhi.cases and stem.endswith(sandhi.endings):
        return True
    return stem.endswith(sandhi.verb_forms.get(token.feature("VerbForm") or "", ()))
