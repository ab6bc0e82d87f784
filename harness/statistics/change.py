"""Where the scores of a series change: binary segmentation against replicates of its noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
LEVEL = 0.05
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """The first score after a change."""

    at: int
    """Its place in the series."""
    step: float
    """The mean of the scores from it to the next change, minus that of those before it."""
    p: float
    """Of the split with the largest standardised step of this part of the series."""


def change_points(scores: Floats, noise: Floats) -> list[ChangePoint]:
    """Return the changes of a series in their order.

    A series is split where its standardised step is largest, if at most 5 % of the replicates of the noise have as
    large a step at any place; then each part by itself (Scott and Knott 1974; Vostrikova 1981).

    Args:
        scores: Shape (n,), in the order of time.
        noise: Shape (draws, n): replicates of the scores without any change. Only differences within one matter.
    """
    splits = sorted(_splits(scores, noise, 0, len(scores)))
    ends = [0, *(at for at, _ in splits), len(scores)]
    return [
        ChangePoint(at=at, step=float(scores[at:after].mean() - scores[before:at].mean()), p=p)
        for (at, p), before, after in zip(splits, ends[:-2], ends[2:], strict=True)
    ]


def _splits(scores: Floats, noise: Floats, start: int, end: int) -> list[tuple[int, float]]:
    positions = np.arange(start + 1, end)
    if not len(positions):
        return []
    observed = np.array([scores[at:end].mean() - scores[start:at].mean() for at in positions])
    drawn = np.stack(
        [noise[:, at:end].mean(axis=1) - noise[:, start:at].mean(axis=1) for at in positions], axis=1
    )
    spread = drawn.std(axis=0)
    # No change lies between two neighbours that answered all items alike.
    possible = (noise[:, positions] - noise[:, positions - 1]).std(axis=0) > ROUNDING
    if not possible.any():
        return []
    steps = np.abs(observed[possible]) / spread[possible]
    largest = (np.abs(drawn[:, possible] - drawn[:, possible].mean(axis=0)) / spread[possible]).max(axis=1)
    p = (1 + int((largest >= steps.max() - ROUNDING).sum())) / (1 + len(noise))
    if p > LEVEL:
        return []
    at = int(positions[possible][steps.argmax()])
    return [*_splits(scores, noise, start, at), (at, p), *_splits(scores, noise, at, end)]
