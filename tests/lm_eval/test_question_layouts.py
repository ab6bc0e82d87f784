"""Rows as IndicGenBench, ECLeKTic and BLEnD publish them, all made up, become the items of their tasks."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.data.resolve import DataOptions
from harness.data.sources import DataFinder, find_split
from harness.errors import DataError
from harness.kinds.kind import ReadContext, read_examples
from harness.running.session import Session

CONTEXT = "Mira opened a bakery in 1998."
XORQA = {
    "context": CONTEXT,
    "question": "मीरा ने बेकरी कब खोली?",
    "title": "Mira",
    "lang": "hi",
    "split": "test",
    "oracle_question": "When did Mira open a bakery?",
    "answers": [{"text": "1998"}],
    "translated_answers": [{"text": "1998 में"}, {"text": "1998"}],
}
CHOICES = {"A": "fish", "B": "rice", "C": "soup", "D": "tea"}
CHOICE_ROW = {
    "MCQID": "Al-en-06_3",
    "ID": "Al-en-06",
    "country": "South_Korea",
    "prompt": "What do people in South Korea eat? Without any explanation, choose only one from the given alphabet "
    'choices(e.g., A, B, C). Provide as JSON format: {"answer_choice":""}\n\nA. fish\n\nAnswer:',
    "choices": json.dumps(CHOICES, indent=4),
    "choice_countries": json.dumps(dict.fromkeys("ABCD", "US")),
    "answer_idx": "B",
}


def items(session: Session, folder: Path, task: str, language: str, **conditions: str) -> list[Any]:
    finder = DataFinder(DataOptions(mode="local", folders=(folder,)), session.registry, folder / "cache")
    entry = session.catalog.task(task)
    source = entry.spec.source(language, "test")
    assert source is not None
    split = find_split(finder, source, task, entry.languages.get(language), "test", None, conditions)
    kind = session.registry.kinds.get(entry.spec.kind)
    context = ReadContext.of_test(entry.spec, language, split.label_map)
    return read_examples(kind, finder.rows(split), context)


def write_examples(path: Path, examples: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"canary": "made up", "examples": examples}), encoding="utf-8")


def test_xorqa_is_answered_in_the_language_of_the_question_or_in_english(
    session: Session, tmp_path: Path
) -> None:
    write_examples(tmp_path / "xorqa_in/xorqa_hi_test.json", [XORQA])
    [item] = items(session, tmp_path, "xorqa_in", "hi", answers="translated_answers")
    assert (item.context, item.question) == (CONTEXT, XORQA["question"])
    assert [(answer.text, answer.start) for answer in item.answers] == [("1998 में", -1), ("1998", 24)]
    [item] = items(session, tmp_path, "xorqa_in", "hi", answers="answers")
    assert [(answer.text, answer.start) for answer in item.answers] == [("1998", 24)]


def test_xquad_in_is_answered_from_its_paragraph(session: Session, tmp_path: Path) -> None:
    example = {
        "context": "राधा गाँव में रहती है।",
        "question": "कहाँ?",
        "answers": [{"text": "गाँव में"}],
        "lang": "hi",
    }
    write_examples(tmp_path / "xquad_in/xquad_hi_test.json", [example, example])
    first, second = items(session, tmp_path, "xquad_in", "hi")
    assert [(answer.text, answer.start) for answer in first.answers] == [("गाँव में", 5)]
    assert first.id != second.id


def test_eclektic_asks_each_question_in_each_language(session: Session, tmp_path: Path) -> None:
    row = {"q_id": 7, "original_lang": "de", "title": "Turm", "url": "u", "content": "c", "question": "Wann?"}
    row |= {"answer": "1711", "de_q": "Wann?", "de_a": "1711", "he_q": "מתי?", "he_a": "ב-1711", "he_c": "c"}
    path = tmp_path / "eclektic/eclektic_main.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    for language, question, answer in (("de", "Wann?", "1711"), ("he", "מתי?", "ב-1711")):
        [item] = items(session, tmp_path, "eclektic", language)
        assert (item.id, item.group, item.question) == ("7", "de", question)
        assert [gold.text for gold in item.answers] == [answer]


def write_choices(folder: Path, *rows: Mapping[str, str]) -> None:
    for number, row in enumerate(rows, start=1):
        path = folder / f"BLEnD/evaluation/mc_data/mc_questions_file-{number}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            writer.writeheader()
            writer.writerow(row)


def test_choices_are_read_without_the_request_for_json(session: Session, tmp_path: Path) -> None:
    write_choices(tmp_path, CHOICE_ROW, {**CHOICE_ROW, "MCQID": "Al-en-06_4", "country": "UK"})
    first, second = items(session, tmp_path, "blend_choices", "en")
    assert first.inputs["question"] == "What do people in South Korea eat?"
    assert (first.id, first.group, first.cluster, first.label) == (
        "Al-en-06_3",
        "South_Korea",
        "Al-en-06",
        1,
    )
    assert dict(zip(first.names, first.choices, strict=True)) == CHOICES
    assert (second.id, second.group, second.cluster) == ("Al-en-06_4", "UK", "Al-en-06")


@pytest.mark.parametrize("choices", ['["fish"]', '{"A": "fish", "B": "rice"}'])
def test_other_choices_are_a_fault(session: Session, tmp_path: Path, choices: str) -> None:
    write_choices(tmp_path, {**CHOICE_ROW, "choices": choices}, CHOICE_ROW)
    with pytest.raises(DataError, match="expected the choices A, B, C, D"):
        items(session, tmp_path, "blend_choices", "en")
