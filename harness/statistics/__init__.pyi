"""Names of harness.statistics that plugins, adapters and programs use, and the modules that define them."""

from .bootstrap import (
    DRAWS as DRAWS,
    bootstrap_counts as bootstrap_counts,
    cluster_sums as cluster_sums,
    count_interval as count_interval,
    evaluated as evaluated,
    percentile_interval as percentile_interval,
    resampled_sums as resampled_sums,
    seed_of as seed_of,
)
from .contrast import NORMAL as NORMAL, Contrast as Contrast, over_seeds as over_seeds
from .interval import (
    SMALL_SAMPLE as SMALL_SAMPLE,
    ClusterCodes as ClusterCodes,
    Codes as Codes,
    Floats as Floats,
    Integers as Integers,
    Interval as Interval,
    beyond_margin_p as beyond_margin_p,
    clustered_mean as clustered_mean,
    draw_codes as draw_codes,
    independent_mean as independent_mean,
    largest_drop as largest_drop,
    mean_of_codes as mean_of_codes,
    paired_difference as paired_difference,
    stratified_mean as stratified_mean,
    t_interval as t_interval,
    wilson as wilson,
)
from .significance import (
    adjusted as adjusted,
    benjamini_hochberg as benjamini_hochberg,
    change_points as change_points,
    detectable_difference as detectable_difference,
    half_sums as half_sums,
    holm as holm,
    mcnemar as mcnemar,
    mean_ranks as mean_ranks,
    needed_groups as needed_groups,
    paired_sd as paired_sd,
    rank_intervals as rank_intervals,
    recall_balance_p as recall_balance_p,
    sign_flip_p as sign_flip_p,
    swap_p as swap_p,
    tied_with_best as tied_with_best,
)
