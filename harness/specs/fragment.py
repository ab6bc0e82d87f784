"""A fragment: a language that someone else ships for a task, its data and the words of its prompts in one document."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import Field, field_validator, model_validator

from harness.specs.schema import Code, LanguageEntry, LiteralProvenance, Name, Preset, Provenance, SpecModel

__all__ = ["AddedLanguage", "AddedWords", "FragmentSpec"]


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
            allowed = ", ".join(map(repr, get_args(Provenance)))
            raise ValueError(f"'provenance' is missing: how the test items were made, one of {allowed}")
        return self


class FragmentSpec(SpecModel):
    """Further languages of a task that someone else ships."""

    extends: Name
    languages: dict[Code, AddedLanguage] = Field(min_length=1)

    @field_validator("languages", mode="before")
    @classmethod
    def _empty_entries(cls, value: Any) -> Any:
        """Take ``yo:`` alone as an entry without keys, so that what it lacks is told."""
        if not isinstance(value, dict):
            return value
        return {code: {} if entry is None else entry for code, entry in value.items()}
