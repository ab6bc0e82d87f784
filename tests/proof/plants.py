"""Faults that were found in published harnesses or are like them, each planted in a shipped task.

The table in ``docs/planted-faults.md`` is written from this list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import harness.kinds.choosing as choosing
from harness.cli.main import main
from harness.metrics.metric import MetricContext, MetricResult
from harness.metrics.pairing import field_of
from tests.proof.bench import Bench, Rows, scorer

PLANTS: list[Plant] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """One planted fault, and what must be told of it."""

    fault: str
    seen: str
    """Where it was seen; empty where it was thought up."""
    task: str
    check: str
    language: str | None
    spoil: Callable[[Bench], None]
    note: bool = False
    """Whether it may be meant, so that it is told and is no fault."""


def planted(
    task: str, fault: str, check: str, language: str | None = None, *, seen: str = "", note: bool = False
) -> Callable[[Callable[[Bench], None]], Callable[[Bench], None]]:
    """Add a fault to the list."""

    def add(spoil: Callable[[Bench], None]) -> Callable[[Bench], None]:
        PLANTS.append(
            Plant(fault=fault, seen=seen, task=task, check=check, language=language, spoil=spoil, note=note)
        )
        return spoil

    return add


def said(prediction: Any) -> str:
    return str(field_of(prediction, "label", 0))


# Labels ------------------------------------------------------------------------------------------------


@planted(
    "pawsx", "labels inverted in the file of one language", "parallel labels", "de", seen="lighteval `pawsx`"
)
def inverted_file(bench: Bench) -> None:
    bench.change("pawsx/de", lambda row: {**row, "label": "10"[int(row["label"])]})


@planted("xnli", "label map of one language that swaps two labels", "label map", "sw")
def inverted_map(bench: Bench) -> None:
    swapped = "{entailment: contradiction, contradiction: entailment}"
    bench.replaced(
        "  sw: {provenance: human-translated}",
        "  sw: {provenance: human-translated, test: {local: 'xnli/test-{language}.tsv', "
        f"columns: [premise, hypothesis, label], label_map: {swapped}, sample: 'xnli/{{language}}.jsonl'}}}}",
    )


@planted("pawsx", "label map that gives two values one label", "labels", "en")
def one_label(bench: Bench) -> None:
    place = "    local: pawsx/test-{language}.tsv\n"
    bench.replaced(place, f'{place}    label_map: {{"0": "1"}}\n')


@planted("xcopa", "a value that is no label", "data", "ta")
def no_label(bench: Bench) -> None:
    bench.change("xcopa/ta", lambda row: {**row, "label": 2})


# Scorers -----------------------------------------------------------------------------------------------


@planted(
    "pawsx", "scorer that looks for the label in the answer", "all labels", "en", seen="inspect_evals `paws`"
)
def substring(bench: Bench) -> None:
    bench.metric = scorer("substring", lambda guess, gold: gold in said(guess))


@planted(
    "udpos", "accuracy over the shorter of answer and gold", "truncated", "en", seen="lm-eval `masakhapos`"
)
def shorter(bench: Bench) -> None:
    def share(guess: Sequence[str], gold: Sequence[str]) -> float:
        pairs = list(zip(guess, gold, strict=False))
        return sum(one == other for one, other in pairs) / len(pairs) if pairs else 0.0

    bench.metric = scorer("cut", share)


@planted("xnli", "scorer that takes gold for wrong", "gold", "en")
def inverted_scorer(bench: Bench) -> None:
    bench.metric = scorer("inverted", lambda guess, gold: said(guess) not in {gold, "None", ""})


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


@planted("xquad", "scorer that takes the beginning of an answer for it", "truncated", "en")
def prefix(bench: Bench) -> None:
    bench.metric = scorer(
        "prefix", lambda guess, gold: bool(guess["text"]) and gold[0].startswith(guess["text"].strip()), "f1"
    )


@planted("xquad", "F1 that splits Chinese at spaces", "parts", "zh", seen="lm-eval `xquad`", note=True)
def spaces(bench: Bench) -> None:
    """Nothing is changed: it is the published metric."""


@planted("wikiann_raw", "names compared as a set of texts", "truncated", "en", seen="lm-eval `masakhaner`")
def unique_names(bench: Bench) -> None:
    def twice(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "tokens": row["tokens"] * 2, "tags": row["tags"] * 2}

    bench.change("wikiann/en", twice)

    def same(guess: Any, gold: Any) -> float:
        lengths = [{(end - start, tag) for start, end, tag in own} for own in (guess["spans"], gold)]
        return float(lengths[0] == lengths[1])

    bench.metric = scorer("names", same, "span_f1")


@planted("wikiann_raw", "names found again by substring", "truncated", "en", seen="EuroEval's NER")
def part_of_name(bench: Bench) -> None:
    def inside(guess: Any, gold: Any) -> float:
        found = [any(a <= start and end <= b for start, end, _ in guess["spans"]) for a, b, _ in gold]
        return sum(found) / len(found) if found else 1.0

    bench.metric = scorer("inside", inside, "span_f1")


@planted("lareqa", "recall that does not end at the cut-off", "reversed", "en")
def no_cut_off(bench: Bench) -> None:
    def recall(guess: Mapping[str, Any], gold: Mapping[str, Any]) -> float:
        ranked = [*guess["candidates"], *guess.get("further", ())]
        return len({*ranked} & {*gold["targets"]}) / len(gold["targets"])

    bench.metric = scorer("recall", recall, "map_at_20")


@planted("lareqa", "average precision that counts one candidate many times", "repeated", "en")
def counted_again(bench: Bench) -> None:
    def precision(guess: Mapping[str, Any], gold: Mapping[str, Any]) -> float:
        hits = [candidate in gold["targets"] for candidate in guess["candidates"]]
        found = [sum(hits[: place + 1]) / (place + 1) for place, hit in enumerate(hits) if hit]
        return sum(found) / len(gold["targets"])

    bench.metric = scorer("repeating", precision, "map_at_20")


# Prompts -----------------------------------------------------------------------------------------------

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


@planted(
    "xnli",
    "label word mistranslated: *number*, from the abbreviation No.",
    "word",
    "ar",
    seen="lm-eval `xnli_ar`",
)
def number(bench: Bench) -> None:
    bench.prompts.append(xnli_prompt(words=ARABIC.replace('"لا"', '"رقم"')))


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


@planted("xnli", "quotation mark without its other half", "marks", "en", seen="lm-eval `masakhapos`")
def quote(bench: Bench) -> None:
    bench.prompts.append(xnli_prompt(item='"{premise} {hypothesis}'))


@planted("xnli", "answer put to the context without a space", "join", "en", seen="lm-eval `masakhaner`")
def no_space(bench: Bench) -> None:
    bench.prompts.append(xnli_prompt(item="{premise} {hypothesis} Answer", choice="{label}"))


@planted(
    "xnli", "another text around the word of each label", "label frame", "en", seen="OpenCompass `XCOPA`"
)
def framed(bench: Bench) -> None:
    own = ', said.Yes: "Premise", said.Also: "Text", said.No: "Passage"'
    bench.prompts.append(xnli_prompt(choice=" {said[label]}: {label}", en=ENGLISH + own))


@planted("xnli", "one word for two labels", "label words", "ar")
def same_word(bench: Bench) -> None:
    bench.prompts.append(xnli_prompt(words=ARABIC.replace('"أيضًا"', '"لا"')))


@planted("xnli", "space before the words of some labels only", "label words", "ar")
def uneven(bench: Bench) -> None:
    bench.prompts.append(xnli_prompt(words=ARABIC.replace('"لا"', '" لا"')))


@planted("xnli", "parser that reads every text as the first label", "written gold", "en")
def parser(bench: Bench) -> None:
    bench.prompts.append(xnli_prompt(formulation="generation"))
    bench.monkeypatch.setattr(choosing, "read_choice", lambda text, words: 0 if text else None)


# Data --------------------------------------------------------------------------------------------------


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


@planted("xnli", "item in Latin letters", "script", "hi", seen="XNLI in ur, hi, sw", note=True)
def romanised(bench: Bench) -> None:
    [first, *rows] = bench.rows("xnli/hi")
    bench.write(
        "xnli/hi",
        [{**first, "premise": "Main ghar ja raha hoon.", "hypothesis": "Main ja raha hoon."}, *rows],
    )


@planted(
    "pawsx",
    "item that nobody translated, with `NS` for a sentence",
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
    assert main(["lock", "pawsx", "--data", "sample", "--output", str(bench.lock)]) == 0
    bench.change("pawsx/de", lambda row: {**row, "sentence1": row["sentence1"].replace(".", "!")})


# Versions ----------------------------------------------------------------------------------------------


@planted("pawsx", "translator that answers nothing", "variant", "de")
def no_translation(bench: Bench) -> None:
    bench.variants = ("tt",)
    bench.translations = {bench.rows("pawsx/de")[0]["sentence1"]: ""}


@planted("pawsx", "translator that writes a sentence for `NS`", "variant", "de")
def made_up(bench: Bench) -> None:
    nothing_said(bench)
    bench.variants = ("tt",)
    bench.translations = {"NS": "The sentence was not said."}


@planted("pawsx", "labels translated with the texts", "variant", "de")
def translated_labels(bench: Bench) -> None:
    bench.replaced("fields: [sentence1, sentence2]", "fields: [sentence1, sentence2, label]")
    bench.variants = ("tt",)
    bench.translations = {"0": "1"}


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


@planted("pawsx", "version of the items that lacks one", "variant", "es")
def shorter_version(bench: Bench) -> None:
    other_version(bench)
    bench.write("pawsx/other.es", bench.rows("pawsx/es")[1:])
