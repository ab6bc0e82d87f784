"""Buckets of an attribute: intervals that hold about as many items each, or one bucket per value.

Source: Ruder et al. (2021), XTREME-R, appendix K and Tables 25 and 26: N = 4 buckets XS, S, L and XL, closed on the
right, the first one closed on both sides; equal values are never separated, so that there may be fewer. The rule for
the cuts is ExplainaBoard's ``continuous`` (0.12.7): a bucket is closed once it holds its share of the items that are
left and the value changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from harness.errors import DataError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NAMES: Final = ("XS", "S", "L", "XL")
OTHER: Final = "other"
"""The bucket of the values that are not among the most frequent ones."""
MOST_VALUES: Final = 15
NOWHERE: Final = -1
"""The code of an item that lies in no bucket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """An interval ``(low, high]``, ``[low, high]`` where `low_closed`, or a value, for which the bounds are None."""

    name: str
    low: float | None = None
    high: float | None = None
    low_closed: bool = False

    @property
    def interval(self) -> str:
        """``(2, 5]``; the value itself for a bucket of one value."""
        if self.low is None or self.high is None:
            return self.name
        if self.low == self.high and self.low_closed:
            return f"{self.low:.3g}"
        return f"{'[' if self.low_closed else '('}{self.low:.3g}, {self.high:.3g}]"


def equal_count(values: Floats, names: Sequence[str] = NAMES) -> tuple[Bucket, ...]:
    """Return at most ``len(names)`` intervals that hold about as many of the values each.

    Equal values are never separated: there are fewer intervals where they force it, named in order. None at all
    where no value is finite.

    Args:
        values: Shape (n,); those that are not finite are ignored.
        names: The names, one per bucket.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return ()
    distinct, counts = np.unique(finite, return_counts=True)
    upto = np.cumsum(counts)
    buckets: list[Bucket] = []
    low, done = float(distinct[0]), 0
    for number, name in enumerate(names):
        target = done + (len(finite) - done) / (len(names) - number)
        last = min(int(np.searchsorted(upto, target - 1e-9)), len(distinct) - 1)
        high = float(distinct[last])
        buckets.append(Bucket(name=name, low=low, high=high, low_closed=number == 0))
        low, done = high, int(upto[last])
        if done == len(finite):
            break
    return tuple(buckets)


def frequent_values(values: Sequence[str | None], most: int = MOST_VALUES) -> tuple[Bucket, ...]:
    """Return a bucket for each of the most frequent values, frequent ones first, and `OTHER` where there are more.

    Equally frequent values are in the order of their names.
    """
    counts = Counter(value for value in values if value is not None)
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    frequent = [value for value in ordered if value != OTHER][:most]
    has_more = len(ordered) > len(frequent)
    return tuple(Bucket(name=value) for value in [*frequent, *([OTHER] if has_more else [])])


def assign(values: Floats | Sequence[str | None], buckets: Sequence[Bucket]) -> Integers:
    """Return the number of every value's bucket, `NOWHERE` for one that lies in none, shape (n,).

    Raises `DataError` where intervals overlap.
    """
    if not isinstance(values, np.ndarray):
        numbers: dict[str | None, int] = {bucket.name: number for number, bucket in enumerate(buckets)}
        fallback = numbers.get(OTHER, NOWHERE)
        codes = (NOWHERE if value is None else numbers.get(value, fallback) for value in values)
        return np.fromiter(codes, np.int64, len(values))
    bucket_numbers = np.full(len(values), NOWHERE, dtype=np.int64)
    for number, bucket in enumerate(buckets):
        assert bucket.low is not None
        assert bucket.high is not None
        above = values >= bucket.low if bucket.low_closed else values > bucket.low
        inside = above & (values <= bucket.high)
        if (bucket_numbers[inside] != NOWHERE).any():
            raise DataError(
                f"The bucket {bucket.name!r} {bucket.interval} overlaps another one; a value lies in both."
            )
        bucket_numbers[inside] = number
    return bucket_numbers
