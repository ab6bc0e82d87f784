"""Charts and pages as markup."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st
from markupsafe import Markup

from harness.reporting.blocks.chart import Bar, BarChart, Chart, CurveChart, Line, Scale, number
from harness.reporting.blocks.model import (
    Block,
    Charts,
    Field,
    Fold,
    ItemText,
    Note,
    Notes,
    Table,
    TableRow,
    visible,
)
from harness.reporting.blocks.number import heat_class
from harness.reporting.render.page import html_blocks, json_text, page

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(1)</script>",
    "' onmouseover='alert(1)",
    "<!-- --><b>bold</b>",
    "&lt;b&gt;",
]


class Reader(HTMLParser):
    """Collects what a parser sees."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


def model_text(text: str, language: str | None = None) -> str:
    """Return the page's part of a text of a data set."""
    field = Field(parts=(ItemText(text, language),))
    return str(html_blocks([Table(title="T", rows=(TableRow(label="r", fields=(field,)),))]))


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_and_attributes_stay_texts(text: str) -> None:
    blocks: list[Block] = [
        Note(text),
        Notes([text]),
        Fold(title=text, soft=text, heading=True, blocks=[Note(text, "heading")]),
        Table(title=text, corner=text, heads=(text,), rows=(
            TableRow(label=Field(text=text), fields=(Field(text=text, small=text, title=text),)),
            TableRow(label=text, style="head"),
            TableRow(label=text, fields=(Field(parts=(ItemText(text), text)),)),
        ), notes=(text,)),
        Charts(charts=(BarChart(title=text, bars=(Bar(label=text, value=1, note=text),), unit=text),)),
    ]  # fmt: skip
    found = read(str(html_blocks(blocks)))
    assert not {"script", "img", "b"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert "".join(found.texts).count(text) >= 15
    assert ("title", text) in found.attributes


@given(st.text())
def test_any_text_is_one_text(text: str) -> None:
    found = read(str(html_blocks([Note(f"x{text}")])))
    assert found.tags == ["p"]
    visible(text).encode("utf-8")


def test_characters_that_reorder_are_shown() -> None:
    assert visible("abc\u202edef\u0000") == "abc⟦U+202E⟧def⟦U+0000⟧"
    html = model_text("user\u202egnp.exe", "en")
    assert "\u202e" not in html
    assert ">U+202E</bdi>" in html
    assert 'title="right-to-left override"' in html


def test_joiners_and_marks_that_languages_need_stay() -> None:
    text = "می\u200cخواهم \u200fx क\u094d\u200dष"
    assert text in model_text(text, "fa")


def test_lone_surrogates_can_be_written() -> None:
    model_text("a\ud800b").encode("utf-8")
    json_text({"a": "\ud800"}).encode("utf-8")


def test_a_long_text_is_folded() -> None:
    text = "ab" * 50_000
    html = model_text(text, "en")
    assert "show all 100,000 characters" in html
    assert html.count("ab" * 200) >= 1
    assert html.index("…") < 800
    assert "<details" not in model_text("short")


def test_a_text_is_not_cut_within_a_letter() -> None:
    text = "क\u094d\u200dष" * 300
    html = model_text(text, "hi")
    head = html[html.index('<span class="text"') : html.index("…")]
    assert head.endswith("ष") or head.endswith("क") is False


def test_an_odd_language_code_is_left_out() -> None:
    assert "lang" not in model_text("x", 'en" onclick="x')
    assert 'lang="sr-Cyrl"' in model_text("x", "sr-Cyrl")
    assert 'dir="auto"' in model_text("x")


def test_a_page_allows_its_own_code_only() -> None:
    html = page(
        "T <b>", Markup('<main id="main">x</main>'), modules=["1;"], data={"board": {"a": "</script><b>"}}
    )
    assert "default-src 'none'" in html
    assert "unsafe" not in html
    assert html.count("'sha256-") == 2
    assert html.count("</script>") == 2
    assert "<title>T &lt;b&gt;</title>" in html
    assert '{"a":"\\u003c/script>\\u003cb>"}' in html


@pytest.mark.parametrize("source", ["</script>", "a </ScRiPt", "<!-- x", "</style>"])
def test_a_module_that_ends_its_element_is_rejected(source: str) -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        page("T", modules=[source])


def test_numbers_that_are_not_json_are_rejected() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"a": float("nan")})


POINTS = ((0.0, 10.0), (1.0, 60.0), (2.0, 40.0))
LINES = (
    Line(label="original", points=POINTS, best=1.0, whiskers=((1.0, 55.0, 66.0),)),
    Line(label="CG", points=tuple((x, y / 2) for x, y in POINTS), group=1),
    Line(label="original, control", points=((0.0, 5.0), (2.0, 5.0)), stroke="dashed"),
    Line(label="nothing", points=(), group=2),
)
BARS = BarChart(
    title="T",
    bars=(
        Bar(label="a", value=1.5, low=1, high=2, n=3),
        Bar(label="b", value=None),
        Bar(label="c", value=-2),
    ),
    low=None,
)


def _curves(*lines: Line) -> CurveChart:
    return CurveChart(
        title="POS & <b>",
        lines=lines,
        groups=("original", "CG"),
        x_label="layer",
        y_label="F1",
        strokes=(("dashed", "control"),),
        ring="best",
    )


CHARTS: dict[str, Chart] = {
    "bars": BARS,
    "no bars": BarChart(title="T", bars=()),
    "curves": _curves(*LINES),
    "no curves": _curves(),
    "one point": _curves(Line(label="a", points=((3.0, 7.0),))),
}


def _html(chart: Chart) -> str:
    return str(html_blocks([Charts(charts=(chart,))])).strip()


@pytest.mark.parametrize("name", [name for name in CHARTS if not name.startswith("no ")])
def test_a_chart_is_well_formed_and_is_read_out(name: str) -> None:
    html = _html(CHARTS[name])
    root = ET.fromstring(html)
    svg = next(node for node in root.iter("svg") if node.get("role") == "img")
    title, desc = svg.find("title"), svg.find("desc")
    assert title is not None and title.text == CHARTS[name].title
    assert desc is not None and desc.text
    assert root.find(".//details//table") is not None
    assert "nan" not in html and "inf" not in html
    width, height = (float(size) for size in (svg.get("width") or "", svg.get("height") or ""))
    for circle in svg.iter("circle"):
        assert 0 <= float(circle.get("cx") or -1) <= width
        assert 0 <= float(circle.get("cy") or -1) <= height
    assert html == _html(CHARTS[name])


@pytest.mark.parametrize("name", ["no bars", "no curves"])
def test_a_chart_without_values_says_so(name: str) -> None:
    html = _html(CHARTS[name])
    assert "There are no values." in html
    assert 'role="img"' not in html


def test_charts_with_the_same_legend_show_it_once() -> None:
    same, other = _curves(*LINES), replace(_curves(*LINES), ring="last")
    shared = str(html_blocks([Charts(charts=(same, same))]))
    assert shared.count('class="legend"') == 1
    own = str(html_blocks([Charts(charts=(same, other))]))
    assert own.count('class="legend"') == 2


def test_points_lie_in_their_order() -> None:
    html = _html(_curves(*LINES))
    [path] = re.findall(r'd="M([\d.,L]+)" class="curve s0"', html)
    places = [tuple(map(float, part.split(","))) for part in path.split("L")]
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    heights = [y for _, y in places]
    assert heights[1] < heights[2] < heights[0], "60 above 40 above 10"
    ring = re.search(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="6" class="ring"', html)
    assert ring is not None
    assert (float(ring[1]), float(ring[2])) == places[1]


def test_every_point_is_in_the_table() -> None:
    html = _html(_curves(*LINES))
    assert all(f'<td class="n">{text}</td>' in html for text in ("10.0", "60.0", "40.0", "30.0"))
    assert "original: 10.0 at 0, highest 60.0 at 1, 40.0 at 2" in html
    assert "nothing" not in html


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_within(low: float, width: float) -> None:
    scale = Scale(low=low, high=low + width, start=0, end=100)
    ticks = scale.ticks()
    assert len(ticks) <= 7
    assert all(low - width * 1e-6 <= tick <= low + width * (1 + 1e-6) for tick in ticks)
    assert all(0 <= scale(tick) <= 100 for tick in ticks)


def test_a_table_shows_colours_groups_and_why_some_are_missing() -> None:
    missing = Field(text="-", title="not in the test set", shade="absent")
    rows = (
        TableRow(label="Germanic", style="head"),
        TableRow(label="en", fields=(Field(text="90.0", shade="h8"), missing)),
        TableRow(label=Field(text="sw", href="#sw"), fields=("50.0", "40.0")),
    )
    html = str(html_blocks([Table(title="Scores", heads=("xnli", "xcopa"), rows=rows)]))
    assert '<td class="n h8">90.0</td>' in html
    assert '<td class="n absent" title="not in the test set">-</td>' in html
    assert '<th scope="colgroup" colspan="3">Germanic</th>' in html
    assert '<a href="#sw">' in html


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
