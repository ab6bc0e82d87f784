"""Every shipped prompt, in every language of its tasks, on the embedded sample."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from harness.checks.spec_validation import validate_specs
from harness.errors import MissingDataError
from harness.prompts.filter import FILTERS
from harness.prompts.letter_answer import read_letter
from harness.prompts.number_answer import answer_number
from harness.prompts.parsing import read_answer, read_choice
from harness.prompts.preset import CompiledPrompt, PromptItem, compile_prompt
from harness.prompts.tagged import read_entities, read_spans, read_tagged
from harness.running.session import Session
from harness.specs.prompt import ALL_LANGUAGES, PromptSpec
from harness_semeval.multilabel import members

NAMES = sorted(
    f"{family}/{preset}"
    for family, presets in {
        "afrimmlu": "lm_eval",
        "afrisenti": "lm_eval",
        "afrixnli": "default lm_eval native",
        "am2ico": "default",
        "arabicmmlu": "default letters",
        "belebele": "default letters lm_eval",
        "blend": "default",
        "brighter": "default",
        "cmmlu": "lm_eval",
        "global_piqa": "default letters lm_eval",
        "include": "lm_eval",
        "indicqa": "default",
        "indicsentiment": "default",
        "indicxnli": "lm_eval",
        "instruction": "default",
        "kmmlu": "lm_eval",
        "masakhaner2": "default",
        "masakhaner_x": "default",
        "masakhanews": "default lm_eval",
        "massive_intent": "default",
        "mgsm": "boxed default direct en_cot lm_eval lm_eval_cot",
        "milu": "authors",
        "mkqa": "default",
        "mlqa": "lm_eval",
        "mmlu": "default letters lm_eval",
        "mmlu_prox": "letters",
        "multilingual_hatecheck": "default",
        "multiloko": "default",
        "pawsx": "default lm_eval mega mt5",
        "qa": "default mega mt5",
        "semrel": "default",
        "sentiment": "default",
        "sib200": "default letters lm_eval",
        "siqa": "default mt5",
        "translation": "default instruct source",
        "turkishmmlu": "lm_eval",
        "udpos": "default mega mt5",
        "wikiann": "default mega mt5",
        "wikiann_raw": "default",
        "wmt24pp": "default instruct",
        "xcopa": "default hybrid letters lm_eval lm_eval-bugcompat mega mt5",
        "xglue_nc": "default",
        "xglue_qam": "default",
        "xlsum": "default",
        "xnli": "default hybrid letters lm_eval lm_eval-bugcompat mega mt5",
        "xquad": "lm_eval lm_eval-bugcompat",
        "xsid_intent": "default",
        "xsid_slots": "default",
        "xstorycloze": "default lm_eval",
        "xtreme_up_qa": "default",
    }.items()
    for preset in presets.split()
)
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


def test_the_shipped_prompts_are_these(shipped: Session) -> None:
    ours = [
        name
        for name in shipped.catalog.names("prompt")
        if shipped.catalog.entry("prompt", name).plugin == "task_specs"
    ]
    assert ours == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_is_valid(name: str, shipped: Session) -> None:
    entry = shipped.catalog.entry("prompt", name)
    [checked] = validate_specs(shipped.registry, shipped.catalog, [entry.document.source])
    assert checked["problems"] == []


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
    """Every table has all words of the English one, and what is copied names its source."""
    spec = spec_of(shipped, name)
    everywhere = spec.literals.get(ALL_LANGUAGES)
    common = set() if everywhere is None else set(everywhere.words)
    named = {
        code: set(table.words) - common for code, table in spec.literals.items() if code != ALL_LANGUAGES
    }
    assert len({frozenset(words) for words in named.values()}) <= 1
    assert all(table.source for table in spec.literals.values() if table.provenance == "copied")


@pytest.mark.parametrize("name", NAMES)
def test_different_labels_have_different_words(name: str, shipped: Session) -> None:
    spec = spec_of(shipped, name)
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


GOLDEN = {
    ("xnli", "default", "sw"): ("It rains, sivyo?", " Pia, The road is wet."),
    ("xnli", "default", "zh"): ("It rains，对吗？", "另外，The road is wet."),
    ("xnli", "lm_eval", "ar"): ("", " It rains., صحيح? لذا, The road is wet."),
    ("xnli", "letters", "de"): (
        "It rains.\nFrage: The road is wet.\nA. Falsch\nB. Wahr\nC. Weder noch\nAntwort:",
        " C",
    ),
    ("xnli", "hybrid", "fr"): (
        "It rains.\nQuestion : The road is wet. Vrai, Faux ou Ni l'un ni l'autre ?\nRéponse :",
        " Ni l'un ni l'autre",
    ),
    ("xnli", "mt5", "th"): ("xnli: premise: It rains. hypothesis: The road is wet.", "1"),
    ("xcopa", "default", "en"): ("It rains because", " the sky is grey."),
    ("xcopa", "default", "zh"): ("It rains，因为", "the sky is grey."),
    ("xcopa", "lm_eval", "sw"): ("It rains kwa sababu", " the sky is grey."),
    ("xcopa", "letters", "it"): (
        "It rains perché\nA. The sky is grey.\nB. I sing.\nRisposta:",
        " A",
    ),
    ("xcopa", "mt5", "qu"): (
        "copa choice1: The sky is grey. choice2: I sing. premise: It rains. question: cause",
        "choice1",
    ),
    ("xcopa", "mega", "tr"): ('"The sky is grey." or "I sing."? It rains. because', " The sky is grey."),
    ("pawsx", "default", "ja"): ("It rains、ですよね？", "はい、Rain falls."),
    ("pawsx", "mt5", "ko"): ("paws sentence1: It rains. sentence2: Rain falls.", "paraphrase"),
    ("xquad", "default", "zh"): ("上下文：It rains.\n问题：What?\n答案：", "It rains"),
    ("xquad", "mt5", "ru"): ("question: What ? context: It rains .", "It rains"),
    ("tydiqa", "default", "te"): ("సందర్భం: It rains.\nప్రశ్న: What?\nసమాధానం:", " It rains"),
    ("mlqa", "lm_eval", "hi"): ("Context: It rains.\n\nQuestion: What?\n\nAnswer:", " It rains"),
    ("squad", "mega", "en"): (
        "It rains.\nQ: What?\n\nReferring to the passage above, the correct answer to the given question is",
        " It rains",
    ),
    ("wikiann", "mt5", "de"): ("tag: Ann saw Rome", "PER: Ann $$ LOC: Rome"),
    ("wikiann_raw", "default", "de"): ("Text: Ann saw Rome\nEntities:", " PER: Ann $$ LOC: Rome"),
    ("wikiann", "mega", "de"): ("C: Ann saw Rome\nT:", " Ann_B-PER saw_O Rome_B-LOC"),
    ("udpos", "mt5", "de"): ("pos: Ann sings", "Ann_PROPN sings_VERB"),
}
ROWS: dict[str, dict[str, Any]] = {
    "xnli": {"premise": "It rains.", "hypothesis": "The road is wet.", "label": "neutral"},
    "xcopa": {
        "premise": "It rains.",
        "choice1": "The sky is grey.",
        "choice2": "I sing.",
        "question": "cause",
        "label": "choice1",
    },
    "pawsx": {"sentence1": "It rains.", "sentence2": "Rain falls.", "label": "1"},
    "qa": {"context": "It rains.", "question": "What?", "answers": [{"text": "It rains", "start": 0}]},
    "wikiann_raw": {"text": "Ann saw Rome", "spans": [[0, 3, "PER"], [8, 12, "LOC"]]},
    "wikiann": {"tokens": ["Ann", "saw", "Rome"], "tags": ["B-PER", "O", "B-LOC"]},
    "udpos": {"tokens": ["Ann", "sings"], "tags": ["PROPN", "VERB"]},
}


@pytest.mark.parametrize(("task", "preset", "language"), GOLDEN)
def test_golden(
    task: str,
    preset: str,
    language: str,
    compiled: Callable[..., CompiledPrompt],
    item: Callable[..., PromptItem],
) -> None:
    prompt = compiled(task, preset, language)
    given = item(task, ROWS.get(task, ROWS["qa"]))
    assert (prompt.context(given), prompt.answer(given)) == GOLDEN[task, preset, language]
