"""Names of harness.metrics that plugins, adapters and programs use, and the modules that define them."""

from .catalog import METRICS as METRICS
from .chunk import chunk_f1 as chunk_f1, chunk_precision as chunk_precision, chunk_recall as chunk_recall
from .classification import (
    accuracy as accuracy,
    macro_f1 as macro_f1,
    macro_f1_from_counts as macro_f1_from_counts,
)
from .metric import (
    Floats as Floats,
    GroupScore as GroupScore,
    Metric as Metric,
    MetricContext as MetricContext,
    MetricFunction as MetricFunction,
    MetricResult as MetricResult,
    check_pairs as check_pairs,
    field_of as field_of,
    mean_of_items as mean_of_items,
    metric_name as metric_name,
)
from .question_answering import (
    mlqa_exact_match as mlqa_exact_match,
    mlqa_f1 as mlqa_f1,
    squad_exact_match as squad_exact_match,
    squad_f1 as squad_f1,
)
from .ranking import CUT_OFF as CUT_OFF, map_at_20 as map_at_20
