"""The embedded sample data."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

SAMPLE = Path(__file__).resolve().parents[2] / "task_specs" / "harness_task_specs" / "sample"
LANGUAGES = ("ar", "de", "en", "es", "hi", "ru", "sw", "ta", "tr", "zh")
LAREQA = ("ar", "de", "en", "es", "hi", "ru", "tr", "zh")
MEWSLI_X = ("ar", "de", "en", "es", "ta", "tr")
SCRIPTS: dict[str, str | tuple[str, ...]] = {
    **dict.fromkeys(("ar", "fa"), "ARABIC"),
    **dict.fromkeys(("ru", "uk"), "CYRILLIC"),
    "hi": "DEVANAGARI",
    "ja": ("CJK UNIFIED IDEOGRAPH", "HIRAGANA", "KATAKANA"),
    "ko": "HANGUL",
    "ta": "TAMIL",
    "zh": "CJK UNIFIED IDEOGRAPH",
}
UPOS = frozenset("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())
NLI_LABELS = {"entailment", "neutral", "contradiction"}
BIO = {"O", *(f"{prefix}-{kind}" for prefix in "BI" for kind in ("PER", "ORG", "LOC"))}

KEYS = {
    "xnli": ["id", "premise", "hypothesis", "label"],
    "mnli": ["id", "premise", "hypothesis", "label"],
    "pawsx": ["id", "sentence1", "sentence2", "label"],
    "xquad": ["id", "paragraph", "context", "question", "answers"],
    "squad": ["id", "paragraph", "context", "question", "answers"],
    "udpos": ["id", "tokens", "tags", "text"],
    "tatoeba": ["id", "query", "target"],
    **{task: ["id", "premise", "choice1", "choice2", "question", "label"] for task in ("xcopa", "copa")},
    "siqa": ["id", "context", "question", "answerA", "answerB", "answerC", "label"],
    "wikiann": ["id", "tokens", "tags"],
    **{
        task: ["id", "paragraph", "context", "question", "answers"]
        for task in ("mlqa", "mlqa_cross", "tydiqa")
    },
    "lareqa/questions": ["id", "query", "paragraph"],
    "lareqa/sentences": ["id", "text", "sentence", "answers", "language"],
    **{task: ["id", "query", "passage"] for task in ("squad_sentences", "mewsli_x_pairs")},
    "mewslix/mentions": ["id", "query", "target", "document"],
    "mewslix/entities": ["id", "text", "language"],
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
    **{f"xcopa/{language}": 24 for language in ("et", "id", "it", "sw", "ta", "tr", "vi", "zh")},
    **{
        f"{task}/en.{split}": n
        for task in ("copa", "siqa")
        for split, n in (("train", 60), ("validation", 20))
    },
    **{f"wikiann/{language}": 24 for language in LANGUAGES},
    "wikiann/en.train": 80,
    "wikiann/en.validation": 24,
    **{f"mlqa/{language}": 16 for language in ("ar", "de", "en", "es", "hi", "vi", "zh")},
    **{f"mlqa_cross/{pair}": 16 for pair in ("en.de", "de.en", "en.hi", "hi.en", "es.zh", "zh.es")},
    **{f"tydiqa/{language}": 16 for language in ("ar", "en", "fi", "id", "ru", "sw")},
    "tydiqa/en.train": 40,
    "tydiqa/en.validation": 12,
    **{f"lareqa/questions.{language}": 18 for language in LAREQA},
    **{f"lareqa/sentences.{language}": 24 for language in LAREQA},
    "squad_sentences/en.train": 180,
    "squad_sentences/en.validation": 18,
    **{f"mewslix/mentions.{language}": 12 for language in MEWSLI_X},
    "mewslix/entities": 60,
    "mewsli_x_pairs/en.train": 80,
    "mewsli_x_pairs/en.validation": 20,
}
TEXT_FIELDS = {
    "xnli": ("premise", "hypothesis"),
    "mnli": ("premise", "hypothesis"),
    "pawsx": ("sentence1", "sentence2"),
    "xquad": ("context", "question"),
    "squad": ("context", "question"),
    "udpos": ("text",),
    "tatoeba": ("target",),
    **dict.fromkeys(("xcopa", "copa"), ("premise", "choice1", "choice2")),
    "siqa": ("context", "question"),
    "wikiann": ("tokens",),
    **dict.fromkeys(("mlqa", "mlqa_cross", "tydiqa"), ("context", "question")),
    "lareqa/questions": ("query",),
    "lareqa/sentences": ("text", "sentence"),
    **dict.fromkeys(("squad_sentences", "mewsli_x_pairs"), ("query", "passage")),
    "mewslix/mentions": ("query",),
    "mewslix/entities": ("text",),
}
PARALLEL: dict[str, tuple[str, ...]] = {
    "xnli": ("label",),
    "pawsx": ("label",),
    "xquad": ("paragraph",),
    "tatoeba": ("query",),
    "xcopa": ("question", "label"),
    "mlqa": ("paragraph",),
    "wikiann": (),
    "lareqa/questions": ("paragraph",),
}
"""Tasks whose ids mean one item in every language, and the fields that do not depend on it."""
SPLITS = {
    "nli": ("mnli/en.train", "mnli/en.validation", "xnli/en.validation", "xnli/en"),
    "paraphrase": ("pawsx/en.train", "pawsx/en.validation", "pawsx/en"),
    "spans": ("squad/en.train", "squad/en.validation", "xquad/en"),
    "tags": ("udpos/en.train", "udpos/en.validation", "udpos/en"),
    "choices": ("copa/en.train", "copa/en.validation"),
    "answers": ("siqa/en.train", "siqa/en.validation"),
    "names": ("wikiann/en.train", "wikiann/en.validation", "wikiann/en"),
    "languages": ("squad/en.train", "squad/en.validation", "xquad/en", "mlqa/en", "tydiqa/en"),
    "typology": ("tydiqa/en.train", "tydiqa/en.validation", "tydiqa/en"),
    "sentences": ("squad_sentences/en.train", "squad_sentences/en.validation", "lareqa/sentences.en"),
    "questions": ("squad_sentences/en.train", "squad_sentences/en.validation", "lareqa/questions.en"),
    "entities": (
        "mewsli_x_pairs/en.train",
        "mewsli_x_pairs/en.validation",
        "mewslix/mentions.en",
        "mewslix/entities",
    ),
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
    folder, _, file = name.partition("/")
    return f"{folder}/{file.partition('.')[0]}" if folder in {"lareqa", "mewslix"} else folder


def is_test(name: str) -> bool:
    return not name.endswith((".train", ".validation"))


def language_of(name: str, record: Item, field: str) -> str:
    first, _, second = name.partition("/")[2].partition(".")
    asked_in_another = task_of(name) == "mlqa_cross" and field == "question"
    named_last = task_of(name) in {"lareqa/questions", "mewslix/mentions"}
    return str(record.get("language", second if asked_in_another or named_last else first))


def texts_by_language(name: str) -> list[tuple[str, str]]:
    values = [
        (language_of(name, record, field), record[field])
        for record in items(name)
        for field in TEXT_FIELDS[task_of(name)]
    ]
    return [(language, text if isinstance(text, str) else " ".join(text)) for language, text in values]


def texts(name: str) -> list[str]:
    return [text for _, text in texts_by_language(name)]


def test_the_files_are_those_that_are_listed() -> None:
    found = {path.relative_to(SAMPLE).with_suffix("").as_posix() for path in SAMPLE.rglob("*.jsonl")}
    # Those of multichecklist are drawn from a suite: tests/checklist/test_sample.py draws them again. Texts of
    # agreement items end in spaces: tests/vyakarana/test_agreement_set.py looks at them.
    # The contract of specs looks at the samples of other tasks.
    ours = {name.split("/")[0] for name in COUNTS}
    assert {name for name in found if name.split("/")[0] in ours} == set(COUNTS)

    assert {path.suffix for path in SAMPLE.rglob("*") if path.is_file()} == {".conllu", ".jsonl", ".md"}


def test_the_sample_is_small() -> None:
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 1_600_000


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


@pytest.mark.parametrize("task", PARALLEL)
def test_ids_and_language_independent_fields_are_parallel(task: str) -> None:
    found = [
        [[record[field] for field in ("id", *PARALLEL[task])] for record in items(name)]
        for name in names(task)
        if is_test(name)
    ]
    assert found == [found[0]] * len(found)


@pytest.mark.parametrize("task", ["xnli", "pawsx", "xquad", "tatoeba", "mlqa"])
def test_repetitions_are_parallel(task: str) -> None:
    """What is one premise, sentence or paragraph in one language is one in every language."""
    field = TEXT_FIELDS[task][0]
    patterns = set()
    for name in names(task):
        if is_test(name):
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


@pytest.mark.parametrize("name", names("xquad", "squad", "mlqa", "mlqa_cross", "tydiqa"))
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
        # Only spaces may be between the tokens.
        assert record["text"].replace(" ", "") == "".join(record["tokens"]), record["id"]


@pytest.mark.parametrize("name", COUNTS)
def test_text_is_in_the_script_of_its_language(name: str) -> None:
    letters: dict[str, list[str]] = {}
    for language, text in texts_by_language(name):
        letters.setdefault(language, []).extend(c for c in text if unicodedata.category(c).startswith("L"))
    for language, found in letters.items():
        script = SCRIPTS.get(language, "LATIN")
        assert sum(unicodedata.name(char).startswith(script) for char in found) >= 0.8 * len(found) > 0, (
            language
        )


@pytest.mark.parametrize("name", [name for name in COUNTS if task_of(name) != "wikiann"])
def test_sentences_end_as_they_do_in_their_language(name: str) -> None:
    endings = {"zh": "。？！", "ja": "。", "hi": "।?!", "ar": ".؟!"}
    assert [t for language, t in texts_by_language(name) if t[-1] not in endings.get(language, ".?!")] == []


@pytest.mark.parametrize("task", SPLITS)
def test_no_text_is_in_two_splits(task: str) -> None:
    sets = [set(texts(name)) for name in SPLITS[task]]
    assert sum(len(part) for part in sets) == len(set().union(*sets))


@pytest.mark.parametrize("name", names("tatoeba"))
def test_sentence_pairs_are_distinct(name: str) -> None:
    records = items(name)
    assert len({record["query"] for record in records}) == len(records)
    assert len({record["target"] for record in records}) == len(records)


@pytest.mark.parametrize("task", [*PARALLEL, "udpos", "tydiqa", "mewslix/mentions"])
def test_no_language_is_left_untranslated(task: str) -> None:
    sentences = [text for name in names(task) if is_test(name) for text in set(texts(name))]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("name", names("xcopa", "copa"))
def test_choices_are_balanced_within_each_question(name: str) -> None:
    records = items(name)
    counts = Counter((record["question"], record["label"]) for record in records)
    assert set(counts) == {("cause", 0), ("cause", 1), ("effect", 0), ("effect", 1)}
    assert len(set(counts.values())) == 1
    assert all(type(record["label"]) is int for record in records)
    assert len(set(texts(name))) == 3 * len(records)


@pytest.mark.parametrize("name", names("siqa"))
def test_answers_to_choose_from_differ_and_are_balanced(name: str) -> None:
    records = items(name)
    counts = Counter(record["label"] for record in records)
    assert set(counts) == set("ABC")
    assert max(counts.values()) - min(counts.values()) <= 1
    assert all(len({record[f"answer{letter}"] for letter in "ABC"}) == 3 for record in records)


@pytest.mark.parametrize("name", names("wikiann"))
def test_names_are_tagged_in_bio(name: str) -> None:
    for record in items(name):
        tokens, tags = record["tokens"], record["tags"]
        assert len(tokens) == len(tags) > 0, record["id"]
        assert set(tags) <= BIO, record["id"]
        assert not any(char.isspace() for token in tokens for char in token), record["id"]
        assert name != "wikiann/zh" or all(len(token) == 1 for token in tokens), record["id"]
        for before, tag in pairwise(["O", *tags]):
            assert tag[0] != "I" or before in {f"B{tag[1:]}", tag}, record["id"]


def test_the_same_kinds_of_names_are_in_every_language() -> None:
    found = [
        [sorted(tag for tag in record["tags"] if tag[0] == "B") for record in items(name)]
        for name in names("wikiann")
        if is_test(name)
    ]
    assert found == [found[0]] * len(LANGUAGES)


@pytest.mark.parametrize("name", names("mlqa_cross"))
def test_a_pair_of_languages_joins_two_files(name: str) -> None:
    context, _, question = name.partition("/")[2].partition(".")
    asked = [record["question"] for record in items(f"mlqa/{question}")]
    answered = items(f"mlqa/{context}")
    assert items(name) == [record | {"question": text} for record, text in zip(answered, asked, strict=True)]


SAMPLE_RETRIEVAL_LANGUAGES = ("ar", "de", "en", "es", "hi", "ru", "tr", "zh")
MENTION_LANGUAGES = ("ar", "de", "en", "es", "ta", "tr")
MENTION = re.compile(r"[^{}]*\{ [^{}]+ \}[^{}]*")
MENTIONS = (
    *(f"mewslix/mentions.{language}" for language in MENTION_LANGUAGES),
    "mewsli_x_pairs/en.train",
    "mewsli_x_pairs/en.validation",
)


def sample_retrieval_items(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("language", SAMPLE_RETRIEVAL_LANGUAGES)
def test_every_question_has_one_sentence_in_each_language(language: str) -> None:
    source = {record["id"]: record for record in sample_retrieval_items(f"xquad/{language}")}
    contexts = {record["paragraph"]: record["context"] for record in source.values()}
    questions, sentences = (
        sample_retrieval_items(f"lareqa/questions.{language}"),
        sample_retrieval_items(f"lareqa/sentences.{language}"),
    )
    for record in questions:
        assert record["query"] == source[record["id"]]["question"]
        assert record["paragraph"] == source[record["id"]]["paragraph"]
    assert sorted(answer for record in sentences for answer in record["answers"]) == sorted(source)
    numbers: Counter[str] = Counter()
    for record in sentences:
        paragraph = record["id"].split("/")[1]
        numbers[paragraph] += 1
        assert record["id"] == f"{language}/{paragraph}/{numbers[paragraph]}"
        assert record["language"] == language
        assert record["text"] == record["sentence"] + contexts[paragraph]
        start = contexts[paragraph].index(record["sentence"])
        for answer in (source[question]["answers"][0] for question in record["answers"]):
            assert start <= answer["start"], record["id"]
            assert answer["start"] + len(answer["text"]) <= start + len(record["sentence"]), record["id"]
    for paragraph, context in contexts.items():
        joined = "".join(r["sentence"] for r in sentences if r["id"].split("/")[1] == paragraph)
        assert joined.replace(" ", "") == context.replace(" ", "")


@pytest.mark.parametrize("split", ["train", "validation"])
def test_training_passages_hold_the_sentence_with_the_answer(split: str) -> None:
    for record, source in zip(
        sample_retrieval_items(f"squad_sentences/en.{split}"),
        sample_retrieval_items(f"squad/en.{split}"),
        strict=True,
    ):
        assert (record["id"], record["query"]) == (source["id"], source["question"])
        assert record["passage"].endswith(source["context"])
        sentence = record["passage"].removesuffix(source["context"])
        start, answer = source["context"].index(sentence), source["answers"][0]
        assert start == 0 or source["context"][start - 2 : start] == ". ", record["id"]
        assert sentence.endswith("."), record["id"]
        assert start <= answer["start"], record["id"]
        assert answer["start"] + len(answer["text"]) <= start + len(sentence), record["id"]


@pytest.mark.parametrize("name", MENTIONS)
def test_a_mention_is_marked_once(name: str) -> None:
    assert [
        record["id"] for record in sample_retrieval_items(name) if not MENTION.fullmatch(record["query"])
    ] == []


def test_half_of_the_mentions_need_another_language() -> None:
    language_of_entity = {
        record["id"]: record["language"] for record in sample_retrieval_items("mewslix/entities")
    }
    assert len({record["text"] for record in sample_retrieval_items("mewslix/entities")}) == len(
        language_of_entity
    )
    assert set(language_of_entity.values()) > set(MENTION_LANGUAGES)
    for language in MENTION_LANGUAGES:
        mentions = sample_retrieval_items(f"mewslix/mentions.{language}")
        same = [record["id"] for record in mentions if language_of_entity[record["target"]] == language]
        assert len(same) == len(mentions) / 2
        assert all(record["document"].startswith(f"{language}-d") for record in mentions)


def test_training_and_test_mention_different_entities() -> None:
    parts = ("mewsli_x_pairs/en.train", "mewsli_x_pairs/en.validation", "mewslix/mentions.en")
    found = [
        {record["query"].split("{ ")[1].split(" }")[0] for record in sample_retrieval_items(name)}
        for name in parts
    ]
    assert [len(part) for part in found] == [80, 20, 12]
    assert len(set().union(*found)) == 112
