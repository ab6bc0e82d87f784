"""A preset for one task and language: its templates with their literals, compiled once."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.errors import MissingDataError, Problem, SpecError, UnknownNameError
from harness.prompts.template import Template
from harness.specs.prompt import PromptSpec

__all__ = ["ChoicePrompt", "CompiledPrompt", "LiteralPolicy", "PromptItem", "compile_prompt"]

LiteralPolicy = Literal["english", "fail"]
LETTERS = string.ascii_uppercase
SPECIAL = frozenset({"choice", "choices", "label", "letter", "gold"})
"""Names that the renderer gives: the text of a choice, the list of them, the word of a label, its letter, and the
gold text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptItem:
    """An item as templates see it."""

    fields: Mapping[str, str]
    choices: tuple[str, ...] = ()
    """The names of its choices: labels, or the fields of multiple choice; empty where it has none."""
    texts: tuple[str, ...] = ()
    """The texts of its choices where the item brings them; otherwise the words of its labels are taken."""
    gold: str | None = None
    """The name of the right choice, or the gold text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicePrompt:
    """What is ranked for one item."""

    context: str
    continuations: tuple[str, ...]
    unconditional: str | None = None


class CompiledPrompt:
    """Renders the items of one language."""

    def __init__(self, spec: PromptSpec, literals: Mapping[str, str], *, literals_language: str) -> None:
        """Parse the templates and put the literals in; raises `SpecError` for faults of the templates."""
        self.spec = spec
        self.literals_language = literals_language
        self._literals = literals
        plain = {name: text for name, text in literals.items() if "." not in name}

        def compiled(text: str) -> Template:
            return Template.parse(text, owner=f"prompt {spec.prompt!r}").bind(plain)

        self._system = compiled(spec.system)
        self._item = compiled(spec.item)
        self._choice = compiled(spec.choice)
        self._line = compiled(spec.choice_line)
        self._answer = compiled(spec.answer or spec.choice)
        self._unconditional = None if spec.unconditional is None else compiled(spec.unconditional)
        self._lists_choices = "choices" in self._item.names | self._answer.names

    def refuse_unknown(self, fields: Sequence[str]) -> None:
        """Raise `SpecError` for a slot that neither the items nor the literals fill."""
        known = {*fields, *SPECIAL}
        for template in (self._system, self._item, self._choice, self._line, self._answer):
            for name in sorted(template.names - known):
                message = str(
                    UnknownNameError("field or literal of the template", name, {*known, *self._literals})
                )
                raise SpecError(f"prompt {self.spec.prompt!r}", [Problem(message=message)])
            for table in sorted(template.tables):
                if not any(name.startswith(f"{table}.") for name in self._literals):
                    message = f"the literals in {self.literals_language!r} have no {table!r} (write '{table}.VALUE')"
                    raise SpecError(f"prompt {self.spec.prompt!r}", [Problem(message=message)])

    def words(self, item: PromptItem) -> tuple[str, ...]:
        """Return the texts of the choices of an item; raises `SpecError` where a label has no word."""
        return item.texts or self.label_words(item.choices)

    def label_words(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the words of labels; raises `SpecError` where one has none."""
        try:
            return tuple([self._literals[f"label.{name}"] for name in labels])
        except KeyError as error:
            message = f"the literals in {self.literals_language!r} have no {error.args[0]!r}"
            raise SpecError(f"prompt {self.spec.prompt!r}", [Problem(message=message)]) from error

    def system(self, item: PromptItem) -> str:
        """Return the text before everything."""
        return self._system.render(item.fields, self._literals)

    def context(self, item: PromptItem) -> str:
        """Return the text of an item up to its answer."""
        return self._item.render(self._values(item), self._literals)

    def ranking(self, item: PromptItem) -> ChoicePrompt:
        """Return the context and one continuation a choice."""
        values = self._values(item)
        return ChoicePrompt(
            context=self._item.render(values, self._literals),
            continuations=tuple(
                [self._choice.render(each, self._literals) for each in self._each(item, values)]
            ),
            unconditional=None
            if self._unconditional is None
            else self._unconditional.render(values, self._literals),
        )

    def answer(self, item: PromptItem) -> str:
        """Return the gold text as it stands after `context`; raises `MissingDataError` for an unlabelled item."""
        if item.gold is None:
            raise MissingDataError(
                f"An item without a label cannot be a shot of the prompt {self.spec.prompt!r}."
            )
        values = self._values(item)
        if item.choices:
            values = list(self._each(item, values))[item.choices.index(item.gold)]
        return self._answer.render({**values, "gold": item.gold}, self._literals)

    def shot(self, item: PromptItem) -> str:
        """Return an item with its answer."""
        return self.context(item) + self.answer(item)

    def _values(self, item: PromptItem) -> dict[str, str]:
        values = dict(item.fields)
        if self._lists_choices:
            lines = [self._line.render(each, self._literals) for each in self._each(item, values)]
            values["choices"] = "\n".join(lines)
        return values

    def _each(self, item: PromptItem, values: Mapping[str, str]) -> list[dict[str, str]]:
        words = self.words(item)
        return [
            {**values, "choice": word, "label": word, "letter": letter}
            for word, letter in zip(words, LETTERS, strict=False)
        ]


def compile_prompt(
    spec: PromptSpec, language: str, *, policy: LiteralPolicy = "english", inherited: PromptSpec | None = None
) -> CompiledPrompt:
    """Return a prompt with its words in one language.

    `policy` says what happens where a language has no words: `english` takes English ones (the prompt's
    `literals_language` tells), `fail` raises `MissingDataError`. `inherited` is what ``literals_from`` names.
    """
    tables = {**({} if inherited is None else inherited.literals), **spec.literals}
    if not tables:
        return CompiledPrompt(spec, {}, literals_language=language)
    chosen = language
    if language not in tables:
        if policy == "fail" or "en" not in tables:
            raise MissingDataError(
                f"The prompt {spec.prompt!r} has no words in {language!r}; it has: {', '.join(sorted(tables))}.",
                hint="Use English words with --literals english, or add the language to the prompt.",
            )
        chosen = "en"
    return CompiledPrompt(spec, tables[chosen].words, literals_language=chosen)
