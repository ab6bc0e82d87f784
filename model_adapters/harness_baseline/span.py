"""The char-ngram span extractor: a logit for every candidate span of a context.

A small relative of the logistic-regression baseline of Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions
for Machine Comprehension of Text", section 5, without its parses: how well the surroundings of a span match
the question, how long it is, what its words look like, and which words the question has for that look. The
matches, lengths and looks carry over to other languages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from harness.data import SpanExample
from harness.models import SpanAnswer, SpanQuestion
from harness_baseline.linear import COLUMNS, Training, fit_linear, hash_features
from harness_baseline.state import Weights
from harness_baseline.text import Word, fold, is_punctuation, no_span, shape_of, split_words

_SAMPLED = 40
"""Wrong candidates next to each right one in training."""
_MOST_EXAMPLES = 20_000
"""Questions learnt from; of more, this many are drawn by the seed."""
_QUESTION_WORDS = 12
"""Words of the question that meet the look of the span."""
_LONGEST = 12
"""Words of the longest candidate; 97 % of the answers of SQuAD are no longer."""
_LONGEST_UNSPACED = 20
"""The same in characters, for scripts without spaces."""
_STEM = 5
_STEPS = 10
_ENDS = frozenset(".!?\u061f\u06d4\u0964\u0965\u1362\u3002\uff01\uff1f")
_EDGES = frozenset("%$€£¥°")
_CLASSES = {"A": 1, "a": 2, "c": 3, ".": 4, "$": 4}
"""Numbers of the classes of words by their shape; 0 are those with a digit."""

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def learn_spans(examples: Sequence[SpanExample], training: Training) -> Weights:
    """Return the fitted weights.

    Examples whose first answer is no candidate (it crosses sentences, or it is long) are not learnt from.
    """
    generator = np.random.default_rng(training.seed)
    if len(examples) > _MOST_EXAMPLES:
        drawn = np.sort(generator.permutation(len(examples))[:_MOST_EXAMPLES])
        examples = [examples[int(index)] for index in drawn]
    rows: list[Any] = []
    targets: list[int] = []
    for example in examples:
        passage = _read_passage(example.context)
        right = passage.candidate(example.answers[0].start, len(example.answers[0].text))
        if right is None:
            continue
        wrong = generator.permutation(len(passage.firsts))[:_SAMPLED]
        chosen = np.concatenate([[right], wrong[wrong != right]])
        rows.append(_Features(passage, example.question).rows(chosen))
        targets += [1] + [0] * (len(chosen) - 1)
    table = sparse.vstack(rows, format="csr") if rows else sparse.csr_array((0, COLUMNS))
    return fit_linear(table, targets, 1, training)


def extract_span(item: SpanQuestion, weights: Weights) -> SpanAnswer:
    """Return the best candidate of a context; of equal ones the shortest, then the first."""
    passage = _read_passage(item.context)
    if not len(passage.firsts):
        return no_span()
    scores = _Features(passage, item.question).scores(weights.coefficients[:, 0])
    best = int(scores.argmax())
    start, end = passage.words[passage.firsts[best]].start, passage.words[passage.lasts[best]].end
    return SpanAnswer(text=item.context[start:end], start=start, end=end, score=float(scores[best]))


class _Passage:
    """The words of a context as parallel arrays, and its candidates as arrays of first and last words.

    A candidate lies inside one sentence, and neither begins nor ends with a mark.
    """

    def __init__(self, context: str) -> None:
        self.words = split_words(context)
        self.stems = [_stem(word) for word in self.words]
        shapes = [shape_of(word.form) for word in self.words]
        self.classes = np.array([_class_of(shape) for shape in shapes], dtype=np.int64)
        self.sentences = _sentence_numbers(context, self.words)
        self.firsts, self.lasts = self._candidates()
        forms = [(fold(word.form), shape) for word, shape in zip(self.words, shapes, strict=True)]
        padded = [_OUTSIDE, *forms, _OUTSIDE]
        self.starts = hash_features(_edge("start", *pair) for pair in zip(forms, padded, strict=False))
        self.ends = hash_features(_edge("end", *pair) for pair in zip(forms, padded[2:], strict=True))

    def candidate(self, start: int, length: int) -> int | None:
        """Return the candidate with the words that a span touches."""
        inside = [
            index for index, word in enumerate(self.words) if word.end > start and word.start < start + length
        ]
        if not inside:
            return None
        matches = np.flatnonzero((self.firsts == inside[0]) & (self.lasts == inside[-1]))
        return int(matches[0]) if len(matches) else None

    def _candidates(self) -> tuple[Integers, Integers]:
        edge = (self.classes != _CLASSES["."]) | np.array(
            [word.form in _EDGES for word in self.words], dtype=bool
        )
        single = np.array([word.end - word.start == 1 for word in self.words], dtype=bool) & (
            self.classes == _CLASSES["c"]
        )
        longest = _LONGEST_UNSPACED if 2 * single.sum() > len(self.words) else _LONGEST
        lengths, firsts = np.indices((longest, len(self.words))).reshape(2, -1)
        lasts = np.minimum(firsts + lengths, len(self.words) - 1)
        valid = edge[firsts] & edge[lasts] & (self.sentences[firsts] == self.sentences[lasts])
        valid &= lasts == firsts + lengths
        return firsts[valid], lasts[valid]


@lru_cache(maxsize=64)
def _read_passage(context: str) -> _Passage:
    return _Passage(context)


class _Features:
    """The features of the candidates of one question: of the first word, the last word, the look and the matches."""

    def __init__(self, passage: _Passage, question: str) -> None:
        self._passage = passage
        words = [word for word in split_words(question) if not is_punctuation(word.form)]
        looks, self._look_of = np.unique(self._looks(), return_inverse=True)
        self._looks_rows = hash_features(
            [f"look {look}", *(f"look {look} {fold(word.form)}" for word in words[:_QUESTION_WORDS])]
            for look in looks.tolist()
        )
        self._match = _match_weights(passage, [_stem(word) for word in words])

    def rows(self, chosen: Integers) -> Any:
        """Return the features of the chosen candidates, shape (chosen, COLUMNS)."""
        passage = self._passage
        numbers = sparse.csr_array(self._numbers()[chosen])
        numbers.resize((len(chosen), COLUMNS))  # type: ignore[arg-type]
        edges = passage.starts[passage.firsts[chosen]] + passage.ends[passage.lasts[chosen]]
        return edges + self._looks_rows[self._look_of[chosen]] + numbers

    def scores(self, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the scores of all candidates, shape (candidates,)."""
        passage, numbers = self._passage, self._numbers()
        edges = (passage.starts @ weights)[passage.firsts] + (passage.ends @ weights)[passage.lasts]
        total: npt.NDArray[np.float32] = (
            edges + (self._looks_rows @ weights)[self._look_of] + numbers @ weights[: numbers.shape[1]]
        )
        return total

    def _looks(self) -> Integers:
        """Return the shape of each candidate: its length, its last class, and the classes of its words."""
        firsts, lasts = self._passage.firsts, self._passage.lasts
        look: Integers = np.minimum(lasts - firsts, 3) * 8 + self._passage.classes[lasts]
        for number in range(5):
            sums = np.concatenate([[0], np.cumsum(self._passage.classes == number)])
            look = look * 2 + (sums[lasts + 1] > sums[firsts])
        return look

    def _numbers(self) -> Floats:
        """Return how the words in and around each candidate match the question, in columns of indicators."""
        passage, match = self._passage, self._match
        firsts, lasts, count = passage.firsts, passage.lasts, len(match)
        sums = np.concatenate([[0.0], np.cumsum(match)])
        total = max(float(sums[-1]), 1e-9)
        inside = sums[lasts + 1] - sums[firsts]
        sentence = np.bincount(passage.sentences, weights=match)
        around = sentence[passage.sentences[firsts]] - inside
        best = max(float(sentence.max()), 1e-9)
        shares = [inside / best, around / best]
        for width in (3, 10):
            shares.append((sums[firsts] - sums[np.maximum(firsts - width, 0)]) / total)
            shares.append((sums[np.minimum(lasts + 1 + width, count)] - sums[lasts + 1]) / total)
        length = np.minimum(lasts - firsts, _STEPS)
        levels = [length, *(_level(share) for share in shares), _level(shares[1]) + 12 * (inside > 1e-9)]
        columns = [np.eye(24)[level] for level in levels]
        return np.hstack([*columns, (around >= best - 1e-6)[:, None]])


_OUTSIDE = ("\n", "\n")


def _edge(side: str, word: tuple[str, str], neighbour: tuple[str, str]) -> list[str]:
    names = (
        f"f={word[0]}",
        f"s={word[1]}",
        f"nf={neighbour[0]}",
        f"ns={neighbour[1]}",
        f"ss={word[1]} {neighbour[1]}",
    )
    return [f"{side} {name}" for name in names]


def _class_of(shape: str) -> int:
    return 0 if "0" in shape else _CLASSES[shape[0]]


def _stem(word: Word) -> str:
    """Return the first five characters of the folded word, a language-neutral replacement for stemming."""
    return fold(word.form)[:_STEM]


def _sentence_numbers(context: str, words: Sequence[Word]) -> Integers:
    """Return the sentence of each word; a full stop ends one only before white space or the end."""
    following = [context[word.end : word.end + 1] for word in words]
    ends = [
        word.form in _ENDS and (word.form != "." or not after or after.isspace())
        for word, after in zip(words, following, strict=True)
    ]
    return np.cumsum([False, *ends], dtype=np.int64)[:-1]


def _match_weights(passage: _Passage, question: Sequence[str]) -> Floats:
    """Return how much each word of the context says that it is about the question, shape (words,).

    A word that the question has weighs 1 / its number of occurrences in the context; one whose neighbour is
    also its neighbour in the question weighs 0.5 more.
    """
    stems, pairs = set(question), set(pairwise(question))
    counts = Counter(passage.stems)
    weights = np.array([1 / counts[stem] if stem in stems else 0.0 for stem in passage.stems])
    for index, pair in enumerate(pairwise(passage.stems)):
        if pair in pairs:
            weights[index : index + 2] += 0.5
    return weights


def _level(shares: Floats) -> Integers:
    """Return 0 for nothing and 1 to `_STEPS` + 1 for shares up to 1 and beyond."""
    return np.where(shares > 1e-9, 1 + np.floor(np.clip(shares, 0, 1) * _STEPS), 0).astype(np.int64)
