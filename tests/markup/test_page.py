"""Nothing that comes from outside becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st
from markupsafe import Markup

from harness.reporting.blocks.chart import Bar, BarChart
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
