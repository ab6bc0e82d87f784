"""Measures attention overlap: runs the classifier over English items and their translations, and aligns their words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from harness import AttentionOptions, ExposesAttentions, Progress, Run, TextAttention, TextInput, WordPair
from harness.data.translation.aligners import AlignsWords, check_alignments
from harness.statistics.bootstrap import count_interval
from harness.statistics.cluster import ClusterCodes
from harness.statistics.interval import Interval
from harness_translation.overlap.formula import ItemOverlap, OverlapRule, item_overlap
from harness_translation.overlap.item import OverlapGroup, SourceItem, TargetCell, read_inputs, source_items
from harness_translation.overlap.word import Join, Splitting, Word, split_words, word_scores

__all__ = ["OverlapResult", "OverlapSettings", "measure_group"]

BLOCK = 256
"""Number of items whose attention and links are in memory together."""
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapSettings:
    """All choices of the measure; the defaults are those of the authors' script."""

    rule: OverlapRule = field(default_factory=OverlapRule)
    attention: AttentionOptions = field(default_factory=AttentionOptions)
    pieces: Join = "sum"
    """How the scores of a word's pieces are combined."""
    words: Splitting = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapResult:
    """The overlap of one text with the English original, for one model."""

    task: str
    language: str
    variant: str
    translator: str | None
    seed: int
    fit: str
    labelled: int
    """English items with a label."""
    correct: int
    """Those of them that the model got right."""
    n: int
    """Those of them that were measured."""
    truncated: int
    """Skipped: the English or the translated text was truncated."""
    missing: int
    """Skipped: the translation does not have the item."""
    undefined: int
    """Skipped: a sentence has no share."""
    sum: float | None
    """Mean over items of the sum of both sentences' overlap: the scale of the paper's Table 3."""
    sum_interval: Interval
    mean: float | None
    """The same on a scale of 0 to 1."""
    mean_interval: Interval
    sentences: tuple[float, ...]
    """Mean overlap by sentence: premise, hypothesis."""
    linked: float | None
    """Share of the English words with a kept link; if it is low, the overlap says little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sentence:
    words: tuple[Word, ...]
    scores: tuple[float, ...]


_Sentences = tuple[_Sentence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The English items that the model got right."""

    items: Sequence[SourceItem]
    labelled: int
    sentences: Mapping[str, _Sentences | None]
    """By id; None for truncated texts."""


def measure_group(
    run: Run,
    group: OverlapGroup,
    model: ExposesAttentions,
    aligner: tuple[str, AlignsWords],
    settings: OverlapSettings,
    progress: Progress,
) -> list[OverlapResult]:
    """Return one result for each of the group's targets.

    Raises `DataError` if the words of the aligner are not those of the model; errors of model and aligner pass through.
    """
    engines = _Engines(model=model, name=aligner[0], aligner=aligner[1], settings=settings)
    items, labelled = source_items(run, group)
    progress.start(f"{group.task}, English", len(items), "items")
    sentences: dict[str, _Sentences | None] = {}
    for block in _blocks(items):
        found = engines.attended([item.input for item in block])
        sentences |= {item.id: own for item, own in zip(block, found, strict=True)}
        progress.advance(len(block))
    progress.finish()
    source = _Source(items=items, labelled=labelled, sentences=sentences)
    return [_measure(run, group, target, source, engines, progress) for target in group.targets]


def _measure(
    run: Run,
    group: OverlapGroup,
    target: TargetCell,
    source: _Source,
    engines: _Engines,
    progress: Progress,
) -> OverlapResult:
    found: dict[str, ItemOverlap] = {}
    truncated = seen = 0
    progress.start(f"{group.task}, {_title(target)}", len(source.items), "items")
    for block in _blocks(read_inputs(run, group, target, frozenset(source.sentences))):
        seen += len(block)
        attended = engines.attended([one for _, one in block])
        both = [
            (identifier, english, own)
            for (identifier, _), own in zip(block, attended, strict=True)
            if (english := source.sentences[identifier]) is not None and own is not None
        ]
        truncated += len(block) - len(both)
        found |= engines.overlaps(both)
        progress.advance(len(block))
    progress.finish()
    counts = {"truncated": truncated, "missing": len(source.items) - seen}
    return _result(group, target, source, found, counts)


def _result(
    group: OverlapGroup,
    target: TargetCell,
    source: _Source,
    found: Mapping[str, ItemOverlap],
    counts: Mapping[str, int],
) -> OverlapResult:
    kept = [item for item in source.items if item.id in found and found[item.id].defined]
    own = [found[item.id] for item in kept]
    sums = np.array([one.sum for one in own], dtype=np.float64)
    means = np.array([one.mean for one in own], dtype=np.float64)
    clusters = ClusterCodes()
    clusters.add([item.cluster for item in kept])
    words = sum(one.words for one in own)
    by_sentence = np.array([one.sentences for one in own], dtype=np.float64)
    return OverlapResult(
        task=group.task,
        language=target.language,
        variant=target.variant,
        translator=target.translator,
        seed=int(target.cell["seed"]),
        fit=str(target.cell["fit"]),
        labelled=source.labelled,
        correct=len(source.items),
        n=len(kept),
        undefined=len(found) - len(kept),
        **counts,
        sum=float(sums.mean()) if own else None,
        sum_interval=_interval(sums, clusters),
        mean=float(means.mean()) if own else None,
        mean_interval=_interval(means, clusters),
        sentences=tuple(by_sentence.mean(axis=0).tolist()) if own else (),
        linked=sum(one.linked for one in own) / words if words else None,
    )


def _title(target: TargetCell) -> str:
    return " ".join(filter(None, (target.language, target.variant, target.translator)))


def _interval(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], clusters: ClusterCodes) -> Interval:
    """Return the cluster bootstrap interval of a mean: items that share a premise are drawn together."""
    counts = np.stack([values, np.ones(len(values))], axis=1)
    return count_interval(counts, clusters.codes(), lambda sums: float(sums[0] / sums[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engines:
    """The model, the aligner, and their settings."""

    model: ExposesAttentions
    name: str
    """The name of the aligner."""
    aligner: AlignsWords
    settings: OverlapSettings

    def attended(self, inputs: Sequence[TextInput]) -> list[_Sentences | None]:
        """Return the words of every input with their scores, by sentence; None for truncated texts."""
        found: list[_Sentences | None] = [None] * len(inputs)
        for index, attention in self.model.attentions(inputs, self.settings.attention):
            if not attention.truncated:
                found[index] = _scored(inputs[index], attention, self.settings)
        return found

    def overlaps(self, items: Sequence[tuple[str, _Sentences, _Sentences]]) -> dict[str, ItemOverlap]:
        """Return the overlap of every item; sentences that occur several times are aligned once."""
        pairs = {
            _pair(one, other): None
            for _, source, target in items
            for one, other in zip(source, target, strict=True)
        }
        asked = list(pairs)
        alignments = self.aligner.align(asked)
        check_alignments(self.name, asked, alignments)
        links = {pair: found.links for pair, found in zip(asked, alignments, strict=True)}
        return {
            identifier: item_overlap(
                [
                    (one.scores, other.scores, links[_pair(one, other)])
                    for one, other in zip(source, target, strict=True)
                ],
                self.settings.rule,
            )
            for identifier, source, target in items
        }


def _scored(item: TextInput, attention: TextAttention, settings: OverlapSettings) -> _Sentences:
    texts = (item.text,) if item.text_pair is None else (item.text, item.text_pair)
    sentences = []
    for text, segment in zip(texts, attention.segments, strict=True):
        words = split_words(text, settings.words)
        scores = word_scores(segment, text, words, settings.pieces)
        sentences.append(_Sentence(words=words, scores=scores))
    return tuple(sentences)


def _pair(source: _Sentence, target: _Sentence) -> WordPair:
    return WordPair(
        source=tuple(word.text for word in source.words), target=tuple(word.text for word in target.words)
    )


def _blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    remaining = iter(items)
    while block := list(itertools.islice(remaining, BLOCK)):
        yield block
