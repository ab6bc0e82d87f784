"""Line charts: every point can be read, lies where it belongs, and the same values give the same drawing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from harness.reporting.markup.curve import Line, line_chart
from harness.reporting.markup.element import Element, render

POINTS = ((0.0, 10.0), (1.0, 60.0), (2.0, 40.0))
LINES = (
    Line(label="original", points=POINTS, best=1.0, whiskers=((1.0, 55.0, 66.0),)),
    Line(label="CG", points=tuple((x, y / 2) for x, y in POINTS), group=1),
    Line(label="original, control", points=((0.0, 5.0), (2.0, 5.0)), stroke="dashed"),
    Line(label="nothing", points=(), group=2),
)


def _chart(*lines: Line) -> Element:
    return line_chart(
        "POS & <b>",
        lines,
        groups=["original", "CG"],
        x_label="layer",
        y_label="F1",
        strokes=[("dashed", "control")],
        ring="best",
    )


CHARTS = {"full": _chart(*LINES), "empty": _chart(), "point": _chart(Line(label="a", points=((3.0, 7.0),)))}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_well_formed_and_is_read_out(name: str) -> None:
    html = render(CHARTS[name])
    root = ET.fromstring(html)
    svg = next(node for node in root.iter("svg") if node.get("role") == "img")
    title, desc = svg.find("title"), svg.find("desc")
    assert title is not None and title.text == "POS & <b>"
    assert desc is not None and desc.text
    assert root.find(".//details//table") is not None
    assert "nan" not in html and "inf" not in html
    width, height = (float(size) for size in (svg.get("width") or "", svg.get("height") or ""))
    for circle in svg.iter("circle"):
        assert 0 <= float(circle.get("cx") or -1) <= width
        assert 0 <= float(circle.get("cy") or -1) <= height


def test_points_lie_in_their_order() -> None:
    html = render(_chart(*LINES))
    [path] = re.findall(r'd="M([\d.,L]+)" class="curve s0"', html)
    places = [tuple(map(float, part.split(","))) for part in path.split("L")]
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    heights = [y for _, y in places]
    assert heights[1] < heights[2] < heights[0], "60 above 40 above 10"
    ring = re.search(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="6" class="ring"', html)
    assert ring is not None
    assert (float(ring[1]), float(ring[2])) == places[1]


def test_every_point_is_in_the_table() -> None:
    html = render(_chart(*LINES))
    for text in ("10.0", "60.0", "40.0", "30.0"):
        assert f'<td class="n">{text}</td>' in html
    assert "original: 10.0 at 0, highest 60.0 at 1, 40.0 at 2" in html
    assert "nothing" not in html


def test_the_same_values_give_the_same_bytes() -> None:
    assert render(_chart(*LINES)) == render(_chart(*LINES))
