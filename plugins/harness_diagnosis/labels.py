"""Attributes of labels: gold labels, genres, languages and resources of items, and spans of tagged sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from harness.analysis import spans_of
from harness.data import FeatureContext, Items, Spans
from harness.languages import character_counts, word_counts
from harness.statistics import Floats, Integers

Names = Sequence[str | None]
_RESOURCES: Final = ((1.0, "high"), (0.1, "medium"), (0.0, "low"))
"""The least number of Wikipedia articles, in millions, for each class."""
_OUTSIDE = "O"


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
