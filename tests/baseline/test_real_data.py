"""The quality of char-ngram on the published data: far above chance in English, little beyond shared strings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.data.records import Answer, ClassificationExample, SpanExample, TaggedSentence
from harness.metrics.metric import MetricContext
from harness.metrics.question_answering import squad_f1
from harness.models.capabilities import Head, HeadSpec, SpanQuestion, TextInput
from harness_baseline.model import Baseline

pytestmark = pytest.mark.thorough

NLI = HeadSpec(
    head=Head.CLASSIFICATION,
    labels=("contradiction", "entailment", "neutral"),
    inputs=("premise", "hypothesis"),
)


def read_pairs(path: Path, limit: int) -> list[ClassificationExample]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [
        ClassificationExample(
            id=str(number), inputs={"premise": premise, "hypothesis": hypothesis}, label=label
        )
        for number, (premise, hypothesis, label) in enumerate(rows[:limit])
    ]


def read_tagged(path: Path, limit: int) -> list[TaggedSentence]:
    blocks = [block.split("\n") for block in path.read_text(encoding="utf-8").strip("\n").split("\n\n")]
    rows = [[line.split("\t") for line in block if line] for block in blocks[:limit]]
    return [
        TaggedSentence(
            id=str(number), tokens=tuple(row[0] for row in block), tags=tuple(row[1] for row in block)
        )
        for number, block in enumerate(rows)
    ]


def read_questions(path: Path, limit: int) -> list[SpanExample]:
    paragraphs = [
        part for item in json.loads(path.read_text(encoding="utf-8"))["data"] for part in item["paragraphs"]
    ]
    examples = [
        SpanExample(
            id=str(asked["id"]),
            question=asked["question"],
            context=paragraph["context"],
            answers=tuple(Answer(text=a["text"], start=a["answer_start"]) for a in asked["answers"]),
        )
        for paragraph in paragraphs
        for asked in paragraph["qas"]
    ]
    return examples[:limit]


@pytest.mark.slow
def test_natural_language_inference(data_root: Path, fit: Any) -> None:
    train = read_pairs(data_root / "multinli/mnli-train.sample10k.tsv", 10_000)
    model = fit("char-ngram", train, NLI)
    found = {}
    for language in ("en", "de", "hi", "sw", "zh"):
        test = read_pairs(data_root / f"xnli/test-{language}.tsv", 1500)
        inputs = [TextInput(text=e.inputs["premise"], text_pair=e.inputs["hypothesis"]) for e in test]
        best = model.classify(inputs, NLI.labels).argmax(axis=1)
        found[language] = np.mean([NLI.labels[i] == e.label for i, e in zip(best, test, strict=True)])
    assert found["en"] > 0.55
    assert min(found.values()) > 0.35


def test_part_of_speech(data_root: Path, fit: Any) -> None:
    model = fit(
        "char-ngram", read_tagged(data_root / "udpos-xtreme/train-en.tsv", 5000), HeadSpec(head=Head.TAGGING)
    )
    found = {}
    for language in ("en", "hi", "tr"):
        test = read_tagged(data_root / f"udpos-xtreme/dev-{language}.tsv", 500)
        tagged = model.tag([sentence.tokens for sentence in test])
        pairs = [
            pair
            for tags, item in zip(tagged, test, strict=True)
            for pair in zip(tags, item.tags or (), strict=True)
        ]
        found[language] = np.mean([one == other for one, other in pairs])
    assert found["en"] > 0.9
    assert found["tr"] > 0.3
    assert found["hi"] > 0.1


@pytest.mark.slow
def test_span_extraction(data_root: Path, fit: Any) -> None:
    train = read_questions(data_root / "squad/train-v1.1.sample5500.json", 3000)
    model = fit("char-ngram", train, HeadSpec(head=Head.SPAN_EXTRACTION))
    found = {}
    for language in ("en", "de", "hi"):
        test = read_questions(data_root / f"xquad/xquad.{language}.json", 400)
        asked = [SpanQuestion(id=e.id, question=e.question, context=e.context) for e in test]
        answers = [{"text": answer.text} for answer in model.extract_spans(asked)]
        references = [[answer.text for answer in example.answers] for example in test]
        found[language] = squad_f1(answers, references, MetricContext(language=language)).value
    assert found["en"] > 0.25
    assert min(found.values()) > 0.12


@pytest.mark.parametrize(("language", "floor"), [("deu", 0.15), ("fra", 0.15), ("spa", 0.15)])
def test_bitext_retrieval(
    data_root: Path, open_baseline: Callable[..., Baseline], language: str, floor: float
) -> None:
    model = open_baseline("char-ngram")
    sides = {
        name: (data_root / f"tatoeba/tatoeba.{language}-eng.{name}")
        .read_text(encoding="utf-8")
        .strip("\n")
        .split("\n")
        for name in (language, "eng")
    }
    queries, candidates = (
        model.embed(sides["eng"], side="query"),
        model.embed(sides[language], side="passage"),
    )
    top1 = float(((queries @ candidates.T).argmax(axis=1) == np.arange(len(queries))).mean())
    assert top1 > floor
