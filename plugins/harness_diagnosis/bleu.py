"""Sentence BLEU of two texts, as an attribute: how far an answer repeats its question, or a question its context.

BLEU (Papineni et al. 2002) over n-grams of one to four words in lower case, of as many orders as the first text has
words for, with the brevity penalty. Precisions of two words and more are smoothed by adding one to both counts (Lin
and Och 2004, equation 8; method 2 of Chen and Cherry 2014), so that it is 0 only where no word is shared. The paper
(XTREME-R, appendix K) does not say which smoothing it took; with this one, the edges that its Table 25 prints for
BLEU(question, context) split the English and the Hindi questions into nearly equal parts. For first texts of four
words or more it equals sacrebleu's ``sentence_score`` on these words with ``smooth_method='add-k'`` and
``smooth_value=1``; for shorter ones sacrebleu counts the orders that they do not have as wholly right.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from harness.data import FeatureContext, Items
from harness_diagnosis.length import answers, word_lists

Floats = npt.NDArray[np.float64]
ORDERS = 4


def sentence_bleu(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> Floats:
    """Return the BLEU of every hypothesis against its one reference, both lists of words: shape (n,), in [0, 1]."""
    joined: dict[int, str] = {}
    found = np.zeros(len(hypotheses))
    for index, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True)):
        text = joined.get(id(reference))
        if text is None:
            text = joined[id(reference)] = f" {' '.join(reference)} "
        found[index] = _bleu(hypothesis, reference, text)
    return found


def _bleu(hypothesis: Sequence[str], reference: Sequence[str], text: str) -> float:
    """Return one BLEU; `text` is the reference with spaces around every word."""
    present = [f" {word} " in text for word in hypothesis]
    if not any(present):
        return 0.0
    logarithms = 0.0
    orders = min(ORDERS, len(hypothesis))
    for order in range(1, orders + 1):
        # An n-gram that is there has its first n - 1 and its last words there too.
        if order > 1:
            present = [
                before and after and f" {' '.join(hypothesis[start : start + order])} " in text
                for start, (before, after) in enumerate(itertools.pairwise(present))
            ]
        correct = sum(present)
        if correct:
            correct = _clipped(hypothesis, reference, present, order)
        total = len(hypothesis) - order + 1
        smoothed = (correct + 1) / (total + 1) if order > 1 else correct / total
        logarithms += math.log(smoothed)
    brevity = min(0.0, 1 - len(reference) / len(hypothesis))
    return math.exp(brevity + logarithms / orders)


def _clipped(hypothesis: Sequence[str], reference: Sequence[str], present: Sequence[bool], order: int) -> int:
    """Return how many n-grams of the hypothesis are right, none more often than the reference has it."""
    grams = [tuple(hypothesis[start : start + order]) for start, there in enumerate(present) if there]
    if len(set(grams)) == len(grams):
        return len(grams)
    wanted = Counter(tuple(reference[start : start + order]) for start in range(len(reference) - order + 1))
    return sum(min(count, wanted[gram]) for gram, count in Counter(grams).items())


def _of(first: Callable[[Items], list[list[str]] | None], second: str) -> Callable[..., Floats | None]:
    def compute(items: Items, context: FeatureContext) -> Floats | None:
        hypotheses = first(items)
        references = word_lists(items, second, lambda: items.texts(second))
        return None if hypotheses is None or references is None else sentence_bleu(hypotheses, references)

    return compute


def _answer_words(items: Items) -> list[list[str]] | None:
    return word_lists(items, "answer of gold", lambda: answers(items))


def _question_words(items: Items) -> list[list[str]] | None:
    return word_lists(items, "question", lambda: items.texts("question"))


answer_question = _of(_answer_words, "question")
"""BLEU(answer, question)."""
question_context = _of(_question_words, "context")
"""BLEU(question, context)."""
