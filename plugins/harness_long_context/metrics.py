"""The official scoring of ONERULER: all numbers and no others, the word for "none", or all frequent words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Final

from harness import table_rows
from harness.metrics import Metric, MetricContext, MetricFunction, MetricResult, check_pairs, mean_of_items

LANGUAGES: Final = {row["code"]: row for row in table_rows("harness_long_context", "languages.tsv")}
"""The languages of ONERULER by code, with the columns of their file."""
SEPARATOR: Final = ", "
"""Between the numbers or words of a gold answer."""
Rule = Callable[[str, str, str], bool]
"""From an answer, its gold answer and the language to whether it is right."""


def _numbers(text: str) -> set[int] | None:
    """Return the numbers of a text, digits of all scripts included; None where it writes one in two ways."""
    # Single digits are dropped before equal numbers are, as 07 and 7 are not the same text.
    texts = {digits for digits in re.findall(r"\d+", text) if len(digits) > 1}
    numbers = {int(digits) for digits in texts if len(digits) < 1000}
    return numbers if len(numbers) == len(texts) else None


def _compact(text: str) -> str:
    return text.strip().lower().replace("\u200c", "").replace(" ", "")


def needle_is_right(answer: str, gold: str, language: str) -> bool:
    """Return whether an answer has all gold numbers and no others; without gold numbers, a word for "none".

    A word for "none" makes an answer to numbers wrong. Source: `compare_numbers` and `compare_none` of ONERULER's
    ``eval/evaluate.py``, which read the whole answer.
    """
    text = unicodedata.normalize("NFKC", answer)
    words = LANGUAGES[language]["none"].split("|")
    numbers = _numbers(gold)
    if not numbers:
        return any(_compact(word) in _compact(text) for word in words)
    if any(word in text or _compact(word) in text for word in words):
        return False
    return _numbers(text) == numbers


def words_are_right(answer: str, gold: str, language: str) -> bool:
    """Return whether all gold words occur in an answer, in any order; `is_correct_order` of ONERULER."""
    text = answer.strip().lower()
    return all(word.strip().lower() in text for word in gold.split(SEPARATOR))


def _accuracy(rule: Rule) -> MetricFunction:
    def compute(
        predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
    ) -> MetricResult:
        check_pairs(predictions, references)
        return mean_of_items(
            rule(_answer(prediction), reference[0], context.language)
            for prediction, reference in zip(predictions, references, strict=True)
        )

    return compute


def _answer(prediction: Any) -> str:
    """Return the whole answer: a model's text before its first line was read, or the bare text of a file; or none."""
    if prediction is None or isinstance(prediction, str):
        return prediction or ""
    return str(prediction.get("raw", prediction["text"]))


def _metric(name: str, rule: Rule, description: str) -> Metric:
    return Metric(
        name=name,
        compute=_accuracy(rule),
        kinds=frozenset({"span_extraction"}),
        description=description,
        source="Kim et al. 2025, ONERULER, section 3; eval/evaluate.py of mungg/OneRuler",
        by_item=True,
        languages=tuple(sorted(LANGUAGES)),
        methods=frozenset({"generate"}),
    )


METRICS: Final = (
    _metric(
        "needle_accuracy",
        needle_is_right,
        "share of answers with all numbers that are asked for and no others, or the word for none",
    ),
    _metric("frequent_word_accuracy", words_are_right, "share of answers with all ten frequent words"),
)
