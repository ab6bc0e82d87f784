"""Measures attention overlap: runs the classifier over English items and their translations, and aligns their words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from harness import Progress, Run
from harness.data import AlignsWords, WordPair, check_alignments
from harness.models import AttentionOptions, ExposesAttentions, TextAttention, TextInput
from harness.statistics import ClusterCodes, Interval, count_interval
from harness.storage import CellResult
from harness_translation.overlap.formula import ItemOverlap, OverlapRule, item_overlap
from harness_translation.overlap.item import TRANSLATION, OverlapGroup, SourceItem, read_inputs, source_items
from harness_translation.overlap.word import Join, Splitting, Word, split_words, word_scores

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
class _Sentence:
    words: tuple[Word, ...]
    scores: tuple[float, ...]


_Sentences = tuple[_Sentence, ...]
Overlaps = dict[str, ItemOverlap]
"""By item id."""


def measure_group(
    run: Run, group: OverlapGroup, fields: Sequence[str], engines: Engines, progress: Progress
) -> list[dict[str, Any]]:
    """Return one row of plain values for each of the group's targets.

    Of ``labelled`` English items the model got ``correct`` right, of which ``n`` were measured; the others are skipped:
    ``truncated`` in either language, ``missing`` in the translation, or ``undefined`` since a sentence has no share.
    ``overlap_sum`` is on the scale of the paper's Table 3, ``overlap_mean`` from 0 to 1, each with its interval;
    ``sentences`` has the means of premise and hypothesis. ``linked`` is the share of the English words with a kept
    link: if it is low, the overlap says little. ``minus_human`` is the paired difference of `te` to the human text.

    `fields` are the input fields of the task in the order of the model input. Raises `DataError` if the words of the
    aligner are not those of the model; errors of model and aligner pass through.
    """
    items, labelled = source_items(run, group, fields)
    progress.start(f"{group.task}, English", len(items), "items")
    sentences: dict[str, _Sentences | None] = {}
    for block in _blocks(items):
        found = engines.attended([item.input for item in block])
        sentences |= {item.id: own for item, own in zip(block, found, strict=True)}
        progress.advance(len(block))
    progress.finish()
    results = []
    measured: list[tuple[CellResult, Overlaps]] = []
    for target in group.targets:
        heading = (
            target.language,
            *(str(target.view[name]) for name in TRANSLATION if name in target.view),
        )
        progress.start(f"{group.task}, {' '.join(heading)}", len(items), "items")
        overlaps: Overlaps = {}
        truncated = present = 0
        for inputs in _blocks(read_inputs(run, target, frozenset(sentences), fields)):
            present += len(inputs)
            attended = engines.attended([text for _, text in inputs])
            both = [
                (identifier, english, own)
                for (identifier, _), own in zip(inputs, attended, strict=True)
                if (english := sentences[identifier]) is not None and own is not None
            ]
            truncated += len(inputs) - len(both)
            overlaps |= engines.overlaps(both)
            progress.advance(len(inputs))
        progress.finish()
        measured.append((target, overlaps))
        results.append(
            {
                **_identity(target),
                **_overlap(items, overlaps),
                "labelled": labelled,
                "correct": len(items),
                "truncated": truncated,
                "missing": len(items) - present,
            }
        )
    humans = {target.language: overlaps for target, overlaps in measured if "variant" not in target.view}
    return [
        {**row, "minus_human": _minus_human(items, humans.get(target.language), overlaps, target)}
        for row, (target, overlaps) in zip(results, measured, strict=True)
    ]


def _identity(target: CellResult) -> dict[str, Any]:
    return {
        "task": target.task,
        "language": target.language,
        "seed": target.seed,
        "fit": target.fit,
        "variant": str(target.view.get("variant", "zs")),
        "translator": target.view.get("translator"),
    }


def _minus_human(
    items: Sequence[SourceItem], human: Overlaps | None, machine: Overlaps, target: CellResult
) -> dict[str, Any] | None:
    """Return machine minus human text in one language (Table 3: MT and HT) over the items that both have.

    Differences are of one item in both texts, and their interval draws the same premises on both sides. None for texts
    that are not in the language, and without the human text.
    """
    if human is None or target.view.get("variant") != "te":
        return None
    shared = [
        item
        for item in items
        if all(item.id in overlaps and overlaps[item.id].defined for overlaps in (human, machine))
    ]
    both = [(human[item.id], machine[item.id]) for item in shared]
    scales = {
        "overlap_sum": [after.sum - before.sum for before, after in both],
        "overlap_mean": [after.mean - before.mean for before, after in both],
    }
    return {**_means(scales, shared), "n": len(shared)}


def _overlap(items: Sequence[SourceItem], found: Mapping[str, ItemOverlap]) -> dict[str, Any]:
    measured = [item for item in items if item.id in found and found[item.id].defined]
    defined = [found[item.id] for item in measured]
    words = sum(overlap.words for overlap in defined)
    by_sentence = np.array([overlap.sentences for overlap in defined], dtype=np.float64)
    scales = {
        "overlap_sum": [overlap.sum for overlap in defined],
        "overlap_mean": [overlap.mean for overlap in defined],
    }
    return {
        **_means(scales, measured),
        "sentences": by_sentence.mean(axis=0).tolist() if defined else [],
        "linked": sum(overlap.linked for overlap in defined) / words if words else None,
        "n": len(measured),
        "undefined": len(found) - len(measured),
    }


def _means(scales: Mapping[str, Sequence[float]], kept: Sequence[SourceItem]) -> dict[str, Any]:
    """Return the mean of every scale over the kept items, with its interval."""
    clusters = ClusterCodes()
    clusters.add([item.cluster for item in kept])
    return {
        name: {
            "value": float(np.mean(values)) if kept else None,
            **_interval(np.array(values, dtype=np.float64), clusters).to_json(),
        }
        for name, values in scales.items()
    }


def _interval(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], clusters: ClusterCodes) -> Interval:
    """Return the cluster bootstrap interval of a mean: items that share a premise are drawn together."""
    counts = np.stack([values, np.ones(len(values))], axis=1)
    return count_interval(counts, clusters.codes(), lambda sums: float(sums[0] / sums[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The model, the aligner, and their settings."""

    model: ExposesAttentions
    name: str
    """The name of the aligner."""
    aligner: AlignsWords
    settings: OverlapSettings

    def attended(self, inputs: Sequence[TextInput]) -> list[_Sentences | None]:
        """Return the words of every input with their scores, by sentence; None for truncated texts."""
        sentences: list[_Sentences | None] = [None] * len(inputs)
        for index, attention in self.model.attentions(inputs, self.settings.attention):
            if not attention.truncated:
                sentences[index] = _scored(inputs[index], attention, self.settings)
        return sentences

    def overlaps(self, items: Sequence[tuple[str, _Sentences, _Sentences]]) -> dict[str, ItemOverlap]:
        """Return the overlap of every item; sentences that occur several times are aligned once."""
        pairs = {
            _pair(english, foreign): None
            for _, source, target in items
            for english, foreign in zip(source, target, strict=True)
        }
        distinct = list(pairs)
        alignments = self.aligner.align(distinct)
        check_alignments(self.name, distinct, alignments)
        links = {pair: alignment.links for pair, alignment in zip(distinct, alignments, strict=True)}
        return {
            identifier: item_overlap(
                [
                    (english.scores, foreign.scores, links[_pair(english, foreign)])
                    for english, foreign in zip(source, target, strict=True)
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
