"""Diagnosis: in which buckets of an attribute a system is weak, and where one system is better than another.

What ExplainaBoard (Liu et al. 2021, arXiv 2104.06387) calls single-system, pairwise and dataset bias analysis, in the
multilingual form of XTREME-R (Ruder et al., 2021, section 5 and appendix K), with clusters, paired tests and
corrections. Everything is read from run folders.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.analysis.attributes import (
    Bucketed,
    CellAttributes,
    block_of,
    bucket_language,
    cell_attributes,
    join_languages,
    pooled_edges,
)
from harness.analysis.bucket_metric import bucket_metric
from harness.analysis.bucket_scoring import Block, BucketScore, PairScore, compare_splits, score_splits
from harness.analysis.calibration import calibration_rows, confusion_rows
from harness.analysis.data_bias import distribution
from harness.analysis.items import read_items
from harness.analysis.pairing import common_items, differences_of
from harness.analysis.systems import System, SystemGroup, group_systems
from harness.data.features import Feature, FeatureContext, Items
from harness.errors import UnknownNameError, UsageError
from harness.progress import show_step
from harness.statistics import benjamini_hochberg
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

if TYPE_CHECKING:
    from harness.data.buckets import Bucket
    from harness.registry.registry import Registry

__all__ = ["EDGES", "LEAST_ITEMS", "SIGNIFICANCE", "Diagnosis", "DiagnosisOptions", "diagnose"]

EDGES: Final = ("language", "pooled", "paper")
LEAST_ITEMS: Final = 30
"""A difference in a bucket of fewer items is never called significant."""
SIGNIFICANCE: Final = 0.05
"""The false discovery rate at which a difference is called significant."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisOptions:
    """What is diagnosed, and how."""

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
    """What was found, as rows, and what was skipped."""

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
            f"The attribute {name!r} is declared by both {one!r} and {other!r}: skipped."
            for name, (one, other) in registry.features.conflicts.items()
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One language of a group, or all of them: its block and its attributes."""

    language: str | None
    block: Block
    bucketed: Sequence[Bucketed]


class _Work:
    """Collects the rows of one diagnosis."""

    def __init__(self, *, registry: Registry, options: DiagnosisOptions, features: Sequence[Feature]) -> None:
        self._registry = registry
        self._options = options
        self._features = features
        self.rows: list[Row] = []
        self.notes: list[str] = []

    def describe(self, group: SystemGroup) -> None:
        """Add the distributions of a task's attributes by language; predictions play no part."""
        system = group.systems[0]
        features = [feature for feature in self._features if feature.of == "item"]
        for code, cell in system.cells.items():
            items = self._read(group, system, cell)
            if not len(items):
                self.notes.append(f"{group.title} {code}: no item has a gold answer.")
                continue
            attributes = self._attributes([items], system, features).attributes
            head = {"kind": "data", "task": group.task, "language": code, "view": dict(group.view)}
            self.rows += [{**head, "attribute": own.feature.name, **distribution(own)} for own in attributes]

    def score(self, group: SystemGroup) -> None:
        """Add the scores of every system of a group in every bucket."""
        for system in group.systems:
            cells = []
            for cell in system.cells.values():
                items = self._read(group, system, cell)
                if len(items):
                    cells.append(self._attributes([items], system, self._features))
                    self._add_labels(group, system, items)
                else:
                    self.notes.append(f"{group.title} {cell.language}: no item has a gold answer.")
            for part in self._parts(group, [system], cells):
                head = {**_head(group, system), "kind": "single", "language": part.language}
                splits = [own.split for own in part.bucketed]
                scored = score_splits(part.block, splits, examples=self._options.examples)
                self._add(part, scored, head, _single_row)

    def compare(self, group: SystemGroup, runs: Sequence[Run]) -> None:
        """Add the differences of the systems of the second run from those of the first."""
        for first, second in _pairs(group, runs, self.notes):
            differences = differences_of(first, second, group.task)
            if differences and self._options.strict:
                raise UsageError(
                    f"{first.name} and {second.name} cannot be compared in {group.title}: {'; '.join(differences)}.",
                    hint="Without --strict, what they have in common is compared.",
                )
            self.notes += [f"{group.title}: {clause}." for clause in differences]
            cells = []
            for code in first.cells:
                if code in second.cells:
                    both = [
                        self._read(group, own, own.cells[code], inputs=own is first)
                        for own in (first, second)
                    ]
                    if not any(map(len, both)):
                        self.notes.append(f"{group.title} {code}: no item has a gold answer.")
                        continue
                    *items, notes = common_items(both[0], both[1], strict=self._options.strict)
                    self.notes += notes
                    features = [feature for feature in self._features if feature.of == "item"]
                    cells.append(self._attributes(items, first, features))
            for part in self._parts(group, [first, second], cells):
                head = {**_head(group, first), "kind": "pairwise", "language": part.language}
                head["systems"] = [first.name, second.name]
                del head["system"]
                splits = [own.split for own in part.bucketed]
                compared = compare_splits(part.block, splits, examples=self._options.examples)
                self._add(part, compared, head, _pair_row)

    def _read(self, group: SystemGroup, system: System, cell: CellResult, *, inputs: bool = True) -> Items:
        show_step(f"Diagnosis: {group.title} {cell.language}, {system.name}")
        most = self._options.most_items
        if most is not None and cell.n > most:
            self.notes.append(
                f"{group.title} {cell.language}: the diagnosis uses {most:,} of {cell.n:,} items."
            )
        return read_items(system.run, cell, system.spec, inputs=inputs, most=most)

    def _attributes(
        self, systems: Sequence[Items], system: System, features: Iterable[Feature]
    ) -> CellAttributes:
        headline = system.spec.headline
        metric = bucket_metric(self._registry.metrics, systems[0], headline, self._options.metric)
        context = FeatureContext(model=_model_folder(system.run), vocabulary=self._options.vocabulary)
        return cell_attributes(systems, metric, features, context)

    def _parts(
        self, group: SystemGroup, systems: Sequence[System], cells: Sequence[CellAttributes]
    ) -> list[_Part]:
        """Return the languages and, where there are several, all of them together; constant attributes are skipped."""
        names = [group.title, *(f"{own.run.results.run.id} {own.name}" for own in systems)]
        pooled = pooled_edges(cells) if self._options.edges == "pooled" else {}
        languages = [bucket_language(cell, self._given_edges(group.task), pooled) for cell in cells]
        parts = [
            _Part(
                language=cell.items.language.code,
                block=block_of(cell, *names),
                bucketed=[own for own in found if len(own.buckets) > 1],
            )
            for cell, found in zip(cells, languages, strict=True)
        ]
        everywhere, task = [], systems[0].spec
        if len(cells) > 1:
            parallel, unpaired = task.parallel, task.unpaired
            block, joined = join_languages(
                cells, languages, parallel=parallel, unpaired=unpaired, names=names
            )
            everywhere = [own for own in joined if len(own.buckets) > 1]
            parts.insert(0, _Part(language=None, block=block, bucketed=everywhere))
        shown = {own.feature.name for part in parts for own in part.bucketed}
        constant = {own.feature.name for cell in cells for own in cell.attributes} - shown
        if constant:
            constants = ", ".join(sorted(constant))
            self.notes.append(f"{group.title}: skipped, since all items have the same value: {constants}.")
        return parts

    def _given_edges(self, task: str) -> Callable[[Feature, str], Sequence[Bucket] | None]:
        def given(feature: Feature, language: str) -> Sequence[Bucket] | None:
            if self._options.edges != "paper":
                return None
            edges = feature.published(task, language) if feature.published is not None else None
            if edges is None and feature.continuous:
                self.notes.append(
                    f"{task} {language}: no edges are printed for {feature.name}; they are by equal counts."
                )
            return edges

        return given

    def _add_labels(self, group: SystemGroup, system: System, items: Items) -> None:
        head = {**_head(group, system), "language": items.language.code}
        for kind, rows in (("calibration", calibration_rows(items)), ("confusion", confusion_rows(items))):
            self.rows += [{**head, "kind": kind, **row} for row in rows]

    def _add(
        self,
        part: _Part,
        scored: Sequence[Sequence[Any]],
        head: Mapping[str, Any],
        row_of: Callable[[Any], Row],
    ) -> None:
        for own, scores in zip(part.bucketed, scored, strict=True):
            for bucket, score in zip(own.buckets, scores, strict=True):
                self.rows.append(
                    {
                        **head,
                        "attribute": own.feature.name,
                        "level": own.feature.level,
                        "bucket": bucket.name,
                        "low": _finite(bucket.low),
                        "high": _finite(bucket.high),
                        "low_closed": bucket.low_closed,
                        "n": score.n,
                        "metric": own.split.metric.name,
                        **row_of(score),
                        # What depends on the answer differs by its making.
                        **({} if own.feature.of != "prediction" else {"p": None}),
                    }
                )


def _finite(bound: float | None) -> float | None:
    """Return a bound as JSON can hold it: None for one that is open."""
    return None if bound is None or math.isinf(bound) else bound


def _head(group: SystemGroup, system: System) -> Row:
    cell = next(iter(system.cells.values()))
    return {
        "kind": "",
        "task": group.task,
        "language": None,
        "protocol": cell.protocol,
        "method": cell.method,
        "view": dict(group.view),
        "system": system.name,
    }


def _single_row(score: BucketScore) -> Row:
    interval = None if score.low is None or score.high is None else [score.low, score.high]
    own = score.contrast
    # What too few items say is not tested, so that it costs the others nothing.
    is_tested = min(score.n, own.n) >= LEAST_ITEMS
    return {
        "value": score.value,
        "se": score.se,
        "ci": interval,
        "ci_method": score.method,
        "rest": own.rest,
        "difference": None if score.value is None or own.rest is None else score.value - own.rest,
        "difference_ci": None if own.low is None or own.high is None else [own.low, own.high],
        "p": own.p if is_tested else None,
        "q": None,
        "significant": False,
        "examples": list(score.examples),
    }


def _pair_row(score: PairScore) -> Row:
    interval = None if score.low is None or score.high is None else [score.low, score.high]
    return {
        "values": list(score.values),
        "difference": score.difference,
        "ci": interval,
        "p": score.p,
        "q": None,
        "significant": False,
        "wins": score.wins,
        "losses": score.losses,
        "ties": score.ties,
        "examples": list(score.examples),
    }


def _pairs(group: SystemGroup, runs: Sequence[Run], notes: list[str]) -> list[tuple[System, System]]:
    """Return the pairs of systems of the two runs: those of the same protocol, method and seed where there are any."""
    first, second = ([own for own in group.systems if own.run is run] for run in runs)
    for run, own in zip(runs, (first, second), strict=True):
        if not own:
            notes.append(f"{group.title}: {run.manifest.model} ({run.path}) did not finish it.")
    every = [(one, other) for one in first for other in second]
    for names in (("protocol", "method", "seed"), ("protocol", "method"), ("protocol",)):
        same = [pair for pair in every if _condition(pair[0], names) == _condition(pair[1], names)]
        if same:
            return same
    return every


def _condition(system: System, names: Sequence[str]) -> list[Any]:
    cell = next(iter(system.cells.values()))
    return [getattr(cell, name) for name in names]


def _model_folder(run: Run) -> Path | None:
    _, _, name = run.manifest.model.partition(":")
    folder = Path(name)
    return folder if name and folder.is_dir() else None
