"""What each system is expected to get right: its ability in a language, and how easy the item is for it.

The chance that system s answers item i right in language l is logistic(a[s, l] + d[i] + u[s, i]): a Rasch model
(Rasch 1960) with an ability for every language, in which an item is easy for all systems (d) and for one of them (u).
Both are normal with variances that the answers give (empirical Bayes, by EM with Laplace's approximation). The
expectation of an answer is that of the other languages: what a language says of its own items is taken out by one
Newton step, so that an item that is wrong in one language is not taken for a difficult one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Floats = npt.NDArray[np.float64]
Families = tuple[tuple[int, ...], ...]
"""Numbers of the systems that count as one, by family."""
ROUNDS = 60
TOLERANCE = 1e-4
LONGEST_STEP = 2.0
"""Of a logit in a round: a first step from chance would overshoot."""
LEAST_VARIANCE = 1e-3
NORMAL_SLOPE = np.pi / 8
"""The mean of logistic(x) over a normal x of mean m and variance v is about logistic(m / sqrt(1 + v pi / 8)) (MacKay
1992)."""


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
    away = (logits + moves) / np.sqrt(1 + NORMAL_SLOPE * system_spread)
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
