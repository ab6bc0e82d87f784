"""Scores of test cases: a case fails where any of its examples fails (CheckList, Ribeiro et al. 2020, section 3).

Items of a case that no system can pass have the tag ``defect``; the tag ``normalise`` says how answers are
compared in their language. Error rates come with Wilson's interval over cases.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.metrics import (
    Floats,
    GroupScore,
    Metric,
    MetricContext,
    MetricResult,
    check_pairs,
    field_of,
)
from harness.statistics import Interval, wilson

if TYPE_CHECKING:
    from harness_checklist.suite import Profile

Count = Callable[[bool, bool], tuple[float, float]]
"""Whether a case passed and whether it has a defect -> what it adds to numerator and denominator."""


@lru_cache(maxsize=1024)
def profile_tag(profile: Profile) -> str:
    """Return a profile as the text of a tag."""
    return json.dumps(profile.model_dump(mode="json"), ensure_ascii=False, sort_keys=True)


@lru_cache(maxsize=1024)
def profile_from_tag(text: str) -> Profile:
    """Return the profile that `profile_tag` wrote; without a tag the plain one."""
    from harness_checklist.suite import Profile

    return Profile.model_validate_json(text or "{}")


def _passes(prediction: Any, reference: Any, tags: Mapping[str, str], index: int) -> bool:
    if not isinstance(reference, list) or not reference:
        raise ValueError(f"Item {index}: expected a list of answers as the reference, found {reference!r}.")
    profile = profile_from_tag(tags.get("normalise", ""))
    text = field_of(prediction, "text", index)
    if text is None:
        return False
    return any(profile.clean(str(text)) == profile.clean(answer) for answer in reference)


def _item_passes(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> list[bool]:
    check_pairs(predictions, references)
    tags = context.tags or [{}] * len(references)
    return [
        _passes(prediction, reference, item_tags, index)
        for index, (prediction, reference, item_tags) in enumerate(
            zip(predictions, references, tags, strict=True)
        )
    ]


def _example_error(
    predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    failed = 1.0 - np.asarray(_item_passes(predictions, references, context), dtype=np.float64)
    groups: dict[str, GroupScore] = {}
    for name in dict.fromkeys(group for group in context.groups if group is not None):
        errors = failed[[group == name for group in context.groups]]
        groups[name] = GroupScore(value=float(errors.mean()), n=len(errors))
    return MetricResult(value=float(failed.mean()), items=failed, groups=groups)


def _by_case(count: Count) -> Callable[[Sequence[Any], Sequence[Any], MetricContext], MetricResult]:
    def compute(
        predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
    ) -> MetricResult:
        passed = _item_passes(predictions, references, context)
        clusters = context.clusters or [None] * len(passed)
        tags = context.tags or [{}] * len(passed)
        first: dict[str, int] = {}
        rows = [
            index if cluster is None else first.setdefault(cluster, index)
            for index, cluster in enumerate(clusters)
        ]
        case_passed = dict.fromkeys(rows, True)
        defective = dict.fromkeys(rows, False)
        for index, row in enumerate(rows):
            case_passed[row] &= passed[index]
            defective[row] |= bool(tags[index].get("defect"))
        counts = np.zeros((len(passed), 2))
        for row in case_passed:
            counts[row] = count(case_passed[row], defective[row])
        groups: dict[str, GroupScore] = {}
        names = context.groups or [None] * len(passed)
        for name in dict.fromkeys(group for group in names if group is not None):
            group_counts = counts[[group == name for group in names]].sum(axis=0)
            if group_counts[1]:
                groups[name] = GroupScore(
                    value=_ratio(group_counts), n=int(group_counts[1]), bounds=_bounds(group_counts)
                )
        total = counts.sum(axis=0)
        return MetricResult(value=_ratio(total), counts=counts, groups=groups, bounds=_bounds(total))

    return compute


def _ratio(counts: Floats) -> float:
    """Return the share; 0 where no case counts (every one has a defect)."""
    return float(counts[0] / counts[1]) if counts[1] else 0.0


def _bounds(counts: Floats) -> Interval | None:
    hits, n = float(counts[0]), float(counts[1])
    if not n:
        return None
    low, high = wilson(hits, int(n))
    share = hits / n
    return Interval(se=math.sqrt(share * (1 - share) / n), low=low, high=high, method="wilson")


_KINDS = frozenset({"span_extraction"})
_SOURCE = "Ribeiro et al. (2020), CheckList; Ruder et al. (2021), XTREME-R, section 5.1"

METRICS = (
    Metric(
        name="pass_rate",
        compute=_by_case(lambda passed, _: (float(passed), 1.0)),
        kinds=_KINDS,
        description="Share of test cases whose examples are all answered, after the language's normalisation.",
        source=_SOURCE,
        from_counts=_ratio,
        outcome_by_cluster=True,
    ),
    Metric(
        name="case_error",
        compute=_by_case(lambda passed, _: (float(not passed), 1.0)),
        kinds=_KINDS,
        description="Share of test cases with a wrong example: the error rate of Table 5.",
        source=_SOURCE,
        from_counts=_ratio,
        higher_is_better=False,
    ),
    Metric(
        name="case_floor",
        compute=_by_case(lambda _, defect: (float(defect), 1.0)),
        kinds=_KINDS,
        description="Share of test cases that no system which copies its answer can pass.",
        source="This project: defects of templates",
        from_counts=_ratio,
        higher_is_better=False,
    ),
    Metric(
        name="corrected_error",
        compute=_by_case(lambda passed, defect: (float(not passed and not defect), float(not defect))),
        kinds=_KINDS,
        description="Error rate over the test cases that can be passed.",
        source="This project: defects of templates",
        from_counts=_ratio,
        higher_is_better=False,
    ),
    Metric(
        name="example_error",
        compute=_example_error,
        kinds=_KINDS,
        description="Share of examples that are answered wrongly, whatever the rest of their case.",
        source=_SOURCE,
        higher_is_better=False,
    ),
)
