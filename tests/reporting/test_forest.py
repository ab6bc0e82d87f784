"""Rows of a forest plot: directions, strips, and their table."""

from __future__ import annotations

import re

import pytest

from harness.reporting.blocks.chart import DECIDES, STRIP, ForestChart, ForestRow, strip
from harness.reporting.blocks.model import Charts
from harness.reporting.render.page import html_blocks


@pytest.mark.parametrize(
    ("low", "high", "significant", "expected"),
    [
        (1.0, 3.0, None, "up"),
        (-3.0, -1.0, None, "down"),
        (-1.0, 3.0, None, "even"),
        (1.0, 3.0, False, "even"),
        (None, None, True, "up"),
        (None, None, None, "even"),
    ],
)
def test_a_row_has_the_colour_of_its_test(
    low: float | None, high: float | None, significant: bool | None, expected: str
) -> None:
    value = -2.0 if expected == "down" else 2.0
    row = ForestRow(label="x", value=value, low=low, high=high, significant=significant)
    assert row.direction == expected


def test_strips_share_an_axis_around_zero() -> None:
    rows = [
        ForestRow(label="a", value=-10.0, low=-20.0, high=0.0),
        ForestRow(label="b", value=5.0),
        ForestRow(label="c", value=None),
    ]
    strips = [strip(row, rows) for row in rows]
    assert [len(own) for own in strips] == [STRIP, STRIP, 0]
    middle = STRIP // 2
    assert strips[0][middle] == strips[1][middle] == "|"
    assert strips[0].index("o") < middle < strips[1].index("o")
    assert middle - strips[0].index("o") == pytest.approx(2 * (strips[1].index("o") - middle), abs=1)
    assert strips[0].count("-") > 5
    assert "-" not in strips[1]


def test_a_page_draws_every_row_at_its_place() -> None:
    rows = (
        ForestRow(label="task <b>", value=-10.0, low=-20.0, high=-1.0, n=1234),
        ForestRow(label="none", value=None),
    )
    chart = ForestChart(title="differences", rows=rows)
    text = str(html_blocks([Charts(charts=(chart,))]))
    assert "task &lt;b&gt;" in text
    assert "n = 1,234" in text
    [place] = re.findall(r'<circle cx="([0-9.]+)%"', text)
    assert float(place) == pytest.approx(50 - 50 * 10 / chart.reach, abs=0.1)
    [(start, end)] = re.findall(r'<line x1="([0-9.]+)%" x2="([0-9.]+)%" y1="10" y2="10" class="span"', text)
    assert float(end) - float(start) == pytest.approx(100 * 19 / (2 * chart.reach), abs=0.2)
    assert '-10.0 <small class="soft">(-20.0 to -1.0)</small>' in text


@pytest.mark.parametrize(
    ("low", "significant", "is_disputed"),
    [(1.0, False, True), (-1.0, False, False), (1.0, True, False), (1.0, None, False)],
)
def test_a_figure_states_what_decides_where_interval_and_test_disagree(
    low: float, significant: bool | None, is_disputed: bool
) -> None:
    chart = ForestChart(
        title="T", rows=(ForestRow(label="x", value=2.0, low=low, high=3.0, significant=significant),)
    )
    assert chart.rows[0].is_disputed is is_disputed
    assert (DECIDES in html_blocks([Charts(charts=(chart,))]).replace("&gt;", ">")) is is_disputed
