"""Faults of prompts: words, templates, and what reads the answers."""

from __future__ import annotations

import harness.kinds.choosing as choosing
from tests.audit.bench import Bench
from tests.audit.plant import PlantList

PLANTS = PlantList()
planted = PLANTS.planted


XNLI = """
prompt: xnli/planted
tasks: [xnli]
kind: sequence_classification
formulation: {formulation}
description: Has a fault.
source: planted
item: '{item}'
choice: '{choice}'
literals:
  en: {{provenance: native, words: {{{en}}}}}
  {code}: {{provenance: native, words: {{{words}}}}}
"""
ENGLISH = 'label.entailment: "Yes", label.neutral: "Also", label.contradiction: "No"'
ARABIC = 'label.entailment: "نعم", label.neutral: "أيضًا", label.contradiction: "لا"'


def xnli_prompt(
    *,
    item: str = "{premise} {hypothesis}",
    choice: str = " {label}",
    en: str = ENGLISH,
    code: str = "ar",
    words: str = ARABIC,
    formulation: str = "cloze",
) -> str:
    return XNLI.format(item=item, choice=choice, en=en, code=code, words=words, formulation=formulation)


@planted("xnli", "label word left in English", "script", "ar")
def untranslated(bench: Bench) -> None:
    bench.prompts.append(xnli_prompt(words=ARABIC.replace('"لا"', '"No"')))


@planted("xnli", "no word for the third label", "label words", "ar", seen="lighteval `xnli`, which drops it")
def two_words(bench: Bench) -> None:
    bench.prompts.append(xnli_prompt(words=ARABIC.replace('label.neutral: "أيضًا", ', "")))


@planted(
    "pawsx",
    "label words swapped in every language",
    "label words",
    "de",
    seen="lighteval `pawsx`, lm-eval #2434",
)
def swapped_words(bench: Bench) -> None:
    text = xnli_prompt(
        item="{sentence1} {sentence2}",
        en='label.1: "No", label.0: "Yes"',
        code="de",
        words='label.1: "Nein", label.0: "Ja"',
    )
    bench.prompts.append(text.replace("xnli", "pawsx"))


@planted("xcopa", "empty template of one language", "template", "et", seen="MEGA `xcopa_et`")
def empty_template(bench: Bench) -> None:
    bench.prompts.append(
        """
prompt: xcopa/planted
tasks: [xcopa]
kind: multiple_choice
formulation: cloze
description: Has a fault.
source: planted
item: '{premise} {so[question]}'
choice: ' {choice}'
literals:
  en: {provenance: native, words: {so.cause: "because", so.effect: "so"}}
  et: {provenance: native, words: {so.cause: "sest", so.effect: "seega"}}
  it: {provenance: native, words: {so.cause: "perch\u00e9", so.effect: "quindi"}}
templates:
  et: {item: 'Translated template:', choice: ' {choice}'}
"""
    )


@planted("xnli", "one word for two labels", "label words", "ar")
def same_word(bench: Bench) -> None:
    bench.prompts.append(xnli_prompt(words=ARABIC.replace('"أيضًا"', '"لا"')))


@planted("xnli", "parser that reads every text as the first label", "written gold", "en")
def parser(bench: Bench) -> None:
    bench.prompts.append(xnli_prompt(formulation="generation"))
    bench.monkeypatch.setattr(choosing, "read_choice", lambda text, words, languages: 0 if text else None)
