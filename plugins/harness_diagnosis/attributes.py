"""Attributes of items: lengths, shared words, scripts, question words, BLEU, labels, languages, spans of sentences."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from harness import table_rows
from harness.analysis import spans_of
from harness.data import FeatureContext, Items, Spans
from harness.languages import SCRIPTS, character_counts, script_counts, text_scripts, word_counts, words
from harness.statistics import Floats, Integers

Compute = Callable[[Items, FeatureContext], Floats | None]
Value = TypeVar("Value")
UNKNOWN = "not known"
"""The type of a question with no English translation in the run and no word of ``question_words.tsv``."""
ORDERS = 4
Names = Sequence[str | None]
_RESOURCES: Final = ((1.0, "high"), (0.1, "medium"), (0.0, "low"))
"""The least number of Wikipedia articles, in millions, for each class."""
_OUTSIDE = "O"


def length(name: str) -> Compute:
    """Return a function that counts the words of a field."""
    return lambda items, _: items.word_counts(name)


def input_length(number: int) -> Compute:
    """Return a function that counts the words of the first (0) or second (1) text of a pair, in spec order."""
    return lambda items, _: (
        items.word_counts(items.input_names[number]) if number < len(items.input_names) else None
    )


def ratio(part: Compute, whole: Compute) -> Compute:
    """Return a function that divides one count by another; NaN where the other is 0."""

    def compute(items: Items, context: FeatureContext) -> Floats | None:
        above, below = part(items, context), whole(items, context)
        if above is None or below is None:
            return None
        return _quotient(above, below)

    return compute


def _quotient(above: Floats, below: Floats | Integers) -> Floats:
    """Return one count divided by another; NaN where the other is 0."""
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=below != 0))


def answers(items: Items) -> list[str]:
    """Return the first gold answer of every question, as ExplainaBoard takes it."""
    found: list[str] = items.once("answers", lambda: [gold[0] for gold in items.references])
    return found


def answer_length(items: Items, context: FeatureContext) -> Floats | None:
    """Return the number of words of the first gold answer."""
    found: Floats = items.once(
        ("words", "answer of gold"), lambda: word_counts(answers(items)).astype(np.float64)
    )
    return found


def choice_lengths(items: Items, context: FeatureContext) -> Floats | None:
    """Return the mean number of words of the choices of every item."""
    choices = [fields.get("choices") for fields in items.fields]
    if any(not isinstance(own, list) or not own for own in choices):
        return None
    sizes: Any = np.fromiter((len(own or ()) for own in choices), np.int64, len(choices))
    counts = word_counts([text for own in choices for text in own or ()])
    sums = np.bincount(np.repeat(np.arange(len(choices)), sizes), weights=counts, minlength=len(choices))
    return np.asarray(sums / sizes)


def _of_distinct(texts: Sequence[str], compute: Callable[[list[str]], Iterable[Value]]) -> list[Value]:
    """Return the values of all texts, each distinct one computed once."""
    distinct = list(dict.fromkeys(texts))
    values = dict(zip(distinct, compute(distinct), strict=True))
    return [values[text] for text in texts]


def word_lists(items: Items, key: str, texts: Callable[[], Sequence[str] | None]) -> list[list[str]] | None:
    """Return the words of texts in lower case, split once for all features; None without texts."""

    def split() -> list[list[str]] | None:
        every = texts()
        if every is None:
            return None
        return _of_distinct(every, lambda distinct: words([text.lower() for text in distinct]))

    lists: list[list[str]] | None = items.once(("word lists", key), split)
    return lists


def field_words(items: Items, name: str) -> list[list[str]] | None:
    """Return the words of a field as `word_lists` does."""
    return word_lists(items, name, lambda: items.texts(name))


def overlap(items: Items, context: FeatureContext) -> Floats | None:
    """Return the Jaccard index of the sets of words, in lower case, of the two texts of every pair; 0 for no words."""
    if len(items.input_names) < 2:
        return None
    first, second = (field_words(items, name) for name in items.input_names[:2])
    if first is None or second is None:
        return None
    pairs = ((set(one), set(other)) for one, other in zip(first, second, strict=True))
    shares = (len(one & other) / (len(one | other) or 1) for one, other in pairs)
    return np.fromiter(shares, np.float64, len(first))


def item_texts(items: Items) -> list[list[str]]:
    """Return the texts that the items are of, one list a side: premise and hypothesis; question and context."""
    if items.kind == "token_tagging":
        return [[" ".join(fields.get("tokens") or ()) for fields in items.fields]]
    names = items.input_names if items.kind == "sequence_classification" else ()
    if not names:
        names = ("question", "context", "query", "text") if items.kind != "multiple_choice" else ("context",)
    found = [items.texts(name) for name in names]
    return [texts for texts in found if texts is not None]


def _sides(items: Items) -> list[list[str | None]]:
    sides: list[list[str | None]] = items.once(
        "scripts", lambda: [_of_distinct(texts, text_scripts) for texts in item_texts(items)]
    )
    return sides


def item_script(items: Items, context: FeatureContext) -> list[str | None] | None:
    """Return the scripts of the texts of every item: ``Deva``, or ``Deva+Latn`` where its sides differ."""
    sides = _sides(items)
    if not sides:
        return None
    rows = (sorted({code for code in row if code is not None}) for row in zip(*sides, strict=True))
    return ["+".join(row) or None for row in rows]


def latin_side(items: Items, context: FeatureContext) -> list[str] | None:
    """Return ``yes`` where one of the texts has letters and all are Latin, though its language is not written so.

    None for languages of Latin script, and for kinds whose items are no pair of texts.
    """
    if items.language.script in {"Latn", ""} or items.kind != "sequence_classification":
        return None
    latin = np.zeros(len(items), dtype=np.bool_)
    for texts in item_texts(items):
        counts = script_counts(texts)
        total = counts.sum(axis=1)
        latin |= (total > 0) & (counts[:, SCRIPTS.index("Latn")] == total)
    return ["yes" if own else "no" for own in latin.tolist()]


def _joined(items: Items) -> list[str]:
    found: list[str] = items.once(
        "joined texts", lambda: [" ".join(row) for row in zip(*item_texts(items), strict=True)]
    )
    return found


def fertility(items: Items, context: FeatureContext) -> Floats | None:
    """Return the tokens of the run's model a word, over the texts of every item (Rust et al. 2021, section 3.2).

    None where the model is no folder with a ``tokenizer.json``, or the package tokenizers is not installed.
    """
    file = None if context.model is None else context.model / "tokenizer.json"
    if file is None or not file.is_file():
        return None
    texts = _joined(items)
    if not texts:
        return None
    state = file.stat()
    tokenizer = _tokenizer(file, (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns))
    if tokenizer is None:
        return None
    encoded = _of_distinct(texts, partial(tokenizer.encode_batch, add_special_tokens=False))
    return _quotient(np.array([len(text.ids) for text in encoded], dtype=np.float64), word_counts(texts))


@lru_cache(maxsize=1)
def _tokenizer(file: Path, state: tuple[int, ...]) -> Any:
    """Return the tokenizer of a file, read once per state of the file; None without the package tokenizers.

    A multilingual vocabulary takes half a second to read, and every cell of a run needs the same one.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    found: Any = Tokenizer.from_file(str(file))
    found.no_truncation()
    found.no_padding()
    return found


def unknown_words(items: Items, context: FeatureContext) -> Floats | None:
    """Return the share of the words of every item that are not in the training data; None where they were not given."""
    vocabulary = context.vocabulary
    if vocabulary is None or not item_texts(items):
        return None
    lists = word_lists(items, "joined texts", lambda: _joined(items))
    if lists is None:
        return None
    shares = (sum(word not in vocabulary for word in own) / len(own) if own else np.nan for own in lists)
    return np.fromiter(shares, np.float64, len(lists))


def question_type(items: Items, context: FeatureContext) -> list[str | None] | None:
    """Return the type of every question: the first word of the English question (XTREME-R, appendix K).

    A question in another language has the type of the English item with its id, in parallel sets whose run has
    English. Otherwise the first question word of ``question_words.tsv`` decides; without one the type is `UNKNOWN`.
    """
    questions = items.texts("question")
    if questions is None:
        return None
    if items.language.code == "en":
        return _first_words(items)
    english = context.english()
    aligned = {} if english is None else dict(zip(english.ids, _first_words(english) or (), strict=False))
    return [
        aligned.get(identifier) or _listed_type(question, items.language.code)
        for identifier, question in zip(items.ids, questions, strict=True)
    ]


def _first_words(items: Items) -> list[str | None] | None:
    lists = field_words(items, "question")
    return None if lists is None else [first[0] if first else None for first in lists]


def _listed_type(question: str, language: str) -> str:
    """Return the type of the first question word in a question, of the longest one where several begin there."""
    text = f" {_spaced(question)} "
    matches = [
        (start, -len(word), name)
        for word, name in _question_words().get(language, ())
        if (start := text.find(word)) >= 0
    ]
    return min(matches)[2] if matches else UNKNOWN


def _spaced(text: str) -> str:
    return " ".join(words([unicodedata.normalize("NFC", text).lower()])[0])


@cache
def _question_words() -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return by language its question words between spaces, each with its type; beginnings of words end openly."""
    by_language: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in table_rows("harness_diagnosis", "question_words.tsv"):
        for entry in row["words"].split():
            end = "" if entry.endswith("*") else " "
            word = _spaced(entry.rstrip("*").replace("_", " "))
            by_language[row["language"]].append((f" {word}{end}", row["type"]))
    return by_language


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


def _bleu_of(first: Callable[[Items], list[list[str]] | None], second: str) -> Compute:
    def compute(items: Items, context: FeatureContext) -> Floats | None:
        hypotheses, references = first(items), field_words(items, second)
        return None if hypotheses is None or references is None else sentence_bleu(hypotheses, references)

    return compute


answer_question = _bleu_of(
    lambda items: word_lists(items, "answer of gold", lambda: answers(items)), "question"
)
"""BLEU(answer, question)."""
question_context = _bleu_of(lambda items: field_words(items, "question"), "context")
"""BLEU(question, context)."""


def language_field(name: str) -> Callable[[Items, FeatureContext], Names | None]:
    """Return the function that gives every item the same field of its language."""
    return lambda items, _: (
        [str(getattr(items.language, name))] * len(items) if getattr(items.language, name) else None
    )


def resource(items: Items, context: FeatureContext) -> Names | None:
    """Return the resource class of the language: high from a million Wikipedia articles on, medium from 100,000 on.

    Articles are those of XTREME-R's Table 7; the classes are ours. None for languages that are not in the table.
    """
    try:
        articles = float(items.language.wikipedia_articles)
    except ValueError:
        return None
    return [next(name for least, name in _RESOURCES if articles >= least)] * len(items)


def gold_label(items: Items, context: FeatureContext) -> Names:
    """Return the gold label."""
    return list(items.references)


def cause_or_effect(items: Items, context: FeatureContext) -> Names | None:
    """Return the question about a premise (XCOPA): its cause or its effect; None for tasks with other questions."""
    asked = items.texts("question")
    return asked if asked is not None and set(asked) <= {"cause", "effect"} else None


def tag_of(name: str) -> Callable[[Items, FeatureContext], Names | None]:
    """Return the function that gives a tag of every record, such as the genre; None where no item has it."""

    def compute(items: Items, context: FeatureContext) -> Names | None:
        values = [tags.get(name) for tags in items.tags]
        return None if all(value is None for value in values) else values

    return compute


entity_frequency = tag_of("bin_name")
"""Mewsli-X: how often the entity is in the training data: [0,1) [1,10) [10,100) [100,1000) [1000,inf)."""


def _target_languages(items: Items) -> list[set[str]] | None:
    rows: list[Any] = [
        gold.get("languages") if isinstance(gold, Mapping) else None for gold in items.references
    ]
    return None if any(not own for own in rows) else [set(own) for own in rows]


def target_language(items: Items, context: FeatureContext) -> Names | None:
    """Return the language of the right candidates; ``several`` where they are of several."""
    languages = _target_languages(items)
    if languages is None:
        return None
    return [next(iter(own)) if len(own) == 1 else "several" for own in languages]


def query_to_target(items: Items, context: FeatureContext) -> Names | None:
    """Return whether the right candidates are in the query's language: ``same``, ``cross``, or ``both``."""
    languages = _target_languages(items)
    if languages is None:
        return None
    code = items.language.code
    return ["cross" if code not in own else "same" if len(own) == 1 else "both" for own in languages]


def rank_of_gold(items: Items, context: FeatureContext) -> Names | None:
    """Return where the first right candidate stands: ``1``, ``2-5``, ``6-20``, or ``after 20``.

    For bitext retrieval, whose records keep the nearest candidate only, ``1`` or ``after 1``.
    """
    if items.kind == "bitext_retrieval":
        pairs = zip(items.predictions, items.references, strict=True)
        return ["1" if _bare(own, "candidate") == gold else "after 1" for own, gold in pairs]
    found = []
    for own, gold in zip(items.predictions, items.references, strict=True):
        wanted = set(_bare(gold, "targets"))
        ranking = _bare(own, "candidates") or ()
        ranks = (rank for rank, name in enumerate(ranking, start=1) if name in wanted)
        rank = next(ranks, np.inf)
        found.append("1" if rank == 1 else "2-5" if rank <= 5 else "6-20" if rank <= 20 else "after 20")
    return found


def _bare(value: Any, name: str) -> Any:
    """Return a field of a prediction or reference that is a mapping; files of predictions hold the bare value."""
    return value.get(name) if isinstance(value, Mapping) else value


def _tokens(items: Items) -> list[list[str]] | None:
    tokens = [fields.get("tokens") for fields in items.fields]
    return None if any(own is None for own in tokens) else tokens  # type: ignore[return-value]


def sentence_length(items: Items, context: FeatureContext) -> Floats | None:
    """Return sLen: the tokens of every sentence, or the words of a raw text."""
    if items.kind == "text_marking":
        return items.word_counts("text")
    tokens = _tokens(items)
    return None if tokens is None else np.fromiter(map(len, tokens), np.float64, len(tokens))


def density(items: Items, context: FeatureContext) -> Floats | None:
    """Return eDen: the share of a sentence's tokens, or of a raw text's characters, inside gold entities.

    XTREME-R uses entity density in its Tables 26 to 28 and does not define it. None for bare tags, where every token
    is a span.
    """
    if items.kind == "token_tagging":
        if not any(label[:2] == "B-" for label in items.labels):
            return None
        inside = [len(tags) - tags.count(_OUTSIDE) for tags in items.references]
        sizes = [len(tags) for tags in items.references]
    else:
        texts = items.texts("text")
        gold = spans_of(items, items.references, "gold")
        if texts is None or gold is None:
            return None
        inside = np.bincount(gold.items, weights=gold.ends - gold.starts, minlength=len(items)).tolist()
        sizes = [len(text) for text in texts]
    return np.divide(inside, np.maximum(sizes, 1), dtype=np.float64)


def tag(items: Items, context: FeatureContext) -> Sequence[str]:
    """Return the tag of every span."""
    assert context.spans is not None
    return context.spans.tags


def position(items: Items, context: FeatureContext) -> Floats | None:
    """Return rPos: the first token of a span, from 0, over the tokens of its sentence (raw text: characters)."""
    spans = context.spans
    assert spans is not None
    sizes = _sizes(items, spans)
    return None if sizes is None else np.asarray(spans.starts / np.maximum(sizes[spans.items], 1))


def _sizes(items: Items, spans: Spans) -> Floats | None:
    if spans.unit == "token":
        return sentence_length(items, FeatureContext())
    texts = items.texts("text")
    return None if texts is None else np.fromiter(map(len, texts), np.float64, len(texts))


def span_length(items: Items, context: FeatureContext) -> Floats | None:
    """Return eLen: the tokens of every span, or the words of a span of raw text; None for bare tags."""
    spans = context.spans
    assert spans is not None
    if spans.unit == "token":
        if not any(label[:2] == "B-" for label in items.labels):
            return None
        return (spans.ends - spans.starts).astype(np.float64)
    texts = _span_texts(items, spans)
    return None if texts is None else word_counts(texts).astype(np.float64)


def characters(items: Items, context: FeatureContext) -> Floats | None:
    """Return tLen: the characters of every span without marks, spaces between its tokens included."""
    spans = context.spans
    assert spans is not None
    if spans.unit == "character":
        texts = _span_texts(items, spans)
        return None if texts is None else character_counts(texts).astype(np.float64)
    tokens = _tokens(items)
    if tokens is None:
        return None
    counts = items.once("token characters", lambda: _token_characters(tokens))
    upto, first = counts
    begins = first[spans.items] + spans.starts
    ends = first[spans.items] + spans.ends
    between = spans.ends - spans.starts - 1 if items.language.segmentation == "space" else 0
    return np.asarray(upto[ends] - upto[begins] + between, dtype=np.float64)


def _token_characters(tokens: Sequence[Sequence[str]]) -> tuple[Integers, Integers]:
    """Return the characters before every token of the corpus, and the first token of every sentence."""
    counts = character_counts([token for own in tokens for token in own])
    sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
    return np.concatenate(([0], np.cumsum(counts))), np.cumsum(sizes) - sizes


def _span_texts(items: Items, spans: Spans) -> list[str] | None:
    texts = items.texts("text")
    if texts is None:
        return None
    rows = zip(spans.items.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True)
    return [texts[item][start:end] for item, start, end in rows]
