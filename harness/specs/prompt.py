"""A prompt: how items of a task become text, as a YAML document of its own sort."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.specs.fragment import AddedWords
from harness.specs.schema import Code, LiteralProvenance, Name, SpecModel

ALL_LANGUAGES = "mul"
"""The code of words that belong to no language, such as the class ids of mT5 (ISO 639: multiple languages)."""

Formulation = Literal["cloze", "letters", "hybrid", "generation"]
PromptName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*/[a-z0-9][a-z0-9_\-]*$")]


class Literals(SpecModel):
    """The words of a prompt in one language."""

    provenance: LiteralProvenance
    """`native`: written by a speaker; `translated`: translated, not reviewed; `copied`: taken from the named source."""
    source: str = ""
    """The words were taken from it, where they are ``copied``."""
    words: dict[str, str] = Field(min_length=1)
    """Name -> text; ``label.X`` is the word for the label X, ``connective.cause`` one of a table."""


class LanguageTemplates(SpecModel):
    """Templates that differ in one language; None takes the prompt's."""

    item: str | None = None
    """In place of `item`."""
    choice: str | None = None
    """In place of `choice`."""
    answer: str | None = None
    """In place of `answer`."""


class PromptSpec(SpecModel):
    """One preset for one or several tasks of the same kind: ``prompt: xnli/lm_eval``."""

    prompt: PromptName
    """Family and preset: ``xnli/default``."""
    tasks: tuple[Name, ...] = Field(min_length=1)
    """Tasks and training sets whose items it renders."""
    kind: Name
    formulation: Formulation
    """`cloze` ranks answer texts, `letters` ranks letters of listed choices, `hybrid` ranks the answer texts after
    listing them, `generation` lets the model write."""
    description: str
    source: str
    """Where it comes from: a paper, or another harness and its version."""
    system: str = ""
    """The text before everything else, or the system turn of a conversation."""
    item: str = ""
    """The text of an item up to its answer."""
    omits: tuple[str, ...] = ()
    """Inputs of its tasks that it does not show on purpose; without them the task audit reports a fault."""
    choice: str = ""
    """What is ranked after `item`, once for every choice; needed by formulations that rank."""
    choice_line: str = "{letter}. {choice}"
    """One line of ``{choices}``."""
    answer: str = ""
    """The gold text after `item`, for shots and for training a text-to-text model; `choice` where it is empty."""
    unconditional: str | None = None
    """A context without the item; where it is given, choices are also scored after it (PMI)."""
    between: str = "\n\n"
    """The text between shots."""
    shot_order: Literal["drawn", "file"] = "drawn"
    """`drawn` draws the shots of every item; `file` takes the first ones in their order, for published exemplars."""
    shots_language: Code | None = None
    """The language of the shots, in place of what ``--shots-language`` says."""
    stop: tuple[str, ...] = ("\n",)
    """A written answer ends before the first of them; ``{question_word}`` is filled with the literal."""
    chat_stop: tuple[str, ...] = ()
    """The same in a conversation, where an answer ends by itself."""
    max_tokens: Annotated[int, Field(ge=1)] = 32
    """A written answer has at most so many."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 is greedy; above it every item is sampled with a seed of its own."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Of sampling."""
    reasoning_markers: tuple[str, str] | None = None
    """The marks that the prompt asks the model to put before and after its reasoning; what is between is no answer."""
    parser: Name | None = None
    """How a generated text is read; None takes the kind's."""
    answer_regex: str | None = None
    """What of a generated text is read: the first group of the last match, or the whole match."""
    literals_from: PromptName | None = None
    """A prompt whose literals are taken where this one has no words."""
    literals: dict[Code, Literals] = Field(default={})
    """Words by language; those of `mul` hold in every language that does not say otherwise."""
    templates: dict[Code, LanguageTemplates] = Field(default={})
    """For prompts of others whose structure is not the same in all languages."""

    @property
    def preset(self) -> str:
        """The part of the name that users give: ``lm_eval``."""
        return self.prompt.split("/")[1]

    def worded(self, language: str, given: AddedWords) -> PromptSpec:
        """Return the prompt with words, and templates where they are given, that a fragment brings for a language."""
        words = Literals(provenance=given.provenance, source=given.source, words=given.words)
        language_templates = LanguageTemplates(item=given.item, choice=given.choice, answer=given.answer)
        templates = (
            self.templates
            if language_templates == LanguageTemplates()
            else {**self.templates, language: language_templates}
        )
        return self.model_copy(
            update={"literals": {**self.literals, language: words}, "templates": templates}
        )

    @model_validator(mode="after")
    def _ranks_something(self) -> PromptSpec:
        if self.formulation != "generation" and not self.choice:
            raise ValueError(f"the formulation {self.formulation!r} ranks choices: give 'choice'")
        if self.formulation == "generation" and not (self.answer or self.choice):
            raise ValueError("'answer' is missing: the gold text of shots")
        return self
