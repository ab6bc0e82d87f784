from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from harness.errors import DataError
from harness_xtreme_r.submission.exchange import (
    from_sorted_english_indices,
    sorted_english_order,
    to_sorted_english_indices,
)

ENGLISH = ["Zoos open.\n", " apples fell.", "Birds sing.", "apples are red."]
IDS = ["0", "1", "2", "3"]


def test_order_is_that_of_stripped_lines_by_code_point() -> None:
    # The English file becomes: Birds sing. / Zoos open. / apples are red. / apples fell.
    assert sorted_english_order(ENGLISH) == [2, 0, 3, 1]


def test_perfect_candidates_give_the_gold_file() -> None:
    assert to_sorted_english_indices(IDS, IDS, ENGLISH) == sorted_english_order(ENGLISH)


def test_worked_example() -> None:
    # Query "Zoos open." found the foreign sentence of "Birds sing."; it is line 1 of the sorted file.
    assert to_sorted_english_indices(["2", "1", "2", "3"], IDS, ENGLISH) == [2, 2, 3, 1]
    assert from_sorted_english_indices([2, 2, 3, 1], IDS, ENGLISH) == ["2", "1", "2", "3"]


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 99)), min_size=1, max_size=30))
def test_inverse_and_the_same_accuracy(pairs: list[tuple[str, int]]) -> None:
    english = [text for text, _ in pairs]
    ids = [f"pair-{number}" for number in range(len(pairs))]
    candidates = [ids[number % len(ids)] for _, number in pairs]
    indices = to_sorted_english_indices(candidates, ids, english)
    assert from_sorted_english_indices(indices, ids, english) == candidates
    gold = sorted_english_order(english)
    assert sorted(gold) == list(range(len(pairs)))
    hits = sum(candidate == key for candidate, key in zip(candidates, ids, strict=True))
    assert sum(index == line for index, line in zip(indices, gold, strict=True)) == hits


def test_equal_sentences_keep_their_order() -> None:
    assert sorted_english_order(["b", "a", "b ", "a"]) == [1, 3, 0, 2]


def test_rejects_mismatched_input() -> None:
    with pytest.raises(DataError, match="Pair '1': expected a pair id as its candidate, found '9'"):
        to_sorted_english_indices(["0", "9", "2", "3"], IDS, ENGLISH)
    with pytest.raises(DataError, match="candidate for each of the 4 pairs, found 3"):
        to_sorted_english_indices(IDS[:3], IDS, ENGLISH)
    with pytest.raises(DataError, match="4 English sentences, one for each pair, found 3"):
        to_sorted_english_indices(IDS, IDS, ENGLISH[:3])
    with pytest.raises(DataError, match="4 distinct pair ids, found 1"):
        to_sorted_english_indices(IDS, ["0"] * 4, ENGLISH)
    with pytest.raises(DataError, match="Line 2: expected a number from 0 to 3, found 4"):
        from_sorted_english_indices([0, 4, 1, 2], IDS, ENGLISH)
    with pytest.raises(DataError, match="4 lines, one for each pair, found 1"):
        from_sorted_english_indices([0], IDS, ENGLISH)
