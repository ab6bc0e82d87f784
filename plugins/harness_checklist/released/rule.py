"""Tables of what the released generator of XTREME-R does in which language.

The sheet alone does not say which of its rows depend on which: the released generator lists the languages test by
test (``multichecklist/generate_test_utils.py``). These lists, the separators, and how answers are compared are facts
taken from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from harness_checklist.suites.profile import Match, Profile

__all__ = [
    "ANIMAL_CONTEXTS",
    "ANIMAL_LISTS",
    "COMPARISON_QUESTIONS",
    "INTENSIFIER_STATES",
    "OBJECT_CONTEXTS",
    "PROFESSION_FORMS",
    "PROPERTIES",
    "PROPERTY_FORMS",
    "RELEASED_TESTS",
    "TWO_ANSWERS",
    "ReleasedTest",
    "released_profile",
    "separator",
]


def _codes(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMPARISON_QUESTIONS: Final = _codes("ja ta ru hu pt")
"""Comparisons: the question depends on the adjective."""
INTENSIFIER_STATES: Final = _codes("de ru ja vi")
"""Intensifiers: contexts and questions depend on the state; each applies to the listed states only."""
PROPERTY_FORMS: Final = _codes("es he et fi fr it uk ur bg nl hi ru ja fa pl pt el lt de")
"""Properties: the question depends on the property, the attribute on the object."""
OBJECT_CONTEXTS: Final = _codes("mr")
"""Properties: the context depends on the object."""
PROFESSION_FORMS: Final = _codes("fr he it es uk ru pt el lt")
"""Job vs Nationality: nationality, contexts and questions depend on the profession."""
ANIMAL_CONTEXTS: Final = _codes("nl fi")
"""Animal vs Vehicles, both: the context depends on the animal."""
ANIMAL_LISTS: Final = _codes("ru tr")
"""Animal vs Vehicles, both: some animals and vehicles are for one of the two tests."""
TWO_ANSWERS: Final = _codes("qu")
"""Animal vs Vehicles: the column of placeholders holds the answers to the second context."""

PROPERTIES: Final = ("color", "size", "age", "shape", "material")
_SEPARATORS: Final = {"my": " ", "th": " ", "ur": "،", "ar": "،", "fa": "،", "zh": "，"}


def separator(language: str) -> str:
    """Return the separator of the forms of a fill-in (``older, old``) in one language."""
    return _SEPARATORS.get(language, ", ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedTest:
    """One of the six tests."""

    id: str
    name: str
    """As it is called in the sheet."""
    title: str
    description: str
    fields: tuple[str, ...]
    """Its fill-ins in the sheet."""
    male: bool = False
    """First names are those of men: the templates agree with men only."""


RELEASED_TESTS: Final = (
    ReleasedTest(
        id="comparisons",
        name="A is COMP than B. Who is more / less COMP?",
        title="Comparisons",
        description="Which of two people is more, and which less, of what a comparative says.",
        fields=("adj",),
        male=True,
    ),
    ReleasedTest(
        id="intensifiers",
        name="Intensifiers (very, super, extremely) and reducers (somewhat, kinda, etc)?",
        title="Intensifiers",
        description="Who is most and who is least in a state, where adverbs intensify or reduce it.",
        fields=("state", "very", "somewhat"),
        male=True,
    ),
    ReleasedTest(
        id="properties",
        name="size, shape, age, color",
        title="Properties",
        description="Which of two attributes of an object is its colour, size, age, shape or material.",
        fields=("obj", *PROPERTIES, "property"),
    ),
    ReleasedTest(
        id="job_vs_nationality",
        name="Profession vs nationality",
        title="Job vs Nationality",
        description="What is a person's job, and what their nationality.",
        fields=("nationality", "profession"),
        male=True,
    ),
    ReleasedTest(
        id="animal_vs_vehicles",
        name="Animal vs Vehicle",
        title="Animal vs Vehicles",
        description="Which animal and which vehicle a person has.",
        fields=("animal", "vehicle"),
    ),
    ReleasedTest(
        id="animal_vs_vehicles_2",
        name="Animal vs Vehicle v2",
        title="Animal vs Vehicles 2",
        description="Which of two people bought an animal, and which a vehicle.",
        fields=(),
    ),
)
"""In the order of Table 5 of Ruder et al. (2021)."""

_ARTICLES: Final[Mapping[str, tuple[Match, str]]] = {
    "af": ("anywhere", "’n"),
    "ar": ("anywhere", "ال"),
    "bn": ("start", "একটি একজন"),
    "de": ("word", "ein eine einen"),
    "el": ("word", "Ο ένα μια"),
    "en": ("word", "a an the in at"),
    "es": ("word", "un una unos unas el la los las"),
    "eu": ("word", "bat"),
    "fa": ("word", "یک"),
    "fr": ("word", "un une le la en"),
    "hi": ("start", "एक"),
    "hu": ("word", "egy"),
    "it": ("word", "un una"),
    "ml": ("start", "ഒരു"),
    "mr": ("start", "एक"),
    "my": ("start", "တစ်ဦး"),
    "nl": ("word", "een"),
    "pa": ("start", "ਇੱਕ ਇਕ"),
    "pt": ("word", "um uma"),
    "ta": ("start", "ஒரு"),
    "tl": ("word", "Si"),
    "tr": ("word", "bir"),
    "vi": ("word", "một"),
    "wo": ("word", "dafa"),
    "yo": ("word", "kan"),
}
_PUNCTUATION: Final = {"bn": "৷", "hi": "৷", "pa": "।", "pl": "„”", "ur": "\u200f"}


def released_profile(language: str) -> Profile:
    """Return how the released generator compares answers in one language: its function ``clean``.

    Two answers are the same for the one where they are for the other, with one exception: Afrikaans ``’n`` also goes
    where a letter follows it.
    """
    match, articles = _ARTICLES.get(language, ("word", ""))
    return Profile(
        articles=tuple(articles.split()), match=match, strip=",. " + _PUNCTUATION.get(language, "")
    )
