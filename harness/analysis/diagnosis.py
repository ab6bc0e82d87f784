"""Diagnosis: in which buckets of an attribute a system is weak, and where one system is better than another.

What ExplainaBoard (Liu et al. 2021, arXiv 2104.06387) calls single-system, pairwise and dataset bias analysis, in the
multilingual form of XTREME-R (Ruder et al., 2021, section 5 and appendix K), with clusters, paired tests and
corrections; and how far the confidence of a classifier is its accuracy, and which labels it takes for which. Everything
is read from run folders.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    join_languages,
    pooled_edges,
    read_items,
)
from harness.analysis.systems import System, SystemGroup, common_items, differences_of, group_systems
from harness.data.buckets import Bucket
from harness.data.features import Feature, FeatureContext, Items
from harness.errors import UnknownNameError, UsageError
from harness.progress import show_step
from harness.registry.registry import Registry
from harness.statistics import benjamini_hochberg
from harness.statistics.arrays import Floats
from harness.storage.results import CellResult
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
    work = _Work(registry=registry, options=options, features=features)
    if not options.attributes:
        work.notes += [
            f"The attribute {name!r} is declared by both {first!r} and {second!r}: skipped."
            for name, (first, second) in registry.features.conflicts.items()
        ]
    for group in groups:
        if data_only:
            work.describe(group)
        elif len(runs) == 1:
            work.score(group)
        else:
            work.compare(group, runs)
    kind = "data" if data_only else "single" if len(runs) == 1 else "pairwise"
    if not work.rows:
        raise UsageError(f"Nothing can be diagnosed. {' '.join(work.notes)}".strip())
    _adjust(work.rows)
    sample = any(run.results.run.data == "sample" for run in runs)
    notes = tuple(dict.fromkeys(work.notes))
    return Diagnosis(kind=kind, found=tuple(work.rows), notes=notes, sample=sample)


def _features(registry: Registry, options: DiagnosisOptions) -> list[Feature]:
    table = registry.features
    if not options.attributes:
        return [table.get(name) for name in table.names if name not in table.conflicts]
    for name in options.attributes:
        if name not in table:
            raise UnknownNameError("attribute", name, table.names)
    return [table.get(name) for name in options.attributes]


def _adjust(rows: Sequence[Row]) -> None:
    """Add q, and whether a difference is significant, to all rows of buckets that were tested."""
    tested = [row for row in rows if row["kind"] in {"single", "pairwise"} and row["p"] is not None]
    for row, q in zip(tested, benjamini_hochberg([row["p"] for row in tested]).tolist(), strict=True):
        row["q"] = q
        row["significant"] = q <= SIGNIFICANCE and row["n"] >= LEAST_ITEMS


class _Work:
    """Collects the rows of one diagnosis."""

    def __init__(self, *, registry: Registry, options: DiagnosisOptions, features: Sequence[Feature]) -> None:
        self._registry = registry
        self._options = options
        self._features = features
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self._english_items: dict[tuple[str, str], Items | None] = {}

    def describe(self, group: SystemGroup) -> None:
        """Add the distributions of a task's attributes by language; predictions play no part."""
        system = group.systems[0]
        for code in system.cells:
            cell = self._attributes(group, [system], code, of_items=True)
            head = {"kind": "data", "task": group.task, "language": code, "view": dict(group.view)}
            self.rows += [
                {**head, "attribute": name, **distribution(attribute)}
                for name, attribute in (cell.attributes.items() if cell is not None else ())
            ]

    def score(self, group: SystemGroup) -> None:
        """Add the scores of every system of a group in every bucket."""
        for system in group.systems:
            cells = [self._attributes(group, [system], code, labels=True) for code in system.cells]
            self._add(group, [system], cells)

    def compare(self, group: SystemGroup, runs: Sequence[Run]) -> None:
        """Add the differences of systems of the first run from those of the second, as `compare` has them."""
        for first, second in _pairs(group, runs, self.notes):
            differences = differences_of(first, second, group.task)
            if differences and self._options.strict:
                raise UsageError(
                    f"{first.name} and {second.name} cannot be compared in {group.title}: {'; '.join(differences)}.",
                    hint="Without --strict, what they have in common is compared.",
                )
            self.notes += [f"{group.title}: {clause}." for clause in differences]
            both = [first, second]
            shared = [code for code in first.cells if code in second.cells]
            cells = [self._attributes(group, both, code, of_items=True) for code in shared]
            self._add(group, both, cells)

    def _attributes(
        self,
        group: SystemGroup,
        systems: Sequence[System],
        code: str,
        *,
        of_items: bool = False,
        labels: bool = False,
    ) -> CellAttributes | None:
        """Return the common items of systems in a language; None without gold. Their texts are freed on return.

        Args:
            group: The task.
            systems: One or two.
            code: The language.
            of_items: Whether only features of the items alone are wanted.
            labels: Whether rows of confidence and of confused labels are added.
        """
        first = systems[0]
        items = [self._read(group, system, system.cells[code], inputs=system is first) for system in systems]
        if not any(map(len, items)):
            self.notes.append(f"{group.title} {code}: no item has a gold answer.")
            return None
        if labels:
            self._add_labels(group, first, items[0])
        if len(items) > 1:
            *items, notes = common_items(items[0], items[1], strict=self._options.strict)
            self.notes += notes
        metric = bucket_metric(self._registry.metrics, items[0], first.spec.headline, self._options.metric)
        context = FeatureContext(
            model=_model_folder(first.run),
            vocabulary=self._options.vocabulary,
            english=lambda: self._english(first),
        )
        features = [feature for feature in self._features if feature.of == "item" or not of_items]
        return cell_attributes(items, metric, features, context)

    def _read(self, group: SystemGroup, system: System, cell: CellResult, *, inputs: bool = True) -> Items:
        show_step(f"Diagnosis: {group.title} {cell.language}, {system.name}")
        most = self._options.most_items
        if most is not None and cell.n > most:
            self.notes.append(
                f"{group.title} {cell.language}: the diagnosis uses {most:,} of {cell.n:,} items."
            )
        return read_items(system.run, cell, system.spec, inputs=inputs, most=most)

    def _english(self, system: System) -> Items | None:
        """Return the English items of a parallel task, read once per run; None where the run has none."""
        (task,) = {cell.task for cell in system.cells.values()}
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
        languages = [bucket_language(cell, self._given_edges(group.task), pooled) for cell in cells]
        blocks = [(block_of(cell, *names), splits) for cell, splits in zip(cells, languages, strict=True)]
        if len(cells) > 1:
            task = systems[0].spec
            parallel, unpaired = task.parallel, task.unpaired
            blocks.insert(
                0, join_languages(cells, languages, parallel=parallel, unpaired=unpaired, names=names)
            )
        blocks = [(block, [split for split in splits if len(split.buckets) > 1]) for block, splits in blocks]
        varying = {split.feature.name for _, splits in blocks for split in splits}
        if constant := {name for cell in cells for name in cell.attributes} - varying:
            constants = ", ".join(sorted(constant))
            self.notes.append(f"{group.title}: skipped, since all items have the same value: {constants}.")
        return blocks

    def _given_edges(self, task: str) -> Callable[[Feature, str], Sequence[Bucket] | None]:
        def published_edges(feature: Feature, language: str) -> Sequence[Bucket] | None:
            if self._options.edges != "paper":
                return None
            edges = feature.published(task, language) if feature.published is not None else None
            if edges is None and feature.continuous:
                self.notes.append(
                    f"{task} {language}: no edges are printed for {feature.name}; they are by equal counts."
                )
            return edges

        return published_edges

    def _add_labels(self, group: SystemGroup, system: System, items: Items) -> None:
        head = {**_head(group, system), "language": items.language.code}
        for kind, rows in (("calibration", calibration_rows(items)), ("confusion", confusion_rows(items))):
            self.rows += [{**head, "kind": kind, **row} for row in rows]

    def _add(
        self, group: SystemGroup, systems: Sequence[System], cells: Sequence[CellAttributes | None]
    ) -> None:
        """Add a row for every bucket: of one system, or of the difference of two."""
        head = {**_head(group, systems[0]), "kind": "single"}
        rows_of = score_splits
        if len(systems) > 1:
            del head["system"]
            head |= {"kind": "pairwise", "systems": [system.name for system in systems]}
            rows_of = compare_splits
        blocks = self._blocks(group, systems, [cell for cell in cells if cell is not None])
        for block, splits in blocks:
            scored = rows_of(block, splits, examples=self._options.examples)
            for split, scores in zip(splits, scored, strict=True):
                # What depends on the answer differs by its making.
                untested: Row = {"p": None} if split.feature.of == "prediction" else {}
                self.rows += [
                    {
                        **head,
                        "language": block.language,
                        "attribute": split.feature.name,
                        "level": split.feature.level,
                        "bucket": bucket.name,
                        "low": _finite(bucket.low),
                        "high": _finite(bucket.high),
                        "low_closed": bucket.low_closed,
                        **row,
                        **untested,
                    }
                    for bucket, row in zip(split.buckets, scores, strict=True)
                ]


def _finite(bound: float | None) -> float | None:
    """Return a bound as JSON can hold it: None for one that is open."""
    return None if bound is None or math.isinf(bound) else bound


def _head(group: SystemGroup, system: System) -> Row:
    cell = next(iter(system.cells.values()))
    head: Row = {"kind": "", "task": group.task, "language": None, "protocol": cell.protocol}
    return head | {"method": cell.method, "view": dict(group.view), "system": system.name}


def _pairs(group: SystemGroup, runs: Sequence[Run], notes: list[str]) -> list[tuple[System, System]]:
    """Return the pairs of systems of the two runs: those of the same protocol, method and seed where there are any."""
    first, second = ([system for system in group.systems if system.run is run] for run in runs)
    for run, systems in zip(runs, (first, second), strict=True):
        if not systems:
            notes.append(f"{group.title}: {run.manifest.model_name} ({run.path}) did not finish it.")
    every = [(ours, theirs) for ours in first for theirs in second]
    for names in (("protocol", "method", "seed"), ("protocol", "method"), ("protocol",)):
        conditions = attrgetter(*names)
        cells = ((pair, [next(iter(system.cells.values())) for system in pair]) for pair in every)
        same = [
            pair
            for pair, (first_cell, second_cell) in cells
            if conditions(first_cell) == conditions(second_cell)
        ]
        if same:
            return same
    return every


def _model_folder(run: Run) -> Path | None:
    _, _, name = run.manifest.model.partition(":")
    folder = Path(name)
    return folder if name and folder.is_dir() else None


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
    elif items.kind == "token_tagging" and not any(label[:2] == "B-" for label in items.labels):
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
