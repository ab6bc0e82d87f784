"""The char-ngram baseline: hashed character n-grams as vectors, and linear models of scikit-learn for every head."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from harness import TrainingError
from harness.data import ClassificationExample, MultipleChoiceExample, SpanExample, TaggedSentence
from harness.models import (
    Choice,
    FloatArray,
    Head,
    HeadSpec,
    SpanAnswer,
    SpanQuestion,
    TextInput,
    TrainingSettings,
)
from harness_baseline.description import BaselineOptions
from harness_baseline.fit import FitState, Weights, checked_examples, label_names, text_input_of
from harness_baseline.text import (
    Word,
    content_words,
    fold,
    is_punctuation,
    no_span,
    normalise,
    overlap_features,
    shape_of,
    size_bucket,
    split_words,
)

_COLUMNS = 1 << 18
"""Number of columns that features are hashed into."""

MOST_PASSES = 5
FEWEST_ROWS = 20_000
"""Rows that a fit sees, with repetition: a few dozen examples teach too little in a few passes."""

Integers = npt.NDArray[np.int64]
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
Floats = npt.NDArray[np.float64]
_OUTSIDE = ("\n", "\n")
_CHUNK = 1024
"""Texts embedded at a time, which bounds the memory."""
_TOKENS = 1 << 16
"""Tokens tagged at a time."""
_NGRAM_WEIGHT = 3.0**0.5
"""Length of the vector of n-grams, next to features with the value 1."""
_AFFIX = 4
_Word = tuple[tuple[str, str, str, str], list[str]]
_OUTSIDE_WORD: _Word = (("\n", "\n", "\n", "\n"), [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Settings that decide a fit besides its rows.

    Of the training settings, the epochs are used: rounded up, and held between 1 and `MOST_PASSES`, because these
    models have converged by then. Learning rate, batch size and number of steps are for neural networks.
    """

    settings: TrainingSettings
    seed: int
    start: Weights | None = None
    """The weights of an earlier training stage."""

    def passes(self, rows: int) -> int:
        """Return how often the rows are visited."""
        epochs = min(max(math.ceil(self.settings.epochs), 1), MOST_PASSES)
        return max(epochs, min(-(-FEWEST_ROWS // rows), 100))


def _hash_features(rows: Iterable[Sequence[str]]) -> Any:
    """Return the sparse matrix of shape (rows, COLUMNS) that counts the named features of every row."""
    rows = list(rows)
    if not rows:
        return sparse.csr_array((0, _COLUMNS), dtype=np.float32)
    hasher = FeatureHasher(_COLUMNS, input_type="string", alternate_sign=False, dtype=np.float32)
    return hasher.transform(rows)


def _fit_linear(rows: Any, targets: Sequence[int] | Integers, outputs: int, training: Training) -> Weights:
    """Return the weights of a logit for each of `outputs` targets against the others, or of target 1 where it is 1.

    Raises `TrainingError` where a weight is not finite.
    """
    classes = np.arange(max(outputs, 2))
    # A row without features for every target lets scikit-learn fit one that the data do not have.
    rows = sparse.vstack([rows, sparse.csr_array((len(classes), _COLUMNS), dtype=np.float32)], format="csr")
    targets = np.concatenate([np.asarray(targets, dtype=np.int64), classes])
    model = SGDClassifier(
        loss="log_loss",
        alpha=1e-5,
        learning_rate="constant",
        eta0=0.05,
        average=True,
        max_iter=training.passes(len(targets)),
        tol=None,
        random_state=training.seed,
    )
    if training.start is None:
        model.fit(rows, targets)
    else:
        start = [_one_if_two(weight) for weight in (training.start.coefficients.T, training.start.intercepts)]
        model.fit(rows, targets, coef_init=start[0].astype(np.float64), intercept_init=start[1])
    coefficients, intercepts = model.coef_.T, model.intercept_
    if outputs == 2:  # scikit-learn fits one logit, that of the second label against the first
        coefficients, intercepts = (
            np.hstack([-coefficients, coefficients]) / 2,
            np.outer([-0.5, 0.5], intercepts),
        )
    weights = Weights(
        coefficients=coefficients.astype(np.float32), intercepts=intercepts.reshape(-1).astype(np.float32)
    )
    if not (np.isfinite(weights.coefficients).all() and np.isfinite(weights.intercepts).all()):
        raise TrainingError("The training of the baseline diverged: a weight is not finite.")
    return weights


def _one_if_two(weights: FloatArray) -> FloatArray:
    """Return the difference of two outputs as one output, and other weights as they are."""
    return weights[1:] - weights[:1] if len(weights) == 2 else weights


def _score(rows: Any, weights: Weights) -> FloatArray:
    """Return the logits of shape (rows, outputs)."""
    logits: FloatArray = np.asarray(rows @ weights.coefficients + weights.intercepts, dtype=np.float32)
    return logits


def _learn_spans(examples: Sequence[SpanExample], training: Training) -> Weights:
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
    table = sparse.vstack(rows, format="csr") if rows else sparse.csr_array((0, _COLUMNS))
    return _fit_linear(table, targets, 1, training)


def _extract_span(item: SpanQuestion, weights: Weights) -> SpanAnswer:
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
        self.starts = _hash_features(_edge("start", *pair) for pair in zip(forms, padded, strict=False))
        self.ends = _hash_features(_edge("end", *pair) for pair in zip(forms, padded[2:], strict=True))

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
        self._looks_rows = _hash_features(
            [f"look {look}", *(f"look {look} {fold(word.form)}" for word in words[:_QUESTION_WORDS])]
            for look in looks.tolist()
        )
        self._match = _match_weights(passage, [_stem(word) for word in words])

    def rows(self, chosen: Integers) -> Any:
        """Return the features of the chosen candidates, shape (chosen, COLUMNS)."""
        passage = self._passage
        numbers = sparse.csr_array(self._numbers()[chosen])
        numbers.resize((len(chosen), _COLUMNS))  # type: ignore[arg-type]
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


class CharNgram:
    """Embeds by counting n-grams; learns a linear model for every head but the dual encoder, which it leaves as is.

    Classification: the words and n-grams of the text, or, of a pair, those of the second text with the buckets of its
    overlap with the first; close to the lexicalised classifier of Bowman et al. (2015), "A large annotated corpus for
    learning natural language inference", section 3.2. Overlap carries over to languages without training data, words
    and n-grams as far as the vocabularies share strings. Multiple choice: the same for each choice and its context.
    """

    def __init__(self, options: BaselineOptions) -> None:
        self._dimension = options.dimension
        self._ngrams = options.ngrams

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return the signed hashed counts of all n-grams of 1 to `ngrams` characters as unit rows.

        An n-gram counts by its length, because long ones are rarer and say more; the square root of each
        coordinate keeps frequent ones from drowning the rest. Coordinates that cancel out to a zero vector
        give the first unit vector.
        """
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        for begin in range(0, len(texts), _CHUNK):
            chunk = texts[begin : begin + _CHUNK]
            counts = sum(
                length * _count_ngrams(chunk, (length, length), self._dimension)
                for length in range(1, self._ngrams + 1)
            ).toarray()
            rows = np.sign(counts) * np.sqrt(np.abs(counts))
            rows[~rows.any(axis=1), 0] = 1.0
            vectors[begin : begin + _CHUNK] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return vectors

    def learn(
        self,
        train: Sequence[Any],
        spec: HeadSpec,
        settings: TrainingSettings,
        seed: int,
        start: FitState | None,
    ) -> FitState:
        """Return the fitted head; training continues from `start` where it has the same head and labels."""
        examples = checked_examples(train, spec)
        labels = label_names(examples, spec)
        earlier = start.linear if start and (start.head, start.labels) == (spec.head, labels) else None
        training = Training(settings=settings, seed=seed, start=earlier)
        weights: Weights | None = None
        match spec.head:
            case Head.CLASSIFICATION:
                weights = self._learn_labels(examples, spec, labels, training)
            case Head.MULTIPLE_CHOICE:
                weights = self._learn_choices(examples, training)
            case Head.TAGGING:
                weights = _learn_tags(examples, labels, training)
            case Head.SPAN_EXTRACTION:
                weights = _learn_spans(examples, training)
        return FitState.of(weights, ref="char-ngram", head=spec.head, labels=labels, seed=seed)

    def classify(self, state: FitState, inputs: Sequence[TextInput]) -> FloatArray:
        """Return the logits of the state's labels."""
        return _score(self._text_rows(inputs), _weights(state))

    def choose(self, state: FitState, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return one score per choice."""
        scores = _score(self._choice_rows(items), _weights(state))[:, 0].tolist()
        ends = accumulate((len(item.choices) for item in items), initial=0)
        return [tuple(scores[begin:end]) for begin, end in pairwise(ends)]

    def tag(self, state: FitState, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the likeliest tag of every token."""
        names = list(token_features(sentences))
        best: list[int] = []
        for begin in range(0, len(names), _TOKENS):
            best += (
                _score(_hash_features(names[begin : begin + _TOKENS]), _weights(state))
                .argmax(axis=1)
                .tolist()
            )
        tags = iter(best)
        return [[state.labels[next(tags)] for _ in sentence] for sentence in sentences]

    def extract_spans(self, state: FitState, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        """Return the best candidate span of every context."""
        return [_extract_span(item, _weights(state)) for item in items]

    def _learn_labels(
        self,
        examples: Sequence[ClassificationExample],
        spec: HeadSpec,
        labels: Sequence[str],
        training: Training,
    ) -> Weights:
        index = {label: position for position, label in enumerate(labels)}
        rows = self._text_rows([text_input_of(example, spec) for example in examples])
        return _fit_linear(rows, [index[example.label or ""] for example in examples], len(labels), training)

    def _learn_choices(self, examples: Sequence[MultipleChoiceExample], training: Training) -> Weights:
        rows = self._choice_rows([Choice(context=item.context, choices=item.choices) for item in examples])
        right = [int(index == item.label) for item in examples for index in range(len(item.choices))]
        return _fit_linear(rows, right, 1, training)

    def _text_rows(self, items: Sequence[TextInput]) -> Any:
        return self._rows(
            [_text_features(item) for item in items], [item.text_pair or item.text for item in items]
        )

    def _choice_rows(self, items: Sequence[Choice]) -> Any:
        names = [_choice_features(item, index) for item in items for index in range(len(item.choices))]
        return self._rows(names, [choice for item in items for choice in item.choices])

    def _rows(self, names: Sequence[Sequence[str]], texts: Sequence[str]) -> Any:
        """Return the rows of named features and the n-grams of texts, of 2 characters and more."""
        if not texts:
            return _hash_features([])
        lengths = (min(2, self._ngrams), self._ngrams)
        return _hash_features(names) + _NGRAM_WEIGHT * _count_ngrams(
            texts, lengths, _COLUMNS, binary=True, norm="l2"
        )


def _weights(state: FitState) -> Weights:
    assert state.linear is not None
    return state.linear


def _count_ngrams(
    texts: Sequence[str],
    lengths: tuple[int, int],
    columns: int,
    *,
    binary: bool = False,
    norm: str | None = None,
) -> Any:
    return HashingVectorizer(
        analyzer="char",
        preprocessor=normalise,
        ngram_range=lengths,
        n_features=columns,
        binary=binary,
        norm=norm,
        alternate_sign=not binary,
        dtype=np.float32,
    ).transform(texts)


def _text_features(item: TextInput) -> list[str]:
    if item.text_pair is None:
        return [f"word {word}" for word in sorted(set(content_words(item.text)))]
    new = set(content_words(item.text_pair)) - set(content_words(item.text))
    return [f"new {word}" for word in sorted(new)] + overlap_features(item.text, item.text_pair)


def _choice_features(item: Choice, index: int) -> list[str]:
    words = content_words(item.choices[index])
    lengths = [len(content_words(choice)) for choice in item.choices[:index] + item.choices[index + 1 :]]
    names = [f"length {size_bucket(len(words))}", f"longest {len(words) > max(lengths, default=0)}"]
    names += [f"word {word}" for word in sorted(set(words))]
    return names + overlap_features(item.context, item.choices[index])


def _learn_tags(
    examples: Sequence[TaggedSentence], labels: Sequence[str], training: Training
) -> Weights | None:
    index = {tag: position for position, tag in enumerate(labels)}
    targets = [index[tag] for example in examples for tag in example.tags or ()]
    if not targets:
        return None
    rows = _hash_features(token_features([example.tokens for example in examples]))
    return _fit_linear(rows, targets, len(labels), training)


def token_features(sentences: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the names of the features of every token of every sentence."""
    for sentence in sentences:
        words = [
            _OUTSIDE_WORD,
            _OUTSIDE_WORD,
            *map(_word_features, sentence),
            _OUTSIDE_WORD,
            _OUTSIDE_WORD,
        ]
        for index in range(2, len(words) - 2):
            (before2, _), (before, _), (word, _), (after, _), (after2, _) = words[index - 2 : index + 3]
            yield words[index][1] + [
                f"f-1={before[0]}",
                f"f+1={after[0]}",
                f"f-2={before2[0]}",
                f"f+2={after2[0]}",
                f"e-1={before[2]}",
                f"e+1={after[2]}",
                f"s-1,0={before[1]} {word[1]}",
                f"s0,1={word[1]} {after[1]}",
                f"f-1,0={before[0]} {word[0]}",
                f"f0,1={word[0]} {after[0]}",
                f"f-1,1={before[0]} {after[0]}",
                f"e-1,0={before[3]} {word[3]}",
            ]


@lru_cache(maxsize=1 << 16)
def _word_features(form: str) -> _Word:
    """Return form, shape and the last three and two characters, and the names of the features of the word itself."""
    folded, shape = fold(form), shape_of(form)
    names = [f"f={folded}", f"s={shape}"]
    for length in range(1, _AFFIX + 1):
        names += [f"p{length}={folded[:length]}", f"e{length}={folded[-length:]}"]
    return (folded, shape, folded[-3:], folded[-2:]), names
