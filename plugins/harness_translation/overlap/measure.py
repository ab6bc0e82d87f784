"""Measures attention overlap: runs the classifier over English items and their translations, and aligns their words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from harness import CapabilityError, DataError, Progress, Run, UnknownNameError, UsageError
from harness.data import AlignsWords, WordPair, check_alignments
from harness.models import Adapter, AttentionOptions, ExposesAttentions, TextAttention, TextInput
from harness.planning import resolve_model
from harness.running import Session
from harness.statistics import ClusterCodes, Interval, count_interval
from harness.storage import CellResult, ItemRecord, cache_folder
from harness_translation.overlap.formula import (
    ItemOverlap,
    Join,
    OverlapRule,
    Splitting,
    Word,
    item_overlap,
    split_words,
    word_scores,
)

KIND = "sequence_classification"
_TRANSLATION = ("variant", "translator")
"""The parts of a view that select the text of an item, but change neither model nor item."""
FITTED = "fit.json"
BLOCK = 256
"""Number of items whose attention and links are in memory together."""
Overlaps = dict[str, ItemOverlap]
"""By item id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapGroup:
    """The cells of one model on one task: the English cell and the cells that are compared with it."""

    task: str
    source: CellResult
    targets: tuple[CellResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceItem:
    """An English item that the model got right."""

    id: str
    cluster: str | None
    input: TextInput


def overlap_groups(run: Run, tasks: Sequence[str], languages: Sequence[str]) -> list[OverlapGroup]:
    """Return the comparisons of a run, restricted to `tasks` and `languages` if given.

    Raises:
        UsageError: If there is none: no task that classifies texts, no English cell, or no other language.
    """
    finished = [cell for cell in run.cells if cell.status == "ok"]
    task_names = {name for name, spec in run.manifest.tasks.items() if spec.kind == KIND}
    for name in tasks:
        if name not in task_names:
            raise UnknownNameError(f"task of {str(run.path)!r} that classifies texts", name, task_names)
    codes = {cell.language for cell in finished}
    for code in languages:
        if code not in codes:
            raise UnknownNameError(f"language of {str(run.path)!r}", code, codes)
    by_model: dict[tuple[str, str], list[CellResult]] = {}
    for cell in sorted(finished, key=lambda cell: str(cell.task)):
        if cell.task in (tasks or task_names):
            by_model.setdefault((cell.task, _model_key(cell)), []).append(cell)
    groups = []
    for (task, _), cells in by_model.items():
        source = run.manifest.tasks[task].source or "en"
        originals = [cell for cell in cells if cell.language == source and not {*_TRANSLATION} & {*cell.view}]
        targets = [
            cell for cell in cells if cell.language in (languages or codes) and cell.language != source
        ]
        if originals and targets:
            groups.append(OverlapGroup(task=task, source=originals[0], targets=tuple(targets)))
    if not groups:
        raise UsageError(
            f"The run {str(run.path)!r} has nothing to compare: expected a task that classifies texts, finished in "
            "English and in another language.",
            hint="Make one: harness eval --tasks xnli --languages en,sw,ur --model hf:MODEL",
        )
    return groups


def _model_key(cell: CellResult) -> str:
    view = {name: value for name, value in cell.view.items() if name not in _TRANSLATION}
    return repr((cell.protocol, cell.fit, cell.method, cell.seed, sorted(view.items())))


def _source_items(run: Run, group: OverlapGroup, names: Sequence[str]) -> tuple[list[SourceItem], int]:
    """Return the English items whose label the model predicted, and the number of labelled items.

    `names` are the task's input fields in the order of the model input; records sort them by name. Raises `DataError`
    without such items, or for records with other fields.
    """
    labelled = [record for record in run.records(group.source) if record.reference is not None]
    items = [
        SourceItem(id=record.id, cluster=record.cluster, input=_text_input(run, record, names))
        for record in labelled
        if record.prediction["label"] == record.reference
    ]
    if not items:
        raise DataError(
            f"The model got none of the {len(labelled):,} English items of {group.task!r} right; "
            "overlap is measured on items that it got right."
        )
    return items, len(labelled)


def _read_inputs(
    run: Run, target: CellResult, ids: frozenset[str], names: Sequence[str]
) -> Iterator[tuple[str, TextInput]]:
    """Yield (id, texts) of the items of a cell that are among `ids`."""
    for record in run.records(target):
        if record.id in ids:
            yield record.id, _text_input(run, record, names)


def _text_input(run: Run, record: ItemRecord, names: Sequence[str]) -> TextInput:
    inputs = record.fields.get("inputs") or {}
    if set(inputs) != set(names):
        raise DataError(
            f"Item {record.id!r} of {str(run.path)!r} has the fields {', '.join(sorted(inputs)) or '(none)'}; "
            f"the task now has {', '.join(names)}.",
            hint="Run it again; its fit is reused.",
        )
    texts = [inputs[name] for name in names]
    return TextInput(text=texts[0], text_pair=texts[1] if len(texts) > 1 else None)


def open_model(run: Run, group: OverlapGroup, session: Session, options: Mapping[str, str]) -> Adapter:
    """Return the model of a group's cells; close it afterwards. `options` are used over those of the run.

    Raises:
        UsageError: If the fit is not in the cache.
        CapabilityError: If the model does not expose its attention.
    """
    adapter, fit = run.results.model.adapter, group.source.fit
    text = f"{adapter}:{run.results.model.ref}"
    if fit != "none":
        folder = cache_folder() / "fits" / str(fit)
        text = f"{adapter}:{folder}"
        if not (folder / FITTED).is_file():
            raise UsageError(
                f"The fine-tuned model of {str(run.path)!r} ({fit}) is not in the cache {str(folder.parent)!r}.",
                hint="Run its harness eval again here.",
            )
    run_options = {str(key): str(value) for key, value in run.manifest.config.get("options", {}).items()}
    resolved = resolve_model(session.registry.adapters, text, {**run_options, **options})
    model = resolved.entry.open(resolved.description, resolved.options)
    if not isinstance(model, ExposesAttentions):
        model.close()
        raise CapabilityError(
            f"The model {text!r} ({resolved.description.adapter}) does not expose its attention; "
            "overlap needs a fine-tuned encoder.",
            hint="Use a run of an encoder: harness eval --tasks xnli --model hf:xlm-roberta-base",
        )
    return model


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
    items, labelled = _source_items(run, group, fields)
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
            *(str(target.view[name]) for name in _TRANSLATION if name in target.view),
        )
        progress.start(f"{group.task}, {' '.join(heading)}", len(items), "items")
        overlaps: Overlaps = {}
        truncated = present = 0
        for inputs in _blocks(_read_inputs(run, target, frozenset(sentences), fields)):
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
