"""The made-up entities behind the synthetic files: every one a function of its number and the seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness_xtreme_r.mewsli_x.script import POOL_LANGUAGES, SCRIPTS, SYLLABLES, Script

__all__ = ["KINDS", "LANGUAGES", "Entity", "Lexicon", "World", "open_world"]

KINDS: Final = 24
"""Kinds of entities; each language has its own word for each."""
LANGUAGES: Final = tuple(POOL_LANGUAGES)

_PLACES: Final = 400
_NAMES: Final = SYLLABLES**5
_STEP: Final = 1_618_033_987
"""Without a common divisor with `_NAMES`, so that numbers below it get distinct names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The invented words of one language."""

    language: str
    script: Script
    kinds: tuple[str, ...]
    particles: tuple[str, ...]
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """An entity: the syllables of its name, its kind and its place."""

    number: int
    first: tuple[int, int, int]
    second: tuple[int, int]
    kind: int
    place: int

    @property
    def id(self) -> str:
        """Return an id like Wikidata's, of a number that Wikidata is far from using."""
        return f"Q{10**9 + self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All entities and languages under one seed."""

    seed: int
    offset: int
    lexicons: Mapping[str, Lexicon]

    def entity(self, number: int) -> Entity:
        """Return an entity by its number, below 80 ** 5."""
        code = (number * _STEP + self.offset) % _NAMES
        rest, a = divmod(code, SYLLABLES)
        rest, b = divmod(rest, SYLLABLES)
        rest, c = divmod(rest, SYLLABLES)
        e, d = divmod(rest, SYLLABLES)
        mixed = code * 2_654_435_761 >> 7
        return Entity(
            number=number, first=(a, b, c), second=(d, e), kind=mixed % KINDS, place=mixed // KINDS % _PLACES
        )

    def described_in(self, number: int) -> str:
        """Return the language of an entity's description."""
        return LANGUAGES[number % len(LANGUAGES)]


def open_world(seed: int) -> World:
    """Return the world of a seed; its invented words do not depend on how many entities are written."""
    draw = random.Random(f"mewsli-x:{seed}")  # noqa: S311
    places = [(draw.randrange(SYLLABLES), draw.randrange(SYLLABLES)) for _ in range(_PLACES)]
    lexicons = {}
    for language, code in POOL_LANGUAGES.items():
        script = SCRIPTS[code]
        words = draw.sample(range(SYLLABLES**2), KINDS + 8)
        spelt = [script.word(*divmod(word, SYLLABLES)) for word in words]
        lexicons[language] = Lexicon(
            language=language,
            script=script,
            kinds=tuple(spelt[:KINDS]),
            particles=tuple(spelt[KINDS:]),
            places=tuple(script.word(*place).capitalize() for place in places),
        )
    return World(seed=seed, offset=draw.randrange(_NAMES), lexicons=lexicons)
