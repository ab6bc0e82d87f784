"""The order of Tatoeba's public files: English queries sorted, foreign sentences as they lie in the data.

XTREME rewrites the English file sorted by Python's order of the stripped lines. Line p of a submission
answers the p-th English sentence of that order with the 0-based line number of a foreign sentence in the
original order.

Source: ``tatoeba_preprocess`` in google-research/xtreme ``utils_preprocess.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness import DataError

__all__ = ["from_sorted_english_indices", "sorted_english_order", "to_sorted_english_indices"]


def sorted_english_order(english: Sequence[str]) -> list[int]:
    """Return, for each position in the sorted English file, the 0-based line in the original order.

    These numbers are also the gold file. Equal sentences keep their order.
    """
    lines = [sentence.strip() for sentence in english]
    return sorted(range(len(lines)), key=lines.__getitem__)


def to_sorted_english_indices(
    candidates: Sequence[str], ids: Sequence[str], english: Sequence[str]
) -> list[int]:
    """Return the lines of a submission file for the pairs of one language.

    All three have one entry a pair, in the original order: `candidates` the id of the pair whose foreign
    sentence was found for the pair's English one, `ids` the pair's own id, `english` its English sentence.
    Raises `DataError` where the lengths differ, an id repeats, or a candidate is no id.
    """
    positions = _positions(ids, english)
    if len(candidates) != len(ids):
        raise DataError(f"Expected a candidate for each of the {len(ids)} pairs, found {len(candidates)}.")
    for query, candidate in zip(ids, candidates, strict=True):
        if candidate not in positions:
            raise DataError(f"Pair {query!r}: expected a pair id as its candidate, found {candidate!r}.")
    return [positions[candidates[line]] for line in sorted_english_order(english)]


def from_sorted_english_indices(
    indices: Sequence[int], ids: Sequence[str], english: Sequence[str]
) -> list[str]:
    """Return the candidate id of each pair in the original order: the inverse of `to_sorted_english_indices`.

    Raises `DataError` where the lengths differ, an id repeats, or an index is no line of the foreign file.
    """
    _positions(ids, english)
    if len(indices) != len(ids):
        raise DataError(f"Expected {len(ids)} lines, one for each pair, found {len(indices)}.")
    candidates = [""] * len(ids)
    for number, (line, index) in enumerate(zip(sorted_english_order(english), indices, strict=True), start=1):
        if not 0 <= index < len(ids):
            raise DataError(f"Line {number}: expected a number from 0 to {len(ids) - 1}, found {index}.")
        candidates[line] = ids[index]
    return candidates


def _positions(ids: Sequence[str], english: Sequence[str]) -> dict[str, int]:
    if len(ids) != len(english):
        raise DataError(f"Expected {len(ids)} English sentences, one for each pair, found {len(english)}.")
    positions = {pair: position for position, pair in enumerate(ids)}
    if len(positions) != len(ids):
        raise DataError(f"Expected {len(ids)} distinct pair ids, found {len(positions)}.")
    return positions
