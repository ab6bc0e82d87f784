"""Checks of the prompts of a task: fields that are not shown, wrong label words, words in another script.

Prompts are rendered with marks in the place of every field, so that it is seen what a model is shown of an item.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness import HarnessError, SpecError
from harness.checks import Finding
from harness.languages import LanguageTable, text_scripts
from harness.prompts import CompiledPrompt, PromptItem, choose_literals
from harness.specs import ALL_LANGUAGES, PromptSpec, TaskSpec
from harness_audit.data import script_matches

CORE = "qzx{}xzq"
SHOWN = "Field qzx{}xzq."
"""Filters of templates change the first letter, the last mark, and the spaces around marks; the core stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPrompt:
    """A preset of a task in one language."""

    task: str
    language: str
    spec: PromptSpec
    compiled: CompiledPrompt
    words: Mapping[str, str]
    """Its literals."""

    @classmethod
    def of(cls, task: TaskSpec, spec: PromptSpec, language: str, inherited: PromptSpec | None) -> TaskPrompt:
        """Return a preset in a language that it has words of; raises `SpecError`, or `MissingDataError` for others."""
        chosen, literals = choose_literals(spec, language, policy="fail", inherited=inherited)
        words = {} if literals is None else literals.words
        compiled = CompiledPrompt(spec, words, literals_language=chosen)
        return cls(task=task.task, language=language, spec=spec, compiled=compiled, words=words)

    def finding(self, check: str, expected: str, found: str) -> Finding:
        """Return a finding about this prompt."""
        return Finding(
            task=self.task,
            languages=(self.language,),
            check=check,
            expected=f"{expected} in the prompt {self.spec.prompt!r}",
            found=found,
        )

    def shown_fields(self, item: PromptItem) -> set[str]:
        """Return the names of the fields of an item that a model is shown, in the context or in what is ranked.

        A field that selects among words, such as COPA's question, is shown where another value changes the text.
        """
        tables = {name.partition(".")[2] for name in self.words if "." in name}
        selectors = {name for name, value in item.fields.items() if value in tables}
        fields = {
            name: value if name in selectors else SHOWN.format(name) for name, value in item.fields.items()
        }
        texts = tuple(SHOWN.format(name) for name in item.choices) if item.texts else ()
        marked = replace(item, fields=fields, texts=texts)
        text = self._text(marked).casefold()
        names = {*item.fields, *(item.choices if item.texts else ())}
        visible = {name for name in names - selectors if CORE.format(name).casefold() in text}
        for name in selectors:
            variants = [replace(marked, fields={**marked.fields, name: value}) for value in sorted(tables)]
            if any(self._changes(text, variant) for variant in variants):
                visible.add(name)
        return visible

    def _changes(self, text: str, item: PromptItem) -> bool:
        try:
            return self._text(item).casefold() != text
        except HarnessError:
            # The value belongs to another table.
            return False

    def _text(self, item: PromptItem) -> str:
        if self.spec.formulation == "generation":
            return self.compiled.system(item) + self.compiled.context(item)
        ranked = self.compiled.ranking(item)
        return self.compiled.system(item) + ranked.context + "".join(ranked.continuations)


def compiled_prompts(
    task: TaskSpec, specs: Sequence[tuple[PromptSpec, PromptSpec | None]], language: str
) -> Iterator[TaskPrompt | Finding]:
    """Yield the presets of a task that have words of a language; a broken one as a finding."""
    for spec, inherited in specs:
        tables = {**({} if inherited is None else inherited.literals), **spec.literals}
        if set(tables) - {ALL_LANGUAGES} and language not in tables:
            continue
        try:
            yield TaskPrompt.of(task, spec, language, inherited)
        except HarnessError as error:
            yield Finding(
                task=task.task,
                languages=(language,),
                check="template",
                expected=f"a prompt {spec.prompt!r} that can be compiled",
                found=str(error).rstrip("."),
            )


def field_findings(
    prompts: Sequence[TaskPrompt], item: PromptItem, inputs: Sequence[str]
) -> Iterator[Finding]:
    """Yield languages in which a preset does not show the inputs of an item, or fewer fields than elsewhere.

    `inputs` are the fields that every prompt must show, also where a preset shows them in no language.
    """
    fields_by_prompt = []
    for prompt in prompts:
        try:
            fields_by_prompt.append((prompt, prompt.shown_fields(item)))
        except HarnessError as error:
            sentence = " ".join(str(error).split()).rstrip(".")
            yield prompt.finding("template", "an item that can be rendered", sentence)
    required = sorted({*inputs}.union(*(names for _, names in fields_by_prompt)))
    for prompt, names in fields_by_prompt:
        if missing := [name for name in required if name not in {*names, *prompt.spec.omits}]:
            sentence = ", ".join(map(repr, sorted(names))) or "nothing of the item"
            yield prompt.finding("template", f"{', '.join(map(repr, missing))} of the item", sentence)


# The words ----------------------------------------------------------------------------------------------


def label_findings(prompt: TaskPrompt, item: PromptItem) -> Iterator[Finding]:
    """Yield labels without a word or with that of another, and a context that depends on the gold label."""
    if not item.choices:
        return
    try:
        words = prompt.compiled.words(item)
    except SpecError as error:
        yield prompt.finding("label words", "a word for every label", str(error.problems[0].message))
        return
    labels: dict[str, str] = {}
    for label, word in zip(item.choices, words, strict=True) if not item.texts else ():
        first = labels.setdefault(_plain(word), label)
        if not word.strip():
            yield prompt.finding("label words", "a word for every label", f"none for {label!r}")
        elif first != label:
            clash = f"{word!r} for {first!r} and {label!r}"
            yield prompt.finding("label words", "another word for every label", clash)
    contexts = {prompt.compiled.context(replace(item, gold=name, texts=item.texts)) for name in item.choices}
    if len(contexts) > 1:
        yield prompt.finding("leak", "one context whatever the gold label is", f"{len(contexts)} contexts")


def literal_findings(task: str, spec: PromptSpec, languages: LanguageTable) -> Iterator[Finding]:
    """Yield words of a prompt in another script than that of the language that they stand under."""
    for code, literals in spec.literals.items():
        # What is copied is what another harness writes, in whatever script.
        if code == ALL_LANGUAGES or code not in languages or literals.provenance == "copied":
            continue
        expected = languages.get(code).script
        scripts = text_scripts(list(literals.words.values()))
        for (name, word), script in zip(literals.words.items(), scripts, strict=True):
            if script is not None and script != "Zyyy" and not script_matches(script, expected):
                yield Finding(
                    task=task,
                    languages=(code,),
                    check="script",
                    expected=f"the word {name!r} of the prompt {spec.prompt!r} in the script {expected}",
                    found=f"{word!r} in {script}",
                )


def word_conflicts(prompts: Sequence[TaskPrompt], labels: Sequence[str]) -> Iterator[Finding]:
    """Yield words that mean one label in a preset and another label in another preset of the language."""
    meanings: dict[tuple[str, str], tuple[str, str]] = {}
    for prompt in prompts:
        for label in labels:
            word = _plain(prompt.words.get(f"label.{label}", ""))
            if not any(character.isalpha() for character in word):
                continue
            first, where = meanings.setdefault((prompt.language, word), (label, prompt.spec.prompt))
            if first != label:
                expected = f"{word!r} for {first!r}, as in {where!r},"
                yield prompt.finding("label words", expected, f"it for {label!r}")


def _plain(word: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", word).casefold().split())
