"""Figures: every mark and label of every kind of chart is on the sheet, in SVG that needs nothing around it."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.errors import MissingExtraError, UsageError
from harness.reporting.blocks.chart import (
    Bar,
    BarChart,
    CurveChart,
    ForestChart,
    ForestRow,
    Line,
    Mark,
    TaskChart,
    TaskRow,
)
from harness.reporting.blocks.model import Field, TileMap, visible
from harness.reporting.render.page import Figure

SPACE = "{http://www.w3.org/2000/svg}"


def make_charts(name: str) -> dict[str, Any]:
    """Return one chart of every kind, whose rows are called `name`."""
    marks = [Mark(kind="language", label="sw", value=20.0), Mark(kind="published", label=name, value=90.0)]
    lines = (
        Line(label="a", points=((0.0, 1.0), (1.0, 3.0)), best=1.0, bands=((1.0, 0.5, 1.5),)),
        Line(label=name, points=((0.0, 2.0), (1.0, 2.0)), is_guide=True, group=6),
    )
    return {
        "bars": BarChart(
            title="T",
            bars=(Bar(label="x", value=3, low=2, high=4, note=name), Bar(label="y", value=None)),
            label=400,
        ),
        "tasks": TaskChart(
            title="T",
            rows=[
                TaskRow(
                    label=name,
                    words="w",
                    value=50.0,
                    text="50.0",
                    small="±1",
                    low=49.0,
                    high=51.0,
                    marks=marks,
                )
            ],
        ),
        "forest": ForestChart(
            title="T",
            rows=(
                ForestRow(label=name, value=2.0, low=1.0, high=3.0),
                ForestRow(label="b", value=None, depth=1),
            ),
        ),
        "tiles": TileMap(
            title="T",
            families=[("Uralic", 1), ("Turkic", 1)],
            languages=[("et", "Estonian"), ("tr", name)],
            rows=[(name, [Field(text="50.0", shade="h7"), Field(shade="absent", title="no score")])],
        ),
        "curves": CurveChart(
            title="T",
            lines=lines,
            x_label="layer",
            y_label="F1",
            ring="best",
            x_names=("0", name),
            groups=("a",),
        ),
    }


def draw(chart: Any, title: str = "A figure") -> ET.Element:
    return ET.fromstring(Figure(title=title, rows=[[chart]], notes=["A note"], sample=True).svg)


def read_texts(root: ET.Element) -> list[str]:
    return [text for node in root.iter(f"{SPACE}text") if (text := "".join(node.itertext()).strip())]


@pytest.mark.parametrize("kind", make_charts(""))
@given(name=st.text(min_size=1, max_size=30))
def test_any_name_is_text_and_lies_on_the_sheet(kind: str, name: str) -> None:
    root = draw(make_charts(name)[kind], title=name)
    words = " ".join(visible(name).split())
    assert words in [" ".join(text.split()) for text in ["", *read_texts(root)]]
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    for node in root.iter():
        x, y = node.get("x", "0"), float(node.get("y", 0))
        assert x.endswith("%") or 0 <= float(x) <= width
        assert -2 <= y <= height
    assert {node.tag.removeprefix(SPACE) for node in root.iter()} <= {
        *("svg", "style", "title", "desc", "g", "text", "rect", "line", "path", "circle", "polygon")
    }


@pytest.mark.parametrize(
    ("kind", "tag", "marks", "shown"),
    [
        ("bars", "rect", ["c0"], {"x", "y", "note", "3.0", "-"}),
        ("tasks", "circle", ["one"], {"note", "w", "50.0 ±1", "0", "25", "100"}),
        ("forest", "circle", [None], {"note", "b", "+2.0 (+1.0 to +3.0)", "← lower", "higher →"}),
        ("tiles", "rect", ["absent", "h7"], {"et", "note", "50.0", "Uralic", "Turkic"}),
        ("curves", "circle", ["dot c0", "dot c0", "ring"], {"note", "layer", "F1", "0"}),
    ],
)
def test_every_mark_is_drawn_with_its_label(kind: str, tag: str, marks: list[str], shown: set[str]) -> None:
    root = draw(make_charts("note")[kind])
    drawn = [node.get("class") for group in root.findall(f"{SPACE}g") for node in group.iter(SPACE + tag)]
    keys = {"tasks": ["one"], "curves": ["dot c0", "ring"]}.get(kind, [])
    assert sorted(map(str, drawn)) == sorted(map(str, [*marks, *keys]))
    texts = read_texts(root)
    assert shown <= set(texts)
    assert texts[:2] == ["A figure", "A note"]
    assert any(text.startswith("SAMPLE DATA") for text in texts)
    assert root.findtext(f"{SPACE}desc")


def test_a_row_lies_on_the_axis_where_its_value_is() -> None:
    root = draw(make_charts("a")["forest"])
    [circle] = root.iter(f"{SPACE}circle")
    assert circle.get("cx") == f"{50 + 100 * 2 / (2 * 3.15):.1f}%"
    [rect] = [
        node for node in draw(make_charts("a")["bars"]).iter(f"{SPACE}rect") if node.get("class") == "c0"
    ]
    assert float(rect.get("width", "")) == pytest.approx(3 / (4 * 1.04) * (760 - 60 - 400), abs=1)


def test_a_figure_needs_no_page_and_changes_none() -> None:
    sheet = draw(make_charts("a")["curves"]).findtext(f"{SPACE}style") or ""
    assert "var(" not in sheet
    assert "@" not in sheet
    selectors = [part.strip() for rule in sheet.split("}")[:-1] for part in rule.partition("{")[0].split(",")]
    assert len(selectors) > 50
    assert all(selector.startswith(".harness-figure") for selector in selectors)


def test_a_legend_has_each_entry_once_and_is_folded() -> None:
    rows = [
        TaskRow(
            label="t", words="", value=None, text="", small="",
            marks=[Mark(kind="run", label=f"a system with a long name {number}", value=number) for number in range(9)],
        )
    ]  # fmt: skip
    charts = [[TaskChart(title=title, rows=rows)] for title in ("one", "two")]
    root = ET.fromstring(Figure(title="F", rows=["a heading", *charts]).svg)
    texts = read_texts(root)
    assert sum(text.startswith("a system") for text in texts) == 9
    assert {"a heading", "one", "two"} <= set(texts)
    lines = {node.get("y") for node in root.iter(f"{SPACE}text") if str(node.text).startswith("a system")}
    assert len(lines) > 1


@pytest.mark.parametrize(("form", "start"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_a_figure_is_saved_by_its_suffix_or_format(form: str, start: bytes, tmp_path: Path) -> None:
    if form != "svg":
        pytest.importorskip("vl_convert", reason="vl-convert-python is not installed: pip install '.[plots]'")
    figure = Figure(title="F", rows=[[make_charts("a")["tiles"]]])
    figure.save(tmp_path / f"a.{form.upper()}")
    figure.save(str(tmp_path / "named"), form)
    assert (tmp_path / "named").read_bytes().startswith(start)
    assert (tmp_path / f"a.{form.upper()}").read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["a.gif", "a", "a.json", "a.html"])
def test_a_suffix_that_is_no_picture_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(name)):
        Figure(title="F", rows=[[make_charts("a")["bars"]]]).save(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    figure = Figure(title="F", rows=[[make_charts("a")["bars"]]])
    figure.save(tmp_path / "new" / "a.svg")
    with pytest.raises(UsageError, match="cannot be written"):
        figure.save(tmp_path / "new" / "a.svg" / "b.svg")


@pytest.mark.parametrize("form", ["pdf", "png"])
def test_pdf_and_png_name_their_extra_and_svg_needs_none(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Absent:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "vl_convert":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.delitem(sys.modules, "vl_convert", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    figure = Figure(title="F", rows=[[make_charts("a")["bars"]]])
    with pytest.raises(MissingExtraError, match=r"multilingual-harness\[plots\]"):
        figure.save(tmp_path / f"a.{form}")
    figure.save(tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


@pytest.mark.parametrize("kind", make_charts(""))
def test_no_mark_is_cut_off_at_the_end_of_an_axis(kind: str) -> None:
    root = draw(make_charts("a")[kind])
    nested = [
        node for node in root.iter(f"{SPACE}svg") if node is not root and node.get("aria-hidden") is None
    ]
    assert all(node.get("overflow") == "visible" for node in nested)


@given(length=st.integers(1, 60), places=st.integers(2, 12))
def test_long_names_of_places_are_slanted_within_the_sheet(length: int, places: int) -> None:
    points = tuple((float(place), 1.0 * place) for place in range(places))
    names = tuple(f"{place:02d}{'m' * length}" for place in range(places))
    chart = CurveChart(
        title="T", lines=(Line(label="a", points=points),), x_label="", y_label="", x_names=names
    )
    root = draw(chart, title="T")
    texts = [node for node in root.iter(f"{SPACE}text") if node.text in names]
    assert len(texts) == places
    is_slanted = {"rotate" in node.get("transform", "") for node in texts}
    assert len(is_slanted) == 1
    assert is_slanted == {6.6 * (length + 2) * (places - 1) > 388}
    if True in is_slanted:
        assert float(root.get("width", "")) >= 440 + 6.6 * (length + 2) * 0.8
        assert float(root.get("height", "")) >= 260 + 6.6 * (length + 2) * 0.57
