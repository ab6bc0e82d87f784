"""The char-ngram span extractor: a conditional logit over the candidate spans of a context.

A small relative of the logistic-regression baseline of Rajpurkar et al. (2016), "SQuAD: 100,000+ Questions
for Machine Comprehension of Text", section 5, without its parses: how well the surroundings of a span match
the question, how long it is, what its words look like, and which words the question has for that look. The
matches, lengths and looks carry over to other languages. Candidates: `passage`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from harness import Head, SpanAnswer, SpanExample, SpanQuestion, TrainingSettings
from harness_baseline.example import question_of
from harness_baseline.hashing import Hashes, combine, hash_text
from harness_baseline.passage import NUMBER, Passage, read_passage, stem_of
from harness_baseline.regression import BUCKETS, Schedule, SparseRows, fit_conditional, group_starts
from harness_baseline.state import FitState
from harness_baseline.strategy import no_span
from harness_baseline.word import is_punctuation, split_words

__all__ = ["extract_spans", "learn_span_extractor"]

_SAMPLED = 40
"""Wrong candidates next to each right one in training."""
_MOST_EXAMPLES = 20_000
"""Questions learnt from; of more, this many are drawn by the seed."""
_QUESTION_WORDS = 12
"""Words of the question that meet the look of the span."""
_STEPS = 10

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def learn_span_extractor(
    examples: Sequence[SpanExample], settings: TrainingSettings, seed: int, start: FitState | None
) -> FitState:
    """Return the fitted weights.

    Examples whose first answer is no candidate (it crosses sentences, or it is long) are not learnt from.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    if len(examples) > _MOST_EXAMPLES:
        drawn = np.sort(generator.permutation(len(examples))[:_MOST_EXAMPLES])
        examples = [examples[int(index)] for index in drawn]
    tables: list[Integers] = []
    for example in examples:
        passage = read_passage(example.context)
        right = _right_candidate(passage, example)
        if right is None:
            continue
        wrong = generator.permutation(len(passage.firsts))[:_SAMPLED]
        chosen = np.concatenate([[right], wrong[wrong != right]]).astype(np.int64)
        tables.append(_Features(passage, question_of(example)).table(chosen))
    weights = np.zeros((BUCKETS, 1), dtype=np.float32)
    if start is not None and start.head is Head.SPAN_EXTRACTION:
        weights = start.arrays["weights"].copy()
    if tables:
        groups = group_starts([len(table) for table in tables])
        rows = SparseRows.of_table(np.concatenate(tables))
        schedule = Schedule.of_settings(settings, seed, batch=64, rate=0.05)
        fit_conditional(rows, groups, np.zeros(len(tables), dtype=np.int64), weights, schedule)
    return FitState(ref="char-ngram", head=Head.SPAN_EXTRACTION, seed=seed, arrays={"weights": weights})


def extract_spans(state: FitState, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
    """Return the best candidate of every context; of equal ones the shortest, then the first."""
    weights = state.arrays["weights"][:, 0]
    return [_best_span(item, weights) for item in items]


def _best_span(item: SpanQuestion, weights: npt.NDArray[np.float32]) -> SpanAnswer:
    passage = read_passage(item.context)
    if not len(passage.firsts):
        return no_span()
    scores = _Features(passage, item).scores(weights)
    best = int(scores.argmax())
    start = passage.words[int(passage.firsts[best])].start
    end = passage.words[int(passage.lasts[best])].end
    return SpanAnswer(text=item.context[start:end], start=start, end=end, score=float(scores[best]))


def _right_candidate(passage: Passage, example: SpanExample) -> int | None:
    answer = example.answers[0]
    inside = [
        index
        for index, word in enumerate(passage.words)
        if word.end > answer.start and word.start < answer.start + len(answer.text)
    ]
    if not inside:
        return None
    found = np.flatnonzero((passage.firsts == inside[0]) & (passage.lasts == inside[-1]))
    return int(found[0]) if len(found) else None


class _Features:
    """The features of the candidates of one question, in three tables that are added up.

    Features of the first word, of the last word, and of the whole span; all of them have the value 1.
    """

    def __init__(self, passage: Passage, item: SpanQuestion) -> None:
        self._passage = passage
        words = [word.form for word in split_words(item.question) if not is_punctuation(word.form)]
        self._question = [hash_text(word.casefold()) for word in words[:_QUESTION_WORDS]]
        self._question += [0] * (_QUESTION_WORDS - len(self._question))
        self._match = _match_weights(passage, [stem_of(word) for word in words])

    def table(self, chosen: Integers) -> Integers:
        """Return the buckets of the chosen candidates, shape (chosen, features)."""
        firsts, lasts = self._passage.firsts[chosen], self._passage.lasts[chosen]
        starts, ends = self._edges(-1)[firsts], self._edges(1)[lasts]
        return np.concatenate([starts, ends, self._spans(chosen)], axis=1)

    def scores(self, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the scores of all candidates, shape (candidates,)."""
        starts = weights[self._edges(-1)].sum(axis=1)[self._passage.firsts]
        ends = weights[self._edges(1)].sum(axis=1)[self._passage.lasts]
        spans = weights[self._spans(np.arange(len(self._passage.firsts)))].sum(axis=1)
        total: npt.NDArray[np.float32] = starts + ends + spans
        return total

    def _edges(self, side: int) -> Integers:
        """Return the buckets of every word as the start (side -1) or the end (side 1) of a span."""
        passage = self._passage
        outside = np.uint64(hash_text("outside"))
        next_form = np.roll(passage.forms, -side)
        next_shape = np.roll(passage.shapes, -side)
        border = -1 if side == 1 else 0
        next_form[border], next_shape[border] = outside, outside
        columns = [
            passage.forms,
            passage.shapes,
            next_form,
            next_shape,
            combine(passage.shapes, 1) ^ next_shape,
            *(_bucketed(self._window(side, width)) for width in (3, 10)),
        ]
        return _buckets(columns, block=side + 2)

    def _window(self, side: int, width: int) -> Floats:
        """Return the share of the matches in the `width` words before (side -1) or after every word."""
        sums = np.concatenate([[0.0], np.cumsum(self._match)])
        places = np.arange(len(self._match))
        if side == 1:
            window = sums[np.minimum(places + 1 + width, len(places))] - sums[places + 1]
        else:
            window = sums[places] - sums[np.maximum(places - width, 0)]
        share: Floats = window / max(float(self._match.sum()), 1e-9)
        return share

    def _spans(self, chosen: Integers) -> Integers:
        """Return the buckets of the spans as wholes, shape (chosen, features)."""
        passage = self._passage
        firsts, lasts = passage.firsts[chosen], passage.lasts[chosen]
        sums = np.concatenate([[0.0], np.cumsum(self._match)])
        inside = sums[lasts + 1] - sums[firsts]
        sentence = np.bincount(passage.sentences, weights=self._match)
        around = sentence[passage.sentences[firsts]] - inside
        best = max(float(sentence.max()), 1e-9)
        length = np.minimum(lasts - firsts, _STEPS).astype(np.uint64)
        look, near = self._looks(firsts, lasts), self._nearness()
        columns = [
            length,
            look,
            _bucketed(inside / best),
            _bucketed(around / best),
            (around >= best - 1e-6).astype(np.uint64),
            combine(_bucketed(around / best), 1) ^ _bucketed(inside / best),
            _bucketed(np.minimum(near[firsts, 0], near[lasts, 1])),
            *(combine(look, word) for word in self._question),
        ]
        return _buckets(columns, block=4)

    def _nearness(self) -> Floats:
        """Return 1 / distance to the nearest matched word to the left and to the right, shape (words, 2)."""
        matched = np.flatnonzero(self._match > 0.2)
        places = np.arange(len(self._match))
        near = np.zeros((len(places), 2))
        if len(matched):
            index = np.searchsorted(matched, places)
            left = places - matched[np.maximum(index - 1, 0)]
            right = (
                matched[np.minimum(np.searchsorted(matched, places, side="right"), len(matched) - 1)] - places
            )
            near[:, 0] = np.where(left > 0, 1 / np.maximum(left, 1), 0)
            near[:, 1] = np.where(right > 0, 1 / np.maximum(right, 1), 0)
        return near

    def _looks(self, firsts: Integers, lasts: Integers) -> Hashes:
        """Return what each span looks like: which classes of words it has, which is last, its length."""
        look: Integers = np.minimum(lasts - firsts, 3) * 8 + self._passage.classes[lasts]
        for number in range(NUMBER, NUMBER + 5):
            sums = np.concatenate([[0], np.cumsum(self._passage.classes == number)])
            look = look * 2 + (sums[lasts + 1] > sums[firsts])
        return look.astype(np.uint64)


def _match_weights(passage: Passage, question: Sequence[str]) -> Floats:
    """Return how much each word of the context says that it is about the question, shape (words,).

    A word that the question has weighs 1 / its number of occurrences in the context; one whose neighbour is
    also its neighbour in the question weighs 0.5 more.
    """
    wanted = set(question)
    pairs = set(pairwise(question))
    seen = Counter(passage.stems)
    weights = np.array([1 / seen[stem] if stem in wanted else 0.0 for stem in passage.stems])
    for place, pair in enumerate(pairwise(passage.stems)):
        if pair in pairs:
            weights[place : place + 2] += 0.5
    return weights


def _bucketed(shares: Floats) -> Hashes:
    """Return 0 for nothing and 1 to `_STEPS` + 1 for shares up to 1 and beyond."""
    return np.where(shares > 1e-9, 1 + np.floor(np.clip(shares, 0, 1) * _STEPS), 0).astype(np.uint64)


def _buckets(columns: Sequence[Hashes], block: int) -> Integers:
    hashed = [combine(column, block * 64 + number) for number, column in enumerate(columns)]
    return (np.stack(hashed, axis=1) % np.uint64(BUCKETS)).astype(np.int64)
