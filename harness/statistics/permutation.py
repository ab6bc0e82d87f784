"""Permutation tests of two systems on the same items: each cluster's answers may as well be the other system's.

Under the null hypothesis the two systems can be swapped cluster by cluster. With B random swaps, of which b give a
difference at least as large as the observed one, p = (1 + b) / (1 + B) (Phipson and Smyth 2010); with few clusters all
swaps are taken, and p is exact (Dror et al. 2018, section 3.2; Noreen 1989 calls it approximate randomization).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harness.statistics.bootstrap import AnyFloats, Statistic, distinct_rows, evaluated
from harness.statistics.cluster import Codes

Floats = npt.NDArray[np.float64]
FLIPS = 9_999
EXACT = 12
"""Up to so many clusters that differ, all 4,096 swaps are taken."""
BLOCK = 4_000_000
"""Random signs that are held at a time."""
EXPANDED = 50
"""Rows of random signs that are turned into numbers at a time."""
REPEATED = 40
"""So many clusters must have equal rows on average for a binomial to be drawn faster than single signs."""
TOLERANCE = 1e-9
"""Relative to the observed difference: what is as large as it but for rounding counts as large."""


def half_sums(rows: AnyFloats, *, draws: int = FLIPS, seed: int = 0) -> tuple[Floats, bool]:
    """Return sums over random halves of the rows, shape (draws, m), and whether they are all that there are.

    A row of `rows`, of shape (G, m), is in each half with probability 1/2. Up to 12 rows that are not zero give all
    2^G sums instead.
    """
    differing = rows[(rows != 0).any(axis=1)]
    m = rows.shape[1]
    if len(differing) <= EXACT:
        number = len(differing)
        chosen = (np.arange(2**number)[:, None] >> np.arange(number)) & 1
        return chosen.astype(np.float64) @ differing.astype(np.float64), True
    generator = np.random.default_rng(seed)
    distinct, numbers = distinct_rows(differing)
    if REPEATED * len(distinct) <= len(differing):
        return generator.binomial(numbers, 0.5, size=(draws, len(distinct))).astype(
            np.float64
        ) @ distinct, False
    ordered = np.repeat(distinct, numbers, axis=0)
    sums = np.empty((draws, m))
    width = -(-len(ordered) // 8)
    block = max(1, BLOCK // len(ordered))
    for start in range(0, draws, block):
        count = min(block, draws - start)
        bits = np.frombuffer(generator.bytes(count * width), dtype=np.uint8).reshape(count, width)
        # As numbers of 8 bytes, the signs of a whole block would be 32 MB.
        for row in range(0, count, EXPANDED):
            signs = np.unpackbits(bits[row : row + EXPANDED], axis=1, count=len(ordered))
            sums[start + row : start + row + len(signs)] = signs.astype(np.float64) @ ordered
    return sums, False


def least_p(clusters: int) -> float:
    """Return the smallest p that so many clusters can give that differ between two systems, whatever their scores.

    Of 2^k swaps, that of none and that of all give a difference as large as the observed one: 2 / 2^k.
    """
    return float(min(1.0, 2.0 ** (1 - clusters)))


def sign_flip_p(differences: Floats, codes: Codes, *, draws: int = FLIPS, seed: int = 0) -> float:
    """Return the two-sided p of the sum of differences under random signs of whole clusters.

    Args:
        differences: Shape (n,): score of the one system minus that of the other; for a mean over languages each
            divided by the number of items of its language.
        codes: Shape (n,): the number of each item's draw, 0, 1, ... G - 1.
        draws: Random sign vectors; up to 12 clusters that differ are enumerated.
        seed: Of the signs.
    """
    sums = np.bincount(codes, weights=differences) if len(codes) else np.zeros(0)
    scale = np.abs(sums).max(initial=0.0)
    if scale == 0:
        return 1.0
    # Without rounding, weighted differences that are equal would differ in their last digits.
    rounded = np.round(sums / scale, 12)
    # A flip of the sign of -x is one of x: the sum of signs times values does not know whose sign it was.
    magnitudes = np.abs(rounded)
    halves, exhaustive = half_sums(magnitudes[:, None], draws=draws, seed=seed)
    flipped = 2 * halves[:, 0] - magnitudes.sum()
    return _tail(flipped, float(rounded.sum()), exhaustive=exhaustive)


def swap_p(
    first: Sequence[AnyFloats],
    second: Sequence[AnyFloats],
    statistic: Statistic,
    *,
    draws: int = FLIPS,
    seed: int = 0,
) -> tuple[float, list[float]]:
    """Return the two-sided p of the mean difference over strata when clusters are swapped, and that of each stratum.

    Args:
        first: Sums of counts by cluster of the one system: either one array of shape (G, strata, k), whose clusters
            are swapped jointly in all strata, or one of shape (G_s, 1, k) for each stratum.
        second: Those of the other, of the same shapes.
        statistic: From sums to a score.
        draws: Random swaps; up to 12 clusters that differ are enumerated where there is one array.
        seed: Of the swaps.
    """
    columns, observed, exhaustive = [], [], len(first) == 1
    for number, (first_sums, second_sums) in enumerate(zip(first, second, strict=True)):
        moved = np.asarray(second_sums, dtype=np.float64) - first_sums
        halves, all_of_them = half_sums(moved.reshape(len(moved), -1), draws=draws, seed=seed + number)
        if all_of_them and len(first) > 1:
            halves = halves[np.random.default_rng(seed + number).integers(len(halves), size=draws)]
        exhaustive = exhaustive and all_of_them
        halves = halves.reshape(-1, *moved.shape[1:])
        total, opposite = first_sums.sum(axis=0, dtype=np.float64), second_sums.sum(axis=0, dtype=np.float64)
        columns.append(evaluated(statistic, opposite - halves) - evaluated(statistic, total + halves))
        observed.append(evaluated(statistic, opposite) - evaluated(statistic, total))
    swapped, observed_differences = np.concatenate(columns, axis=1), np.concatenate(observed)
    by_stratum = [
        _tail(swapped[:, index], float(observed_differences[index]), exhaustive=exhaustive)
        for index in range(len(observed_differences))
    ]
    return _tail(swapped.mean(axis=1), float(observed_differences.mean()), exhaustive=exhaustive), by_stratum


def _tail(replicates: Floats, observed: float, *, exhaustive: bool) -> float:
    as_large = np.abs(replicates) >= abs(observed) * (1 - TOLERANCE)
    # A swap without a score says nothing against the null hypothesis.
    extreme = int((as_large | np.isnan(replicates)).sum())
    return extreme / len(replicates) if exhaustive else (1 + extreme) / (1 + len(replicates))
