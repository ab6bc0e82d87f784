"""The printed names of metrics."""

from __future__ import annotations

import re

_SHORT = {
    "accuracy": "acc",
    "pass_rate": "passed",
    "f1": "F1",
    "exact_match": "EM",
    "mlqa_f1": "F1",
    "mlqa_exact_match": "EM",
    "weighted_f1": "wF1",
    "macro_f1": "mF1",
    "chunk_f1": "F1",
    "span_f1": "span F1",
    "token_accuracy": "acc",
    "top1_accuracy": "acc",
    "map_at_20": "mAP",
    "mrr_at_20": "MRR",
    "one_target_map_at_20": "mAP, one target",
}


def metric_name(metric: str) -> str:
    """Return the one name of a metric in all output for people: ``F1``, ``acc``, ``token f1``, ``mean(F1, EM)``.

    JSON and CSV, options and messages about options have the machine name.
    """
    if inside := re.fullmatch(r"mean\((.+)\)", metric):
        return f"mean({', '.join(map(metric_name, inside[1].split(', ')))})"
    return _SHORT.get(metric, metric.replace("_", " "))
