"""Where in their depth several models keep what a task needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.reporting.number import NOTHING, percent
from harness.reporting.text_table import TextRow, TextTable
from harness_probing.reporting.baseline import baseline_values
from harness_probing.reporting.curve import Curve
from harness_probing.reporting.probe import METRIC, Probe

__all__ = ["Localisation", "depth_of", "localisation_table", "localisations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Localisation:
    """The curves of all models on one task and treebank, over depth: layer divided by the last layer."""

    title: str
    curves: tuple[Curve, ...]


def localisations(curves: Sequence[Curve]) -> list[Localisation]:
    """Return what several models were probed for, in the order of the curves."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(f"{curve.probe.title} {curve.probe.treebank_name}".rstrip(), []).append(curve)
    return [
        Localisation(title=title, curves=tuple(own))
        for title, own in groups.items()
        if len({curve.probe.model for curve in own}) > 1
    ]


def depth_of(probe: Probe, layer: float) -> float:
    """Return a layer as a share of the model's depth, from 0 (the embeddings) to 1 (the last layer)."""
    return layer / probe.depth if probe.depth else 0.0


def localisation_table(found: Sequence[Localisation], title: str) -> TextTable | None:
    """Return where every model has its best layer and its centre of gravity; None where there is one model."""
    rows = [row for one in found for row in _rows(one)]
    if not rows:
        return None
    return TextTable(
        title=title,
        corner="task and model",
        heads=("layers", "best\nlayer", "depth", "best", "last", "gravity", "depth"),
        rows=tuple(rows),
        notes=(
            "Depth: the layer divided by the last one. Gravity: the mean layer of a scalar mix of all layers.",
        ),
    )


def _rows(one: Localisation) -> Iterator[TextRow]:
    yield TextRow(label=one.title, level=1)
    for curve in one.curves:
        probe = curve.probe
        gravity = baseline_values(probe)["center_of_gravity"]
        yield TextRow(
            label=probe.model,
            fields=(
                str(probe.depth),
                str(probe.best["layer"]),
                f"{depth_of(probe, probe.best['layer']):.2f}",
                percent(probe.best[METRIC]["value"]),
                percent(probe.last[METRIC]["value"]),
                NOTHING if gravity is None else f"{gravity:.2f}",
                NOTHING if gravity is None else f"{depth_of(probe, gravity):.2f}",
            ),
            level=2,
        )
