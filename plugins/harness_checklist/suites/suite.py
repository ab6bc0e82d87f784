"""A suite of behavioural tests in memory: templates, fill-ins with aligned forms, variants, names, profiles.

Every template text may hold placeholders: ``{slot}``, ``{slot[1]}`` (one of several aligned forms), ``{p.v1}`` (an
attribute of a pair), with a transformation after a bar, ``{obj[1]|capitalise}``; doubled braces are literal
ones. A slot whose name ends in a number, ``{first_name1}``, is a further, different draw from the fill-in of
the same name without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness_checklist.suites.profile import Profile

__all__ = [
    "NAME_SLOTS",
    "Condition",
    "ContextTemplate",
    "Entry",
    "FillIn",
    "Form",
    "LanguageSuite",
    "ListedFillIn",
    "Names",
    "PairFillIn",
    "Place",
    "QuestionTemplate",
    "Suite",
    "TestDeclaration",
    "TestTemplate",
]

TestType = Literal["MFT", "INV", "DIR"]
"""CheckList's types: minimum functionality, invariance, directional. Only the first is generated and run so far."""
Gender = Literal["male", "female", "any"]
NAME_SLOTS = ("first_name", "last_name")
"""Placeholders (also numbered) that `LanguageSuite.names` fills."""
Condition = Mapping[str, frozenset[str]]
"""Slot, or slot and attribute (``p.p1``, ``first_name.gender``) -> the fill-in ids for which it holds, all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a file; line and column are 1-based."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Return ``path:line:column``, as far as they are known."""
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTemplate:
    """A context; it belongs to the cases whose draw meets `when`."""

    text: str
    when: Condition = field(default_factory=dict)
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionTemplate:
    """A question with its answer; it belongs to the cases whose draw meets `when`."""

    ask: str
    answer: str
    when: Condition = field(default_factory=dict)
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The aligned forms of a fill-in (``older``, ``old``) where the draw meets `when`."""

    texts: tuple[str, ...]
    when: Condition = field(default_factory=dict)
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One value of a fill-in: its id (in imported suites the English words) and its forms.

    The first form whose condition holds is taken; a draw for which none holds is impossible and never made.
    """

    id: str
    forms: tuple[Form, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFillIn:
    """A list of values. A fill-in that only conditions name chooses between variants."""

    entries: tuple[Entry, ...]
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFillIn:
    """Two different ones of several listed fill-ins, each with one of its values.

    Its attributes: ``v1`` and ``v2`` are the forms of the values, ``p1`` and ``p2`` what `named` calls the two
    fill-ins (its entry ids are their names). In conditions they are the ids.
    """

    of: tuple[str, ...]
    named: str | None = None
    ordered: bool = True
    """True: the first of the two always comes first in `of`. False: both orders are drawn."""
    place: Place | None = None


FillIn = ListedFillIn | PairFillIn


@dataclass(frozen=True, slots=True, kw_only=True)
class TestDeclaration:
    """What a test is in every language."""

    __test__ = False

    id: str
    name: str
    """The published name."""
    title: str
    """A short heading."""
    capability: str
    type: TestType = "MFT"
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestTemplate:
    """A test in one language. A case is one draw of all its slots: contexts x questions that apply to the draw."""

    __test__ = False

    contexts: tuple[ContextTemplate, ...]
    questions: tuple[QuestionTemplate, ...]
    fills: Mapping[str, FillIn] = field(default_factory=dict)
    names: Gender = "any"
    """Which first names are drawn; ``male`` where the templates agree with a man only."""
    zips: tuple[tuple[str, ...], ...] = ()
    """Fill-ins of equal length that are drawn together, position by position; all others are crossed (a product)."""
    balance: str | None = None
    """A slot, or ``variants``: cases are drawn in equal parts from its values, or from the sets of contexts and
    questions that apply together. None: every draw is as likely as any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The first and last names of one language."""

    male: tuple[str, ...] = ()
    female: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    script: str = ""
    """ISO 15924 code of the script that they are written in."""
    borrowed: str | None = None
    """The language that the names come from, where the language has no names of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSuite:
    """The tests of a suite in one language."""

    language: str
    tests: Mapping[str, TestTemplate]
    names: Names
    profile: Profile = field(default_factory=Profile)
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A suite: its tests in their order, and their templates by language."""

    name: str
    version: int
    description: str
    license: str
    citation: str
    tests: tuple[TestDeclaration, ...]
    languages: Mapping[str, LanguageSuite]
    source_language: str = "en"
