"""The premium: exact ratios, and an interval that agrees with resampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.reporting.cost.cost import Cost, EquityRow, Premium, by_id, correlation_of, premium_of
from harness.storage.records import ItemTokens

Counts = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(min_value=1, max_value=500), min_size=1)


def costs(tokens: dict[str, int | None], clusters: dict[str, str] | None = None) -> dict:  # type: ignore[type-arg]
    ids = list(tokens)
    return dict(
        by_id(
            ItemTokens(
                ids=ids,
                clusters=[(clusters or {}).get(name) for name in ids],
                tokens=[tokens[name] for name in ids],
            )
        )
    )


@given(Counts)
def test_english_costs_exactly_one(tokens: dict[str, int]) -> None:
    own = costs(dict(tokens))
    found = premium_of([(own, own)])
    assert (found.tokens, found.low, found.high, found.items) == (1.0, None, None, len(tokens))


@given(Counts, Counts)
def test_it_is_the_ratio_of_sums_over_the_items_that_both_have(
    one: dict[str, int], other: dict[str, int]
) -> None:
    found = premium_of([(costs(dict(one)), costs(dict(other)))])
    shared = one.keys() & other.keys()
    if not shared:
        assert (found.tokens, found.reason) == (None, "no item has an English version in the run")
        return
    assert found.items == len(shared)
    assert found.tokens == sum(one[name] for name in shared) / sum(other[name] for name in shared)


def test_items_that_were_not_counted_are_left_out() -> None:
    found = premium_of([(costs({"a": 4, "b": None}), costs({"a": 2, "b": 7}))])
    assert (found.tokens, found.items, found.low) == (2.0, 1, None)
    assert premium_of([(costs({"a": 4}), costs({"a": 0}))]).reason == "the English items have no token"


def test_several_tests_add_up_and_equal_ids_of_two_tests_are_two_items() -> None:
    found = premium_of(
        [(costs({"1": 4}), costs({"1": 2})), (costs({"1": 9, "2": 1}), costs({"1": 3, "2": 1}))]
    )
    assert (found.tokens, found.items) == (14 / 6, 3)


@pytest.mark.parametrize("size", [1, 3])
def test_the_interval_agrees_with_a_bootstrap_over_clusters(size: int) -> None:
    random = np.random.default_rng(5)
    english = random.integers(5, 60, 300)
    factor = 1.6 + 0.5 * np.repeat(random.standard_normal(300 // size), size).clip(-2, 2)
    own = np.maximum(1, np.rint(english * factor)).astype(int)
    names = [str(number) for number in range(300)]
    clusters = {name: str(int(name) // size) for name in names}
    found = premium_of(
        [
            (
                costs(dict(zip(names, own.tolist(), strict=True)), clusters),
                costs(dict(zip(names, english.tolist(), strict=True)), clusters),
            )
        ]
    )
    groups = np.arange(300).reshape(-1, size)
    drawn = random.integers(0, len(groups), (4000, len(groups)))
    ratios = own[groups].sum(1)[drawn].sum(1) / english[groups].sum(1)[drawn].sum(1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    assert found.tokens is not None and found.low is not None and found.high is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.1 * (high - low))


def row(code: str, score: float, premium: float | None, tokens: int = 20, unspaced: int = 0) -> EquityRow:
    cost = Cost(items=1, words=10, characters=50, bytes=50, tokens=tokens, unspaced=unspaced)
    found = Premium() if premium is None else Premium(tokens=premium)
    return EquityRow(code=code, name=code, script="Latn", cost=cost, premium=found, score=score)


def test_scores_are_correlated_with_the_premium_or_else_with_the_fertility() -> None:
    rows = [row(str(number), 1 - number / 10, 1 + number**2) for number in range(6)]
    found = correlation_of(rows, "accuracy")
    assert found is not None
    assert (found.of, found.languages) == ("premium", 6)
    assert found.value == pytest.approx(-1)
    own = [row(str(number), number / 10, None, tokens=20 + number) for number in range(5)]
    letters = row("zh", 0.0, None, tokens=1000, unspaced=9)
    found = correlation_of([*own, letters], "accuracy")
    assert found is not None
    assert (found.of, found.languages) == ("fertility", 5)
    assert found.value == pytest.approx(1)
    assert correlation_of(own[:4], "accuracy") is None
    assert correlation_of([row(str(number), 0.5, 1 + number) for number in range(6)], "accuracy") is None


def test_sums_of_what_is_not_known_are_not_known() -> None:
    known = Cost(items=2, tokens=10, unknown=1, truncated=1, truncated_of=2, seconds=1.0)
    total = known + Cost(items=3, tokens=5, unknown=None, truncated=0, truncated_of=0, is_timed=False)
    assert (total.items, total.tokens, total.unknown, total.is_timed) == (5, 15, None, False)
    assert (total.truncated_share, total.unknown_share) == (0.5, None)
    assert (Cost().fertility, Cost().bytes_per_token, Cost().truncated_share, Cost().tokens_per_second) == (
        None,
    ) * 4
