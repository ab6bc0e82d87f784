"""A preset for one task and language: its templates with their literals, compiled once."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Literal

from harness.errors import MissingDataError, Problem, SpecError, UnknownNameError
from harness.prompts.tagged import one_line
from harness.prompts.template import Template
from harness.specs.documents import ALL_LANGUAGES, LanguageTemplates, Literals, PromptSpec

LiteralPolicy = Literal["english", "fail"]
LETTERS = string.ascii_uppercase
SPECIAL = frozenset({"choice", "choices", "label", "letter", "gold"})
"""Names that the renderer gives: the text of a choice, the list of them, the word of a label, its letter, and the
gold text."""
ANSWER_FIELDS = frozenset({"tagged", "entities", "solution"})
"""Fields that kinds make from the gold answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptItem:
    """An item as templates see it."""

    fields: Mapping[str, str]
    choices: tuple[str, ...] = ()
    """The names of its choices: labels, or the fields of multiple choice; empty where there are none."""
    texts: tuple[str, ...] = ()
    """The texts of its choices where the item brings them; otherwise the words of its labels are taken."""
    gold: str | None = None
    """The name of the right choice, or the gold text."""

    @property
    def text_key(self) -> frozenset[str]:
        """The texts of the item without its answer: two items with equal keys are one, from whatever files they come.

        Order (of the sentences of a pair, of choices), case, width and white space do not matter.
        """
        texts = [*(text for name, text in self.fields.items() if name not in ANSWER_FIELDS), *self.texts]
        plain = (" ".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in texts)
        return frozenset(filter(None, plain))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicePrompt:
    """Choices that are ranked for one item, and their context."""

    context: str
    continuations: tuple[str, ...]
    unconditional: str | None = None


class CompiledPrompt:
    """Renders the items of one language."""

    def __init__(
        self, spec: PromptSpec, literals: Mapping[str, str], *, literals_language: str, language: str = ""
    ) -> None:
        """Parse the templates and put the literals in; raises `SpecError` for faults of the templates.

        `language` is that of the items, where it is not that of the literals.
        """
        self.spec = spec
        self.literals_language = literals_language
        self._literals = literals
        templates = spec.templates.get(literals_language, LanguageTemplates())
        item, choice = (templates.item or spec.item), (templates.choice or spec.choice)
        plain = {name: text for name, text in literals.items() if "." not in name}

        def compiled(text: str) -> Template:
            template = Template.parse(
                text, owner=f"prompt {spec.prompt!r}", language=language or literals_language
            )
            return template.bind(plain)

        self._system = compiled(spec.system)
        self._item = compiled(item)
        self._choice = compiled(choice)
        self._line = compiled(spec.choice_line)
        self._answer = compiled(templates.answer or spec.answer or choice)
        self.stop = tuple([compiled(text).render({}, literals) for text in spec.stop])
        """Where a written answer ends, with the words of the language."""
        self._unconditional = None if spec.unconditional is None else compiled(spec.unconditional)
        slot_names = frozenset[str]().union(
            *(template.names for template in self._templates() if template is not self._line)
        )
        self._lists_choices = "choices" in slot_names
        self._names_letters = "letter" in slot_names | (
            self._line.names if self._lists_choices else frozenset()
        )

    def _templates(self) -> list[Template]:
        templates = [self._system, self._item, self._choice, self._line, self._answer]
        return templates if self._unconditional is None else [*templates, self._unconditional]

    def check_known(self, fields: Sequence[str]) -> None:
        """Raise `SpecError` for a slot that neither the items nor the literals fill, or both."""
        field_names = {*fields, *SPECIAL}
        for name in sorted(field_names & set(self._literals)):
            message = f"the literal {name!r} has the name of a field of the items; give it another"
            raise SpecError(f"prompt {self.spec.prompt!r}", [Problem(message=message)])
        for template in self._templates():
            for name in sorted(template.names - field_names):
                message = str(
                    UnknownNameError(
                        "field or literal of the template", name, {*field_names, *self._literals}
                    )
                )
                raise SpecError(f"prompt {self.spec.prompt!r}", [Problem(message=message)])
            for table in sorted(template.tables):
                if not any(name.startswith(f"{table}.") for name in self._literals):
                    message = f"the literals in {self.literals_language!r} have no {table!r} (write '{table}.VALUE')"
                    raise SpecError(f"prompt {self.spec.prompt!r}", [Problem(message=message)])

    def words(self, item: PromptItem) -> tuple[str, ...]:
        """Return the words that a model may answer; raises `SpecError` where a label has no word.

        The words of the labels (``label.X``) where the prompt has them, otherwise the texts of the choices.
        """
        if item.texts and f"label.{item.choices[0]}" not in self._literals:
            return item.texts
        return self.label_words(item.choices)

    def label_words(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the words of labels; raises `SpecError` where a label has no word."""
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
        """Return the context and one continuation per choice."""
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
        """Return the gold text as it follows `context`, on one line; raises `MissingDataError` for an unlabelled item.

        A worked solution keeps its lines.
        """
        if item.gold is None:
            raise MissingDataError(
                f"An item without a label cannot be a shot of the prompt {self.spec.prompt!r}."
            )
        values = self._values(item)
        if item.choices:
            values = list(self._each(item, values))[item.choices.index(item.gold)]
            values |= {name: one_line(values[name]) for name in ("choice", "label")}
        return self._answer.render({**values, "gold": one_line(item.gold)}, self._literals)

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
        if self._names_letters and len(words) > len(LETTERS):
            message = f"an item has {len(words)} choices, and letters end at {LETTERS[-1]}"
            raise SpecError(f"prompt {self.spec.prompt!r}", [Problem(message=message)])
        letters = chain(LETTERS, repeat(""))
        return [
            {**values, "choice": text, "label": word, "letter": letter}
            for text, word, letter in zip(item.texts or words, words, letters, strict=False)
        ]


def compile_prompt(
    spec: PromptSpec,
    language: str,
    *,
    policy: LiteralPolicy = "english",
    inherited: PromptSpec | None = None,
    item_language: str = "",
) -> CompiledPrompt:
    """Return a prompt with its words in one language.

    `policy` says what happens where a language has no words: `english` takes English ones (the prompt's
    `literals_language` shows it), `fail` raises `MissingDataError`. `inherited` is what ``literals_from`` names,
    `item_language` the language of the items where the instruction has another.
    """
    chosen, words = choose_literals(spec, language, policy=policy, inherited=inherited)
    literals = {} if words is None else words.words
    return CompiledPrompt(spec, literals, literals_language=chosen, language=item_language or language)


def choose_literals(
    spec: PromptSpec, language: str, *, policy: LiteralPolicy = "english", inherited: PromptSpec | None = None
) -> tuple[str, Literals | None]:
    """Return the language whose words a prompt takes for one, and the words; None for a prompt without any.

    Words of `mul` are put under those of the language. Raises `MissingDataError` as `compile_prompt` does.
    """
    tables = {**({} if inherited is None else inherited.literals), **spec.literals}
    everywhere = tables.pop(ALL_LANGUAGES, None)
    if not tables:
        return language, everywhere
    chosen = language
    if language not in tables:
        if policy == "fail" or "en" not in tables:
            raise MissingDataError(
                f"The prompt {spec.prompt!r} has no words in {language!r}; it has: {', '.join(sorted(tables))}.",
                hint="Use English words with --literals english, or add the language to the prompt.",
            )
        chosen = "en"
    literals = tables[chosen]
    if everywhere is None:
        return chosen, literals
    return chosen, literals.model_copy(update={"words": {**everywhere.words, **literals.words}})
