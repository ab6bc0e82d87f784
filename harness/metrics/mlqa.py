"""F1 and exact match by the rule of MLQA v1, with punctuation, articles and tokens by language.

The language is that of the answer, hence of the context, not of the question.

Source: Lewis et al. (2020), facebookresearch/MLQA ``mlqa_evaluation_v1.py``.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from harness.errors import near_names
from harness.metrics.answer import AnswerScore, bag_f1, best_over_references
from harness.metrics.answer import exact_match as equal_texts
from harness.metrics.metric import MetricContext, MetricResult

__all__ = ["LANGUAGES", "exact_match", "f1", "mixed_segmentation", "normalise"]

# The published Arabic expression is '\sال^|ال'; '^' never matches after a character, so what remains is the
# article anywhere, inside words too. Hindi and Chinese have no articles.
_ARTICLES: Final[Mapping[str, re.Pattern[str] | None]] = {
    "en": re.compile(r"\b(a|an|the)\b"),
    "es": re.compile(r"\b(un|una|unos|unas|el|la|los|las)\b"),
    "hi": None,
    "vi": re.compile(r"\b(của|là|cái|chiếc|những)\b"),
    "de": re.compile(r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b"),
    "ar": re.compile("ال"),
    "zh": None,
}
LANGUAGES: Final = tuple(_ARTICLES)
"""The seven languages whose rules MLQA publishes."""


@cache
def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def mixed_segmentation(text: str) -> list[str]:
    """Return the tokens of Chinese text.

    Each character of U+4E00-U+9FA5 and each punctuation mark is a token; the text between them is split at
    whitespace.
    """
    tokens: list[str] = []
    run = ""
    for character in text:
        if "\u4e00" <= character <= "\u9fa5" or _is_punctuation(character):
            tokens += [*run.split(), character]
            run = ""
        else:
            run += character
    return tokens + run.split()


def normalise(text: str, language: str) -> str:
    """Return the tokens of the text joined by spaces: lower case, without Unicode punctuation and articles.

    Raises `ValueError` for a language other than `LANGUAGES`.
    """
    if language not in _ARTICLES:
        near = near_names(language, LANGUAGES)
        suggestion = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"MLQA has no answer rules for the language {language!r}; expected one of "
            f"{', '.join(LANGUAGES)}.{suggestion}"
        )
    text = "".join(character for character in text.lower() if not _is_punctuation(character))
    articles = _ARTICLES[language]
    if articles is not None:
        text = articles.sub(" ", text)
    return " ".join(mixed_segmentation(text) if language == "zh" else text.split())


def _compute(
    predictions: Sequence[Any],
    references: Sequence[Sequence[str]],
    context: MetricContext,
    score: AnswerScore,
) -> MetricResult:
    language = context.options.get("answer_language", context.language)
    normaliser: Callable[[str], str] = partial(normalise, language=language)
    return best_over_references(predictions, references, normaliser, score)


def f1(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return the mean over questions of the best token F1 over the gold texts, as a fraction.

    A prediction is a text or a mapping with the key ``text``, None for no answer; a reference is a list of
    gold texts. The language is the option ``answer_language`` of the context, or else the context's language.
    Raises `ValueError` when predictions and references do not fit together, or for a language without
    published rules.
    """
    return _compute(predictions, references, context, bag_f1)


def exact_match(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return the share of questions whose normalised answer equals one of the normalised gold texts.

    Predictions, references and language are those of `f1`.
    """
    return _compute(predictions, references, context, equal_texts)
