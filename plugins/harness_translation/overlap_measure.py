"""Measures attention overlap: runs the classifier over English items and their translations, and aligns their words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from harness.aligners import AlignsWords, Link, WordPair, check_alignments
from harness.capabilities import AttentionOptions, ExposesAttentions, TextAttention, TextInput
from harness.progress import Progress
from harness.results import Run
from harness.statistics.bootstrap import count_interval
from harness.statistics.cluster import ClusterCodes
from harness.statistics.interval import Interval
from harness_translation.overlap import ItemOverlap, OverlapRule, item_overlap
from harness_translation.overlap_item import OverlapGroup, SourceItem, TargetCell, read_inputs, source_items
from harness_translation.overlap_word import Join, Splitting, Word, split_words, word_scores

__all__ = ["OverlapResult", "OverlapSettings", "measure_group"]

BLOCK = 256
"""Items whose attention and links are held together."""
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapSettings:
    """All choices; the defaults are those of the authors' script."""

    rule: OverlapRule = field(default_factory=OverlapRule)
    attention: AttentionOptions = field(default_factory=AttentionOptions)
    pieces: Join = "sum"
    """How the scores of a word's pieces are joined."""
    words: Splitting = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapResult:
    """The overlap of one language and text with the English original, of one model."""

    task: str
    language: str
    variant: str
    translator: str | None
    seed: int
    fit: str
    labelled: int
    """English items with a label."""
    correct: int
    """Those that the model got right."""
    n: int
    """Those that were measured."""
    truncated: int
    """Left out, since the model could not see all of the English or of the translated text."""
    missing: int
    """Left out, since the translation has no such item."""
    undefined: int
    """Left out, since a sentence has no word to be a share of."""
    sum: float | None
    """Mean over items of the overlap of premise and hypothesis added up: the scale of the paper's Table 3."""
    sum_interval: Interval
    mean: float | None
    """The same on a scale of 0 to 1."""
    mean_interval: Interval
    sentences: tuple[float, ...]
    """Mean overlap by sentence: premise, hypothesis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sentence:
    words: tuple[Word, ...]
    scores: tuple[float, ...]


_Sentences = tuple[_Sentence, ...]


def measure_group(
    run: Run,
    group: OverlapGroup,
    model: ExposesAttentions,
    aligner: tuple[str, AlignsWords],
    settings: OverlapSettings,
    progress: Progress,
) -> list[OverlapResult]:
    """Return one result for each of the group's targets.

    Raises `DataError` where the words of the aligner are not those of the model, and what model and aligner raise.
    """
    items, labelled = source_items(run, group)
    progress.start(f"{group.task}, English", len(items), "items")
    source: dict[str, _Sentences | None] = {}
    for block in _blocks(items):
        found = _attended(model, [item.input for item in block], settings)
        source |= {item.id: own for item, own in zip(block, found, strict=True)}
        progress.advance(len(block))
    progress.finish()
    return [
        _measure(run, group, target, items, labelled, source, model, aligner, settings, progress)
        for target in group.targets
    ]


def _measure(
    run: Run,
    group: OverlapGroup,
    target: TargetCell,
    items: Sequence[SourceItem],
    labelled: int,
    source: dict[str, _Sentences | None],
    model: ExposesAttentions,
    aligner: tuple[str, AlignsWords],
    settings: OverlapSettings,
    progress: Progress,
) -> OverlapResult:
    found: dict[str, ItemOverlap] = {}
    truncated = seen = 0
    progress.start(f"{group.task}, {_title(target)}", len(items), "items")
    for block in _blocks(read_inputs(run, group, target, frozenset(source))):
        seen += len(block)
        both = [
            (identifier, english, own)
            for (identifier, _), own in zip(
                block, _attended(model, [one for _, one in block], settings), strict=True
            )
            if (english := source[identifier]) is not None and own is not None
        ]
        truncated += len(block) - len(both)
        found |= _overlaps(both, aligner, settings.rule)
        progress.advance(len(block))
    progress.finish()
    kept = [item for item in items if item.id in found and found[item.id].defined]
    values = np.array([found[item.id].sentences for item in kept], dtype=np.float64)
    sums = values.sum(axis=1) if kept else np.zeros(0)
    width = values.shape[1] if kept else 1
    clusters = ClusterCodes()
    clusters.add([item.cluster for item in kept])
    return OverlapResult(
        task=group.task,
        language=target.language,
        variant=target.variant,
        translator=target.translator,
        seed=int(target.cell["seed"]),
        fit=str(target.cell["fit"]),
        labelled=labelled,
        correct=len(items),
        n=len(kept),
        truncated=truncated,
        missing=len(items) - seen,
        undefined=len(found) - len(kept),
        sum=float(sums.mean()) if kept else None,
        sum_interval=_interval(sums, clusters),
        mean=float(sums.mean() / width) if kept else None,
        mean_interval=_interval(sums / width, clusters),
        sentences=tuple(values.mean(axis=0).tolist()) if kept else (),
    )


def _title(target: TargetCell) -> str:
    return " ".join(filter(None, (target.language, target.variant, target.translator)))


def _interval(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], clusters: ClusterCodes) -> Interval:
    """Return the cluster bootstrap of a mean: items that share a premise are drawn together."""
    counts = np.stack([values, np.ones(len(values))], axis=1)
    return count_interval(counts, clusters.codes(), lambda sums: float(sums[0] / sums[1]))


def _attended(
    model: ExposesAttentions, inputs: Sequence[TextInput], settings: OverlapSettings
) -> list[_Sentences | None]:
    """Return the words of every input with their scores, by sentence; None where the model saw only a part."""
    found: list[_Sentences | None] = [None] * len(inputs)
    for index, attention in model.attentions(inputs, settings.attention):
        if not attention.truncated:
            found[index] = _scored(inputs[index], attention, settings)
    return found


def _scored(item: TextInput, attention: TextAttention, settings: OverlapSettings) -> _Sentences:
    texts = (item.text,) if item.text_pair is None else (item.text, item.text_pair)
    sentences = []
    for text, segment in zip(texts, attention.segments, strict=True):
        words = split_words(text, settings.words)
        scores = word_scores(segment, text, words, settings.pieces)
        sentences.append(_Sentence(words=words, scores=scores))
    return tuple(sentences)


def _overlaps(
    items: Sequence[tuple[str, _Sentences, _Sentences]], aligner: tuple[str, AlignsWords], rule: OverlapRule
) -> dict[str, ItemOverlap]:
    """Return the overlap of every item; sentences that occur several times are aligned once."""
    name, engine = aligner
    pairs = {
        _pair(one, other): ()
        for _, source, target in items
        for one, other in zip(source, target, strict=True)
    }
    asked = list(pairs)
    alignments = engine.align(asked)
    check_alignments(name, asked, alignments)
    links: dict[WordPair, tuple[Link, ...]] = {
        pair: found.links for pair, found in zip(asked, alignments, strict=True)
    }
    return {
        identifier: item_overlap(
            [
                (one.scores, other.scores, links[_pair(one, other)])
                for one, other in zip(source, target, strict=True)
            ],
            rule,
        )
        for identifier, source, target in items
    }


def _pair(source: _Sentence, target: _Sentence) -> WordPair:
    return WordPair(
        source=tuple(word.text for word in source.words), target=tuple(word.text for word in target.words)
    )


def _blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    remaining = iter(items)
    while block := list(itertools.islice(remaining, BLOCK)):
        yield block
