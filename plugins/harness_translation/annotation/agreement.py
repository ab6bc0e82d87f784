"""Agreement of annotators: chance-corrected coefficients, and estimates and tests of shares."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.statistics import bootstrap_counts, percentile_interval, wilson

Floats = npt.NDArray[np.float64]
Units = Sequence[Sequence[str]]
"""The labels of each item, in no order of annotators; missing labels are skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """An estimated share with its interval of 95 %."""

    value: float
    low: float
    high: float


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Return Cohen's kappa of two annotators' labels of the same items (Cohen 1960).

    kappa = (p_o - p_e) / (1 - p_e) with p_e from each annotator's own shares. None without items, and if both
    gave the same label to all items, so that chance agreement is 1.
    """
    if not first:
        return None
    n = len(first)
    observed = sum(ours == theirs for ours, theirs in zip(first, second, strict=True)) / n
    labels = {*first, *second}
    expected = sum(first.count(label) * second.count(label) for label in labels) / n**2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def krippendorff_alpha(units: Units) -> float | None:
    """Return Krippendorff's alpha for nominal labels and any number of annotators (Krippendorff 2011).

    alpha = 1 - D_o / D_e over the coincidences within the items that at least two people labelled. None if there are
    no such items, or all labels are the same.
    """
    return _alpha(_coincidences(units).sum(axis=0))


def alpha_interval(units: Units, *, draws: int = 1_000, seed: int = 0) -> tuple[float, float] | None:
    """Return the percentile interval (95 %) of alpha over items drawn with replacement; None if there is none."""
    coincidences = _coincidences(units)
    if len(coincidences) < 2:
        return None
    replicates = bootstrap_counts(
        coincidences, np.arange(len(coincidences)), _alpha_or_nan, draws=draws, seed=seed
    )
    # A resample in which all items have the same label has no alpha; it is rare, and does not show agreement.
    defined = replicates[np.isfinite(replicates)]
    if not defined.size:
        return None
    interval = percentile_interval(defined, seed=seed)
    return None if interval.low is None or interval.high is None else (interval.low, interval.high)


def _coincidences(units: Units) -> Floats:
    """Return the coincidences of every item with at least two labels, shape (items, labels * labels)."""
    labels = sorted({label for unit in units for label in unit})
    index = {label: number for number, label in enumerate(labels)}
    matrices = []
    for unit in units:
        if len(unit) < 2:
            continue
        matrix = np.zeros((len(labels), len(labels)))
        for first, second in itertools.permutations(unit, 2):
            matrix[index[first], index[second]] += 1 / (len(unit) - 1)
        matrices.append(matrix.ravel())
    return np.array(matrices).reshape(len(matrices), len(labels) ** 2)


def _alpha(sums: Floats) -> float | None:
    size = math.isqrt(len(sums))
    matrix = sums.reshape(size, size)
    margins = matrix.sum(axis=1)
    n = margins.sum()
    expected = n**2 - (margins**2).sum()
    if n < 2 or expected <= 0:
        return None
    return float(1 - (n - 1) * (n - np.trace(matrix)) / expected)


def _alpha_or_nan(sums: Floats) -> float:
    alpha = _alpha(sums)
    return math.nan if alpha is None else alpha


def two_proportions(first: float, n_first: int, second: float, n_second: int) -> float:
    """Return the two-sided p of two independent shares being the same: the pooled z test, without correction.

    p is 1 where all or none of the items are successes.

    Args:
        first: Successes of the first sample.
        n_first: Its size.
        second: Successes of the second sample.
        n_second: Its size.
    """
    from scipy.special import ndtr

    pooled = (first + second) / (n_first + n_second)
    se = math.sqrt(pooled * (1 - pooled) * (1 / n_first + 1 / n_second))
    if se == 0:
        return 1.0
    return 2 * float(ndtr(-abs(first / n_first - second / n_second) / se))


def weighted_share(hits: Sequence[bool], strata: Sequence[str], weights: Mapping[str, float]) -> Share:
    """Return a share over strata that were drawn with different probabilities.

    The estimate is sum_h W_h p_h with W_h the share of all items that are in the stratum; its interval is Wilson's
    at the sample size that has the same variance p (1 - p) / n (Korn and Graubard 1998). With one stratum, or weights
    that are all the same and strata of the same share, it is Wilson's plain interval.

    Args:
        hits: Whether each drawn item counts.
        strata: The stratum of each.
        weights: By stratum: the number of items in the whole text.
    """
    names = sorted(set(strata))
    total = sum(weights[name] for name in names)
    estimate = variance = 0.0
    for name in names:
        stratum_hits = [hit for hit, stratum in zip(hits, strata, strict=True) if stratum == name]
        share, size = weights[name] / total, len(stratum_hits)
        p = sum(stratum_hits) / size
        estimate += share * p
        variance += share**2 * p * (1 - p) / (size if len(names) == 1 else max(size - 1, 1))
    spread = estimate * (1 - estimate)
    effective = spread / variance if variance > 0 and spread > 0 else float(len(hits))
    low, high = wilson(estimate * effective, effective)
    return Share(value=estimate, low=low, high=high)
