"""Whether answers are right equally often in every position of the right choice."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.statistics.cluster import Codes

LEAST_PER_POSITION = 10
"""Gold answers per position below which the chi-square distribution is too far from the truth."""


def recall_balance_p(right: npt.NDArray[np.float64], gold: Codes, codes: Codes) -> float | None:
    """Return the p of equal recall over the positions of the gold answer, None with too few items to say.

    A model that prefers a position is right more often where the gold answer has it (Zheng et al. 2024, "Large
    Language Models Are Not Robust Multiple Choice Selectors", arXiv 2309.03882, section 2.2). Unlike shares of answers,
    recalls do not depend on how the gold answers are spread. The test is the chi-square score test of equal shares, in
    which the items of a cluster are one draw: with u_ik = (x_i - mean) * ([k_i = k] - n_k / n) and sums over clusters
    s_c, it is U' V^-1 U of U = sum_c s_c and V = sum_c s_c s_c', with K - 1 degrees of freedom.

    Args:
        right: Shape (n,): 1 for a right answer, 0 for a wrong one.
        gold: Shape (n,): the position of the gold answer, 0, 1, ... K - 1.
        codes: Shape (n,): the cluster of each item, 0, 1, ... G - 1.
    """
    from scipy.special import chdtrc

    counts = np.bincount(gold)
    positions = len(counts)
    if positions < 2 or counts.min() < LEAST_PER_POSITION or not 0 < right.mean() < 1:
        return None
    deviations = np.eye(positions)[gold] - counts / len(gold)
    contributions = (right - right.mean())[:, None] * deviations[:, 1:]
    sums = np.zeros((int(codes.max()) + 1, positions - 1))
    np.add.at(sums, codes, contributions)
    if len(sums) < LEAST_PER_POSITION * positions:
        return None
    total = sums.sum(axis=0)
    statistic = float(total @ np.linalg.pinv(sums.T @ sums) @ total)
    return float(chdtrc(positions - 1, statistic))
