"""Tables of what the released generator of XTREME-R does in which language: ``rules.yaml``, next to this module."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from harness.specs import SpecModel, read_yaml, validate_document
from harness_checklist.suites.suite import Ids, Profile, SuiteHead, Texts

FIRST_ANIMALS: Final = "animal_vs_vehicles"
"""The test whose rows hold the fill-ins of the second test of animals, too."""
PROPERTIES: Final = ("color", "size", "age", "shape", "material")


class _Rules(SpecModel):
    suite: SuiteHead
    fields: dict[str, Texts]
    """Test -> its fill-ins in the sheet."""
    languages: dict[str, Ids]
    """Name of a dependency -> the languages that have it."""
    separators: dict[str, str]
    profiles: dict[str, Profile]


_FILE: Final = files("harness_checklist") / "released" / "rules.yaml"
RULES: Final = validate_document(_Rules, read_yaml(_FILE.read_text(encoding="utf-8"), str(_FILE)))


def separator(language: str) -> str:
    """Return the separator of the forms of a fill-in (``older, old``) in one language."""
    return RULES.separators.get(language, ", ")


def released_profile(language: str) -> Profile:
    """Return how the released generator compares answers in one language: its function ``clean``.

    Two answers are the same for the one where they are for the other, with one exception: Afrikaans ``’n`` also goes
    where a letter follows it.
    """
    return RULES.profiles.get(language, Profile())
