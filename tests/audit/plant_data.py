"""Faults of labels, files, splits, and versions of the same items."""

from __future__ import annotations

from harness.cli.main import run_command
from tests.audit.bench import Bench, Rows
from tests.audit.plant import PlantList

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
