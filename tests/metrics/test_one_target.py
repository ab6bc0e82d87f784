"""The limit to one target, against a pool from which the other right answers are really removed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.metrics.metric import MetricContext
from harness.metrics.ranking import average_precision, map_at_20, one_target_map_at_20, one_target_ranks

CONTEXT = MetricContext(language="en")
LANGUAGES = ("ar", "de", "en", "hi", "zh")


def removed(order: Sequence[str], targets: Sequence[str], target: str) -> float:
    """Rank a pool without the other targets, anew, and return the average precision at 20 of the one left."""
    pool = [candidate for candidate in order if candidate == target or candidate not in targets]
    hits, precisions = 0, []
    for rank, candidate in enumerate(pool[:20], start=1):
        if candidate == target:
            hits += 1
            precisions.append(hits / rank)
    return sum(precisions) / 1


@st.composite
def queries(draw: st.DrawFn) -> tuple[list[str], list[str], list[str]]:
    """An order of a whole pool, some targets in it, and a language for each."""
    order = draw(st.permutations([f"c{number}" for number in range(draw(st.integers(1, 45)))]))
    count = draw(st.integers(1, min(8, len(order))))
    # Half of the targets are looked for near the cut-off, where the two ways of counting could differ.
    near = [candidate for candidate in order[15:30]] or order
    targets = draw(st.lists(st.sampled_from([*order, *near, *near]), min_size=1, max_size=count, unique=True))
    return order, targets, [draw(st.sampled_from(LANGUAGES)) for _ in targets]


def _prediction(order: Sequence[str], others: int) -> dict[str, list[str]]:
    return {"candidates": list(order[:20]), "further": list(order[20 : 20 + others])}


@given(st.lists(queries(), min_size=1, max_size=4))
def test_it_equals_a_pool_without_the_other_targets(
    asked: list[tuple[list[str], list[str], list[str]]],
) -> None:
    predictions = [_prediction(order, len(targets) - 1) for order, targets, _ in asked]
    references = [{"targets": targets, "languages": languages} for _, targets, languages in asked]
    result = one_target_map_at_20(predictions, references, CONTEXT)
    expected = [[removed(order, targets, target) for target in targets] for order, targets, _ in asked]
    assert result.items is not None
    np.testing.assert_allclose(result.items, [fmean(scores) for scores in expected])
    assert result.value == pytest.approx(fmean(fmean(scores) for scores in expected))
    by_language: dict[str, list[float]] = {}
    for (_, _, languages), scores in zip(asked, expected, strict=True):
        for language, score in zip(languages, scores, strict=True):
            by_language.setdefault(language, []).append(score)
    assert result.groups is not None
    groups = result.groups
    assert {code: group.n for code, group in groups.items()} == {
        code: len(scores) for code, scores in by_language.items()
    }
    means = {code: fmean(scores) for code, scores in by_language.items()}
    assert {code: group.value for code, group in groups.items()} == pytest.approx(means)


@given(queries())
def test_the_groups_sum_up_to_the_items(query: tuple[list[str], list[str], list[str]]) -> None:
    order, targets, languages = query
    result = one_target_map_at_20(
        [_prediction(order, len(targets) - 1)], [{"targets": targets, "languages": languages}], CONTEXT
    )
    assert result.groups is not None
    assert sum(group.n for group in result.groups.values()) == len(targets)
    total = sum(group.value * group.n for group in result.groups.values())
    assert total / len(targets) == pytest.approx(result.value)


@given(queries())
def test_with_one_target_it_is_the_mean_average_precision(
    query: tuple[list[str], list[str], list[str]],
) -> None:
    order, [target, *_], [language, *_] = query
    reference = [{"targets": [target], "languages": [language]}]
    for prediction in ({"candidates": order[:20]}, _prediction(order, 3)):
        one: Any = one_target_map_at_20([prediction], reference, CONTEXT)
        assert one.value == map_at_20([prediction], reference, CONTEXT).value


def test_a_target_behind_the_cut_off_counts_where_the_others_stood_before_it() -> None:
    order = ["t1", "t2", *(f"c{number}" for number in range(18)), "c18", "t3", "t4"]
    targets = ["t1", "t2", "t3", "t4"]
    assert one_target_ranks(order, targets) == [1.0, 1.0, 1 / 20, 1 / 20]
    assert one_target_ranks(order[:20], targets) == [1.0, 1.0, 0.0, 0.0]
    assert one_target_ranks(["c18", *order], targets)[2:] == [0.0, 0.0]


def test_a_repeated_target_keeps_its_first_place() -> None:
    assert one_target_ranks(["c", "t", "d", "t"], ["t"]) == [1 / 2]


def test_languages_and_targets_must_fit_together() -> None:
    with pytest.raises(ValueError, match=r"Item 0: 2 targets have 1 languages\."):
        one_target_map_at_20([["a"]], [{"targets": ["a", "b"], "languages": ["en"]}], CONTEXT)
    with pytest.raises(ValueError, match="languages"):
        one_target_map_at_20([["a"]], [{"targets": ["a"]}], CONTEXT)


RANKINGS = st.lists(st.sampled_from([f"c{number}" for number in range(12)]), max_size=40)


@given(RANKINGS, st.sets(st.sampled_from([f"c{number}" for number in range(12)]), min_size=1))
def test_average_precision_with_repeated_and_overlong_rankings(ranking: list[str], targets: set[str]) -> None:
    seen: set[str] = set()
    hits, total = 0, 0.0
    for rank in range(1, 21):
        if rank > len(ranking):
            break
        candidate = ranking[rank - 1]
        if candidate in targets and candidate not in seen:
            hits += 1
            total += hits / rank
        seen.add(candidate)
    score = average_precision(ranking, targets)
    assert score == pytest.approx(total / min(len(targets), 20))
    assert 0 <= score <= 1
    # Ranks after the cut-off change nothing.
    assert average_precision([*ranking[:20], *targets] if len(ranking) >= 20 else ranking, targets) == score
