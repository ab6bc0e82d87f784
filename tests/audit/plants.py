"""Faults of data, scorers and prompts that are planted in shipped tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import harness.kinds.methods as choosing
from harness.cli.main import run_command
from harness.metrics.metric import MetricContext, MetricResult, field_of
from tests.audit.bench import Bench, PlantList, Rows, scorer

PLANTS = PlantList()
planted = PLANTS.planted


@planted(
    "pawsx", "labels inverted in the file of one language", "parallel labels", "de", seen="lighteval `pawsx`"
)
def inverted_file(bench: Bench) -> None:
    bench.change("pawsx/de", lambda row: {**row, "label": "10"[int(row["label"])]})


@planted("xnli", "label map of one language that swaps two labels", "label map", "sw")
def inverted_map(bench: Bench) -> None:
    swapped = "{entailment: contradiction, contradiction: entailment}"
    bench.replaced(
        "sw, th, tr",
        "sw: {provenance: human-translated, test: {local: 'xnli/test-{language}.tsv', "
        f"columns: [premise, hypothesis, label], label_map: {swapped}, sample: 'xnli/{{language}}.jsonl'}}}}, th, tr",
    )


@planted("pawsx", "label map that gives two values one label", "labels", "en")
def one_label(bench: Bench) -> None:
    place = "    local: pawsx/test-{language}.tsv\n"
    bench.replaced(place, f'{place}    label_map: {{"0": "1"}}\n')


@planted("xcopa", "a value that is no label", "data", "ta")
def no_label(bench: Bench) -> None:
    bench.change("xcopa/ta", lambda row: {**row, "label": 2})


def first_training_row(bench: Bench, name: str = "pawsx/en.train") -> Rows:
    return [{**bench.rows(name)[0], "id": "planted"}]


@planted("pawsx", "training item in the test set", "overlap", "en")
def duplicate(bench: Bench) -> None:
    bench.write("pawsx/en", bench.rows("pawsx/en") + first_training_row(bench))


@planted("pawsx", "training item in the test set of another language", "overlap", "es")
def duplicate_elsewhere(bench: Bench) -> None:
    bench.write("pawsx/es", bench.rows("pawsx/es") + first_training_row(bench))


@planted("pawsx", "training item with another last word in the test set", "overlap", "en")
def near_duplicate(bench: Bench) -> None:
    [row] = first_training_row(bench)
    changed = {**row, "sentence2": f"{row['sentence2'].rstrip('.')} yesterday."}
    bench.write("pawsx/en", [*bench.rows("pawsx/en"), changed])


@planted("udpos", "short training item with another inner word in the test set", "overlap", "en")
def other_word(bench: Bench) -> None:
    short = next(row for row in bench.rows("udpos/en.train") if 10 <= len(row["tokens"]) <= 14)
    changed = {**short, "id": "planted", "tokens": [*short["tokens"]]}
    changed["tokens"][4] = "other"
    bench.write("udpos/en", [*bench.rows("udpos/en"), changed])


@planted("udpos", "training file read as the test file", "overlap", "en", seen="OpenCompass `XCOPA`")
def train_as_test(bench: Bench) -> None:
    bench.replaced("sample: udpos/{language}.jsonl", "sample: udpos/{language}.train.jsonl")


@planted(
    "wikiann",
    "development set in the place of the test set",
    "stand-in",
    "sw",
    seen="lm-eval `xnli`",
    note=True,
)
def stand_in(bench: Bench) -> None:
    bench.local["wikiann/dev-sw.tsv"] = "Nairobi\tB-LOC\nni\tO\nmji\tO\n\nJuma\tB-PER\nanasoma\tO\n"


@planted("xcopa", "file that lost an item", "count", "et")
def lost_item(bench: Bench) -> None:
    row = '{{"premise": "Ta {0}.", "choice1": "Jah {0}.", "choice2": "Ei {0}.", "question": "cause", '
    rows = [(row + '"label": {1}, "idx": {0}}}').format(number, number % 2) for number in range(499)]
    bench.local["xcopa/data/et/test.et.jsonl"] = "\n".join(rows) + "\n"


@planted("xnli", "English file under the name of another language", "script", "ar")
def wrong_file(bench: Bench) -> None:
    bench.write("xnli/ar", bench.rows("xnli/en"))


@planted("xnli", "English file under the name of a language in Latin letters", "not translated", "sw")
def not_translated(bench: Bench) -> None:
    bench.write("xnli/sw", bench.rows("xnli/en"))


@planted("pawsx", "two items that were not translated", "not translated", "es", note=True)
def partly_translated(bench: Bench) -> None:
    bench.write("pawsx/es", bench.rows("pawsx/en")[:2] + bench.rows("pawsx/es")[2:])


@planted("xnli", "item in Latin letters", "script", "hi", seen="XNLI in ur, hi", note=True)
def romanised(bench: Bench) -> None:
    [first, *rows] = bench.rows("xnli/hi")
    bench.write(
        "xnli/hi",
        [{**first, "premise": "Main ghar ja raha hoon.", "hypothesis": "Main ja raha hoon."}, *rows],
    )


@planted(
    "pawsx",
    "item that was not translated, with `NS` for a sentence",
    "placeholder",
    "de",
    seen="PAWS-X",
    note=True,
)
def nothing_said(bench: Bench) -> None:
    [first, *rows] = bench.rows("pawsx/de")
    bench.write("pawsx/de", [{**first, "sentence2": "NS"}, *rows])


@planted("pawsx", "another file than the one that was locked", "lock", "de")
def other_file(bench: Bench) -> None:
    bench.lock = bench.folder / "lock.json"
    assert run_command(["lock", "pawsx", "--data", "sample", "--output", str(bench.lock)]) == 0
    bench.change("pawsx/de", lambda row: {**row, "sentence1": row["sentence1"].replace(".", "!")})


@planted("pawsx", "version of the items with other labels", "variant", "es")
def other_version(bench: Bench) -> None:
    bench.change("pawsx/es", lambda row: row)
    bench.write(
        "pawsx/other.es", [{**row, "label": "10"[int(row["label"])]} for row in bench.rows("pawsx/es")]
    )
    bench.replaced(
        "languages:\n  en:\n",
        "variants:\n  edited:\n    description: Edited.\n    splits:\n"
        "      test: {sample: 'pawsx/other.{language}.jsonl'}\nlanguages:\n  en:\n",
    )


@planted("pawsx", "version of the items in which one is missing", "variant", "es")
def shorter_version(bench: Bench) -> None:
    other_version(bench)
    bench.write("pawsx/other.es", bench.rows("pawsx/es")[1:])


@planted("pawsx", "file of one language with missing items", "parallel ids", "de", note=True)
def fewer(bench: Bench) -> None:
    bench.write("pawsx/de", bench.rows("pawsx/de")[2:])


@planted("xnli", "space without width in the place of a text", "placeholder", "de", note=True)
def unseen(bench: Bench) -> None:
    [first, *rows] = bench.rows("xnli/de")
    bench.write("xnli/de", [{**first, "hypothesis": " \u200b"}, *rows])


@planted("xquad", "gold answer that is not in the context", "data", "de")
def no_span(bench: Bench) -> None:
    [first, *rows] = bench.rows("xquad/de")
    bench.write("xquad/de", [{**first, "answers": [{"text": "niemand", "start": 3}]}, *rows])


@planted("pawsx", "id that two items have", "data", "de")
def twice(bench: Bench) -> None:
    [first, second, *rows] = bench.rows("pawsx/de")
    bench.write("pawsx/de", [first, {**second, "id": first["id"]}, *rows])


def said(prediction: Any) -> str:
    return str(field_of(prediction, "label", 0))


@planted(
    "pawsx", "scorer that looks for the label in the answer", "all labels", "en", seen="inspect_evals `paws`"
)
def substring(bench: Bench) -> None:
    bench.metric = scorer("substring", lambda guess, gold: gold in said(guess))


@planted("xnli", "scorer that takes gold for wrong", "gold", "en")
def inverted_scorer(bench: Bench) -> None:
    bench.metric = scorer("inverted", lambda guess, gold: said(guess) not in {gold, "None", ""})


@planted("xnli", "scorer in per cent instead of a fraction", "gold", "en")
def percent(bench: Bench) -> None:
    bench.metric = scorer("percent", lambda guess, gold: 100.0 * (said(guess) == gold))


@planted("xnli", "scorer that gives no number", "gold", "en")
def no_number(bench: Bench) -> None:
    bench.metric = scorer("nan", lambda guess, gold: float("nan"))


@planted("xnli", "scorer that any label pleases", "constant", "en")
def generous(bench: Bench) -> None:
    labels = {"contradiction", "entailment", "neutral"}
    bench.metric = scorer("generous", lambda guess, gold: said(guess) in labels)


@planted("xnli", "scorer that gives an empty answer the point", "empty", "en")
def lenient(bench: Bench) -> None:
    bench.metric = scorer("lenient", lambda guess, gold: said(guess) in {gold, "", "None"})


@planted("xnli", "scorer that compares sets of answers, not pairs", "shuffled", "en")
def unordered(bench: Bench) -> None:
    def compute(guesses: Sequence[Any], golds: Sequence[Any], context: MetricContext) -> MetricResult:
        met = Counter(map(said, guesses)) & Counter(golds)
        return MetricResult(value=met.total() / len(golds), items=np.zeros(len(golds)))

    bench.metric = replace(scorer("bag", lambda guess, gold: 0), compute=compute)


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
