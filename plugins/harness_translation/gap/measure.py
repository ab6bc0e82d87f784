"""Gaps between versions of a test set, with intervals: does the human translation lower the score?

Machine-made text that scores above human-made text speaks against the human text, if this holds for every
translator. All quantities are computed in the same resamples of the clusters of items (premises): the better of ZS
and TT in `delta` is chosen anew in each, so that its interval includes the choice. Languages are fixed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from harness import Run, UsageError
from harness.metrics import MetricContext, macro_f1, macro_f1_from_counts
from harness.statistics import DRAWS, Codes, Interval, percentile_interval, resampled_sums, seed_of
from harness.storage import CellResult, read_columns
from harness_translation.gap.correlation import Correlation, by_size, correlation
from harness_translation.gap.system import (
    CONTEXT_STAYS,
    CONTRASTS,
    FLAGGED,
    VARIANTS,
    ZS,
    Booleans,
    Condition,
    GapSystem,
    VariantItems,
    command_for,
    contrast,
    read_languages,
)

Floats = npt.NDArray[np.float64]
_Vector = Floats
"""Shape (1 + seeds + draws,): a quantity over all seeds, for each seed, and for each resample."""
KIND = "sequence_classification"
_F1Scores = Mapping[tuple[str, Condition], float]
"""By language and version: the mean over seeds, as a fraction."""
ALL: Final = "*"
"""The name of the mean over all translators; a language has it where every one of them has the versions.

So all numbers of one row are means over the same translators, and no row mixes sets of them.
"""
UNFAIR: Final = "the context is in the target language for ZS and in the source language for TT and BT"
Subset = Literal["all", "matching script"]
SUBSETS: Final[tuple[Subset, ...]] = ("all", "matching script")
Name = tuple[str, str]
"""A quantity and its translator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A score or a difference of scores as a fraction, with its error."""

    value: float
    interval: Interval
    seed_sd: float | None = None
    """Standard deviation over seeds; None for one seed. The interval is of the mean over seeds, seeds fixed."""

    def exceeds(self, k: float) -> bool:
        """Return whether it is above zero by more than k standard errors."""
        if self.interval.se is None:
            return self.interval.method == "constant" and self.value > 0
        return self.value > k * self.interval.se


@dataclass(slots=True, kw_only=True)
class Means:
    """Collects columns of item scores and resamples them together.

    Columns of one block share their draws: those of all languages in a parallel task, else those of one language. In a
    resample, as many draws as the block has are taken with replacement, and each column's mean is the ratio of its sum
    to its number of items (Davison and Hinkley 1997, section 2.4).
    """

    seeds: int
    seed: int
    """The seed of the draws."""
    draws: int = DRAWS
    _blocks: dict[str, list[tuple[Any, Codes, Floats]]] = field(default_factory=dict)

    def add(self, name: Any, block: str, codes: Codes, scores: Floats) -> None:
        """Add a column: the draws of its items, shape (n,), and their scores, shape (seeds, n), at least one item."""
        self._blocks.setdefault(block, []).append((name, codes, scores))

    def vectors(self) -> dict[Any, _Vector]:
        """Return the means of every column by name."""
        means: dict[Any, _Vector] = {}
        for number, columns in enumerate(self._blocks.values()):
            means |= self._resampled(columns, self.seed + number)
        return means

    def _resampled(self, columns: Sequence[tuple[Any, Codes, Floats]], seed: int) -> dict[Any, _Vector]:
        every = np.unique(np.concatenate([codes for _, codes, _ in columns]))
        groups = len(every)
        sums = np.empty((groups, 2 * len(columns)))
        for index, (_, codes, scores) in enumerate(columns):
            rows = np.searchsorted(every, codes)
            sums[:, 2 * index] = np.bincount(rows, weights=scores.mean(axis=0), minlength=groups)
            sums[:, 2 * index + 1] = np.bincount(rows, minlength=groups)
        drawn = resampled_sums(sums, draws=self.draws, seed=seed)
        with np.errstate(invalid="ignore"):
            replicates = drawn[:, 0::2] / drawn[:, 1::2]
        return {
            name: np.concatenate([[scores.mean()], scores.mean(axis=1), replicates[:, index]])
            for index, (name, _, scores) in enumerate(columns)
        }

    def estimate(self, vector: _Vector, groups: int, items: int, *, reflected: bool = False) -> Estimate:
        """Return a quantity with the interval of its resamples.

        Args:
            vector: The vector of the quantity.
            groups: The number of draws behind it.
            items: The number of items; equal to the draws if no items were drawn together.
            reflected: Whether it is the basic interval, 2 value - quantiles, not the percentile one (Davison and
                Hinkley 1997, section 5.2). The larger of two noisy scores is too large, and in resamples too large
                twice: where ZS and TT are equal in 14 languages, the percentile interval of the mean delta covers it
                in 37 of 100 cases, the basic one in 85; 1 point apart, both cover it in 93 or 94.
        """
        by_seed, replicates = vector[1 : 1 + self.seeds], vector[1 + self.seeds :]
        if groups < 2:
            interval = Interval(method="one cluster")
        elif np.ptp(replicates) < 1e-12:
            interval = Interval(method="constant")
        else:
            method = "paired bootstrap" if groups == items else "paired cluster bootstrap"
            if reflected:
                replicates, method = 2 * vector[0] - replicates, f"{method}, basic"
            interval = percentile_interval(replicates, method=method, groups=groups, seed=self.seed)
        spread = float(by_seed.std(ddof=1)) if self.seeds > 1 else None
        return Estimate(value=float(vector[0]), interval=interval, seed_sd=spread)


def _macro_f1_scores(system: GapSystem) -> _F1Scores:
    """Return the macro-F1 of every cell of a task that classifies texts; nothing for tasks of other kinds."""
    if system.spec.kind != KIND:
        return {}
    return {
        (code, condition): fmean(_score(*by_seed[seed], system.spec.labels) for seed in system.seeds)
        for code, versions in system.cells.items()
        for condition, by_seed in versions.items()
    }


def _score(run: Run, cell: CellResult, labels: Sequence[str]) -> float:
    columns = read_columns(run.records_of(cell), ("prediction", "reference"))
    pairs = Counter(zip(columns["prediction"], columns["reference"], strict=True))
    # Few pairs of an answer and its gold label are distinct: each is parsed and scored once.
    counted = [(*map(json.loads, pair), number) for pair, number in pairs.items() if pair[1] != "null"]
    predictions, references, numbers = zip(*counted, strict=True)
    context = MetricContext(language=str(cell.language), labels=tuple(labels))
    counts = macro_f1(predictions, references, context).counts
    assert counts is not None
    return macro_f1_from_counts(np.array(numbers) @ counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class GapOptions:
    """The options of the computation."""

    k: float = 2.0
    """A gap is flagged if it exceeds this many standard errors for every translator."""
    common: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GapValue:
    """One score, contrast or transfer gap, as a fraction."""

    quantity: str
    """``source``, the source language's score on these items; ``zs``, ``tt``, ``te``, ``bt``; ``delta``, ``te_zs``,
    ``bt_tt``, ``tt_zs``; ``transfer_gap_zs``, ..."""
    translator: str
    """Empty if none is needed; ``*`` for the mean over translators."""
    language: str | None
    """None for a mean over languages."""
    languages: tuple[str, ...]
    """The languages that it is the mean of."""
    subset: Subset
    items: int
    estimate: Estimate
    flagged: bool = False
    """Whether it exceeds k standard errors for every translator."""
    unfair: str = ""
    """Why the two sides differ in more than their translation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemGaps:
    """The gaps of one system under one metric."""

    system: GapSystem
    metric: str
    values: tuple[GapValue, ...]
    correlations: tuple[Correlation, ...]
    mismatched: Mapping[str, int]
    """By language: items whose human text is not in its script; languages with a known script only."""
    languages: tuple[str, ...]
    """By pre-training size, without the source language."""
    notes: tuple[str, ...]
    f1: _F1Scores = field(default_factory=dict)
    """Macro-F1, where the metric is accuracy."""

    @property
    def flagged(self) -> Mapping[str, tuple[str, ...]]:
        """By quantity: the languages whose gap exceeds k standard errors for every translator."""
        flagged = [
            value
            for value in self.values
            if value.flagged and (value.translator, value.subset) == (ALL, "all")
        ]
        return {
            name: tuple(str(value.language) for value in flagged if value.quantity == name)
            for name in FLAGGED
        }

    def paired(self, code: str) -> bool:
        """Return whether a language's items are those of the same ids in the source language."""
        return bool(self.system.spec.parallel) and code not in self.system.spec.unpaired

    def translators_of(self, quantity: str, language: str) -> tuple[str, ...]:
        """Return the translators that a language has a contrast of."""
        return tuple(name for name in self.system.translators if self.find(quantity, language, name))

    def find(
        self, quantity: str, language: str | None, translator: str, subset: Subset = "all"
    ) -> GapValue | None:
        """Return the value of a language or of the mean over languages; None if it could not be computed."""
        for value in self.values:
            key = (value.quantity, value.language, value.translator, value.subset)
            if key == (quantity, language, translator, subset):
                return value
        return None


def compute_gaps(systems: Sequence[GapSystem], metric: str | None, options: GapOptions) -> list[SystemGaps]:
    """Return the gaps of every system that has versions to compare, under the given metric or each metric of its task.

    Raises:
        UsageError: If no system has two versions of a test set; the hint is the command that makes them.
        DataError: As `read_languages` does.
    """
    all_gaps, notes = [], []
    for system in systems:
        if not system.translators:
            codes = [code for code in system.cells if code != system.source] or [system.source]
            notes.append(command_for(system, codes, VARIANTS, ""))
            continue
        for name in system.spec.headline if metric is None else [metric]:
            gaps = _Gaps(system, name, options)
            all_gaps.append(
                SystemGaps(
                    system=system,
                    metric=name,
                    values=tuple(gaps.values()),
                    correlations=tuple(gaps.correlations()),
                    mismatched=gaps.mismatched,
                    languages=tuple(gaps.targets),
                    notes=(*system.notes, *gaps.missing()),
                    f1=_macro_f1_scores(system) if name == "accuracy" else {},
                )
            )
    if not all_gaps:
        raise UsageError(
            "These runs hold human translations only: no cell has a variant tt, te or bt with its translator.",
            hint=f"Make them with: {notes[0]}",
        )
    return all_gaps


class _Gaps:
    """Computes the values of a system from the means of its versions."""

    def __init__(self, system: GapSystem, metric: str, options: GapOptions) -> None:
        languages = read_languages(system, metric, common=options.common)
        self._system, self._options = system, options
        self._parts = {items.language: items for items in languages}
        self.targets = by_size([code for code in self._parts if code != system.source])
        self.mismatched = {
            items.language: int((~items.matching).sum()) for items in languages if items.matching is not None
        }
        parallel = bool(system.spec.parallel)
        self._means = Means(seeds=len(system.seeds), seed=seed_of("gap", system.task, metric))
        self._draws: dict[tuple[str, Subset], Codes] = {}
        self._groups: dict[tuple[tuple[str, ...], Subset], int] = {}
        for items in languages:
            block = "" if parallel else items.language
            self._add(items, "all", np.ones(len(items.ids), dtype=np.bool_), block)
            if items.matching is not None and not items.matching.all() and items.matching.any():
                self._add(items, "matching script", items.matching, block)
        vectors = self._means.vectors()
        source_vector = vectors.get((system.source, "all", ZS))
        self._found: dict[tuple[str, Subset], dict[Name, _Vector]] = {}
        if source_vector is not None:
            self._found[system.source, "all"] = {("zs", ""): source_vector}
        for code, subset in ((code, subset) for subset in SUBSETS for code in self.targets):
            if (code, subset) in self._draws:
                versions = {
                    condition: vectors[code, subset, condition] for condition in self._parts[code].scores
                }
                # The source language's score is on the same items, or on its own if the task is not parallel.
                paired = parallel and code not in system.spec.unpaired
                source = vectors.get((code, subset, "source")) if paired else source_vector
                self._found[code, subset] = self._of_language(versions, source)

    def _add(self, part: VariantItems, subset: Subset, kept: Booleans, block: str) -> None:
        draws = self._draws[part.language, subset] = part.draws[kept]
        for condition, scores in part.scores.items():
            self._means.add((part.language, subset, condition), block, draws, scores[:, kept])
        if part.source is not None and part.language != self._system.source:
            self._means.add((part.language, subset, "source"), block, draws, part.source[:, kept])

    def _of_language(
        self, vectors: Mapping[Condition, _Vector], source: _Vector | None
    ) -> dict[Name, _Vector]:
        """Return the vectors of one language, by quantity and translator."""
        by_name: dict[Name, _Vector] = {} if source is None else {("source", ""): source}
        for variant in VARIANTS:
            for condition in sorted(vectors):
                if condition.variant == variant:
                    by_name[variant, condition.translator] = vectors[condition]
                    if source is not None:
                        by_name[f"transfer_gap_{variant}", condition.translator] = source - vectors[condition]
        for quantity, needed in CONTRASTS.items():
            for translator in self._system.translators:
                scores = {name: by_name.get((name, "" if name == "zs" else translator)) for name in needed}
                if all(vector is not None for vector in scores.values()):
                    by_name[quantity, translator] = contrast(quantity, scores)
        for quantity in (*VARIANTS, *CONTRASTS, *(f"transfer_gap_{variant}" for variant in VARIANTS)):
            each = [by_name.get((quantity, translator)) for translator in self._system.translators]
            vectors_of_all = [vector for vector in each if vector is not None]
            if each and len(vectors_of_all) == len(each):
                by_name[quantity, ALL] = np.mean(vectors_of_all, axis=0)
        return by_name

    def values(self) -> list[GapValue]:
        """Return all values, those of languages before means."""
        gap_values: list[GapValue] = []
        for subset in SUBSETS:
            by_code = {code: names for (code, each), names in self._found.items() if each == subset}
            values = [
                self._value(name, (code,), subset, language=code)
                for code in by_code
                for name in by_code[code]
            ]
            gap_values += self._with_flags(values)
            if any(code in by_code for code in self.targets):
                for name in dict.fromkeys(name for code in self.targets for name in self._of(code, subset)):
                    codes = [code for code in self.targets if name in self._of(code, subset)]
                    gap_values.append(self._value(name, codes, subset))
        return gap_values

    def _of(self, code: str, subset: Subset) -> dict[Name, _Vector]:
        """Return the vectors of a subset of the items; of all items if the subset is all of them."""
        return self._found.get((code, subset), self._found[code, "all"])

    def _with_flags(self, values: Sequence[GapValue]) -> list[GapValue]:
        """Return the values, flagged where the gap is beyond k standard errors for every translator.

        Where a translator has no such gap, there is no verdict on every translator, and nothing is flagged.
        """
        exceeding = Counter(
            (value.quantity, value.language)
            for value in values
            if value.translator not in {"", ALL} and value.quantity in FLAGGED
            if value.estimate.exceeds(self._options.k)
        )
        every = len(self._system.translators)
        return [replace(own, flagged=exceeding[own.quantity, own.language] == every) for own in values]

    def _value(
        self, name: Name, codes: Sequence[str], subset: Subset, *, language: str | None = None
    ) -> GapValue:
        """Return the value of a language, or the mean over several."""
        quantity, translator = name
        vector = np.mean([self._of(code, subset)[name] for code in codes], axis=0)
        draws = [self._draws.get((code, subset), self._draws[code, "all"]) for code in codes]
        items = sum(map(len, draws))
        key = tuple(codes), subset
        if key not in self._groups:
            self._groups[key] = len(np.unique(np.concatenate(draws)))
        stays = self._system.spec.kind in CONTEXT_STAYS and quantity in {"delta", "tt_zs"}
        return GapValue(
            quantity=quantity,
            translator=translator,
            language=language,
            languages=tuple(codes),
            subset=subset,
            items=items,
            estimate=self._means.estimate(vector, self._groups[key], items, reflected=quantity == "delta"),
            unfair=UNFAIR if stays else "",
        )

    def correlations(self) -> list[Correlation]:
        """Return how the contrasts rank with pre-training size, by quantity and translator."""
        all_correlations = []
        for quantity in FLAGGED:
            for translator in (*self._system.translators, ALL):
                name = quantity, translator
                held = {code: self._found[code, "all"].get(name) for code in self.targets}
                vectors = {code: vector for code, vector in held.items() if vector is not None}
                points = 1 + len(self._system.seeds)
                estimate = correlation(quantity, translator, vectors, points)
                if estimate is not None:
                    all_correlations.append(estimate)
        return all_correlations

    def missing(self) -> list[str]:
        """Return notes on what could not be computed, with the command that makes the missing cells."""
        system = self._system
        if not self.targets:
            return [f"{system.title}: there is no gap, since {system.source!r} is the only language."]
        codes_by_absence: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for code in self.targets:
            for translator in system.translators:
                names = {variant: (variant, "" if variant == "zs" else translator) for variant in VARIANTS}
                absent = tuple(
                    variant for variant, name in names.items() if name not in self._found[code, "all"]
                )
                if absent:
                    codes_by_absence.setdefault((translator, absent), []).append(code)
        notes = [
            f"{' '.join(codes)}: no cells of {', '.join(absent)} by {translator!r}. Make them with: "
            f"{command_for(system, codes, absent, translator)}"
            for (translator, absent), codes in codes_by_absence.items()
        ]
        unpaired = [
            code
            for code in self.targets
            if not any(name.startswith("transfer_gap") for name, _ in self._found[code, "all"])
        ]
        if unpaired:
            notes.append(
                f"{' '.join(unpaired)}: no transfer gap, since the items were not all answered in "
                f"{system.source!r}. Make them with: {command_for(system, [system.source], ['zs'], '')}"
            )
        return notes
