"""F1 and exact match of answers to questions, by the rules of SQuAD v1.1, MLQA v1 and MKQA.

All three take the best score over the gold texts of a question (``metric_max_over_ground_truths``) and differ in how a
text is normalised:

- SQuAD v1.1, which XQuAD and TyDi QA GoldP use for every language: ASCII punctuation and English articles go, tokens
  are separated by whitespace also in Chinese and Thai, where F1 is therefore close to exact match. Source: Rajpurkar et
  al. (2016), evaluation script ``evaluate-v1.1.py``; google-research/xtreme ``third_party/evaluate_squad.py``.
- MLQA v1: punctuation, articles and tokens by language, which is that of the answer, hence of the context, not of the
  question. Source: Lewis et al. (2020), facebookresearch/MLQA ``mlqa_evaluation_v1.py``.
- MKQA: ASCII punctuation, articles and characters or words by language. Source: Longpre et al. (2021), apple/ml-mkqa
  ``mkqa_eval_util.py`` at 94ed242. Its codes ``zh_cn``, ``zh_hk`` and ``zh_tw`` are ``zh``, ``zh-HK`` and ``zh-Hant``
  here.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from harness.errors import near_names
from harness.metrics.metric import MetricContext, MetricFunction, answer_text, item_metric, reference_texts
from harness.table import table_rows

_WITHOUT_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_ENGLISH_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_RULES: Final = table_rows("harness.metrics", "articles.tsv")
"""Regular expressions of the articles that both scripts remove; ``-`` for a language of MLQA without any.

The published Arabic expression is '\\sال^|ال'; '^' never matches after a character, so what remains is the article
anywhere, inside words too. As MKQA publishes them, French and Italian articles have no border behind them, so that
"demain" loses "de"; apostrophes are gone when they are looked for.
"""
_MLQA_ARTICLES: Final = {row["language"]: row["mlqa"] for row in _RULES if row["mlqa"]}
_MKQA_ARTICLES: Final = {row["language"]: row["mkqa"] for row in _RULES if row["mkqa"]}
MLQA_LANGUAGES: Final = tuple(_MLQA_ARTICLES)
"""The seven languages whose rules MLQA publishes."""
_MKQA_BY_CHARACTER: Final = frozenset({"zh", "zh-HK", "zh-Hant", "ja", "th", "km"})
MKQA_LANGUAGES: Final = tuple(
    sorted(
        {*_MKQA_ARTICLES, *_MKQA_BY_CHARACTER, "he", "ko", "ms", "pl", "ru", "tr"}
    )  # the last six have no rule
)
"""The 26 languages of MKQA."""


def normalise_squad(text: str) -> str:
    """Return the text in lower case, without ASCII punctuation, English articles and extra whitespace.

    The order is the published one: punctuation goes before articles, so ``the.`` is an article and ``a-an``
    is the word ``aan``.
    """
    return " ".join(_ENGLISH_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


@cache
def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def mixed_segmentation(text: str) -> list[str]:
    """Return the tokens of Chinese text as MLQA has them.

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


def normalise_mlqa(text: str, language: str) -> str:
    """Return the tokens of the text joined by spaces: lower case, without Unicode punctuation and articles.

    Raises `ValueError` for a language other than `MLQA_LANGUAGES`.
    """
    if language not in _MLQA_ARTICLES:
        near = near_names(language, MLQA_LANGUAGES)
        suggestion = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"MLQA has no answer rules for the language {language!r}; expected one of "
            f"{', '.join(MLQA_LANGUAGES)}.{suggestion}"
        )
    text = "".join(character for character in text.lower() if not _is_punctuation(character))
    if _MLQA_ARTICLES[language] != "-":
        text = re.sub(_MLQA_ARTICLES[language], " ", text)
    return " ".join(mixed_segmentation(text) if language == "zh" else text.split())


def normalise_mkqa(text: str, language: str) -> str:
    """Return the tokens of the text joined by spaces: lower case, without ASCII punctuation and articles.

    Raises `ValueError` for a language other than `MKQA_LANGUAGES`.
    """
    if language not in MKQA_LANGUAGES:
        raise ValueError(
            f"MKQA has no answer rules for the language {language!r}; expected one of {', '.join(MKQA_LANGUAGES)}."
        )
    text = text.lower().translate(_WITHOUT_PUNCTUATION)
    if language in _MKQA_ARTICLES:
        text = re.sub(_MKQA_ARTICLES[language], " ", text)
    words = text.split()
    return " ".join("".join(words) if language in _MKQA_BY_CHARACTER else words)


def _bag_f1(prediction: str, reference: str) -> float:
    """Return the F1 of the two bags of tokens; 0 without overlap, so also where both texts are empty.

    Source: ``f1_score`` in the SQuAD v1.1 and MLQA v1 evaluation scripts (identical in both).
    """
    predicted, gold = prediction.split(), reference.split()
    overlap = sum((Counter(predicted) & Counter(gold)).values())
    if overlap == 0:
        return 0.0
    precision, recall = overlap / len(predicted), overlap / len(gold)
    return 2 * precision * recall / (precision + recall)


def _mkqa_f1(prediction: str, reference: str) -> float:
    """Return the F1 of the two bags of tokens; two texts of which nothing is left are equal."""
    return _bag_f1(prediction, reference) if prediction and reference else _equal(prediction, reference)


def _equal(prediction: str, reference: str) -> float:
    return float(prediction == reference)


def _best_over_references(
    normalise: Callable[[str, MetricContext], str], score: Callable[[str, str], float]
) -> MetricFunction:
    """Return the mean over questions of the best score of the normalised answer over the question's gold texts."""

    def best(prediction: Any, reference: Any, index: int, context: MetricContext) -> float:
        texts, answer = reference_texts(reference, index), answer_text(prediction, index)
        if answer is None:
            return 0.0
        normalised = normalise(answer, context)
        return max(score(normalised, normalise(text, context)) for text in texts)

    return item_metric(best)


def _by_squad(text: str, context: MetricContext) -> str:
    return normalise_squad(text)


def _by_mlqa(text: str, context: MetricContext) -> str:
    return normalise_mlqa(text, context.options.get("answer_language", context.language))


def _by_mkqa(text: str, context: MetricContext) -> str:
    return normalise_mkqa(text, context.language)


squad_f1 = _best_over_references(_by_squad, _bag_f1)
"""The mean over questions of the best token F1 over the gold texts, as a fraction.

A prediction is a text or a mapping with the key ``text``, None for no answer; a reference is a list of gold texts.
Raises `ValueError` when the two do not fit together.
"""
squad_exact_match = _best_over_references(_by_squad, _equal)
"""The share of questions whose normalised answer equals one of the normalised gold texts; otherwise as `squad_f1`."""
mlqa_f1 = _best_over_references(_by_mlqa, _bag_f1)
"""As `squad_f1`, with the rules of the option ``answer_language``, or else of the context's language.

Raises `ValueError` for a language without published rules.
"""
mlqa_exact_match = _best_over_references(_by_mlqa, _equal)
"""As `squad_exact_match`, with the rules of `mlqa_f1`."""
mkqa_f1 = _best_over_references(_by_mkqa, _mkqa_f1)
"""As `squad_f1` over the answers and their aliases, with the rules of the context's language."""
mkqa_exact_match = _best_over_references(_by_mkqa, _equal)
"""As `squad_exact_match` over the answers and their aliases, with the rules of `mkqa_f1`."""
