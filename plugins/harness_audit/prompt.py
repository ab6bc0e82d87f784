"""Checks of the prompts of a task, and scores of texts of known worth once a method has read them: gold, and nothing.

The checks find fields that are not shown, wrong label words, and words in another script.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness import HarnessError, SpecError
from harness.checks import Finding, Note
from harness.kinds import Method, MethodContext, TaskKind
from harness.languages import Language, LanguageTable, text_scripts
from harness.metrics import Metric, MetricContext
from harness.models import Generated, GenerateOptions, Prompt
from harness.prompts import CompiledPrompt, Prompter, PromptItem, choose_literals
from harness.specs import ALL_LANGUAGES, PromptSpec, TaskSpec
from harness_audit.answers import Scored, Trial
from harness_audit.data import script_matches
from harness_audit.split import named_ids

CORE = "qzx{}xzq"
SHOWN = "Field qzx{}xzq."
"""Filters of templates change the first letter, the last mark, and the spaces around marks; the core stays."""
LEAST_CARRIED = 0.8
"""The least that gold answers must score once they were written and read."""


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


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes what it was given."""

    texts: Sequence[str]

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        return [Generated(text=text, tokens=1, finished=True) for text in self.texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """The method, metrics and items with which written answers are scored."""

    spec: TaskSpec
    kind: TaskKind
    method: Method
    metrics: Sequence[Metric]
    language: Language
    examples: Sequence[Any]

    def results(self, prompt: TaskPrompt) -> Iterator[Finding | Note]:
        """Yield texts that score otherwise than they should once the method has read them.

        Formats that are published as they are cannot carry every gold answer, since they set punctuation apart or
        name an entity without its place: what they lose is a note, unless it is more than a fifth.
        """
        assert self.kind.prompt_item is not None
        items = [self.kind.prompt_item(example) for example in self.examples]
        # Kinds whose answers are checked by rules have no gold text that could be written.
        written = [] if any(item.gold is None for item in items) else [*map(prompt.compiled.answer, items)]
        references = [self.kind.reference(example) for example in self.examples]
        context = MetricContext(
            language=self.language.code, labels=self.spec.label_names, options=self.spec.metric_options
        )
        for check, texts, ceiling in (("gold", written, 1.0), ("empty", [""] * len(items), 0.0)):
            if not texts:
                continue
            trial = Trial(name=check, check=check, outputs=self._read(prompt, texts), ceiling=ceiling)
            for metric in self.metrics:
                scored = Scored.of(metric, trial, self.examples, references, context)
                if not trial.is_expected(scored.goodness or 0.0):
                    yield self._result(prompt, metric, check, scored)

    def _read(self, prompt: TaskPrompt, texts: Sequence[str]) -> list[Any]:
        assert self.kind.prompt_item is not None
        prompter = Prompter(
            prompt=prompt.compiled,
            item=self.kind.prompt_item,
            task=self.spec.task,
            language=self.language.code,
        )
        context = MethodContext(
            spec=self.spec, language=self.language, protocol="prompted", seed=0, prompter=prompter
        )
        predictions = self.method.predict(_Writer(texts), self.examples, context)
        return [prediction.output for prediction in predictions]

    def _result(self, prompt: TaskPrompt, metric: Metric, check: str, scored: Scored) -> Finding | Note:
        value = scored.goodness or 0.0
        if check == "gold" and LEAST_CARRIED <= value < 1:
            items = ", ".join([metric.name, *([named_ids(scored.at_fault)] if scored.at_fault else [])])
            gold = f"the gold answers, written as the prompt {prompt.spec.prompt!r} has them, score"
            return Note(
                task=prompt.task,
                languages=(prompt.language,),
                check="written gold",
                text=f"{gold} {value * 100:.1f} ({items})",
            )
        name = "the gold answers, written as the prompt has them," if check == "gold" else "no text"
        expected = "100" if check == "gold" else "at most 0.0"
        score = f"{value * 100:.1f}" + (f" ({named_ids(scored.at_fault)})" if scored.at_fault else "")
        return prompt.finding(f"written {check}", f"{expected} ({metric.name}) for {name}", score)
