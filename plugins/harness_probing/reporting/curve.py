"""Layer curves: the score of every layer, that of its control task, and that of an encoder with random weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.reporting.number import percent
from harness_probing.reporting.probe import METRIC, Probe

__all__ = ["ASCII", "BLOCKS", "Curve", "curves", "sparkline"]

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.-=+*%#"
"""As high as the blocks, for terminals that cannot show those."""
Point = tuple[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points (layer, score) of one probe; fractions."""

    probe: Probe
    points: tuple[Point, ...]
    control: tuple[Point, ...]
    """Empty without control tasks."""
    random: tuple[Point, ...]
    """Empty without a random encoder."""

    @property
    def lines(self) -> dict[str, tuple[Point, ...]]:
        """All three by what they are of."""
        return {"probe": self.points, "control": self.control, "random": self.random}

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest value of all three."""
        values = [value for own in self.lines.values() for _, value in own]
        return min(values), max(values)

    @property
    def description(self) -> str:
        """The curve in words."""
        best = self.probe.best
        return (
            f"layers {self.points[0][0]} to {self.points[-1][0]}, best {percent(best[METRIC]['value'])} in layer "
            f"{best['layer']}, last {percent(self.points[-1][1])}"
        )


def curves(probes: Sequence[Probe]) -> list[Curve]:
    """Return the curve of every probe."""
    return [
        Curve(
            probe=probe,
            points=_points(probe.layers, "test"),
            control=_points(probe.layers, "control"),
            random=_points(probe.random_layers, "test"),
        )
        for probe in probes
    ]


def _points(entries: Sequence[Mapping[str, Any]], key: str) -> tuple[Point, ...]:
    return tuple(
        (int(entry["layer"]), float(entry[key][METRIC]["value"])) for entry in entries if key in entry
    )


def sparkline(points: Sequence[Point], limits: tuple[float, float], levels: str = BLOCKS) -> str:
    """Return one character per layer, from the lowest level to the highest.

    Layers that were not probed are blank, so that the columns of two curves are the same layers. Where all values are
    equal, they are in the middle.
    """
    by_layer = dict(points)
    low, high = limits
    last = len(levels) - 1
    shown = ""
    for layer in range(max(by_layer, default=-1) + 1):
        if layer not in by_layer:
            shown += " "
            continue
        part = 0.5 if high <= low else (by_layer[layer] - low) / (high - low)
        shown += levels[min(last, max(0, round(part * last)))]
    return shown
