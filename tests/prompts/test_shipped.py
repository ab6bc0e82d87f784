"""Every shipped prompt, in every language of its tasks, on the embedded sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import MissingDataError
from harness.prompts.letter_answer import read_letter
from harness.prompts.parsing import answer_number, read_answer, read_choice
from harness.prompts.preset import CompiledPrompt, PromptItem, compile_prompt
from harness.prompts.tagged import read_entities, read_spans, read_tagged
from harness.prompts.template import FILTERS
from harness.running.session import Session, open_session
from harness.specs.documents import ALL_LANGUAGES, PromptSpec
from harness_semeval.multilabel import members

SESSION = open_session()
NAMES = [
    name
    for name in SESSION.catalog.names("prompt")
    if SESSION.catalog.entry("prompt", name).plugin == "task_specs"
]
BEYOND_MGSM = set("am ar ee ha id ig it ko lg ln ms om pt rw sn st tw vai vi wo xh yo zu".split())
"""Languages of AfriMGSM and PolyMath that MGSM, whose authors wrote the words, does not have."""
WITHOUT_WORDS = {
    "mgsm/default": BEYOND_MGSM,
    "mgsm/direct": BEYOND_MGSM,
    "mkqa/default": {"da", "km", "no", "sv", "zh-Hant", "zh-HK"},
    "mgsm/en_cot": BEYOND_MGSM | set("bn de es fr ja ru sw te th zh".split()),
    "qa/default": {"bem", "fon", "ig", "rw", "tw", "zu"},
    "xcopa/default": {"qu"},
    "xcopa/hybrid": {"qu"},
    "xcopa/letters": {"qu"},
}
"""Languages of a prompt's tasks that have no words, since none that can be trusted were known."""
ENGLISH_WORDS = {
    "afrixnli/default",
    "belebele/default",
    "belebele/letters",
    "global_piqa/letters",
    "indicqa/default",
    "indicxnli/lm_eval",
    "mmlu/default",
    "mmlu/letters",
    "masakhanews/default",
    "multilingual_hatecheck/default",
    "sentiment/default",
    "sib200/default",
    "sib200/letters",
}
"""Prompts of many languages that take another prompt's words: languages without words there take the English ones."""
ENTITIES = ("PER", "ORG", "LOC", "DATE")
PRESETS_OF_RAW_TEXT: dict[str, set[str]] = {
    "wikiann_raw": {"default"},
    "udpos_raw": set(),
    "massive_slots": set(),
    "masakhaner_x": {"default"},
}
"""A list of entities says where they are in a text; one of words and parts of speech would not."""


def languages(session: Session, task: str) -> list[str]:
    catalog = session.catalog
    found = catalog.task(task).spec if task in catalog.names("task") else catalog.training(task)[0]
    added = catalog.task(task).added if task in catalog.names("task") else {}
    return [code for code in found.languages if code not in added]


def spec_of(session: Session, name: str) -> PromptSpec:
    task = session.catalog.entry("prompt", name).document.data["tasks"][0]
    return session.catalog.prompt(task, name.partition("/")[2])


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_it_is_rendered_in_all_languages_of_its_tasks(
    name: str, shipped: Session, sample: Callable[[str], list[Any]]
) -> None:
    spec = spec_of(shipped, name)
    inherited = shipped.catalog.inherited_prompt(spec)
    to_item = shipped.registry.kinds.get(spec.kind).prompt_item
    assert to_item is not None
    without_words: set[str] = set()
    for task in spec.tasks:
        examples = sample(task)
        for language in languages(shipped, task):
            try:
                compile_prompt(spec, language, policy="fail", inherited=inherited)
            except MissingDataError:
                without_words.add(language)
            compiled = compile_prompt(spec, language, inherited=inherited)
            for example in examples:
                check_item(compiled, to_item(example), example)
    if name not in ENGLISH_WORDS:
        assert without_words == WITHOUT_WORDS.get(name, set())


def check_item(compiled: CompiledPrompt, item: PromptItem, example: Any) -> None:
    context = compiled.system(item) + compiled.context(item)
    for name, value in item.fields.items():
        if f"{{{name}}}" in compiled.spec.item:
            assert value in context
    if compiled.spec.kind == "instruction_following":  # rules check the answers: there is no gold text
        assert item.gold is None
        return
    answer = compiled.answer(item)
    assert item.gold is not None
    assert compiled.shot(item).endswith(answer)
    if compiled.spec.formulation == "generation":
        assert is_read_back(compiled, item, answer, example)
        return
    ranked = compiled.ranking(item)
    assert len(set(ranked.continuations)) == len(item.choices)
    assert all(text.strip() for text in ranked.continuations)
    assert ranked.continuations[item.choices.index(item.gold)] == answer
    if compiled.spec.formulation == "letters":
        assert read_letter(answer, item.choices) == item.choices.index(item.gold)


def is_read_back(compiled: CompiledPrompt, item: PromptItem, answer: str, example: Any) -> bool:
    """Return whether what a model should write is understood as what it means."""
    assert item.gold is not None
    spec = compiled.spec
    assert not any(mark in answer.strip() for mark in compiled.stop)
    if spec.kind == "span_extraction":
        gold = FILTERS["pad_marks"](item.gold) if "pad_marks" in spec.answer else item.gold
        return read_answer(answer) == gold
    if spec.kind == "token_tagging":
        if spec.parser == "entities":
            types = {*ENTITIES, *(tag[2:] for tag in example.tags)}
            return read_entities(answer, example.tokens, sorted(types)) == list(example.tags)
        return read_tagged(answer, example.tokens, sorted(set(example.tags))) == list(example.tags)
    if spec.kind == "text_marking":
        spans = [(span.start, span.end, span.tag) for span in example.spans]
        return read_spans(answer, example.text, ENTITIES) == spans
    if spec.kind == "numeric_answer":
        number = answer_number(answer, "en")
        return number is not None and number.value == Fraction(item.gold)
    if spec.kind in {"translation", "summary"}:
        return answer.strip() == item.gold
    if spec.kind == "multilabel_classification":
        return [label for label in members(example.label) if label in answer] == members(example.label)
    if spec.kind == "text_pair_similarity":
        return bool(float(answer) == example.grade)
    return read_choice(answer, compiled.words(item)) == item.choices.index(item.gold)


@pytest.mark.parametrize("name", NAMES)
def test_the_words_of_a_language_are_those_of_english(name: str, shipped: Session) -> None:
    """Every table has all words of the English one, different labels have different ones, copies name their source."""
    spec = spec_of(shipped, name)
    everywhere = spec.literals.get(ALL_LANGUAGES)
    common = set() if everywhere is None else set(everywhere.words)
    named = {
        code: set(table.words) - common for code, table in spec.literals.items() if code != ALL_LANGUAGES
    }
    assert len({frozenset(words) for words in named.values()}) <= 1
    assert all(table.source for table in spec.literals.values() if table.provenance == "copied")
    for code, table in spec.literals.items():
        labels = [word.casefold() for key, word in table.words.items() if key.startswith("label.")]
        assert len(set(labels)) == len(labels), code


def test_every_task_that_is_prompted_has_a_default(shipped: Session) -> None:
    kinds = {kind.name for kind in shipped.registry.kinds if kind.prompt_item is not None}
    for task in shipped.catalog.names("task"):
        spec = shipped.catalog.task(task).spec
        # What is only ever asked of an unchanged model is asked without words.
        if spec.kind in kinds and spec.protocols != ("frozen",):
            published = "/xtreme_r/" in shipped.catalog.entry("task", task).document.source
            usual = {"default", "mt5", "mega"} if published else {"default"}
            presets = PRESETS_OF_RAW_TEXT.get(task, usual)
            assert presets <= set(shipped.catalog.presets(task)), task


GOLDEN = yaml.safe_load(
    Path(__file__).with_name("golden").joinpath("shipped_prompts.yaml").read_text("utf-8")
)


@pytest.mark.parametrize("expected", GOLDEN["prompts"], ids=lambda item: f"{item['task']}-{item['preset']}")
def test_golden(
    expected: Mapping[str, str],
    compiled: Callable[..., CompiledPrompt],
    item: Callable[..., PromptItem],
) -> None:
    prompt = compiled(expected["task"], expected["preset"], expected["language"])
    fields = item(expected["task"], GOLDEN["rows"].get(expected["task"], GOLDEN["rows"]["qa"]))
    assert (prompt.context(fields), prompt.answer(fields)) == (expected["context"], expected["answer"])


@pytest.mark.parametrize("task", ["wmt24pp", "tico19", "flores_in"])
def test_a_translation_into_a_script_of_many_tokens_is_not_cut(task: str, shipped: Session) -> None:
    """Of NTREX's Burmese sentences, 76 % have more than 256 tokens of SmolLM2's tokenizer, and 611 is Tamil's most."""
    for preset in shipped.catalog.presets(task):
        assert (shipped.catalog.prompt(task, preset).max_tokens or 0) >= 1024


@pytest.mark.parametrize("name", ["blend/default", "multiloko/default"])
def test_an_answer_about_a_country_is_not_cut(name: str, shipped: Session) -> None:
    """The longest most frequent answer of BLEnD, in Assamese, has 102 tokens of SmolLM2's tokenizer."""
    assert (spec_of(shipped, name).max_tokens or 0) > 102
