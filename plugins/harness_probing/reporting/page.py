"""The probes of layers: tables, layer curves, and where in their depth several models keep what a task needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.reporting.html.layout import fold, notes, section
from harness.reporting.markup.curve import Line, Stroke, line_chart
from harness.reporting.markup.element import Child, Element, element
from harness.reporting.text_table import TextRow, TextTable
from harness_probing.reporting.curve import Curve, Point
from harness_probing.reporting.localisation import Localisation, depth_of
from harness_probing.reporting.probe import METRIC, Probe
from harness_probing.reporting.report import ProbingReport, ProbingSection

__all__ = ["probing_section"]

UNIT = "weighted F1 x100"
STROKES: tuple[tuple[str, Stroke, str], ...] = (
    ("probe", "solid", ""),
    ("control", "dashed", "control task"),
    ("random", "dotted", "encoder with random weights"),
)


def probing_section(report: ProbingReport) -> Element:
    """Return what the probes of all runs found."""
    parts = [child for own in report.sections for child in _language(own)]
    return section("probing", "Probes of layers", parts, notes(report.notes))


def _language(own: ProbingSection) -> Iterator[Element]:
    yield element("h3", own.title)
    for table in own.scores:
        yield _table(table)
    charts = [_layer_chart(curves) for curves in _by_task(own.curves)]
    yield element("h4", f"{own.title}: layer curves")
    yield element("div", charts, class_="charts")
    if own.localisations:
        yield element("h4", f"{own.title}: depth")
        yield element("div", [_depth_chart(one) for one in own.localisations], class_="charts")
    for table in own.further:
        yield fold(table.title, _table(table))


def _by_task(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Return the curves of one chart: all treebanks of one model's task."""
    found: dict[tuple[str, str], list[Curve]] = {}
    for curve in curves:
        found.setdefault((curve.probe.model, curve.probe.title), []).append(curve)
    return list(found.values())


def _layer_chart(curves: Sequence[Curve]) -> Element:
    present = {name for curve in curves for name, points in curve.lines.items() if points}
    probe = curves[0].probe
    return line_chart(
        f"{probe.title}, {probe.model}",
        [line for number, curve in enumerate(curves) for line in _lines(curve, number)],
        groups=[curve.probe.treebank_name or "test" for curve in curves],
        x_label="layer",
        y_label=UNIT,
        strokes=[(stroke, meaning) for name, stroke, meaning in STROKES if meaning and name in present],
        ring=f"best layer on {probe.best['chosen_on']}",
    )


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
    found = {}
    for block in (probe.best, probe.last):
        interval = block[METRIC].get("ci")
        if interval and block["layer"] in dict(points):
            found[float(block["layer"])] = (interval[0] * 100, interval[1] * 100)
    return tuple((layer, low, high) for layer, (low, high) in sorted(found.items()))


def _depth_chart(one: Localisation) -> Element:
    return line_chart(
        f"{one.title}: all models by depth",
        [_depth_line(curve, number) for number, curve in enumerate(one.curves)],
        groups=[curve.probe.model for curve in one.curves],
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


def _table(own: TextTable) -> Element:
    """Return a table in which a row without fields heads those that follow."""
    heads = [element("th", name, scope="col", class_="n") for name in own.plain_heads]
    table = element(
        "table",
        element("caption", own.title),
        element("thead", element("tr", element("th", own.corner, scope="col"), heads)),
        element("tbody", [_row(row, len(own.heads)) for row in own.rows]),
        class_="levels",
    )
    shown = element("div", table, class_="scroll", tabindex=0, role="region", aria_label=own.title)
    return element("div", shown, notes(own.notes))


def _row(row: TextRow, columns: int) -> Element:
    level = f"level{row.level}"
    if not row.fields:
        return element("tr", element("th", row.label, scope="colgroup", colspan=columns + 1, class_=level))
    fields: list[Child] = [element("td", field, class_="n") for field in row.fields]
    return element("tr", element("th", row.label, scope="row", class_=level), fields)
