"""A fragment: a language that someone else ships for a task, its data and the words of its prompts in one document."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import AfterValidator, Field, model_validator

from harness.specs.schema import Code, LanguageEntry, LiteralProvenance, Name, Preset, Provenance, SpecModel

__all__ = ["AddedLanguage", "AddedWords", "FragmentSpec"]

_NO_PROVENANCE = (
    "'provenance' is missing: how the test items were made, one of "
    f"{', '.join(map(repr, get_args(Provenance)))}"
)


class AddedWords(SpecModel):
    """The words of a task's prompt in one language, and templates where the language needs its own."""

    provenance: LiteralProvenance
    source: str = ""
    words: dict[str, str] = Field(min_length=1)
    item: str | None = None
    choice: str | None = None
    answer: str | None = None


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
    languages: dict[Code, Annotated[AddedLanguage | None, AfterValidator(_not_empty)]] = Field(min_length=1)

    @property
    def entries(self) -> dict[str, AddedLanguage]:
        """The languages, each with an entry."""
        return {code: entry for code, entry in self.languages.items() if entry is not None}
