"""The sample's candidates hold the answers they name, and its mentions point into the pool of entities."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SAMPLE = Path(__file__).resolve().parents[2] / "task_specs" / "harness_task_specs" / "sample"
LANGUAGES = ("ar", "de", "en", "es", "hi", "ru", "tr", "zh")
MENTION_LANGUAGES = ("ar", "de", "en", "es", "ta", "tr")
MENTION = re.compile(r"[^{}]*\{ [^{}]+ \}[^{}]*")
MENTIONS = (
    *(f"mewslix/mentions.{language}" for language in MENTION_LANGUAGES),
    "mewsli_x_pairs/en.train",
    "mewsli_x_pairs/en.validation",
)


def items(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_question_has_one_sentence_in_each_language(language: str) -> None:
    source = {record["id"]: record for record in items(f"xquad/{language}")}
    contexts = {record["paragraph"]: record["context"] for record in source.values()}
    questions, sentences = items(f"lareqa/questions.{language}"), items(f"lareqa/sentences.{language}")
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
    for record, source in zip(items(f"squad_sentences/en.{split}"), items(f"squad/en.{split}"), strict=True):
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
    assert [record["id"] for record in items(name) if not MENTION.fullmatch(record["query"])] == []


def test_half_of_the_mentions_need_another_language() -> None:
    language_of_entity = {record["id"]: record["language"] for record in items("mewslix/entities")}
    assert len({record["text"] for record in items("mewslix/entities")}) == len(language_of_entity)
    assert set(language_of_entity.values()) > set(MENTION_LANGUAGES)
    for language in MENTION_LANGUAGES:
        mentions = items(f"mewslix/mentions.{language}")
        same = [record["id"] for record in mentions if language_of_entity[record["target"]] == language]
        assert len(same) == len(mentions) / 2
        assert all(record["document"].startswith(f"{language}-d") for record in mentions)


def test_training_and_test_mention_different_entities() -> None:
    parts = ("mewsli_x_pairs/en.train", "mewsli_x_pairs/en.validation", "mewslix/mentions.en")
    found = [{record["query"].split("{ ")[1].split(" }")[0] for record in items(name)} for name in parts]
    assert [len(part) for part in found] == [80, 20, 12]
    assert len(set().union(*found)) == 112
