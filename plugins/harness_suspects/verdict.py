"""Which suspects are established at a rate of false discoveries, and whether there are systems enough for such a test.

Items that share a cluster of the spec share what is wrong with it, so that a discovery is a cluster in a language: its
p value is Simes' (1986) of its items. Clusters are corrected for their number by the step-up procedure of Benjamini and
Hochberg (1995). The power of a number of systems is the share of faulty items whose p is below the threshold that this
procedure has where two items in a hundred are faulty. Where it is below `LEAST_POWER`, or p values are not uniform
where they should be, suspects are ranked and not tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.special import expit

from harness.statistics import benjamini_hochberg
from harness_suspects.deviation import (
    Deviation,
    Expectation,
    Families,
    Floats,
    deviate,
    expect,
    null_masses,
    shifted,
    weigh,
    weight_masses,
)

RATE = 0.05
LEAST_POWER = 0.4
FAULTY = 0.02
"""Share of faulty items for which the power is stated."""
SIZES = (2, 5, 10, 20, 40)
SAMPLE, DRAWS = 300, 6
"""Items from which the power is computed, and how often systems are drawn for another number than there are."""
DOUBTFUL = 0.3
"""The chance of a fault from which an item says nothing about the others in the second round."""
TOLERATED = 0.06
"""The most by which the share of p values below a half may be off where they should be uniform."""
TOLERATED_LOW = 0.02
"""The most by which the share of p values below 0.05 may be too large with permuted answers."""
ALIKE = 0.4
"""The mean correlation of residuals from which systems are of one family, which counts as one system."""
TOGETHER = 8
"""Items of about the same expectation among which answers are permuted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far p values, drawn within their steps so that they are continuous, are uniform."""

    share_below_half: float
    """Of all items; 0.5 if the model fits all but the few faulty ones."""
    permuted_below_005: float
    """Where the answers of each system are permuted among items of which the same is expected; 0.05 is right."""
    permuted_established: int
    correlation: float | None
    """Mean correlation of the residuals of two systems on the same item in the same language."""
    permuted_correlation: float | None

    @property
    def faults(self) -> list[str]:
        """Why the p values cannot be believed; empty where nothing speaks against them."""
        reasons = []
        if abs(self.share_below_half - 0.5) > TOLERATED:
            reasons.append(f"{self.share_below_half:.0%} of the p values are below 0.5")
        if self.permuted_below_005 > 0.05 + TOLERATED_LOW:
            reasons.append(
                f"{self.permuted_below_005:.1%} of the p values of permuted answers are below 0.05"
            )
        return reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the answers say of the items of a task."""

    answers: Floats
    """By family, shape (families, languages, items): 1 right, 0 wrong, NaN not answered."""
    expected: Expectation
    """Of the answers by family."""
    deviation: Deviation
    q: Floats
    """Shape (languages, items): the adjusted p of the item's cluster in the language; NaN where no system answered."""
    power: dict[int, float]
    """By number of systems such as these: the share of faulty items that a test finds."""
    families: Families
    """The numbers of the systems that count as one, since they are wrong on the same items."""
    calibration: Calibration
    tested: bool
    """Whether suspects are tested; else they are only ranked."""

    @property
    def established(self) -> npt.NDArray[np.bool_]:
        """Shape (languages, items): the items that are established; those of a cluster whose p is small enough."""
        return self.tested & (np.nan_to_num(self.q, nan=1.0) <= RATE)


def judge(
    answers: Floats,
    chance: float,
    clusters: Sequence[int],
    signs: npt.NDArray[np.int64] | None = None,
    evidence: Floats | None = None,
    *,
    families: Families | None = None,
    seed: int = 0,
) -> Judgement:
    """Return the judgement of items from their answers.

    Args:
        answers: Shape (systems, languages, items): 1 right, 0 wrong, NaN not answered.
        chance: How often a faulty item is answered right.
        clusters: By item: the number of its cluster.
        signs: Shape (languages, items): a number for the other signs of each item.
        evidence: Shape (languages, items): log likelihood ratios of a fault, from what systems answer.
        families: The systems that count as one; those of `find_families` where it is None.
        seed: Of the permutation, the draw of p values within their steps, and the sample for the power.
    """
    families = find_families(answers) if families is None else families
    answers = join_families(answers, families)
    first = deviate(answers, expect(answers), chance, signs, evidence)
    expected = expect(answers, first.posterior > DOUBTFUL)
    deviation = deviate(answers, expected, chance, signs, evidence)
    rng = np.random.default_rng(seed)
    calibration = _calibration(answers, expected, deviation, chance, clusters, rng)
    power = {size: _power(expected, deviation, chance, size, rng) for size in sorted({*SIZES, len(families)})}
    return Judgement(
        answers=answers,
        expected=expected,
        deviation=deviation,
        q=cluster_q(deviation.p, clusters),
        power=power,
        families=families,
        calibration=calibration,
        tested=power[len(families)] >= LEAST_POWER and not calibration.faults,
    )


def find_families(answers: Floats) -> Families:
    """Return the systems by family: average linkage of the correlations of residuals, cut at `ALIKE`."""
    if len(answers) == 1:
        return ((0,),)
    residuals = answers - expect(answers).chances
    distances = squareform(1 - np.nan_to_num(correlations(residuals)), checks=False)
    codes = fcluster(linkage(distances, "average"), 1 - ALIKE, "distance")
    return tuple(tuple(np.flatnonzero(codes == code).tolist()) for code in dict.fromkeys(codes.tolist()))


def join_families(answers: Floats, families: Sequence[Sequence[int]]) -> Floats:
    """Return the answers by family: right where at least half of its systems that answered are."""
    joined = []
    for family in families:
        asked = ~np.isnan(answers[list(family)])
        share = np.nansum(answers[list(family)], axis=0) / np.maximum(asked.sum(axis=0), 1)
        joined.append(np.where(asked.any(axis=0), share >= 0.5, np.nan))
    return np.stack(joined)


def cluster_q(p: Floats, clusters: Sequence[int]) -> Floats:
    """Return the adjusted p of every item's cluster, shape (languages, items), and NaN where p is.

    An item whose own p is above the Simes p of its cluster is no discovery: it gets 1.
    """
    codes = np.asarray(clusters)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    groups = np.split(order, starts[1:])
    simes = np.full((len(p), len(groups)), np.nan)
    for number, rows in enumerate(groups):
        ordered = np.sort(p[:, rows], axis=1)  # NaN comes last
        ranks = np.arange(1, len(rows) + 1)
        present = (~np.isnan(ordered)).sum(axis=1)
        has_any = present > 0
        simes[has_any, number] = np.nanmin(ordered[has_any] * present[has_any, None] / ranks, axis=1)
    adjusted = np.full_like(simes, np.nan)
    tested = ~np.isnan(simes)
    adjusted[tested] = benjamini_hochberg(simes[tested].tolist())
    q = np.full_like(p, np.nan)
    for number, rows in enumerate(groups):
        low = p[:, rows] <= simes[:, [number]]
        q[:, rows] = np.where(np.isnan(p[:, rows]), np.nan, np.where(low, adjusted[:, [number]], 1.0))
    return q


def _calibration(
    answers: Floats,
    expected: Expectation,
    deviation: Deviation,
    chance: float,
    clusters: Sequence[int],
    rng: np.random.Generator,
) -> Calibration:
    permuted = _permuted(answers, expected, deviation.posterior > DOUBTFUL, rng)
    shuffled = deviate(permuted, expected, chance)
    q = cluster_q(shuffled.p, clusters)
    return Calibration(
        share_below_half=float((_drawn(deviation, rng) <= 0.5).mean()),
        permuted_below_005=float((_drawn(shuffled, rng) <= 0.05).mean()),
        permuted_established=int((np.nan_to_num(q, nan=1.0) <= RATE).sum()),
        correlation=_mean_correlation(answers - expected.chances),
        permuted_correlation=_mean_correlation(permuted - expected.chances),
    )


def _drawn(deviation: Deviation, rng: np.random.Generator) -> Floats:
    """Return p values drawn within their steps, of the items that were answered."""
    tested = ~np.isnan(deviation.p)
    p, below = deviation.p[tested], deviation.p_below[tested]
    drawn: Floats = below + rng.random(len(p)) * (p - below)
    return drawn


def _permuted(
    answers: Floats, expected: Expectation, doubtful: npt.NDArray[np.bool_], rng: np.random.Generator
) -> Floats:
    """Return the answers of every system, permuted within a language among items of about the same expectation.

    Doubtful items are left out: their wrong answers are not expected of any item.
    """
    permuted = np.where(doubtful, np.nan, answers)
    for row, logits in zip(
        permuted.reshape(-1, answers.shape[2]), expected.logits.reshape(-1, answers.shape[2]), strict=True
    ):
        rows = np.flatnonzero(~np.isnan(row))
        for members in np.array_split(rows[np.argsort(logits[rows])], max(1, len(rows) // TOGETHER)):
            row[members] = row[rng.permutation(members)]
    return permuted


def correlations(residuals: Floats) -> Floats:
    """Return the correlations of systems' residuals over the items that both answered, shape (systems, systems)."""
    flat = residuals.reshape(len(residuals), -1)
    values = np.eye(len(flat))
    for number, row in enumerate(flat):
        for column in range(number):
            common = ~np.isnan(row) & ~np.isnan(flat[column])
            defined = common.sum() > 2 and row[common].std() > 0 and flat[column][common].std() > 0
            values[number, column] = (
                np.corrcoef(row[common], flat[column][common])[0, 1] if defined else np.nan
            )
            values[column, number] = values[number, column]
    return values


def _mean_correlation(residuals: Floats) -> float | None:
    """Return the mean correlation of two systems' residuals; None for one system."""
    values = correlations(residuals)[np.triu_indices(len(residuals), 1)]
    return float(np.nanmean(values)) if np.isfinite(values).any() else None


def _power(
    expected: Expectation, deviation: Deviation, chance: float, systems: int, rng: np.random.Generator
) -> float:
    """Return the share of faulty items that a test with so many systems finds; they are drawn from those here."""
    flat = expected.logits.reshape(len(expected.logits), -1)
    complete = np.flatnonzero(~np.isnan(flat).any(axis=0))
    if not len(complete):
        return 0.0
    count, null, faulty = len(flat), [], []
    for _ in range(DRAWS):
        columns = rng.choice(complete, min(SAMPLE, len(complete)), replace=False)
        rows = np.arange(count) if systems == count else rng.integers(count, size=systems)
        variance = expected.variance.reshape(-1)[columns]
        logits, spread = shifted(flat[np.ix_(rows, columns)], variance, deviation.deviation_sd)
        weights = weigh(logits, chance)
        masses = np.concatenate([chunk for _, chunk in null_masses(logits, spread, weights)], axis=1)
        null.append(np.cumsum(masses, axis=0).ravel())
        chances = expit(np.minimum(logits, np.log(chance / (1 - chance))))
        faulty.append(weight_masses(chances, weights).ravel() / len(columns) / DRAWS)
    p, detected = np.concatenate(null), np.concatenate(faulty)
    order = np.argsort(p)
    power = np.cumsum(detected[order])
    # Below the threshold t, the false share (1 - f) t / ((1 - f) t + f power(t)) must be at most the rate.
    is_held = p[order] * (1 - FAULTY) * (1 - RATE) <= RATE * FAULTY * power
    return float(power[is_held].max()) if is_held.any() else 0.0
