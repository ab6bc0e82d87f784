"""Layer curves: the score of every layer, that of its control task, and that of an encoder with random weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.reporting import Block, Charts, CurveChart, Line, Table, TableRow, percent, sparkline
from harness_probing.reporting.probe import METRIC, Probe

LABEL_WIDTH = 30
MANY_LAYERS = 33
"""From so many layers on, the axis of a figure does not number each."""
Point = tuple[int, float]
Stroke = Literal["solid", "dashed", "dotted"]
UNIT = "weighted F1 x100"
STROKES: tuple[tuple[str, Stroke, str], ...] = (
    ("probe", "solid", ""),
    ("control", "dashed", "control task"),
    ("random", "dotted", "encoder with random weights"),
)
CURVE_NOTE = (
    "One character per layer, from the embeddings; the curves of a row share their scale from low to high. Weighted F1 "
    "x100."
)


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
        values = [value for points in self.lines.values() for _, value in points]
        return min(values), max(values)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Localisation:
    """The curves of all models on one task and treebank, over depth: layer divided by the last layer."""

    title: str
    curves: tuple[Curve, ...]


def localisations(curves: Sequence[Curve]) -> list[Localisation]:
    """Return the localisations of several models, in the order of the curves."""
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(f"{curve.probe.title} {curve.probe.treebank_name}".rstrip(), []).append(curve)
    return [
        Localisation(title=title, curves=tuple(group))
        for title, group in groups.items()
        if len({curve.probe.model for curve in group}) > 1
    ]


def depth_of(probe: Probe, layer: float) -> float:
    """Return a layer as a share of the model's depth, from 0 (the embeddings) to 1 (the last layer)."""
    return layer / probe.depth if probe.depth else 0.0


def curve_blocks(curves: Sequence[Curve], places: Sequence[Localisation]) -> list[Block]:
    """Return the layer curves of every task, and those of several models over their depth, as charts."""
    layers = Charts(charts=tuple(map(_layer_chart, _by_task(curves))), table=curve_table(curves))
    return [layers, *([Charts(charts=tuple(map(_depth_chart, places)))] if places else [])]


def curve_table(curves: Sequence[Curve], *further: str) -> Table:
    """Return the curves in one line each: side by side where they fit, and else under each other."""
    return Table(
        title="Layer curves",
        corner="task",
        heads=(*curves[0].lines, "low", "high", "best"),
        rows=tuple(_curve_rows(curves, side_by_side=True)),
        notes=(CURVE_NOTE, *further),
        words=frozenset({0, 1, 2}),
        folding=True,
        label_width=LABEL_WIDTH,
        narrow=Table(
            title="Layer curves",
            corner="task",
            heads=("layers", "of", "low", "high", "best"),
            rows=tuple(_curve_rows(curves, side_by_side=False)),
            notes=(CURVE_NOTE, *further),
            words=frozenset({0, 1}),
            folding=True,
            label_width=LABEL_WIDTH,
        ),
    )


def _curve_rows(curves: Sequence[Curve], *, side_by_side: bool) -> Iterator[TableRow]:
    several = len({curve.probe.model for curve in curves}) > 1
    last = ""
    for curve in curves:
        probe = curve.probe
        grouped = bool(probe.treebank) or several
        head = f"{probe.model}\n{probe.title}" if several else probe.title
        if head != last and grouped:
            yield TableRow(label=head)
        last = head
        label = (probe.treebank_name or probe.title) if grouped else head
        numbers = (*map(percent, curve.limits), str(probe.best["layer"]))
        sparklines = {of: sparkline(points, curve.limits) for of, points in curve.lines.items()}
        if side_by_side:
            yield TableRow(label=label, fields=(*sparklines.values(), *numbers), depth=1)
            continue
        yield TableRow(label=label, fields=(sparklines["probe"], "probe", *numbers), depth=1)
        for of in ("control", "random"):
            if sparklines[of]:
                yield TableRow(label="", fields=(sparklines[of], of, "", "", ""))


def _by_task(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Return the curves of one chart: all treebanks of one model's task."""
    by_task: dict[tuple[str, str], list[Curve]] = {}
    for curve in curves:
        by_task.setdefault((curve.probe.model, curve.probe.title), []).append(curve)
    return list(by_task.values())


def _layer_chart(curves: Sequence[Curve]) -> CurveChart:
    present = {name for curve in curves for name, points in curve.lines.items() if points}
    probe = curves[0].probe
    return CurveChart(
        title=f"{probe.title}, {probe.model}",
        lines=tuple(line for number, curve in enumerate(curves) for line in _lines(curve, number)),
        groups=tuple(curve.probe.treebank_name or "test" for curve in curves),
        x_label="layer",
        y_label=UNIT,
        strokes=tuple((stroke, meaning) for name, stroke, meaning in STROKES if meaning and name in present),
        ring=f"best layer on {probe.best['chosen_on']}",
    )


def curve_figures(curves: Sequence[Curve], places: Sequence[Localisation]) -> dict[str, CurveChart]:
    """Return the layer curves as figures, by the name of the file: Figures 2 and 5 to 7 of Patil et al. (2021).

    For every task of a model its treebanks, and for every task and treebank all models, over numbered layers; the
    majority class is a grey line.
    """
    figures = {}
    for task_curves in _by_task(curves):
        probe = task_curves[0].probe
        name = _file_name("layers", probe.language, probe.method, probe.title, probe.model)
        figures[name] = _with_majority(_layer_chart(task_curves), task_curves)
    for localisation in places:
        probe = localisation.curves[0].probe
        chart = _depth_chart(localisation)
        lines = (
            replace(line, points=tuple((float(layer), 100 * value) for layer, value in curve.points),
                    best=float(curve.probe.best["layer"]))
            for line, curve in zip(chart.lines, localisation.curves, strict=True)
        )  # fmt: skip
        numbered = replace(
            chart, title=f"{localisation.title}: all models", lines=tuple(lines), x_label="layer", x_digits=0
        )
        name = _file_name("models", probe.language, probe.method, localisation.title)
        figures[name] = _with_majority(numbered, localisation.curves)
    return figures


def _file_name(*parts: str) -> str:
    return "-".join(re.sub(r"[^\w.+=]+", "-", part) for part in parts)


def _with_majority(chart: CurveChart, curves: Sequence[Curve]) -> CurveChart:
    """Return a chart in its language with a guide for every value of the majority class."""
    values: dict[float, None] = {}
    for curve in curves:
        baselines = curve.probe.problem["baselines"]
        values |= {100 * scores[METRIC]: None for name, scores in baselines.items() if name == "majority"}
    ends = [layer for curve in curves for layer, _ in curve.points]
    guides = tuple(
        Line(
            label=f"majority {value:.1f}",
            points=tuple((float(end), value) for end in sorted({min(ends), max(ends)})),
            group=6,
            is_guide=True,
        )
        for value in values
        if ends
    )
    title = f"{chart.title} ({curves[0].probe.language}, {curves[0].probe.method})"
    last = max(ends, default=0)
    names = tuple(map(str, range(last + 1))) if last < MANY_LAYERS else ()
    return replace(chart, title=title, lines=(*chart.lines, *guides), x_names=names)


def _lines(curve: Curve, number: int) -> Iterator[Line]:
    name = curve.probe.treebank_name or "test"
    for of, stroke, meaning in STROKES:
        yield Line(
            label=f"{name}, {meaning}" if meaning else name,
            points=tuple((float(layer), value * 100) for layer, value in curve.lines[of]),
            group=number,
            stroke=stroke,
            best=None if meaning else float(curve.probe.best["layer"]),
            whiskers=() if meaning else _whiskers(curve.probe, curve.points),
        )


def _whiskers(probe: Probe, points: Sequence[Point]) -> tuple[tuple[float, float, float], ...]:
    """Return the intervals of the best and the last layer."""
    intervals = {}
    for block in (probe.best, probe.last):
        interval = block[METRIC].get("ci")
        if interval and block["layer"] in dict(points):
            intervals[float(block["layer"])] = (interval[0] * 100, interval[1] * 100)
    return tuple((layer, low, high) for layer, (low, high) in sorted(intervals.items()))


def _depth_chart(one: Localisation) -> CurveChart:
    return CurveChart(
        title=f"{one.title}: all models by depth",
        lines=tuple(_depth_line(curve, number) for number, curve in enumerate(one.curves)),
        groups=tuple(curve.probe.model for curve in one.curves),
        x_label="depth: 0 the embeddings, 1 the last layer",
        y_label=UNIT,
        x_digits=2,
        ring="best layer",
    )


def _depth_line(curve: Curve, number: int) -> Line:
    probe = curve.probe
    return Line(
        label=probe.model,
        points=tuple((depth_of(probe, layer), value * 100) for layer, value in curve.points),
        group=number,
        best=depth_of(probe, probe.best["layer"]),
    )
