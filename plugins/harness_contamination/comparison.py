"""The tests: the order of a file against random orders, scores against fresh texts, and texts without a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats

Floats = npt.NDArray[np.float64]
ALPHA = 0.05
SEED = 0
"""Of all draws."""
DRAWS = 1_000
GRAM = 3
MOST = 1_000
"""Texts of each sort that are compared without a model."""


def order_test(values: Floats) -> tuple[float, float]:
    """Return the mean advantage of the first order, and the p of its one-sided t-test over shards.

    `values` has shape (shards, 1 + random orders). The advantage of a shard is its first value minus the mean of the
    others: the sharded likelihood comparison test of Oren et al. 2023 (arXiv 2310.17623).
    """
    advantage = values[:, 0] - values[:, 1:].mean(axis=1)
    return float(advantage.mean()), float(_t_test(advantage))


def order_rate(values: Floats) -> float:
    """Return how often `order_test` of a random order of every shard against the shard's others has p <= 0.05."""
    others = values[:, 1:]
    shards, count = others.shape
    first = others[np.arange(shards), np.random.default_rng(SEED).integers(count, size=(DRAWS, shards))]
    return float(np.mean(_t_test(first - (others.sum(axis=1) - first) / (count - 1)) <= ALPHA))


def _t_test(advantage: Floats) -> Floats:
    """Return the p over the last axis; 0.5 where all are equal."""
    spread, count = advantage.std(axis=-1, ddof=1), advantage.shape[-1]
    t = advantage.mean(axis=-1) * count**0.5 / np.where(spread > 0, spread, np.inf)
    return np.asarray(stats.t.sf(t, count - 1), dtype=np.float64)


def rank_test(items: Sequence[float], fresh: Sequence[float]) -> tuple[float, float]:
    """Return how often an item scores higher than a fresh text (AUC), and the p of the one-sided Mann-Whitney test."""
    found = stats.mannwhitneyu(items, fresh, alternative="greater")
    return float(found.statistic) / (len(items) * len(fresh)), float(found.pvalue)


def rank_rate(fresh: Sequence[float]) -> float:
    """Return how often `rank_test` of two random halves of the fresh texts has p <= 0.05."""
    mixed = np.random.default_rng(SEED).permuted(np.tile(np.asarray(fresh, np.float64), (DRAWS, 1)), axis=1)
    one, other = np.array_split(mixed, 2, axis=1)
    return float(np.mean(stats.mannwhitneyu(one, other, alternative="greater", axis=1).pvalue <= ALPHA))


def similarity(texts: Sequence[str]) -> Floats:
    """Return the Jaccard similarity of the texts' character trigrams, shape (n, n)."""
    grams = [{text[at : at + GRAM] for at in range(max(1, len(text) - GRAM + 1))} for text in texts]
    numbers = {
        gram: number for number, gram in enumerate(dict.fromkeys(gram for own in grams for gram in own))
    }
    columns = [numbers[gram] for own in grams for gram in own]
    sizes = np.array([len(own) for own in grams])
    rows = (np.ones(len(columns)), columns, np.r_[0, sizes.cumsum()])
    held = sparse.csr_array(rows, shape=(len(texts), len(numbers)))
    shared: Floats = np.asarray((held @ held.T).toarray(), dtype=np.float64)
    near: Floats = shared / (sizes[:, None] + sizes - shared)
    return near


def difference_p(items: Sequence[str], fresh: Sequence[str]) -> float:
    """Return the p of whether items and fresh texts differ in their trigrams: then scores may follow topic or style.

    The maximum mean discrepancy of the similarities with 999 random relabellings (Gretton et al. 2012); why scores need
    such a check: Das et al. 2024 (arXiv 2406.16201).
    """
    random = np.random.default_rng(SEED)
    one, other = ([own[at] for at in random.permutation(len(own))[:MOST]] for own in (items, fresh))
    near = similarity([*one, *other])
    np.fill_diagonal(near, 0.0)
    m, n = len(one), len(other)
    first = np.tile(np.repeat([1.0, 0.0], [m, n]), (DRAWS, 1))
    first[1:] = random.permuted(first[1:], axis=1)
    # Of every relabelling: the sums of similarities within the first, across, and within the second.
    within = ((first @ near) * first).sum(axis=1)
    across = first @ near.sum(axis=1) - within
    second = near.sum() - within - 2 * across
    apart = within / (m * (m - 1)) + second / (n * (n - 1)) - 2 * across / (m * n)
    return float(np.mean(apart >= apart[0] - 1e-12))
