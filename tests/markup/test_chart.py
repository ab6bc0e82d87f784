"""Charts: every value can be read, nothing lies outside, the same values give the same drawing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reporting.markup.chart import (
    Bar,
    Dot,
    Place,
    Series,
    bucket_bars,
    calibration,
    histogram,
    interval_bars,
    pareto_front,
    scatter,
    strip_plot,
)
from harness.reporting.markup.element import Element, render
from harness.reporting.markup.figure import Scale, number
from harness.reporting.markup.heatmap import HeatRow, heat_class, heatmap

DOTS = [
    Dot(row="A", label="English", group="Indo-European", value=81.7, marked=True),
    Dot(row="A", label="Swahili", group="Niger-Congo", value=49.3),
    Dot(row="B", label="English", group="Indo-European", value=88.7, marked=True),
]
CHARTS: dict[str, Element] = {
    "strip": strip_plot("XNLI", DOTS, rows=["B", "A", "C"], unit="accuracy"),
    "intervals": interval_bars("T", [Bar(label="a", value=1.5, low=1, high=2, n=3), Bar(label="b", value=None)]),
    "single": bucket_bars("T", ["XS", "S"], [Series(label="a", values=(1.0, None))], counts=[3, 0]),
    "paired": bucket_bars(
        "T", ["XS", "S"], [Series(label="a", values=(1.0, -2.0), lows=(0.5, -3), highs=(2, -1)),
                           Series(label="b", values=(0.0, 2.0))]
    ),
    "scatter": scatter("T", [Place(label="a", x=100, y=1), Place(label="b", x=1000, y=2)], x_label="x", y_label="y",
                       log_x=True),
    "histogram": histogram("T", [0, 1, 2], [3, 0], x_label="tokens"),
    "calibration": calibration("T", [(0.1, 0.2, 10), (0.9, 0.7, 30)]),
    "empty strip": strip_plot("T", [], rows=["A"]),
    "empty bars": interval_bars("T", []),
    "empty buckets": bucket_bars("T", [], []),
    "empty scatter": scatter("T", [], x_label="x", y_label="y"),
    "no items": calibration("T", []),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_well_formed_and_is_read_out(name: str) -> None:
    html = render(CHARTS[name]).replace("<br>", "<br/>")
    root = ET.fromstring(html)
    svg = next(node for node in root.iter("svg") if node.get("role") == "img")
    title, desc = svg.find("title"), svg.find("desc")
    assert title is not None and title.text
    assert desc is not None and desc.text
    assert svg.get("aria-label")
    assert root.find(".//details//table") is not None
    assert "nan" not in html and "inf" not in html


def test_every_value_is_in_the_table() -> None:
    html = render(CHARTS["strip"])
    assert [value for value in ("81.7", "49.3", "88.7") if f">{value}</td>" in html] == [
        "81.7",
        "49.3",
        "88.7",
    ]
    assert "A: mean 65.5" in html


def test_dots_lie_where_their_values_are() -> None:
    html = render(strip_plot("T", DOTS, rows=["A", "B"], low=0, high=100))
    places = {float(x) for x in re.findall(r'<circle cx="([\d.]+)" cy="[\d.]+" r="4.5"', html)}
    scale = Scale(low=0, high=100, start=190, end=740)
    assert {scale(81.7), scale(49.3), scale(88.7)} <= places


def test_the_expected_calibration_error() -> None:
    assert "Expected calibration error 0.175 over 40 items" in render(CHARTS["calibration"])


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), max_size=30))
def test_no_point_beats_one_on_the_front(pairs: list[tuple[int, int]]) -> None:
    points = [Place(label=str(index), x=x, y=y) for index, (x, y) in enumerate(pairs)]
    front = pareto_front(points)
    for point in front:
        assert not [other for other in points if other.x <= point.x and other.y > point.y]
    for point in points:
        assert any(other.x <= point.x and other.y >= point.y for other in front)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_within(low: float, width: float) -> None:
    scale = Scale(low=low, high=low + width, start=0, end=100)
    ticks = scale.ticks()
    assert len(ticks) <= 7
    assert all(low - width * 1e-6 <= tick <= low + width * (1 + 1e-6) for tick in ticks)
    assert all(0 <= scale(tick) <= 100 for tick in ticks)


def test_wrong_shapes_are_rejected() -> None:
    with pytest.raises(ValueError, match="2 counts need 3 edges; found 2"):
        histogram("T", [0, 1], [1, 2], x_label="x")
    with pytest.raises(ValueError, match="above 0"):
        scatter("T", [Place(label="a", x=0, y=1)], x_label="x", y_label="y", log_x=True)
    with pytest.raises(ValueError, match="2 columns"):
        heatmap("T", ["a", "b"], [HeatRow(label="r", values=(1.0,))])


def test_a_heatmap_shows_numbers_groups_and_why_some_are_missing() -> None:
    rows = [
        HeatRow(label="en", values=(90.0, None), group="Germanic", reasons=("", "not in the test set")),
        HeatRow(label="sw", values=(50.0, 40.0), group="Bantu", href="#sw"),
    ]
    html = render(heatmap("Scores", ["xnli", "xcopa"], rows, corner="language"))
    assert '<td class="n h8">90.0</td><td class="n absent" title="not in the test set">-</td>' in html
    assert html.index("Germanic") < html.index("Bantu")
    assert '<th scope="row"><a href="#sw">sw</a></th>' in html


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "absent"), (0, "h0"), (100, "h8"), (50, "h4"), (-5, "h0"), (500, "h8")]
)
def test_colours_are_steps(value: float | None, expected: str) -> None:
    assert heat_class(value, 0, 100) == expected


def test_the_middle_of_differences_is_neutral() -> None:
    assert heat_class(0, -10, 10, ramp="difference") == "d4"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (-0.04, "0.0"), (1234.56, "1,234.6"), (-1.25, "-1.2"), (100.0, "100.0")]
)
def test_numbers(value: float | None, text: str) -> None:
    assert number(value) == text
