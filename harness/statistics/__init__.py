"""Standard errors, intervals and tests that respect clusters; everything random has a seed."""

from __future__ import annotations

from harness.statistics.balance import recall_balance_p
from harness.statistics.bootstrap import (
    DRAWS,
    AnyFloats,
    Statistic,
    bootstrap_counts,
    cluster_sums,
    count_interval,
    evaluated,
    influence_values,
    percentile_interval,
    resampled_sums,
    seed_of,
)
from harness.statistics.change import ChangePoint, change_points
from harness.statistics.cluster import ClusterCodes, Codes, draw_codes, key_codes, linked_codes, own_names
from harness.statistics.contrast import (
    NORMAL,
    Contrast,
    common_variance,
    drawn_contrasts,
    independent_contrasts,
    no_common,
    over_seeds,
    paired_contrasts,
)
from harness.statistics.interval import Interval
from harness.statistics.margin import beyond_margin_p, largest_drop, t_interval
from harness.statistics.mean import (
    SMALL_SAMPLE,
    clustered_mean,
    constant_bounds,
    correlated_mean,
    independent_mean,
    mean_of_codes,
    paired_difference,
    score_correlations,
    stratified_mean,
)
from harness.statistics.permutation import FLIPS, half_sums, least_p, sign_flip_p, swap_p
from harness.statistics.power import (
    detectable_difference,
    mean_sd,
    needed_groups,
    noncentrality,
    paired_sd,
)
from harness.statistics.proportion import mcnemar, wilson
from harness.statistics.ranking import (
    benjamini_hochberg,
    holm,
    mean_ranks,
    rank_intervals,
    tied_with_best,
)

__all__ = [
    "DRAWS",
    "FLIPS",
    "NORMAL",
    "SMALL_SAMPLE",
    "AnyFloats",
    "ChangePoint",
    "ClusterCodes",
    "Codes",
    "Contrast",
    "Interval",
    "Statistic",
    "benjamini_hochberg",
    "beyond_margin_p",
    "bootstrap_counts",
    "change_points",
    "cluster_sums",
    "clustered_mean",
    "common_variance",
    "constant_bounds",
    "correlated_mean",
    "count_interval",
    "detectable_difference",
    "draw_codes",
    "drawn_contrasts",
    "evaluated",
    "half_sums",
    "holm",
    "independent_contrasts",
    "independent_mean",
    "influence_values",
    "key_codes",
    "largest_drop",
    "least_p",
    "linked_codes",
    "mcnemar",
    "mean_of_codes",
    "mean_ranks",
    "mean_sd",
    "needed_groups",
    "no_common",
    "noncentrality",
    "over_seeds",
    "own_names",
    "paired_contrasts",
    "paired_difference",
    "paired_sd",
    "percentile_interval",
    "rank_intervals",
    "recall_balance_p",
    "resampled_sums",
    "score_correlations",
    "seed_of",
    "sign_flip_p",
    "stratified_mean",
    "swap_p",
    "t_interval",
    "tied_with_best",
    "wilson",
]
