"""The colours of fields: the number is always there, the colour only helps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from harness.reporting.blocks.model import Ramp

STEPS = 9
CLASSES: Mapping[Ramp, str] = {"score": "h", "error": "e", "difference": "d", "share": "g"}
SCALES: Mapping[Ramp, tuple[float, float]] = {
    "score": (0.0, 1.0),
    "error": (0.0, 1.0),
    "difference": (-0.2, 0.2),
    "share": (0.0, 1.0),
}
"""The same in every table, so that a colour has one meaning; what is beyond has the last colour."""


def heat_class(value: float | None, low: float, high: float, *, ramp: Ramp = "score") -> str:
    """Return the class of a field: ``h0`` to ``h8`` from low to high, with another letter for each ramp."""
    if value is None:
        return "absent"
    fraction = 0.5 if high <= low else (value - low) / (high - low)
    return f"{CLASSES[ramp]}{min(STEPS - 1, max(0, int(fraction * STEPS)))}"


def levels(values: Sequence[float | None], reaches: Sequence[float | None]) -> list[float | None]:
    """Return the values by which fields are coloured, so that no colour differs by noise alone.

    From the best value down, fields that do not differ measurably from the first of their band share the band's mean;
    the next one begins a new band. Values without an interval keep their own level.

    Args:
        values: Of the fields that are compared.
        reaches: Half of the 95 % interval of each; None where it is not known.
    """
    smoothed = list(values)
    measured = [
        (value, reach, index)
        for index, (value, reach) in enumerate(zip(values, reaches, strict=True))
        if value is not None and reach is not None
    ]
    measured.sort(key=lambda item: (-item[0], item[2]))
    start = 0
    for end in range(1, len(measured) + 1):
        first = measured[start]
        if end < len(measured) and first[0] - measured[end][0] <= math.hypot(first[1], measured[end][1]):
            continue
        mean = sum(value for value, _, _ in measured[start:end]) / (end - start)
        for _, _, index in measured[start:end]:
            smoothed[index] = mean
        start = end
    return smoothed
