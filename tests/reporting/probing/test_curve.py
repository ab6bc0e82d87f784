"""Curves in one line: higher scores are never drawn lower, and every terminal can show them."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, strategies as st
from rich.console import Console

from harness.reporting.blocks.model import Table, TableRow
from harness.reporting.render.console import ASCII_SPARKS, SPARKS, render_blocks, sparkline
from harness.storage.run_folder import Run
from harness_probing.reporting.probe import read_probes
from harness_probing.reporting.tables import curves
from tests.reporting.probing.conftest import kept_details

ASCII = SPARKS.translate(ASCII_SPARKS)
VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(VALUES)
def test_higher_scores_are_never_lower(values: list[float]) -> None:
    line = sparkline(list(enumerate(values)), (min(values), max(values)))
    heights = [SPARKS.index(character) for character in line]
    assert len(heights) == len(values)
    for one, height in zip(values, heights, strict=True):
        for other, lower in zip(values, heights, strict=True):
            assert one < other or height >= lower
    if max(values) > min(values):
        assert heights[values.index(max(values))] == len(SPARKS) - 1
        assert heights[values.index(min(values))] == 0


def test_the_levels_are_used_evenly() -> None:
    points = [(layer, layer / 7) for layer in range(8)]
    assert sparkline(points, (0.0, 1.0)) == SPARKS


def test_layers_that_were_not_probed_are_blank() -> None:
    assert sparkline([(1, 0.0), (3, 1.0)], (0.0, 1.0)) == " ▁ █"
    assert sparkline([], (0.0, 1.0)) == ""


def test_equal_scores_are_level() -> None:
    assert len(set(sparkline([(0, 0.4), (1, 0.4)], (0.4, 0.4)))) == 1


@pytest.mark.parametrize(("encoding", "levels"), [("ascii", ASCII), ("latin-1", ASCII), ("utf-8", SPARKS)])
def test_a_console_gets_characters_that_it_can_show(encoding: str, levels: str) -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, write_through=True) as file:
        console = Console(file=file, width=40, color_system=None, legacy_windows=False)
        line = sparkline([(0, 0.0), (1, 0.5), (2, 1.0)], (0.0, 1.0))
        table = Table(title="T", heads=("x",), rows=(TableRow(label="row", fields=(line,)),))
        console.print(render_blocks([table], width=40))
        printed = raw.getvalue().decode(encoding)
    assert levels[0] + levels[4] + levels[7] in printed


def test_a_curve_has_the_scores_of_its_layers(vyakarana: Run) -> None:
    probes, _ = read_probes([vyakarana])
    curve = curves(probes)[0]
    details = kept_details()["vyakarana_pos", "", "original"]
    layers = details["problem"]["layers"]
    assert [value for _, value in curve.points] == [own["test"]["weighted_f1"]["value"] for own in layers]
    assert [value for _, value in curve.control] == [own["control"]["weighted_f1"]["value"] for own in layers]
    random = details["random_encoder"]["layers"]
    assert [value for _, value in curve.random] == [own["test"]["weighted_f1"]["value"] for own in random]
    low, high = curve.limits
    assert low == min(value for own in curve.lines.values() for _, value in own)
    assert high == details["problem"]["headline"]["weighted_f1"]["value"]
