"""A fragment: a language that someone else ships for a task, its data and the words of its prompts in one document."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import AfterValidator, Field, model_validator

from harness.specs.schema import (
    Code,
    LanguageEntry,
    LiteralProvenance,
    Name,
    Preset,
    Provenance,
    Release,
    SpecModel,
)

_NO_PROVENANCE = (
    "'provenance' is missing: how the test items were made, one of "
    f"{', '.join(map(repr, get_args(Provenance)))}"
)


class AddedWords(SpecModel):
    """The words of a task's prompt in one language, and templates where the language needs its own."""

    provenance: LiteralProvenance
    """Who wrote the words, not how the items were made: ``native``, ``translated`` or ``copied``."""
    source: str = ""
    """The words were taken from it, where they are ``copied``."""
    words: dict[str, str] = Field(min_length=1)
    """Name -> text; ``label.X`` is the word for the label X."""
    item: str | None = None
    """In place of the template `item`."""
    choice: str | None = None
    """In place of the template `choice`."""
    answer: str | None = None
    """In place of the template `answer`."""


class AddedLanguage(LanguageEntry):
    """A language that a fragment adds to a task, or words alone for one that the task has."""

    prompts: dict[Preset, AddedWords] = Field(default={})
    """Preset of the task -> its words in the language."""

    @property
    def words_alone(self) -> bool:
        """Whether it only brings words for a language that the task has already."""
        return self.model_fields_set == {"prompts"}

    @model_validator(mode="after")
    def _says_how_it_was_made(self) -> AddedLanguage:
        if self.provenance is None and not self.words_alone:
            raise ValueError(_NO_PROVENANCE)
        return self


def _not_empty(entry: AddedLanguage | None) -> AddedLanguage:
    if entry is None:
        raise ValueError(_NO_PROVENANCE)
    return entry


class FragmentSpec(SpecModel):
    """Further languages of a task that someone else ships."""

    extends: Name
    """The name of the task."""
    on_request: bool = False
    """Whether its languages are run only where they are named: another data set, in the format of the task's."""
    releases: dict[str, Release] = Field(default={})
    """Known releases of the test sets in these languages by name."""
    languages: dict[Code, Annotated[AddedLanguage | None, AfterValidator(_not_empty)]] = Field(min_length=1)
    """By code: what the task gets."""

    @property
    def entries(self) -> dict[str, AddedLanguage]:
        """The languages, each with an entry."""
        return {code: entry for code, entry in self.languages.items() if entry is not None}
