from __future__ import annotations

import json
import random
import re
import shutil
import string
from collections import Counter
from pathlib import Path

import pytest
from seqeval.metrics import sequence_labeling as seqeval

from harness.metrics.question_answering import normalise_mlqa
from harness_xtreme_r.submission.exchange import sorted_english_order
from harness_xtreme_r.submission.formats import TASKS
from harness_xtreme_r.submission.scoring import score_submission
from tests.builders import released_data


@pytest.fixture
def data() -> Path:
    return released_data()


def tokens(text: str) -> list[str]:
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def copied(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


@pytest.mark.parametrize("language", ["en", "zh", "ar"])
def test_xquad(language: str, data: Path, tmp_path: Path) -> None:
    source = data / "xquad" / f"xquad.{language}.json"
    copied(source, tmp_path / "g" / "xquad" / f"test-{language}.json")
    articles = json.loads(source.read_text(encoding="utf-8"))["data"]
    questions = [q for article in articles for paragraph in article["paragraphs"] for q in paragraph["qas"]]
    gold = {question["id"]: question["answers"][0]["text"] for question in questions}
    path = TASKS["xquad"].path(tmp_path / "p", language)
    TASKS["xquad"].format.write(path, gold)
    points = {"exact_match": 100, "f1": 100}
    assert score_submission(tmp_path / "p", tmp_path / "g").tasks["xquad"].mean == points
    corrupted = {
        key: text if place % 3 else text[: len(text) // 2] for place, (key, text) in enumerate(gold.items())
    }
    overlaps, equals = 0.0, 0
    for key, text in corrupted.items():
        left, right = tokens(text), tokens(gold[key])
        same = sum((Counter(left) & Counter(right)).values())
        overlaps += 2 * same / (len(left) + len(right)) if same else 0.0
        equals += left == right
    TASKS["xquad"].format.write(path, corrupted)
    mean = score_submission(tmp_path / "p", tmp_path / "g").tasks["xquad"].mean
    assert 60 < mean["f1"] < 95
    assert mean == pytest.approx(
        {"exact_match": 100 * equals / len(gold), "f1": 100 * overlaps / len(gold)}, abs=1e-9
    )


def test_mlqa_gold_in_every_language(data: Path, tmp_path: Path) -> None:
    for language in ("en", "de", "es", "hi", "zh"):
        source = data / "mlqa/MLQA_V1/dev" / f"dev-context-{language}-question-{language}.json"
        copied(source, tmp_path / "g" / "mlqa" / f"test-{language}.json")
        gold = TASKS["mlqa"].format.read_gold(source)
        empty = [item.id for item in gold if not normalise_mlqa(item.references[0], language)]
        assert len(empty) <= len(gold) // 100
        answers = {item.id: item.references[0] for item in gold}
        TASKS["mlqa"].format.write(TASKS["mlqa"].path(tmp_path / "p", language), answers)
    assert score_submission(tmp_path / "p", tmp_path / "g").tasks["mlqa"].mean["exact_match"] == 100.0


@pytest.mark.filterwarnings("ignore:.*seems not to be NE tag")
def test_udpos(data: Path, tmp_path: Path) -> None:
    draw = random.Random(11)
    expected = {}
    for language in ("ta", "te", "wo"):
        source = data / "udpos-xtreme" / f"dev-{language}.tsv"
        copied(source, tmp_path / "g" / "udpos" / f"test-{language}.tsv")
        gold = TASKS["udpos"].format.read_gold(source)
        tags = sorted({tag for sentence in gold for tag in sentence})
        predicted = [
            [tag if draw.random() < 0.8 else draw.choice(tags) for tag in sentence] for sentence in gold
        ]
        TASKS["udpos"].format.write(TASKS["udpos"].path(tmp_path / "p", language), predicted)
        # Under the rule of seqeval 1.x these names have the types that the bare tags have under 0.0.12.
        names = [[[f"{tag[0]}-{tag}" for tag in sentence] for sentence in side] for side in (gold, predicted)]
        expected[language] = 100 * seqeval.f1_score(*names)
    score = score_submission(tmp_path / "p", tmp_path / "g").tasks["udpos"]
    assert {language: part.metrics["f1"] for language, part in score.languages.items()} == pytest.approx(
        expected
    )
    assert score.mean["f1"] == pytest.approx(sum(expected.values()) / 3)


def test_tatoeba(data: Path, tmp_path: Path) -> None:
    english = (data / "tatoeba" / "tatoeba.deu-eng.eng").read_text(encoding="utf-8").split("\n")[:-1]
    foreign = (data / "tatoeba" / "tatoeba.deu-eng.deu").read_text(encoding="utf-8").split("\n")[:-1]
    gold = sorted_english_order(english)
    queries = sorted(line.strip() for line in english)
    partner = dict(zip((line.strip() for line in english), foreign, strict=True))
    assert [foreign[line] for line in gold] == [partner[query] for query in queries]
    wrong = [line if place % 4 else (line + 1) % len(gold) for place, line in enumerate(gold)]
    for side, content in (("g", gold), ("p", wrong)):
        TASKS["tatoeba"].format.write(TASKS["tatoeba"].path(tmp_path / side, "de"), content)
    assert score_submission(tmp_path / "p", tmp_path / "g").tasks["tatoeba"].mean == {"accuracy": 75.0}


@pytest.mark.parametrize(
    ("task", "source"),
    [
        ("xnli", "xnli/test-sw.tsv"),
        ("pawsx", "pawsx/test-de.tsv"),
        ("xcopa", "xcopa/data/et/test.et.jsonl"),
        ("panx", "wikiann/dev-my.tsv"),
    ],
)
def test_published_files_are_gold(task: str, source: str, data: Path, tmp_path: Path) -> None:
    language = "sw"
    path = TASKS[task].path(tmp_path / "g", language)
    copied(data / source, path)
    content = TASKS[task].format.read_gold(path)
    TASKS[task].format.write(TASKS[task].path(tmp_path / "p", language), content)
    result = score_submission(tmp_path / "p", tmp_path / "g")
    assert set(result.tasks[task].mean.values()) == {100.0}
    assert result.warnings == ()
