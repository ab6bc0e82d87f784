"""Prediction-powered inference: the mean of what people would say, from many verdicts of a judge and few of people.

The estimator is that of PPI++ for a mean (Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453, section 6; with the
weight 1 it is that of Angelopoulos et al. 2023, Science 382, and arXiv 2301.09633, algorithm 1):

    estimate = weight * mean(judge, all others) + mean(human - weight * judge, labelled)

Its variance is that of both means, which are of different items. The weight that makes it smallest is
cov(human, judge) / (var(judge, others) + var(judge, labelled)), all of means; it is cut to [0, 1]. With weight 0, of a
judge that says nothing, it is the mean of what people said. Clusters are one draw, as in `harness.statistics`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Means of human and judged values of the same items, and the covariance of these two means."""

    n: int
    clusters: int
    human: float
    judge: float
    human_variance: float
    judge_variance: float
    covariance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoweredEstimate:
    """A mean in [-1, 1] with its 95 % interval, None where there is none."""

    value: float
    se: float | None
    ci: tuple[float, float] | None


def moments(human: Floats, judge: Floats, codes: Codes) -> Moments:
    """Return the moments of labelled items; all arguments have shape (n,), and `codes` numbers the clusters."""
    groups = int(codes.max()) + 1
    pairs = np.stack([human, judge])
    centred = pairs - pairs.mean(axis=1, keepdims=True)
    sums = np.stack([np.bincount(codes, weights=row, minlength=groups) for row in centred])
    covariance = sums @ sums.T * groups / max(1, groups - 1) / len(codes) ** 2
    return Moments(
        n=len(codes),
        clusters=groups,
        human=float(human.mean()),
        judge=float(judge.mean()),
        human_variance=float(covariance[0, 0]),
        judge_variance=float(covariance[1, 1]),
        covariance=float(covariance[0, 1]),
    )


def clustered_estimate(values: Floats, codes: Codes) -> PoweredEstimate:
    """Return the mean of values with a t interval, as `harness.statistics.clustered_mean` does; not cut."""
    own = moments(values, values, codes)
    return _estimate(own.human, own.human_variance, own.clusters)


def corrected_mean(labelled: Moments, judged: Floats, codes: Codes) -> tuple[PoweredEstimate, float]:
    """Return the mean in [0, 1] of what people would say of all items, and the weight of the judge.

    The interval is t with one degree of freedom less than the labelled clusters, and cut to [0, 1].

    Args:
        labelled: Of the items that people labelled.
        judged: Shape (n,): the judge's values of the other items; with none the estimate is that of the labelled ones.
        codes: Shape (n,): the numbers of their clusters.
    """
    if not len(judged):
        return _cut(_estimate(labelled.human, labelled.human_variance, labelled.clusters)), 0.0
    others = moments(judged, judged, codes)
    spread = others.judge_variance + labelled.judge_variance
    weight = min(1.0, max(0.0, labelled.covariance / spread)) if spread > 0 else 0.0
    value = labelled.human + weight * (others.judge - labelled.judge)
    variance = labelled.human_variance + weight**2 * spread - 2 * weight * labelled.covariance
    return _cut(_estimate(value, variance, labelled.clusters)), weight


def _estimate(value: float, variance: float, groups: int) -> PoweredEstimate:
    from scipy.special import stdtrit

    if groups < 2 or variance <= 0:
        return PoweredEstimate(value=value, se=None, ci=None)
    se = math.sqrt(variance)
    reach = float(stdtrit(groups - 1, 0.975)) * se
    return PoweredEstimate(value=value, se=se, ci=(value - reach, value + reach))


def _cut(estimate: PoweredEstimate) -> PoweredEstimate:
    value = min(1.0, max(0.0, estimate.value))
    ci = None if estimate.ci is None else (max(0.0, estimate.ci[0]), min(1.0, estimate.ci[1]))
    return PoweredEstimate(value=value, se=estimate.se, ci=ci)
