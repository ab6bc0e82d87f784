"""Gaps between versions of a test set, with intervals: does the human translation lower the score?

Machine-made text that scores above human-made text speaks against the human text, if this holds for every
translator. All quantities are computed in the same resamples of the clusters of items (premises): the better of ZS
and TT in `delta` is chosen anew in each, so that its interval includes the choice. Languages are fixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from harness import UsageError
from harness.statistics import Codes, seed_of
from harness_translation.gap.correlation import Correlation, correlation
from harness_translation.gap.formula import CONTRASTS, FLAGGED, VARIANTS, contrast
from harness_translation.gap.items import CONTEXT_STAYS, LanguageItems, read_languages
from harness_translation.gap.means import Estimate, Means, Vector
from harness_translation.gap.pretraining import by_size, resource_class
from harness_translation.gap.system import ZS, Condition, GapSystem, command_for

__all__ = ["ALL", "GapOptions", "GapValue", "SystemGaps", "compute_gaps", "system_gaps"]

ALL: Final = "*"
"""The name of the mean over translators."""
Subset = Literal["all", "matching script"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GapOptions:
    """The options of the computation."""

    k: float = 2.0
    """A gap is flagged if it exceeds this many standard errors for every translator."""
    order: str = "cc100"
    common: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GapValue:
    """One score, contrast or transfer gap, as a fraction."""

    quantity: str
    """``zs``, ``tt``, ``te``, ``bt``; ``delta``, ``te_zs``, ``bt_tt``, ``tt_zs``; ``transfer_gap_zs``, ..."""
    translator: str
    """Empty if none is needed; ``*`` for the mean over translators."""
    language: str | None
    """None for a mean over languages."""
    languages: tuple[str, ...]
    """The languages that it is the mean of."""
    resource_class: str | None
    """The class of the language, or the one that a mean is over."""
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
    flagged: Mapping[str, tuple[str, ...]]
    """By quantity: the languages whose gap exceeds k standard errors for every translator."""
    mismatched: Mapping[str, int]
    """By language: items whose human text is not in its script; languages with a known script only."""
    languages: tuple[str, ...]
    """By pre-training size, without the source language."""
    notes: tuple[str, ...]

    def find(
        self, quantity: str, language: str | None, translator: str, subset: Subset = "all"
    ) -> GapValue | None:
        """Return the value of a language or of the mean over all of them; None if it could not be computed."""
        for value in self.values:
            same = (value.quantity, value.language, value.translator, value.subset)
            if same == (quantity, language, translator, subset) and (
                language or value.resource_class is None
            ):
                return value
        return None


def compute_gaps(systems: Sequence[GapSystem], metric: str | None, options: GapOptions) -> list[SystemGaps]:
    """Return the gaps of every system that has versions to compare, under the given metric or each metric of its task.

    Raises:
        UsageError: If no system has two versions of a test set; the hint is the command that makes them.
        DataError: As `read_languages` does.
    """
    found, notes = [], []
    for system in systems:
        if not system.translators:
            codes = [code for code in system.cells if code != system.source] or [system.source]
            notes.append(command_for(system, codes, VARIANTS, ""))
            continue
        names = system.spec["headline"] if metric is None else [metric]
        found += [system_gaps(system, name, options) for name in names]
    if not found:
        raise UsageError(
            "These runs hold human translations only: no cell has a variant tt, te or bt with its translator.",
            hint=f"Make them with: {notes[0]}",
        )
    return found


def system_gaps(system: GapSystem, metric: str, options: GapOptions) -> SystemGaps:
    """Return the gaps of a system; raises `UsageError` and `DataError` as `read_languages` does."""
    parts = read_languages(system, metric, common=options.common)
    gaps = _Gaps(system, metric, parts, options)
    values = gaps.values()
    languages = [part.language for part in parts if part.language != system.source]
    return SystemGaps(
        system=system,
        metric=metric,
        values=tuple(values),
        correlations=tuple(gaps.correlations()),
        flagged=_flagged(values),
        mismatched={
            part.language: int((~part.matching).sum()) for part in parts if part.matching is not None
        },
        languages=tuple(by_size(languages, options.order)),
        notes=(*system.notes, *gaps.missing()),
    )


def _flagged(values: Sequence[GapValue]) -> dict[str, tuple[str, ...]]:
    return {
        quantity: tuple(
            str(value.language)
            for value in values
            if value.flagged
            and value.quantity == quantity
            and value.translator == ALL
            and value.subset == "all"
        )
        for quantity in FLAGGED
    }


class _Gaps:
    """Computes the values of a system from the means of its versions."""

    def __init__(
        self, system: GapSystem, metric: str, parts: Sequence[LanguageItems], options: GapOptions
    ) -> None:
        self._system, self._options = system, options
        self._parts = {part.language: part for part in parts}
        self._targets = by_size([code for code in self._parts if code != system.source], options.order)
        self._parallel = bool(system.spec.get("parallel"))
        seed = seed_of("gap", system.task, metric)
        self._means = Means(seeds=len(system.seeds), seed=seed)
        self._sizes: dict[tuple[str, Subset], int] = {}
        self._kept: dict[tuple[str, Subset], Codes] = {}
        self._draws: dict[tuple[tuple[str, ...], Subset], int] = {}
        for part in parts:
            self._add(part, "all", np.ones(len(part.ids), dtype=np.bool_))
            if part.matching is not None and not part.matching.all() and part.matching.any():
                self._add(part, "matching script", part.matching)
        self._vectors = self._means.vectors()
        self._found = {code: self._of_language(code, "all") for code in self._targets}

    def _add(self, part: LanguageItems, subset: Subset, kept: Any) -> None:
        block = "" if self._parallel else part.language
        self._sizes[part.language, subset] = int(kept.sum())
        self._kept[part.language, subset] = part.draws[kept]
        for condition, scores in part.scores.items():
            name = (part.language, subset, condition)
            self._means.add(name, block, part.draws[kept], scores[:, kept])
        if part.source is not None and part.language != self._system.source:
            self._means.add((part.language, subset, "source"), block, part.draws[kept], part.source[:, kept])

    def _source(self, code: str, subset: Subset) -> Vector | None:
        """Return the source language's score: of the same items, or of its own if the task is not parallel."""
        if self._parallel and code not in self._system.spec.get("unpaired", ()):
            return self._vectors.get((code, subset, "source"))
        return self._vectors.get((self._system.source, "all", ZS))

    def values(self) -> list[GapValue]:
        """Return all values, those of languages before means."""
        found: list[GapValue] = []
        own = self._vectors.get((self._system.source, "all", ZS))
        if own is not None:
            found.append(self._value("zs", "", self._system.source, "all", own))
        subsets: tuple[Subset, ...] = ("all", "matching script")
        for subset in subsets:
            shown = {code: held for code in self._targets if (held := self._in(code, subset)) is not None}
            found += self._with_flags(
                [
                    self._value(quantity, translator, code, subset, vector)
                    for code, own in shown.items()
                    for (quantity, translator), vector in own.items()
                ]
            )
            if shown:
                # A language whose text is all in its script has the same items in both means.
                every = {code: shown.get(code, self._found[code]) for code in self._targets}
                for name in dict.fromkeys(key for own in every.values() for key in own):
                    vectors = {code: own[name] for code, own in every.items() if name in own}
                    found += self._averages(*name, vectors, subset)
        return found

    def _in(self, code: str, subset: Subset) -> dict[tuple[str, str], Vector] | None:
        """Return the vectors of a subset of the items; None if the subset is all items."""
        if subset == "all":
            return self._found[code]
        return self._of_language(code, subset) if (code, subset) in self._sizes else None

    def _of_language(self, code: str, subset: Subset) -> dict[tuple[str, str], Vector]:
        """Return the vectors of one language, by quantity and translator."""
        conditions = self._parts[code].scores
        vectors = {condition: self._vectors[code, subset, condition] for condition in conditions}
        source = self._source(code, subset)
        found: dict[tuple[str, str], Vector] = {}
        for variant in VARIANTS:
            for condition in sorted(vectors):
                if condition.variant == variant:
                    found[variant, condition.translator] = vectors[condition]
                    if source is not None:
                        found[f"transfer_gap_{variant}", condition.translator] = source - vectors[condition]
        for quantity, needed in CONTRASTS.items():
            for translator in self._system.translators:
                scores = _scores(vectors, needed, translator)
                if scores is not None:
                    found[quantity, translator] = contrast(quantity, scores)
        for quantity in (*VARIANTS, *CONTRASTS, *(f"transfer_gap_{variant}" for variant in VARIANTS)):
            own = [vector for (name, each), vector in found.items() if name == quantity and each]
            if own:
                found[quantity, ALL] = np.mean(own, axis=0)
        return found

    def _value(self, quantity: str, translator: str, code: str, subset: Subset, vector: Vector) -> GapValue:
        items = self._sizes[code, subset]
        return GapValue(
            quantity=quantity,
            translator=translator,
            language=code,
            languages=(code,),
            resource_class=resource_class(code, self._options.order),
            subset=subset,
            items=items,
            estimate=self._estimate(quantity, vector, (code,), subset, items),
            unfair=self._unfair(quantity),
        )

    def _unfair(self, quantity: str) -> str:
        if self._system.spec["kind"] in CONTEXT_STAYS and quantity in {"delta", "tt_zs"}:
            return "the context is in the target language for ZS and in the source language for TT and BT"
        return ""

    def _with_flags(self, values: Sequence[GapValue]) -> list[GapValue]:
        """Return the values, flagged where the gap is beyond k standard errors for every translator."""
        own: dict[tuple[str, str], list[bool]] = {}
        for value in values:
            if value.translator not in {"", ALL} and value.quantity in FLAGGED:
                key = (value.quantity, str(value.language))
                own.setdefault(key, []).append(value.estimate.exceeds(self._options.k))
        return [
            replace(value, flagged=all(own.get((value.quantity, str(value.language)), [False])))
            for value in values
        ]

    def _averages(
        self, quantity: str, translator: str, vectors: Mapping[str, Vector], subset: Subset
    ) -> list[GapValue]:
        """Return the mean over all languages and, for the subset of all items, over every class of resources."""
        groups: dict[str | None, list[str]] = {None: list(vectors)}
        for code in vectors if subset == "all" else ():
            name = resource_class(code, self._options.order)
            if name is not None:
                groups.setdefault(name, []).append(code)
        found = []
        for name, codes in groups.items():
            items = sum(self._sizes.get((code, subset), self._sizes[code, "all"]) for code in codes)
            vector = np.mean([vectors[code] for code in codes], axis=0)
            found.append(
                GapValue(
                    quantity=quantity,
                    translator=translator,
                    language=None,
                    languages=tuple(codes),
                    resource_class=name,
                    subset=subset,
                    items=items,
                    estimate=self._estimate(quantity, vector, tuple(codes), subset, items),
                    unfair=self._unfair(quantity),
                )
            )
        return found

    def _estimate(
        self, quantity: str, vector: Vector, codes: tuple[str, ...], subset: Subset, items: int
    ) -> Estimate:
        key = (codes, subset)
        if key not in self._draws:
            draws = [self._kept[code, subset if (code, subset) in self._kept else "all"] for code in codes]
            self._draws[key] = len(np.unique(np.concatenate(draws)))
        return self._means.estimate(vector, self._draws[key], items, reflected=quantity == "delta")

    def correlations(self) -> list[Correlation]:
        """Return how the contrasts rank with pre-training size, by quantity and translator."""
        found = []
        for quantity in FLAGGED:
            for translator in (*self._system.translators, ALL):
                vectors = {code: self._found[code].get((quantity, translator)) for code in self._targets}
                known = {code: vector for code, vector in vectors.items() if vector is not None}
                own = correlation(
                    quantity, translator, known, self._options.order, 1 + len(self._system.seeds)
                )
                if own is not None:
                    found.append(own)
        return found

    def missing(self) -> list[str]:
        """Return notes on what could not be computed, with the command that makes the missing cells."""
        notes, system = [], self._system
        if not self._targets:
            return [f"{system.title}: there is no gap, since {system.source!r} is the only language."]
        wanted: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for code in self._targets:
            have = self._parts[code].scores
            for translator in system.translators or ("",):
                absent = tuple(
                    variant
                    for variant in VARIANTS
                    if Condition(variant=variant, translator="" if variant == "zs" else translator)
                    not in have
                )
                if absent:
                    wanted.setdefault((translator, absent), []).append(code)
        for (translator, absent), codes in wanted.items():
            by = f" by {translator!r}" if translator else ""
            notes.append(
                f"{' '.join(codes)}: no cells of {', '.join(absent)}{by}. Make them with: "
                f"{command_for(system, codes, absent, translator)}"
            )
        unpaired = [code for code in self._targets if self._source(code, "all") is None]
        if unpaired:
            notes.append(
                f"{' '.join(unpaired)}: no transfer gap, since the items were not all answered in "
                f"{system.source!r}. Make them with: {command_for(system, [system.source], ['zs'], '')}"
            )
        return notes


def _scores(
    vectors: Mapping[Condition, Vector], needed: Sequence[str], translator: str
) -> dict[str, Vector] | None:
    """Return the scores of the variants that a contrast needs, or None if one is missing."""
    conditions = {
        variant: ZS if variant == "zs" else Condition(variant=variant, translator=translator)
        for variant in needed
    }
    if any(condition not in vectors for condition in conditions.values()):
        return None
    return {variant: vectors[condition] for variant, condition in conditions.items()}
