"""Diagnosis: in which buckets of an attribute a system is weak, and where one system is better than another.

What ExplainaBoard (Liu et al. 2021, arXiv 2104.06387) calls single-system, pairwise and dataset bias analysis, in the
multilingual form of XTREME-R (Ruder et al., 2021, section 5 and appendix K), with clusters, paired tests and
corrections; and how far the confidence of a classifier is its accuracy, and which labels it takes for which. Everything
is read from run folders.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness.analysis.buckets import (
    LEAST_ITEMS,
    Block,
    Row,
    Split,
    bucket_metric,
    compare_splits,
    score_splits,
)
from harness.analysis.items import (
    CellAttributes,
    block_of,
    bucket_language,
    cell_attributes,
    distribution,
    is_bio,
    join_languages,
    pooled_edges,
    read_items,
)
from harness.analysis.systems import System, SystemGroup, common_items, differences_of, group_systems
from harness.data.features import Bucket, Feature, FeatureContext, Items
from harness.errors import UnknownNameError, UsageError
from harness.progress import show_step
from harness.registry.registry import Registry
from harness.statistics import benjamini_hochberg
from harness.statistics.interval import Floats
from harness.storage.run_folder import Run

EDGES: Final = ("language", "pooled", "paper")
SIGNIFICANCE: Final = 0.05
"""The false discovery rate at which a difference is called significant."""
BINS: Final = 10
_CLASSIFYING: Final = {"sequence_classification", "multiple_choice"}
_ROUNDING: Final = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisOptions:
    """Options of a diagnosis."""

    tasks: Sequence[str] = ()
    """Names or globs; none takes all."""
    languages: Sequence[str] = ()
    attributes: Sequence[str] = ()
    """Names of features; none takes all that apply."""
    metric: str | None = None
    """None takes the headline metrics of each task."""
    edges: str = "language"
    """One of `EDGES`: by the items of each language, by those of all languages, or as a paper printed them."""
    examples: int = 3
    """Ids in each row."""
    strict: bool = False
    """Whether runs that differ are rejected, instead of compared on what they have in common."""
    most_items: int | None = None
    """Items of a cell that are read at most, with a note where a cell has more; None reads all."""
    vocabulary: frozenset[str] | None = None
    """The words of the training data in lower case, for the out-of-vocabulary rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Rows of a diagnosis, and notes on skipped items."""

    kind: str
    """``single``, ``pairwise`` or ``data``."""
    found: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    sample: bool = False
    """Whether some run is on the sample data, so that scores say nothing about models."""

    def rows(self, kind: str | None = None) -> list[Row]:
        """Return all rows, or those of one kind, as plain objects; scores are fractions.

        Each has ``kind`` (``single``, ``pairwise``, ``data``, ``calibration``, ``confusion``), ``task`` and
        ``language``, which is None for all languages of the task together. ``docs/diagnose.md`` lists the others.
        """
        return [dict(row) for row in self.found if kind is None or row["kind"] == kind]


def diagnose(
    runs: Sequence[Run], registry: Registry, options: DiagnosisOptions, *, data_only: bool = False
) -> Diagnosis:
    """Return the diagnosis of one run, of two runs on their common items, or of the data of one run.

    Raises:
        UsageError: For unknown names, runs that differ, and runs without records.
        DataError: Where records are broken.
    """
    if not 1 <= len(runs) <= (1 if data_only else 2):
        raise UsageError(
            f"A diagnosis is of one run{'' if data_only else ' or of two'}, and {len(runs)} were given."
        )
    if options.edges not in EDGES:
        raise UnknownNameError("sort of edges", options.edges, EDGES)
    features = _features(registry, options)
    groups = group_systems(runs, tasks=options.tasks, languages=options.languages, least=1)
    kind = "data" if data_only else "single" if len(runs) == 1 else "pairwise"
    work = _Work(registry=registry, options=options, features=features, kind=kind)
    if not options.attributes:
        work.notes += [
            f"The attribute {name!r} is declared by both {first!r} and {second!r}: skipped."
            for name, (first, second) in registry.features.conflicts.items()
        ]
    for group in groups:
        work.add(group, runs)
    if not work.rows:
        raise UsageError(f"Nothing can be diagnosed. {' '.join(work.notes)}".strip())
    tested = [row for row in work.rows if row["kind"] == kind != "data" and row["p"] is not None]
    for row, q in zip(tested, benjamini_hochberg([row["p"] for row in tested]).tolist(), strict=True):
        row["q"] = q
        row["significant"] = q <= SIGNIFICANCE and row["n"] >= LEAST_ITEMS
    sample = any(run.results.run.data == "sample" for run in runs)
    return Diagnosis(kind=kind, found=tuple(work.rows), notes=tuple(dict.fromkeys(work.notes)), sample=sample)


def _features(registry: Registry, options: DiagnosisOptions) -> list[Feature]:
    table = registry.features
    if not options.attributes:
        return [table.get(name) for name in table.names if name not in table.conflicts]
    for name in options.attributes:
        if name not in table:
            raise UnknownNameError("attribute", name, table.names)
    return [table.get(name) for name in options.attributes]


class _Work:
    """Collects the rows of one diagnosis."""

    def __init__(
        self, *, registry: Registry, options: DiagnosisOptions, features: Sequence[Feature], kind: str
    ) -> None:
        self._registry = registry
        self._options = options
        self._kind = kind
        # Two systems are compared, and data described, by what depends on the items alone.
        self._features = [feature for feature in features if feature.of == "item" or kind == "single"]
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self._english_items: dict[tuple[str, str], Items | None] = {}

    def add(self, group: SystemGroup, runs: Sequence[Run]) -> None:
        """Add the rows of a task: of its data, of every system, or of the pairs of systems of two runs."""
        compared: Sequence[tuple[System, ...]] = [(system,) for system in group.systems]
        if self._kind == "data":
            compared = compared[:1]
        elif self._kind == "pairwise":
            compared = self._pairs(group, runs)
        for systems in compared:
            if len(systems) > 1:
                self._check_alike(group, *systems)
            codes = [code for code in systems[0].cells if code in systems[-1].cells]
            attributes = (self._attributes(group, systems, code) for code in codes)
            cells = [cell for cell in attributes if cell is not None]
            if self._kind != "data":
                self._add_buckets(group, systems, cells)
                continue
            head = {"kind": "data", "task": group.task, "language": None, "view": dict(group.view)}
            self.rows += [
                {**head, "language": cell.items.language.code, "attribute": name, **distribution(attribute)}
                for cell in cells
                for name, attribute in cell.attributes.items()
            ]

    def _pairs(self, group: SystemGroup, runs: Sequence[Run]) -> list[tuple[System, System]]:
        """Return the pairs of systems of two runs: those of one protocol, method and seed where there are any."""
        first, second = ([system for system in group.systems if system.run is run] for run in runs)
        for run, systems in zip(runs, (first, second), strict=True):
            if not systems:
                self.notes.append(f"{group.title}: {run.manifest.model_name} ({run.path}) did not finish it.")
        pairs = list(itertools.product(first, second))
        for names in (("protocol", "method", "seed"), ("protocol", "method"), ("protocol",)):
            conditions = attrgetter(*names)
            same = [pair for pair in pairs if len({conditions(system.cell) for system in pair}) == 1]
            if same:
                return same
        return pairs

    def _check_alike(self, group: SystemGroup, first: System, second: System) -> None:
        differences = differences_of(first, second, group.task)
        if differences and self._options.strict:
            raise UsageError(
                f"{first.name} and {second.name} cannot be compared in {group.title}: {'; '.join(differences)}.",
                hint="Without --strict, what they have in common is compared.",
            )
        self.notes += [f"{group.title}: {clause}." for clause in differences]

    def _attributes(self, group: SystemGroup, systems: Sequence[System], code: str) -> CellAttributes | None:
        """Return the common items of one or two systems in a language; None without gold.

        Their texts are freed on return.
        """
        first, strict = systems[0], self._options.strict
        items = [self._read(group, system, code, inputs=system is first) for system in systems]
        if not any(map(len, items)):
            self.notes.append(f"{group.title} {code}: no item has a gold answer.")
            return None
        if self._kind == "single":
            head = {**_head(group, first), "language": code}
            for kind, rows in (("calibration", calibration_rows), ("confusion", confusion_rows)):
                self.rows += [{**head, "kind": kind, **row} for row in rows(items[0])]
        if len(items) > 1:
            *items, notes = common_items(items[0], items[1], strict=strict)
            self.notes += notes
        metric = bucket_metric(self._registry.metrics, items[0], first.spec.headline, self._options.metric)
        model = first.run.manifest.model.partition(":")[2]
        context = FeatureContext(
            model=Path(model) if model and Path(model).is_dir() else None,
            vocabulary=self._options.vocabulary,
            english=lambda: self._english(first),
        )
        return cell_attributes(items, metric, self._features, context)

    def _read(self, group: SystemGroup, system: System, code: str, *, inputs: bool) -> Items:
        show_step(f"Diagnosis: {group.title} {code}, {system.name}")
        cell, most = system.cells[code], self._options.most_items
        if most is not None and cell.n > most:
            self.notes.append(f"{group.title} {code}: the diagnosis uses {most:,} of {cell.n:,} items.")
        return read_items(system.run, cell, system.spec, inputs=inputs, most=most)

    def _english(self, system: System) -> Items | None:
        """Return the English items of a parallel task, read once per run; None where the run has none."""
        task = system.cell.task
        key = (str(system.run.path), task)
        if key not in self._english_items:
            cells = [
                cell
                for cell in system.run.cells
                if (cell.task, cell.language, cell.status) == (task, "en", "ok") and system.spec.parallel
            ]
            largest = max(cells, key=lambda cell: cell.n, default=None)
            items = None if largest is None else read_items(system.run, largest, system.spec)
            self._english_items[key] = items
        return self._english_items[key]

    def _blocks(
        self, group: SystemGroup, systems: Sequence[System], cells: Sequence[CellAttributes]
    ) -> list[tuple[Block, list[Split]]]:
        """Return the languages and, where there are several, all of them together; constant attributes are skipped."""
        names = [group.title, *(f"{system.run.results.run.id} {system.name}" for system in systems)]
        pooled = pooled_edges(cells) if self._options.edges == "pooled" else {}
        edges = partial(self._given_edges, group.task)
        languages = [bucket_language(cell, edges, pooled) for cell in cells]
        blocks = [(block_of(cell, *names), splits) for cell, splits in zip(cells, languages, strict=True)]
        if len(cells) > 1:
            blocks.insert(0, join_languages(cells, languages, systems[0].spec, names=names))
        blocks = [(block, [split for split in splits if len(split.buckets) > 1]) for block, splits in blocks]
        varying = {split.feature.name for _, splits in blocks for split in splits}
        if constant := {name for cell in cells for name in cell.attributes} - varying:
            constants = ", ".join(sorted(constant))
            self.notes.append(f"{group.title}: skipped, since all items have the same value: {constants}.")
        return blocks

    def _given_edges(self, task: str, feature: Feature, language: str) -> Sequence[Bucket] | None:
        if self._options.edges != "paper":
            return None
        edges = feature.published(task, language) if feature.published is not None else None
        if edges is None and feature.continuous:
            self.notes.append(
                f"{task} {language}: no edges are printed for {feature.name}; they are by equal counts."
            )
        return edges

    def _add_buckets(
        self, group: SystemGroup, systems: Sequence[System], cells: Sequence[CellAttributes]
    ) -> None:
        """Add a row for every bucket: of one system, or of the difference of two."""
        head = {**_head(group, systems[0]), "kind": self._kind}
        rows_of = score_splits
        if len(systems) > 1:
            del head["system"]
            head["systems"] = [system.name for system in systems]
            rows_of = compare_splits
        for block, splits in self._blocks(group, systems, cells):
            scored = rows_of(block, splits, examples=self._options.examples)
            for split, scores in zip(splits, scored, strict=True):
                feature = split.feature
                attribute = {"language": block.language, "attribute": feature.name, "level": feature.level}
                # What depends on the answer differs by its making.
                untested: Row = {"p": None} if feature.of == "prediction" else {}
                self.rows += [
                    {**head, **attribute, **bucket_row(bucket), **row, **untested}
                    for bucket, row in zip(split.buckets, scores, strict=True)
                ]


def bucket_row(bucket: Bucket) -> Row:
    """Return a bucket as JSON can hold it: a bound that is open is None."""
    low, high = (None if bound is None or math.isinf(bound) else bound for bound in (bucket.low, bucket.high))
    return {"bucket": bucket.name, "low": low, "high": high, "low_closed": bucket.low_closed}


def _head(group: SystemGroup, system: System) -> Row:
    head: Row = {"kind": "", "task": group.task, "language": None, "protocol": system.cell.protocol}
    return head | {"method": system.cell.method, "view": dict(group.view), "system": system.name}


def probabilities(scores: Floats) -> Floats:
    """Return the probabilities of the labels, shape (n, labels), rows of sum 1.

    Scores that are probabilities already stay; others (logits, log-probabilities) go through a softmax.
    """
    if (scores >= 0).all() and (np.abs(scores.sum(axis=1) - 1) <= _ROUNDING).all():
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def calibration_rows(items: Items) -> list[dict[str, Any]]:
    """Return the confidence and accuracy of ten bins of equal width, and the expected calibration error.

    ECE = sum over bins of n_bin / n * |accuracy - confidence| (Naeini et al. 2015; Guo et al. 2017, arXiv 1706.04599,
    equation 3); the confidence of an item is the probability of its label. Empty bins have a row with n = 0. No rows at
    all for kinds and methods without scores of all labels, and where fewer than all items have them.
    """
    scored = _scores(items)
    if scored is None:
        return []
    confidence = probabilities(scored).max(axis=1)
    pairs = zip(items.predictions, items.references, strict=True)
    right = np.array([prediction["label"] == gold for prediction, gold in pairs], dtype=np.float64)
    # Bins are closed on the right, as intervals of attributes are.
    bins = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    sure = np.bincount(bins, weights=confidence, minlength=BINS)
    true = np.bincount(bins, weights=right, minlength=BINS)
    error = float(np.abs(true - sure).sum() / len(bins))
    return [
        {
            "bin": number,
            "low": number / BINS,
            "high": (number + 1) / BINS,
            "n": int(count),
            "confidence": float(sure[number] / count) if count else None,
            "accuracy": float(true[number] / count) if count else None,
            "ece": error,
        }
        for number, count in enumerate(counts.tolist())
    ]


def _scores(items: Items) -> Floats | None:
    if items.kind not in _CLASSIFYING or not items.labels:
        return None
    structured = (own if isinstance(own, Mapping) else {} for own in items.predictions)
    scores = [own.get("scores") if own.get("label") is not None else None for own in structured]
    if any(item_scores is None or len(item_scores) != len(items.labels) for item_scores in scores):
        return None
    matrix = np.array(scores, dtype=np.float64)
    return matrix if len(matrix) and np.isfinite(matrix).all() else None


def confusion_rows(items: Items) -> list[dict[str, Any]]:
    """Return the number of items by gold and predicted label, zeros too; None means an unreadable answer.

    For bare tags (parts of speech) the items are tokens. No rows for kinds without labels of items or tokens.
    """
    if items.kind in _CLASSIFYING:
        answers = [own["label"] if isinstance(own, Mapping) else own for own in items.predictions]
        counts = Counter(zip(items.references, answers, strict=True))
    elif items.kind == "token_tagging" and not is_bio(items.labels):
        counts = Counter()
        for gold, predicted in zip(items.references, items.predictions, strict=True):
            counts.update(zip(gold, predicted, strict=True))
    else:
        return []
    occurring = {label for pair in counts for label in pair}
    labels = [*items.labels, *sorted(label for label in occurring - set(items.labels) if label is not None)]
    columns = [*labels, *([None] if None in occurring else [])]
    return [
        {"gold": gold, "predicted": predicted, "n": counts[gold, predicted]}
        for gold in labels
        for predicted in columns
    ]
