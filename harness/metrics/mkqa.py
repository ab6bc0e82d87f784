"""F1 and exact match by the rule of MKQA: ASCII punctuation, articles and characters or words by language.

Source: Longpre et al. (2021), apple/ml-mkqa ``mkqa_eval_util.py`` at 94ed242. Its codes ``zh_cn``, ``zh_hk`` and
``zh_tw`` are ``zh``, ``zh-HK`` and ``zh-Hant`` here.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from harness.metrics.answer import AnswerScore, bag_f1, best_over_references
from harness.metrics.answer import exact_match as equal_texts
from harness.metrics.metric import MetricContext, MetricResult

__all__ = ["LANGUAGES", "exact_match", "f1", "normalise"]

# As published: French and Italian articles have no border behind them, so that "demain" loses "de"; apostrophes are
# gone when they are looked for. The published Arabic '\sال^|ال' can only match its second half.
_ARTICLES: Final[Mapping[str, re.Pattern[str]]] = {
    "ar": re.compile("ال"),
    "da": re.compile(r"\b(en|et)\b"),
    "de": re.compile(r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b"),
    "en": re.compile(r"\b(a|an|the)\b"),
    "es": re.compile(r"\b(un|una|unos|unas|el|la|los|las)\b"),
    "fi": re.compile(r"\b(se|yks|yksi)\b"),
    "fr": re.compile(r"\b(le|la|l'|les|du|de|d'|des|un|une|des)"),
    "hu": re.compile(r"\b(a|az|egy)\b"),
    "it": re.compile(r"\b(il|lo|la|l'|i|gli|le|del|dello|della|dell'|dei|degli|degl'|delle|un'|uno|una|un)"),
    "nl": re.compile(r"\b(de|het|een|des|der|den)\b"),
    "no": re.compile(r"\b(en|et|ei)\b"),
    "pt": re.compile(r"\b(o|a|os|as|um|uma|uns|umas)\b"),
    "sv": re.compile(r"\b(en|ett)\b"),
    "vi": re.compile(r"\b(của|là|cái|chiếc|những)\b"),
}
_BY_CHARACTER: Final = frozenset({"zh", "zh-HK", "zh-Hant", "ja", "th", "km"})
LANGUAGES: Final = tuple(
    sorted({*_ARTICLES, *_BY_CHARACTER, "he", "ko", "ms", "pl", "ru", "tr"})  # the last six have no rule
)
"""The 26 languages of MKQA."""
_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)


def normalise(text: str, language: str) -> str:
    """Return the tokens of the text joined by spaces: lower case, without ASCII punctuation and articles.

    Raises `ValueError` for a language other than `LANGUAGES`.
    """
    if language not in LANGUAGES:
        raise ValueError(
            f"MKQA has no answer rules for the language {language!r}; expected one of {', '.join(LANGUAGES)}."
        )
    text = text.lower().translate(_PUNCTUATION)
    if language in _ARTICLES:
        text = _ARTICLES[language].sub(" ", text)
    words = text.split()
    return " ".join("".join(words) if language in _BY_CHARACTER else words)


def _bag_f1(prediction: str, reference: str) -> float:
    return bag_f1(prediction, reference) if prediction and reference else equal_texts(prediction, reference)


def _compute(
    predictions: Sequence[Any],
    references: Sequence[Sequence[str]],
    context: MetricContext,
    score: AnswerScore,
) -> MetricResult:
    return best_over_references(predictions, references, partial(normalise, language=context.language), score)


def f1(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return the mean over questions of the best token F1 over the answers and their aliases, as a fraction.

    Two texts of which nothing is left are equal. Predictions and references are those of `harness.metrics.mlqa.f1`;
    raises `ValueError` as it does.
    """
    return _compute(predictions, references, context, _bag_f1)


def exact_match(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return the share of questions whose normalised answer equals a normalised answer or alias, as `f1` does."""
    return _compute(predictions, references, context, equal_texts)
