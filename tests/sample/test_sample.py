"""The embedded sample is well-formed, parallel, balanced, in its script, and keeps its splits apart."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SAMPLE = Path(__file__).resolve().parents[2] / "task_specs" / "harness_task_specs" / "sample"
LANGUAGES = ("ar", "de", "en", "es", "hi", "ru", "sw", "ta", "tr", "zh")
SCRIPTS = {"ar": "ARABIC", "hi": "DEVANAGARI", "ru": "CYRILLIC", "ta": "TAMIL", "zh": "CJK UNIFIED IDEOGRAPH"}
UPOS = frozenset("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())
NLI_LABELS = {"entailment", "neutral", "contradiction"}

KEYS = {
    "xnli": ["id", "premise", "hypothesis", "label"],
    "mnli": ["id", "premise", "hypothesis", "label"],
    "pawsx": ["id", "sentence1", "sentence2", "label"],
    "xquad": ["id", "paragraph", "context", "question", "answers"],
    "squad": ["id", "paragraph", "context", "question", "answers"],
    "udpos": ["id", "tokens", "tags", "text"],
    "tatoeba": ["id", "query", "target"],
}
COUNTS = {
    **{f"xnli/{language}": 24 for language in LANGUAGES},
    **{f"pawsx/{language}": 20 for language in LANGUAGES},
    **{f"xquad/{language}": 18 for language in LANGUAGES},
    **{f"udpos/{language}": 15 for language in LANGUAGES},
    **{f"tatoeba/{language}": 24 for language in LANGUAGES if language != "en"},
    "xnli/en.validation": 24,
    "mnli/en.train": 504,
    "mnli/en.validation": 30,
    "pawsx/en.train": 176,
    "pawsx/en.validation": 20,
    "squad/en.train": 180,
    "squad/en.validation": 18,
    "udpos/en.train": 180,
    "udpos/en.validation": 20,
}
TEXT_FIELDS = {
    "xnli": ("premise", "hypothesis"),
    "mnli": ("premise", "hypothesis"),
    "pawsx": ("sentence1", "sentence2"),
    "xquad": ("context", "question"),
    "squad": ("context", "question"),
    "udpos": ("text",),
    "tatoeba": ("target",),
}
SPLITS = {
    "nli": ("mnli/en.train", "mnli/en.validation", "xnli/en.validation", "xnli/en"),
    "paraphrase": ("pawsx/en.train", "pawsx/en.validation", "pawsx/en"),
    "spans": ("squad/en.train", "squad/en.validation", "xquad/en"),
    "tags": ("udpos/en.train", "udpos/en.validation", "udpos/en"),
}
Item = dict[str, Any]


def items(name: str) -> list[Item]:
    text = (SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


def names(*tasks: str) -> list[str]:
    return [name for name in COUNTS if task_of(name) in tasks]


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for part in value for text in strings(part)] if isinstance(value, list) else []


def task_of(name: str) -> str:
    return name.partition("/")[0]


def language_of(name: str) -> str:
    return name.partition("/")[2].partition(".")[0]


def texts(name: str) -> list[str]:
    return [item[field] for item in items(name) for field in TEXT_FIELDS[task_of(name)]]


def test_the_files_are_those_that_are_listed() -> None:
    found = {path.relative_to(SAMPLE).with_suffix("").as_posix() for path in SAMPLE.rglob("*.jsonl")}
    assert found == set(COUNTS)
    assert {path.suffix for path in SAMPLE.rglob("*") if path.is_file()} == {".jsonl", ".md"}


def test_the_sample_is_small() -> None:
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 900_000


@pytest.mark.parametrize("name", COUNTS)
def test_records_are_complete_and_ids_unique(name: str) -> None:
    records = items(name)
    assert len(records) == COUNTS[name]
    assert all(list(record) == KEYS[task_of(name)] for record in records)
    assert len({record["id"] for record in records}) == len(records)
    without_id = [json.dumps({k: v for k, v in record.items() if k != "id"}) for record in records]
    assert len(set(without_id)) == len(records)


@pytest.mark.parametrize("name", COUNTS)
def test_text_is_normalised_and_clean(name: str) -> None:
    for record in items(name):
        for text in strings(record):
            assert text, record["id"]
            assert text == text.strip() == unicodedata.normalize("NFC", text), record["id"]
            assert not any(unicodedata.category(char) in {"Cc", "Co", "Cn", "Cs"} for char in text), record
            assert "  " not in text and "\ufffd" not in text, record["id"]


@pytest.mark.parametrize("task", ["xnli", "pawsx", "xquad", "tatoeba"])
def test_ids_and_language_independent_fields_are_parallel(task: str) -> None:
    fields = {"xnli": "label", "pawsx": "label", "xquad": "paragraph", "tatoeba": "query"}
    files = [name for name in names(task) if "." not in name]
    reference = [(record["id"], record[fields[task]]) for record in items(files[0])]
    for name in files[1:]:
        assert [(record["id"], record[fields[task]]) for record in items(name)] == reference, name


@pytest.mark.parametrize("task", ["xnli", "pawsx", "xquad", "tatoeba"])
def test_repetitions_are_parallel(task: str) -> None:
    """What is one premise, sentence or paragraph in one language is one in every language."""
    field = TEXT_FIELDS[task][0]
    patterns = set()
    for name in names(task):
        if "." not in name:
            values = [record[field] for record in items(name)]
            patterns.add(tuple(values.index(value) for value in values))
    assert len(patterns) == 1


@pytest.mark.parametrize("name", names("xnli", "mnli", "pawsx"))
def test_labels_are_balanced(name: str) -> None:
    first, second = TEXT_FIELDS[task_of(name)]
    counts = Counter(record["label"] for record in items(name))
    assert set(counts) == ({"0", "1"} if name.startswith("pawsx") else NLI_LABELS)
    assert len(set(counts.values())) == 1
    assert all(record[first] != record[second] for record in items(name))


@pytest.mark.parametrize("name", names("xnli", "mnli"))
def test_every_premise_has_each_label_once(name: str) -> None:
    labels: dict[str, list[str]] = {}
    for record in items(name):
        labels.setdefault(record["premise"], []).append(record["label"])
    assert all(sorted(group) == sorted(NLI_LABELS) for group in labels.values())


@pytest.mark.parametrize("name", names("xquad", "squad"))
def test_answers_are_in_their_context_once(name: str) -> None:
    contexts: dict[str, str] = {}
    for record in items(name):
        context = contexts.setdefault(record["paragraph"], record["context"])
        assert context == record["context"], record["id"]
        assert len(record["answers"]) == 1
        answer = record["answers"][0]
        assert list(answer) == ["text", "start"]
        assert context[answer["start"] : answer["start"] + len(answer["text"])] == answer["text"], record[
            "id"
        ]
        assert context.count(answer["text"]) == 1, record["id"]
    assert len(set(contexts.values())) == len(contexts)


@pytest.mark.parametrize("name", names("udpos"))
def test_sentences_are_tagged_token_by_token(name: str) -> None:
    for record in items(name):
        assert len(record["tokens"]) == len(record["tags"]) > 0, record["id"]
        assert set(record["tags"]) <= UPOS, record["id"]
        assert not any(" " in token for token in record["tokens"]), record["id"]
        for token, tag in zip(record["tokens"], record["tags"], strict=True):
            assert all(unicodedata.category(char)[0] == "P" for char in token) == (tag == "PUNCT"), record[
                "id"
            ]
        # Nothing but spaces may stand between the tokens.
        assert record["text"].replace(" ", "") == "".join(record["tokens"]), record["id"]


@pytest.mark.parametrize("name", COUNTS)
def test_text_is_in_the_script_of_its_language(name: str) -> None:
    script = SCRIPTS.get(language_of(name), "LATIN")
    letters = [char for text in texts(name) for char in text if unicodedata.category(char).startswith("L")]
    assert sum(unicodedata.name(char).startswith(script) for char in letters) >= 0.8 * len(letters) > 0


@pytest.mark.parametrize("name", COUNTS)
def test_sentences_end_as_they_do_in_their_language(name: str) -> None:
    endings = {"zh": "。？！", "hi": "।?!", "ar": ".؟!"}.get(language_of(name), ".?!")
    assert [text for text in texts(name) if text[-1] not in endings] == []


@pytest.mark.parametrize("task", SPLITS)
def test_no_text_is_in_two_splits(task: str) -> None:
    sets = [set(texts(name)) for name in SPLITS[task]]
    assert sum(len(part) for part in sets) == len(set().union(*sets))


@pytest.mark.parametrize("name", names("tatoeba"))
def test_sentence_pairs_are_distinct(name: str) -> None:
    records = items(name)
    assert len({record["query"] for record in records}) == len(records)
    assert len({record["target"] for record in records}) == len(records)


@pytest.mark.parametrize("task", ["xnli", "pawsx", "xquad", "tatoeba", "udpos"])
def test_no_language_is_left_untranslated(task: str) -> None:
    sentences = [text for name in names(task) if "." not in name for text in set(texts(name))]
    assert len(set(sentences)) == len(sentences)
