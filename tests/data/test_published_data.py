"""The readers on the published files themselves; counts are those of the releases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.data.records import Row

pytestmark = pytest.mark.thorough

Read = Callable[..., list[Row]]


@pytest.mark.parametrize("language", ["en", "de", "es", "hi", "sw", "tr", "ur", "zh"])
def test_xnli(read: Read, data_root: Path, language: str) -> None:
    path = data_root / "xnli" / f"test-{language}.tsv"
    rows = read("tsv", path, columns="premise,hypothesis,label")
    labels = [row.fields["label"] for row in rows]
    assert len(rows) == 5_010
    assert {label: labels.count(label) for label in labels} == {
        "contradiction": 1_670,
        "entailment": 1_670,
        "neutral": 1_670,
    }


def test_multinli_and_pawsx(read: Read, data_root: Path) -> None:
    pair = "first,second,label"
    assert len(read("tsv", data_root / "multinli/mnli-train.sample10k.tsv", columns=pair)) == 9_888
    assert len(read("tsv", data_root / "pawsx/test-de.tsv", columns=pair)) == 2_000


@pytest.mark.parametrize("language", ["en", "ar", "de", "es", "hi", "zh"])
def test_xquad(read: Read, data_root: Path, language: str) -> None:
    rows = read("squad", data_root / "xquad" / f"xquad.{language}.json")
    assert len(rows) == len({row.fields["id"] for row in rows}) == 1_190
    assert len({row.fields["paragraph"] for row in rows}) == 240
    assert all(row.fields["answers"] for row in rows)


@pytest.mark.parametrize(
    ("path", "count", "answered"),
    [
        ("mlqa/MLQA_V1/dev/dev-context-en-question-en.json", 1_148, True),
        ("mlqa/MLQA_V1/dev/dev-context-es-question-de.json", 196, True),
        ("squad/train-v1.1.sample5500.json", 5_547, True),
        ("tydiqa-goldp/tydiqa-goldp-v1.1-train/tydiqa.goldp.en.train.sample2000.json", 2_000, True),
        # Copies that went through XTREME's script, which removes the answers.
        ("tydiqa-goldp/tydiqa-goldp-v1.1-dev/tydiqa.goldp.fi.dev.json", 782, False),
        ("mlqa/test-rebuilt/test-context-es-question-es.subset.json", 3_283, False),
    ],
)
def test_other_questions(read: Read, data_root: Path, path: str, count: int, answered: bool) -> None:
    rows = read("squad", data_root / path)
    assert len(rows) == count
    assert {bool(row.fields["answers"]) for row in rows} == {answered}


@pytest.mark.parametrize(
    ("path", "sentences", "words", "tagged"),
    [
        ("udpos-xtreme/train-en.tsv", 21_253, 375_194, True),
        ("udpos-xtreme/dev-en.tsv", 3_974, 62_632, True),
        ("udpos-xtreme/dev-hi.tsv", 1_659, 35_217, True),
        ("udpos-xtreme/dev-mr.tsv", 46, 400, True),
        ("wikiann/dev-sw.tsv", 1_000, 5_609, True),
        ("wikiann/unlabelled-test/test-hi.tsv", 1_000, 6_005, False),
    ],
)
def test_tagged(read: Read, data_root: Path, path: str, sentences: int, words: int, tagged: bool) -> None:
    rows = read("tagged", data_root / path)
    assert len(rows) == sentences
    assert sum(len(row.fields["tokens"]) for row in rows) == words
    assert all((row.fields["tags"] is not None) == tagged for row in rows)


@pytest.mark.parametrize(
    ("path", "sentences", "words"),
    [
        ("UD_English-EWT/en_ewt-ud-test", 2_077, 25_094),
        ("UD_German-GSD/de_gsd-ud-test", 977, 16_499),
        ("UD_Chinese-GSD/zh_gsd-ud-test", 500, 12_010),
        ("UD_Wolof-WTB/wo_wtb-ud-test", 470, 10_403),
        ("UD_Yoruba-YTB/yo_ytb-ud-test", 317, 8_243),
        ("UD_Turkish-IMST/tr_imst-ud-test", 1_100, 10_032),
        ("UD_Vietnamese-VTB/vi_vtb-ud-test", 800, 11_692),
        ("UD_Tagalog-TRG/tl_trg-ud-test", 128, 734),
        ("UD_Hindi-PUD/hi_pud-ud-test", 1_000, 23_829),
        ("UD_Tamil-TTB/ta_ttb-ud-test", 120, 1_989),
    ],
)
def test_treebanks(read: Read, data_root: Path, path: str, sentences: int, words: int) -> None:
    file = data_root / "ud" / f"{path}.conllu"
    rows = read("conllu", file, tokens="words")
    assert len(rows) == len(read("conllu", file)) == sentences
    assert sum(len(row.fields["tokens"]) for row in rows) == words
    assert all(row.fields["text"] and row.fields["sent_id"] for row in rows)


@pytest.mark.parametrize(
    ("language", "treebank", "same_tokens", "same_tags"),
    [
        ("te", "UD_Telugu-MTG/te_mtg-ud-dev", (131, 131), (662, 662)),
        # Since UD 2.5 two misspelt words of one sentence were corrected, and 41 words (participles and
        # numerals, three of them in multi-word tokens) are no longer ADJ.
        ("ta", "UD_Tamil-TTB/ta_ttb-ud-dev", (79, 80), (1_072, 1_113)),
    ],
)
def test_fused_tokens_agree_with_xtremes_files(
    read: Read,
    data_root: Path,
    language: str,
    treebank: str,
    same_tokens: tuple[int, int],
    same_tags: tuple[int, int],
) -> None:
    ours = read("conllu", data_root / "ud" / f"{treebank}.conllu")
    theirs = read("tagged", data_root / "udpos-xtreme" / f"dev-{language}.tsv")
    pairs = [
        (a.fields, b.fields)
        for a, b in zip(ours, theirs, strict=True)
        if a.fields["tokens"] == b.fields["tokens"]
    ]
    assert (len(pairs), len(theirs)) == same_tokens
    tags = [pair for a, b in pairs for pair in zip(a["tags"], b["tags"], strict=True)]
    assert (sum(a == b for a, b in tags), len(tags)) == same_tags


@pytest.mark.parametrize(
    ("code", "count"), [("deu", 1_000), ("swh", 390), ("tam", 307), ("tel", 234), ("tha", 548), ("jav", 205)]
)
def test_tatoeba(read: Read, data_root: Path, code: str, count: int) -> None:
    foreign, english = (data_root / "tatoeba" / f"tatoeba.{code}-eng.{side}" for side in (code, "eng"))
    rows = read("bitext", [foreign, english], query_index="1")
    assert len(rows) == count
    assert len({row.fields["target"] for row in rows}) == count


def test_xcopa(read: Read, data_root: Path) -> None:
    rows = read("jsonl", data_root / "xcopa/data/et/test.et.jsonl")
    assert len(rows) == 500
    assert [row.fields["question"] for row in rows].count("cause") == 250
