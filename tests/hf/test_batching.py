from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from harness_hf.inference.pieces import Encoded, length_sorted_batches, pad_batch


@given(st.lists(st.integers(0, 70), max_size=60), st.integers(1, 128))
def test_batches_hold_every_index_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(length_sorted_batches(lengths, budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget
    order = [index for batch in batches for index in batch]
    assert order == sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))


def test_padding_goes_to_the_longest_of_the_batch() -> None:
    batch = pad_batch([Encoded([5, 6, 7], [0, 0, 1]), Encoded([8])], 9, ["input_ids", "token_type_ids"])
    np.testing.assert_array_equal(batch["input_ids"], [[5, 6, 7], [8, 9, 9]])
    np.testing.assert_array_equal(batch["attention_mask"], [[1, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(batch["token_type_ids"], [[0, 0, 1], [0, 0, 0]])
    assert "token_type_ids" not in pad_batch([Encoded([1])], 0, ["input_ids"])
