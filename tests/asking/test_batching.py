"""Blocks hold every request once, groups whole, the longest first, whichever process works on them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given, strategies as st

from harness.running.inference import plan_blocks

LENGTHS = st.lists(st.integers(0, 60), max_size=30)


@given(LENGTHS, st.none() | st.integers(1, 100), st.data())
def test_every_request_is_in_one_block(lengths: list[int], size: int | None, data: st.DataObject) -> None:
    groups: Sequence[Hashable] | None = None
    if data.draw(st.booleans()):
        groups = data.draw(st.lists(st.sampled_from("abc"), min_size=len(lengths), max_size=len(lengths)))
    blocks = plan_blocks(lengths, groups, size)
    assert sorted(number for block in blocks for number in block) == list(range(len(lengths)))
    assert all(blocks)
    names = groups if groups is not None else list(range(len(lengths)))
    weight = {name: max(lengths[i] for i in range(len(lengths)) if names[i] == name) for name in names}
    for block in blocks:
        inside = {names[number] for number in block}
        assert sum(weight[names[number]] for number in block) <= (size or 10**9) or len(inside) == 1
        for name in inside:  # whole and in order
            own = [number for number in block if names[number] == name]
            assert own == [number for number in range(len(lengths)) if names[number] == name]
    order = [weight[names[number]] for block in blocks for number in block]
    assert order == sorted(order, reverse=True)
    if size is None:
        assert len(blocks) <= 1


@pytest.mark.parametrize(
    ("lengths", "groups", "size", "expected"),
    [
        ([], None, 10, []),
        ([], [], None, []),
        ([3, 5, 4], None, None, [[1, 2, 0]]),
        ([3, 5, 4], None, 9, [[1, 2], [0]]),
        ([3, 3, 3], None, 6, [[0, 1], [2]]),
        ([50, 1, 1], None, 10, [[0], [1, 2]]),
        ([0, 0, 0], None, 1, [[0, 1, 2]]),
        ([2, 9, 3, 9], ["a", "b", "a", "b"], 10, [[1, 3], [0, 2]]),
    ],
)
def test_blocks(
    lengths: list[int], groups: list[Hashable] | None, size: int | None, expected: object
) -> None:
    assert plan_blocks(lengths, groups, size) == expected


def test_a_block_is_filled_before_the_next_begins() -> None:
    blocks = plan_blocks([1] * 100, None, 16)
    assert [len(block) for block in blocks] == [16] * 6 + [4]
