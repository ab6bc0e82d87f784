"""How far an item of one language deviates from what is expected, and whether chance explains it.

Under the null hypothesis an item deviates by a normal amount that all systems share; its variance, estimated from all
items, holds what is harder to say in one language and what systems have in common. A faulty item is answered right as
often as by chance. The share of faulty items is estimated too, for items with and without other signs apart (Efron
2008, "Simultaneous inference: when should hypothesis testing problems be combined?"). The p value of an item is exact
under the null and these estimates: the chance that the systems that are right weigh as little as they do, or less (a
weighted Poisson-binomial distribution).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp

Floats = npt.NDArray[np.float64]
Families = tuple[tuple[int, ...], ...]
"""Numbers of the systems that count as one, by family."""
ROUNDS = 60
TOLERANCE = 1e-4
LONGEST_STEP = 2.0
"""Of a logit in a round: a first step from chance would overshoot."""
LEAST_VARIANCE = 1e-3
_NORMAL_SLOPE = np.pi / 8
"""The mean of logistic(x) over a normal x of mean m and variance v is about logistic(m / sqrt(1 + v pi / 8)) (MacKay
1992)."""
_POINTS, _MASSES = np.polynomial.hermite_e.hermegauss(15)
NODES: Floats = _POINTS
MASSES: Floats = _MASSES / _MASSES.sum()
"""Of a standard normal distribution (Gauss-Hermite quadrature)."""
WIDEST = 3.0
"""The largest standard deviation of harmless deviations that is looked at, in logits."""
MOST_FAULTY = 0.2
"""Share of items: with more, the other languages say nothing of what is right."""
PRIOR_ITEMS = 20.0
"""A sign that few items have changes the share of faulty ones as if it were that of all in so many more."""
PRIOR_SHARE, PRIOR_PART = 0.02, 0.05
"""What the share of faulty items is taken for before any answer, as if one in twenty items said so."""
PRIOR_SD, PRIOR_SPREAD = 0.8, 0.5
"""Median of the standard deviation of harmless deviations before any answer, and the spread of its logarithm: one or
two systems do not separate it from how difficult an item is."""
HEAVIEST = 5
"""Weight of the system whose answers say most; the others have whole weights below it."""
CHUNK = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the other languages say of every answer."""

    logits: Floats
    """Shape (systems, languages, items); NaN where a system did not answer."""
    variance: Floats
    """Shape (languages, items): of what all systems share, since an item's easiness is only estimated."""
    item_variance: float
    system_variance: float

    @property
    def chances(self) -> Floats:
        """The chance of a right answer, of the shape of `logits`."""
        chances: Floats = expit(self.logits)
        return chances


def expect(answers: Floats, doubtful: npt.NDArray[np.bool_] | None = None) -> Expectation:
    """Return the expectation of every answer.

    Args:
        answers: Shape (systems, languages, items): 1 right, 0 wrong, NaN not answered.
        doubtful: Shape (languages, items): those from which nothing is learnt, but of which something is expected.
    """
    answered = ~np.isnan(answers)
    learnt = answered if doubtful is None else answered & ~doubtful
    right = np.where(learnt, answers, 0.0)
    systems, _, items = answers.shape
    share = (right.sum(axis=2) + 0.5) / (learnt.sum(axis=2) + 1)
    ability = np.log(share / (1 - share))
    easiness, offset = np.zeros(items), np.zeros((systems, items))
    item_variance, system_variance = 1.0, 0.5
    for _ in range(ROUNDS):
        residual, slope = _slopes(right, learnt, ability[:, :, None] + (easiness + offset)[:, None, :])
        step = residual.sum(axis=2) / (slope.sum(axis=2) + 1e-3)
        ability += np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        residual, slope = _slopes(right, learnt, ability[:, :, None] + (easiness + offset)[:, None, :])
        weights, pulls = slope.sum(axis=1), residual.sum(axis=1) - offset / system_variance
        item_step, system_step, variance, system_spread = _newton(
            pulls,
            residual.sum(axis=(0, 1)) - easiness / item_variance,
            weights,
            item_variance,
            system_variance,
        )
        easiness += np.clip(item_step, -LONGEST_STEP, LONGEST_STEP)
        offset += np.clip(system_step, -LONGEST_STEP, LONGEST_STEP)
        item_variance = max(LEAST_VARIANCE, float(np.mean(easiness**2 + variance)))
        system_variance = max(LEAST_VARIANCE, float(np.mean(offset**2 + system_spread)))
        if max(np.abs(item_step).max(), np.abs(system_step).max(), np.abs(step).max()) < TOLERANCE:
            break
    logits = ability[:, :, None] + (easiness + offset)[:, None, :]
    residual, slope = _slopes(right, learnt, logits)
    elsewhere = slope.sum(axis=1)[:, None, :] - slope
    item_step, system_step, variance, system_spread = _newton(
        -residual, -residual.sum(axis=0), elsewhere, item_variance, system_variance
    )
    shared = (1 - elsewhere / (elsewhere + 1 / system_variance)) ** 2
    shared_variance = variance * (shared * answered).sum(axis=0) / np.maximum(answered.sum(axis=0), 1)
    moves = np.clip(item_step + system_step, -LONGEST_STEP, LONGEST_STEP)
    away = (logits + moves) / np.sqrt(1 + _NORMAL_SLOPE * system_spread)
    return Expectation(
        logits=np.where(answered, away, np.nan),
        variance=shared_variance,
        item_variance=item_variance,
        system_variance=system_variance,
    )


def _slopes(right: Floats, asked: npt.NDArray[np.bool_], logits: Floats) -> tuple[Floats, Floats]:
    """Return the residuals and the slopes of the chances, 0 where a system did not answer."""
    chances = expit(logits)
    return np.where(asked, right - chances, 0.0), np.where(asked, chances * (1 - chances), 0.0)


def _newton(
    system_pull: Floats, pull: Floats, weights: Floats, item_variance: float, system_variance: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return Newton's step of d and of u, and their variances; the matrix of an item has the shape of an arrow.

    Args:
        system_pull: Gradients of u, shape (systems, ...).
        pull: Gradient of d, shape (...).
        weights: Sums of slopes, shape (systems, ...).
        item_variance: Of d.
        system_variance: Of u.
    """
    system_weights = weights + 1 / system_variance
    item_weight = weights.sum(axis=0) + 1 / item_variance - (weights**2 / system_weights).sum(axis=0)
    item_step = (pull - (weights * system_pull / system_weights).sum(axis=0)) / item_weight
    system_step = (system_pull - weights * item_step) / system_weights
    system_spread = 1 / system_weights + (weights / system_weights) ** 2 / item_weight
    return item_step, system_step, 1 / item_weight, system_spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """The deviations of all items in all languages."""

    deviation_sd: float
    """Of harmless deviations, in logits."""
    prevalence: float
    """Estimated share of faulty items."""
    posterior: Floats
    """Shape (languages, items): the chance that the item is faulty; 1 minus the local false discovery rate."""
    p: Floats
    """Shape (languages, items); NaN where no system answered."""
    p_below: Floats
    """The chance of strictly less: p drawn between the two is uniform under the null."""


def deviate(
    answers: Floats,
    expected: Expectation,
    chance: float,
    signs: npt.NDArray[np.int64] | None = None,
    evidence: Floats | None = None,
) -> Deviation:
    """Return the deviations of answers from what is expected.

    Args:
        answers: Shape (systems, languages, items): 1 right, 0 wrong, NaN not answered.
        expected: What is expected of them.
        chance: How often a faulty item is answered right.
        signs: Shape (languages, items): a number for the signs of each item; None where nothing was looked for.
        evidence: Shape (languages, items): log likelihood ratios of a fault from what is no number of right answers.
    """
    shape = answers.shape[1:]
    right = answers.reshape(len(answers), -1)
    logits, variance = expected.logits.reshape(right.shape), expected.variance.reshape(-1)
    faulty = _log_faulty(right, logits, chance)

    def loss(deviation_sd: float) -> float:
        harmless = _log_harmless(right, *shifted(logits, variance, deviation_sd))
        share = _prevalence(harmless, faulty)
        likelihood = np.logaddexp(np.log1p(-share) + harmless, np.log(share) + faulty).sum()
        return float(((np.log(deviation_sd / PRIOR_SD)) / PRIOR_SPREAD) ** 2 / 2 - likelihood)

    best = minimize_scalar(loss, bounds=(0.01, WIDEST), method="bounded", options={"xatol": 0.02})
    deviation_sd = float(best.x)
    harmless_logits, spread = shifted(logits, variance, deviation_sd)
    harmless = _log_harmless(right, harmless_logits, spread)
    faulty = faulty + (0.0 if evidence is None else evidence.reshape(-1))
    prevalence = _prevalence(harmless, faulty)
    priors = np.full(len(variance), prevalence)
    if signs is not None:
        flat = signs.reshape(-1)
        for sign in np.unique(flat):
            rows = flat == sign
            priors[rows] = _prevalence(harmless[rows], faulty[rows], prevalence, PRIOR_ITEMS)
    posterior = expit(np.log(priors / (1 - priors)) + faulty - harmless)
    p, below = tail_chances(right, harmless_logits, spread, weigh(logits, chance))
    answered = ~np.isnan(right).all(axis=0)
    p, below = np.where(answered, p, np.nan), np.where(answered, below, np.nan)
    return Deviation(
        deviation_sd=deviation_sd,
        prevalence=prevalence,
        posterior=np.where(answered, posterior, 0.0).reshape(shape),
        p=p.reshape(shape),
        p_below=below.reshape(shape),
    )


def shifted(logits: Floats, variance: Floats, deviation_sd: float) -> tuple[Floats, Floats]:
    """Return the logits of items without a deviation, and the variances of what shifts them.

    Expectations are means over harmless deviations, which pull chances towards a half; here they are undone.
    """
    return logits * np.sqrt(1 + _NORMAL_SLOPE * deviation_sd**2), variance + deviation_sd**2


def _log_faulty(right: Floats, logits: Floats, chance: float) -> Floats:
    """Return the log likelihood of the answers if the item is faulty: right as by chance, or as seldom as expected."""
    return _log_answers(right, np.minimum(logits, np.log(chance / (1 - chance))))


def _log_answers(right: Floats, logits: Floats) -> Floats:
    """Return log likelihoods, summed over systems."""
    signed = np.nan_to_num(np.where(right == 1, -logits, logits))
    sums: Floats = np.where(np.isnan(right), 0.0, -np.logaddexp(0.0, signed)).sum(axis=0)
    return sums


def _log_harmless(right: Floats, logits: Floats, spread: Floats) -> Floats:
    """Return the log likelihood of the answers if the item deviates by a normal amount of this variance."""
    sums = np.stack([_log_answers(right, logits + np.sqrt(spread) * node) for node in NODES])
    total: Floats = logsumexp(sums + np.log(MASSES)[:, None], axis=0)
    return total


def _prevalence(
    harmless: Floats, faulty: Floats, prior: float = PRIOR_SHARE, prior_items: float | None = None
) -> float:
    """Return the share of faulty items, by EM."""
    prior_items = PRIOR_PART * len(harmless) if prior_items is None else prior_items
    share = prior
    for _ in range(200):
        posterior = expit(np.log(share / (1 - share)) + faulty - harmless)
        new = float((posterior.sum() + prior * prior_items) / (len(posterior) + prior_items))
        new = min(max(new, 1e-6), MOST_FAULTY)
        if abs(new - share) < 1e-6:
            break
        share = new
    return share


# P values ---------------------------------------------------------------------------------------------


def weigh(logits: Floats, chance: float) -> npt.NDArray[np.int64]:
    """Return a whole weight for every system: how much a right answer speaks against a fault, in the mean."""
    evidence = np.nan_to_num(np.maximum(logits - np.log(chance / (1 - chance)), 0.0))
    against = evidence.sum(axis=1) / np.maximum((~np.isnan(logits)).sum(axis=1), 1)
    weights = np.maximum(np.rint(HEAVIEST * against / max(against.max(), 1e-9)), 1).astype(np.int64)
    whole: npt.NDArray[np.int64] = weights // np.gcd.reduce(weights)
    return whole


def tail_chances(
    right: Floats, logits: Floats, spread: Floats, weights: npt.NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return the chance of at most the weight of the right answers, and of less, by item."""
    total = (np.nan_to_num(right) * weights[:, None]).sum(axis=0).astype(np.int64)
    at_most, less = np.empty(len(spread)), np.empty(len(spread))
    for chunk, masses in null_masses(logits, spread, weights):
        sums = np.cumsum(masses, axis=0)
        columns = np.arange(masses.shape[1])
        at_most[chunk] = sums[total[chunk], columns]
        less[chunk] = at_most[chunk] - masses[total[chunk], columns]
    return np.minimum(at_most, 1.0), np.maximum(less, 0.0)


def null_masses(
    logits: Floats, spread: Floats, weights: npt.NDArray[np.int64]
) -> Iterator[tuple[slice, Floats]]:
    """Yield the chances of every weight of right answers, shape (weights, items), for some items at a time."""
    for start in range(0, len(spread), CHUNK):
        chunk = slice(start, start + CHUNK)
        masses = 0.0
        for node, mass in zip(NODES, MASSES, strict=True):
            shifted = logits[:, chunk] + np.sqrt(spread[chunk]) * node
            masses = masses + mass * weight_masses(np.where(np.isnan(shifted), 0.0, expit(shifted)), weights)
        yield chunk, np.asarray(masses)


def weight_masses(chances: Floats, weights: npt.NDArray[np.int64]) -> Floats:
    """Return the chances of every sum of weights of right answers, shape (1 + sum of weights, items)."""
    masses = np.zeros((1 + int(weights.sum()), chances.shape[1]))
    masses[0] = 1.0
    for chance, weight in zip(chances, weights, strict=True):
        raised = masses[:-weight] * chance
        masses *= 1 - chance
        masses[weight:] += raised
    return masses
