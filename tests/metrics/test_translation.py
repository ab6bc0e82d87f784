"""BLEU and chrF of answers against sacrebleu's own corpus scores."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import MissingExtraError
from harness.metrics import written
from harness.metrics.metric import MetricContext
from harness.metrics.written import bleu, bleu_from_counts, bleu_signature, chrf, chrf_from_counts

sacrebleu = pytest.importorskip("sacrebleu")

ANSWERS = ["the cat sat on the mat .", "twelve", "", "in the year 1998 near the river bank"]
REFERENCES = [
    ["the cat sat on the mat.", "a cat is sitting on the mat"],
    ["twelve", "12", "a dozen"],
    ["nothing at all"],
    ["in 1998 near the bank of the river"],
]
STREAMS = [[texts[rank] if rank < len(texts) else None for texts in REFERENCES] for rank in range(3)]
ENGLISH = MetricContext(language="en")


def _predictions(texts: list[str]) -> list[Any]:
    return [{"text": text, "start": -1, "end": -1, "score": 0.0} if text else None for text in texts]


def test_scores_are_those_of_sacrebleu() -> None:
    expected_bleu = sacrebleu.metrics.BLEU().corpus_score(ANSWERS, STREAMS).score
    expected_chrf = sacrebleu.metrics.CHRF().corpus_score(ANSWERS, STREAMS).score
    assert 10 < expected_bleu < 90
    assert bleu(_predictions(ANSWERS), REFERENCES, ENGLISH).value == pytest.approx(expected_bleu / 100)
    assert chrf(_predictions(ANSWERS), REFERENCES, ENGLISH).value == pytest.approx(expected_chrf / 100)


def test_statistics_of_a_part_give_the_score_of_the_part() -> None:
    for metric, from_counts, scorer in (
        (bleu, bleu_from_counts, sacrebleu.metrics.BLEU()),
        (chrf, chrf_from_counts, sacrebleu.metrics.CHRF()),
    ):
        counts = metric(_predictions(ANSWERS), REFERENCES, ENGLISH).counts
        assert counts is not None
        rows = [0, 3, 3]
        expected = scorer.corpus_score(
            [ANSWERS[row] for row in rows], [[stream[row] for row in rows] for stream in STREAMS]
        )
        assert from_counts(counts[rows].sum(axis=0)) == pytest.approx(expected.score / 100)


def test_chinese_is_split_into_characters_and_an_option_names_another_tokenizer() -> None:
    answers, gold = ["他住在北京市。", "一九九八年"], [["他住在北京。"], ["一九九八年"]]
    streams = [[texts[0] for texts in gold]]
    chinese = MetricContext(language="zh")
    expected = sacrebleu.metrics.BLEU(tokenize="zh").corpus_score(answers, streams).score / 100
    assert bleu(answers, gold, chinese).value == pytest.approx(expected)
    words = MetricContext(language="zh", options={"bleu_tokenizer": "none"})
    expected = sacrebleu.metrics.BLEU(tokenize="none").corpus_score(answers, streams).score / 100
    assert bleu(answers, gold, words).value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("codes", "tokenizer"),
    [
        ("zh zh-Hans zh-Hant zh-CN zh_TW zh-Hant-HK zh-HK yue yue-Hant wuu lzh nan hak gan vi-Hani", "zh"),
        ("th th-TH lo km my bo dz jv-Java ban-Bali shn bug-Bugi khb-Talu ii-Yiii", "char"),
        ("en en-GB de pt-BR sr sr-Latn hi hi-Latn zh-Latn ja-Latn ko-Latn nan-Latn jv vi ar xx", "13a"),
    ],
)
def test_every_language_has_the_tokenizer_of_its_writing(codes: str, tokenizer: str) -> None:
    gold = [["今天天氣很好，我們去公園散步。"], ["วันนี้อากาศดีมากเราไปเดินเล่นที่สวน"], ["We go, and walk."]]
    answers = ["今天天氣很好，我們去花園散步。", "วันนี้อากาศดีมากเราไปเดินเล่น", "We go, and talk."]
    scorer = sacrebleu.metrics.BLEU(tokenize=tokenizer)
    expected = scorer.corpus_score(answers, [[texts[0] for texts in gold]]).score / 100
    for code in codes.split():
        context = MetricContext(language=code)
        assert bleu(answers, gold, context).value == pytest.approx(expected), code
        assert f"|tok:{tokenizer}|" in bleu_signature(context), code
        assert (f"tokenizer for {code} " in bleu_signature(context)) == (tokenizer == "char"), code


@pytest.mark.parametrize("code", ["ja", "ja-JP", "ja-Hira", "ko", "ko-KR", "ko-Kore"])
def test_japanese_and_korean_are_scored_by_character_without_mecab(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = f"{code[:2]}-mecab"
    loaded: list[str] = []

    def unavailable(name: str) -> Any:
        loaded.append(name)
        if name == tokenizer:
            raise RuntimeError("MeCab is not installed")
        return load(name)

    load = sacrebleu.metrics.bleu._get_tokenizer
    monkeypatch.setattr(sacrebleu.metrics.bleu, "_get_tokenizer", unavailable)
    assert "|tok:char|" in bleu_signature(MetricContext(language=code))
    assert loaded == [tokenizer, "char"]


def test_bad_input_is_rejected() -> None:
    with pytest.raises(ValueError, match="Item 0: expected a list of at least one reference text, found 'x'"):
        chrf(["x"], ["x"], ENGLISH)
    with pytest.raises(ValueError, match="Item 0: expected an answer text, found 3"):
        bleu([{"text": 3}], [["x"]], ENGLISH)
    with pytest.raises(ValueError, match=r"sacrebleu has no tokenizer 'sumerian'.*bleu_tokenizer"):
        bleu(["x"], [["x"]], MetricContext(language="en", options={"bleu_tokenizer": "sumerian"}))


def test_without_sacrebleu_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "PACKAGE", "sacrebleu_that_is_not_there")
    with pytest.raises(MissingExtraError, match=r"pip install 'multilingual-harness\[metrics\]'"):
        chrf(["x"], [["x"]], ENGLISH)
