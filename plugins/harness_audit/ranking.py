"""Rankings that say nothing, and the most that each may score: gold, constant, empty, late, of others, drawn.

What a ranking may score is counted on the right candidates and the size of the pool alone: precision, reciprocal rank
and recall at a cut-off are each at most the share of queries with a right candidate up to it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import prod, sqrt
from typing import Any

from harness.metrics.retrieval import CUT_OFF
from harness_audit.trial import SEED, SURE, Trial, shuffled

__all__ = ["ranking_trials"]

WHOLE = 1_000
"""Candidates of a pool that are put into one ranking, to see whether a metric ends at the cut-off."""


def ranking_trials(
    references: Sequence[Mapping[str, Sequence[str]]], candidates: Sequence[str]
) -> list[Trial]:
    """Return the trials of ranked retrieval, gold first.

    Args:
        references: With the key ``targets``, the ids of all right candidates of a query.
        candidates: The ids of the pool, in its order.
    """
    gold = [list(reference["targets"]) for reference in references]
    further = max(map(len, gold), default=1) - 1
    size = len(gold)

    def ranked(name: str, check: str, rankings: Sequence[Sequence[str]], ceiling: float) -> Trial:
        outputs = [
            {"candidates": list(own[:CUT_OFF]), "further": list(own[CUT_OFF : CUT_OFF + further])}
            for own in rankings
        ]
        return Trial(name=name, check=check, outputs=outputs, ceiling=ceiling)

    def share(ids: Collection[str]) -> float:
        return sum(not set(own).isdisjoint(ids) for own in gold) / size

    often = [name for name, _ in Counter(chain.from_iterable(gold)).most_common(CUT_OFF)]
    others = shuffled(gold)
    met = sum(not set(own).isdisjoint(other) for own, other in zip(gold, others, strict=True)) / size
    whole = list(candidates[:WHOLE])
    late = [[*_wrong(own, candidates, CUT_OFF + further), *own] for own in gold]
    return [
        ranked("gold", "gold", gold, 1.0),
        ranked(f"the constant {often[0]!r}", "constant", [often[:1]] * size, share(often[:1])),
        ranked(f"the same {len(often)} candidates for all queries", "constant", [often] * size, share(often)),
        ranked("empty rankings", "empty", [[]] * size, 0.0),
        Trial(
            name="the right candidates behind the cut-off",
            check="reversed",
            outputs=[{"candidates": own} for own in late],
            ceiling=_late(gold, len(candidates)),
        ),
        ranked("one right candidate in every place", "repeated", [own[:1] * CUT_OFF for own in gold], 1.0),
        ranked("the right candidates of other queries", "shuffled", others, met),
        ranked("random candidates", "shuffled", _drawn(gold, candidates, further), _met(gold, candidates)),
        Trial(
            name=f"the first {len(whole):,} candidates of the pool, not cut off",
            check="all labels",
            outputs=[{"candidates": whole}] * size,
            ceiling=share(whole[:CUT_OFF]),
        ),
    ]


def _wrong(own: Collection[str], candidates: Sequence[str], count: int) -> Iterator[str]:
    return islice((name for name in candidates if name not in own), count)


def _late(gold: Sequence[Sequence[str]], size: int) -> float:
    """Return what right candidates behind all others may score: 0 unless the pool is smaller than the cut-off."""
    total = 0.0
    for own in gold:
        before = size - len(own)
        if before < CUT_OFF:
            last = min(len(own), CUT_OFF - before)
            precision = sum(found / (before + found) for found in range(1, last + 1)) / min(len(own), CUT_OFF)
            total += max(precision, 1 / (before + 1))
    return total / len(gold)


def _drawn(gold: Sequence[Sequence[str]], candidates: Sequence[str], further: int) -> list[list[str]]:
    draw = random.Random(SEED)  # noqa: S311
    count = min(len(candidates), CUT_OFF + further)
    return [draw.sample(candidates, count) for _ in gold]


def _met(gold: Sequence[Any], candidates: Sequence[str]) -> float:
    """Return how many queries find a right candidate among the first of a random order, and what chance may add."""
    size, further = len(candidates), max(map(len, gold)) - 1
    count = min(size, CUT_OFF + further)
    misses = [
        prod(max(0, size - len(own) - place) / (size - place) for place in range(count)) for own in gold
    ]
    met = 1 - sum(misses) / len(misses)
    return min(1.0, met + SURE * sqrt(met * (1 - met) / len(gold)))
