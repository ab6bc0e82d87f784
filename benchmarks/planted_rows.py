"""Rows of published tasks in several languages, and faults that are planted in them.

XNLI, SIB-200 and XQuAD are read as they are distributed. Of XQuAD a system chooses the sentence that holds the answer.
The rows like Belebele's are made of XQuAD: a passage, a question and four answers, three of them to other questions
about the passage.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

SIB_LANGUAGES = {
    "en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn", "es": "spa_Latn", "fi": "fin_Latn", "hu": "hun_Latn",
    "tr": "tur_Latn", "ru": "rus_Cyrl", "el": "ell_Grek", "zh": "zho_Hans", "ja": "jpn_Jpan", "ar": "arb_Arab",
    "hi": "hin_Deva", "bn": "ben_Beng", "ta": "tam_Taml", "sw": "swh_Latn", "yo": "yor_Latn", "id": "ind_Latn",
    "vi": "vie_Latn", "eu": "eus_Latn",
}  # fmt: skip
XNLI_LANGUAGES = ("en", "de", "sw", "ur")
"""Those whose dev sets, which the systems learn from, are here too."""
XQUAD_LANGUAGES = ("en", "ar", "de", "es", "hi", "zh")
XNLI_ITEMS = 900
PASSAGES = 120
"""Paragraphs of XQuAD that are read."""
WINDOW = 80
"""Characters on each side of an answer that are read with it."""
NEGATIONS = {
    "en": r"\b(?:not|never)\s|n't\b",
    "de": r"\b(?:nicht|nie)\s?\b",
    "sw": r"\bsi\s",
    "ur": r"نہیں\s?",
}
FAULTS = ("swapped label", "text of another item", "negation lost", "not translated")
Fields = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedRows:
    """The items of a task by language; English is the source."""

    task: str
    texts: dict[str, list[Fields]]
    """Premise and hypothesis; a text; or a question and what it is answered from."""
    gold: dict[str, list[str]]
    training: dict[str, tuple[list[Fields], list[str]]]
    """By language; empty where nothing is learnt."""
    clusters: list[int]
    faults: dict[tuple[str, int], str]
    """By language and number of the item: what was planted."""

    @property
    def labels(self) -> list[str]:
        """All labels, or the numbers of candidates."""
        return sorted({label for labels in self.gold.values() for label in labels})


def read_rows(task: str, data: Path) -> PlantedRows:
    """Return the rows of ``sib200``, ``xnli``, ``xquad`` or ``belebele-like``, without faults."""
    if task == "sib200":
        return _sib200(data / "sib200")
    return _xnli(data / "xnli") if task == "xnli" else _passages(task, data / "xquad")


def _sib200(folder: Path) -> PlantedRows:
    def read(code: str, split: str) -> tuple[list[Fields], list[str]]:
        with (folder / code / f"{split}.tsv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        return [(row["text"],) for row in rows], [row["category"] for row in rows]

    codes = {name: code for name, code in SIB_LANGUAGES.items() if (folder / code / "train.tsv").exists()}
    tests = {name: read(code, "test") for name, code in codes.items()}
    return _rows("sib200", tests, {name: read(code, "train") for name, code in codes.items()})


def _xnli(folder: Path) -> PlantedRows:
    def read(split: str, code: str, most: int) -> tuple[list[Fields], list[str]]:
        lines = (folder / f"{split}-{code}.tsv").read_text(encoding="utf-8").splitlines()[:most]
        fields = [line.split("\t") for line in lines]
        return [(row[0], row[1]) for row in fields], [
            row[2].replace("contradictory", "contradiction") for row in fields
        ]

    tests = {code: read("test", code, XNLI_ITEMS) for code in XNLI_LANGUAGES}
    premises = [row[0] for row in tests["en"][0]]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(premises))}
    training = {code: read("dev", code, 10_000) for code in XNLI_LANGUAGES}
    return _rows("xnli", tests, training, [numbers[text] for text in premises])


def _rows(
    task: str, tests: dict[str, Any], training: dict[str, Any], clusters: list[int] | None = None
) -> PlantedRows:
    size = len(next(iter(tests.values()))[0])
    return PlantedRows(
        task=task,
        texts={code: texts for code, (texts, _) in tests.items()},
        gold={code: gold for code, (_, gold) in tests.items()},
        training=training,
        clusters=clusters or list(range(size)),
        faults={},
    )


def _passages(task: str, folder: Path) -> PlantedRows:
    tests: dict[str, tuple[list[Fields], list[str]]] = {}
    clusters: list[int] = []
    kept: list[int] = []
    for code in XQUAD_LANGUAGES:
        document = json.loads((folder / f"xquad.{code}.json").read_text(encoding="utf-8"))
        paragraphs = [part for article in document["data"] for part in article["paragraphs"]][:PASSAGES]
        made = [
            row
            for number, part in enumerate(paragraphs)
            for row in (_sentences(part) if task == "xquad" else _choices(part, number))
        ]
        tests[code] = ([row for row, _ in made], [label for _, label in made])
        kept = kept or list(range(len(made)))
        kept = [number for number in kept if made[number][1] != "none"]
        clusters = [number for number, part in enumerate(paragraphs) for _ in part["qas"]]
    tests = {
        code: ([texts[number] for number in kept], [gold[number] for number in kept])
        for code, (texts, gold) in tests.items()
    }
    return _rows(task, tests, {}, [clusters[number] for number in kept])


def _sentences(paragraph: Any) -> Iterator[tuple[Fields, str]]:
    """Yield question and sentences, and the number of the sentence in which the answer begins."""
    context = paragraph["context"]
    ends = [match.end() for match in re.finditer(r"[.!?।。！？]+[\s\"”]*", context)]
    bounds = [0, *(end for end in ends if end < len(context)), len(context)]
    sentences = [context[start:end] for start, end in pairwise(bounds)]
    for question in paragraph["qas"]:
        at = question["answers"][0]["answer_start"]
        number = next(n for n, end in enumerate(bounds[1:]) if at < end)
        yield (question["question"], *sentences), str(number)


def _choices(paragraph: Any, seed: int) -> Iterator[tuple[Fields, str]]:
    """Yield question and four answers with what is around them; ``none`` where the passage has fewer."""
    context, questions = paragraph["context"], paragraph["qas"]
    for number, question in enumerate(questions):
        rng = np.random.default_rng((seed, number))
        others = [other for other in range(len(questions)) if other != number]
        if len(others) < 3:
            yield (question["question"],), "none"
            continue
        order = rng.permutation([number, *rng.choice(others, 3, replace=False).tolist()]).tolist()
        windows = []
        for other in order:
            answer = questions[other]["answers"][0]
            start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
            windows.append(context[max(0, start - WINDOW) : end + WINDOW])
        yield (question["question"], *windows), str(order.index(number))


def plant(rows: PlantedRows, share: float, seed: int) -> PlantedRows:
    """Return the rows with faults of all kinds in a share of the items of every language but English.

    A negation is lost only in XNLI, where the label depends on it, from a hypothesis that has one; then the label is
    the inherited one. Of passages only the question is another one, or is left in English.
    """
    rng = np.random.default_rng(seed)
    planted = replace(
        rows,
        texts={code: list(texts) for code, texts in rows.texts.items()},
        gold={code: list(gold) for code, gold in rows.gold.items()},
        faults={},
    )
    kinds = [fault for fault in FAULTS if fault != "negation lost" or rows.task == "xnli"]
    for code in rows.texts:
        if code == "en":
            continue
        size = len(rows.texts[code])
        wanted = max(1, round(share * size / len(kinds)))
        order = rng.permutation(size).tolist()
        for fault in kinds:
            count = 0
            for number in order:
                if count < wanted and (code, number) not in planted.faults:
                    count += _plant_fault(rows, planted, fault, code, number, rng)
    return planted


def _plant_fault(
    rows: PlantedRows, planted: PlantedRows, fault: str, code: str, number: int, rng: np.random.Generator
) -> bool:
    """Plant one fault; return whether the item can have it."""
    fields, gold = rows.texts[code][number], rows.gold[code][number]
    is_passage = not rows.training
    if fault == "swapped label":
        labels = [str(n) for n in range(len(fields) - 1)] if is_passage else rows.labels
        others = [label for label in labels if label != gold]
        if not others:
            return False
        planted.gold[code][number] = str(rng.choice(others))
    else:
        new: Fields
        if fault == "negation lost":
            new = (fields[0], re.sub(NEGATIONS[code], "", fields[1], count=1))
        else:
            other = int(rng.integers(len(rows.texts[code])))
            source = rows.texts["en"][number] if fault == "not translated" else rows.texts[code][other]
            new = (source[0], *fields[1:]) if is_passage else source
        if new == fields:
            return False
        planted.texts[code][number] = new
    planted.faults[(code, number)] = fault
    return True
