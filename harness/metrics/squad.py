"""F1 and exact match by the rule of SQuAD v1.1, which XQuAD and TyDi QA GoldP use for every language.

Tokens are separated by whitespace also in Chinese and Thai, where F1 is therefore close to exact match.

Source: Rajpurkar et al. (2016), evaluation script ``evaluate-v1.1.py``; google-research/xtreme
``third_party/evaluate_squad.py``.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

from harness.metrics.answer import bag_f1, best_over_references
from harness.metrics.answer import exact_match as equal_texts
from harness.metrics.metric import MetricContext, MetricResult

__all__ = ["exact_match", "f1", "normalise"]

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Return the text in lower case, without ASCII punctuation, English articles and extra whitespace.

    The order is the published one: punctuation goes before articles, so ``the.`` is an article and ``a-an``
    is the word ``aan``.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def f1(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return the mean over questions of the best token F1 over the gold texts, as a fraction.

    A prediction is a text or a mapping with the key ``text``, None for no answer; a reference is a list of
    gold texts. Raises `ValueError` when the two do not fit together.
    """
    return best_over_references(predictions, references, normalise, bag_f1)


def exact_match(
    predictions: Sequence[Any], references: Sequence[Sequence[str]], context: MetricContext
) -> MetricResult:
    """Return the share of questions whose normalised answer equals one of the normalised gold texts.

    Predictions and references are those of `f1`.
    """
    return best_over_references(predictions, references, normalise, equal_texts)
