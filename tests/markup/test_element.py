"""Nothing that comes from outside becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reporting.markup.element import element, escape, fragment, render
from harness.reporting.markup.page import json_text, page
from harness.reporting.markup.text import model_text

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


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_and_attributes_stay_texts(text: str) -> None:
    found = read(render(element("p", text, title=text)))
    assert found.tags == ["p"]
    assert found.attributes == [("title", text)]
    assert "".join(found.texts) == text


@given(st.text())
def test_any_text_is_one_text(text: str) -> None:
    found = read(render(element("p", element("b", text), title=text)))
    assert found.tags == ["p", "b"]
    assert [name for name, _ in found.attributes] == ["title"]
    escape(text).encode("utf-8")


@pytest.mark.parametrize("name", ["onclick", "onLoad", "style", "srcdoc", "a b", "x=y", "1", "http_equiv"])
def test_attributes_that_run_code_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="An attribute cannot be called"):
        element("p", **{name: "x"})


@pytest.mark.parametrize("tag", ["script", "STYLE", "a b", "", "p><script"])
def test_elements_that_run_code_are_rejected(tag: str) -> None:
    with pytest.raises(ValueError, match="An element cannot be called"):
        element(tag)


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", " JavaScript:alert(1)", "data:text/html,<b>", "vbscript:x", "file:///etc"],
)
def test_addresses_that_run_code_are_rejected(address: str) -> None:
    with pytest.raises(ValueError, match="cannot lead to"):
        element("a", "x", href=address)


def test_ordinary_addresses_are_taken() -> None:
    assert render(element("a", "x", href="#/task/xnli")) == '<a href="#/task/xnli">x</a>'
    assert "https://" in render(element("a", "x", href="https://example.org/?a=1&b=2"))


def test_names_none_false_and_true() -> None:
    node = element("input", class_="c", aria_label="l", hidden=True, disabled=False, value=None, viewBox="0")
    assert render(node) == '<input class="c" aria-label="l" hidden viewBox="0">'
    assert render(fragment("a", [None, 1, element("br")])) == "a1<br>"


def test_characters_that_reorder_are_shown() -> None:
    assert escape("abc\u202edef\u0000") == "abc⟦U+202E⟧def⟦U+0000⟧"
    html = render(model_text("user\u202egnp.exe", "en"))
    assert "\u202e" not in html
    assert ">U+202E</bdi>" in html
    assert 'title="right-to-left override"' in html


def test_joiners_and_marks_that_languages_need_stay() -> None:
    text = "می\u200cخواهم \u200fx क\u094d\u200dष"
    assert text in render(model_text(text, "fa"))


def test_lone_surrogates_can_be_written() -> None:
    render(model_text("a\ud800b")).encode("utf-8")
    json_text({"a": "\ud800"}).encode("utf-8")


def test_a_long_text_is_folded() -> None:
    text = "ab" * 50_000
    html = render(model_text(text, "en", shown=100))
    assert "show all 100,000 characters" in html
    assert html.count("ab" * 50) >= 1
    assert html.index("…") < 400
    assert "<details" not in render(model_text("short"))


def test_a_text_is_not_cut_within_a_letter() -> None:
    text = "क\u094d\u200dष" * 100
    html = render(model_text(text, "hi", shown=101))
    head = html[html.index("<span") : html.index("…")]
    assert head.endswith("ष") or head.endswith("क") is False


def test_an_odd_language_code_is_left_out() -> None:
    assert "lang" not in render(model_text("x", 'en" onclick="x'))
    assert 'lang="sr-Cyrl"' in render(model_text("x", "sr-Cyrl"))
    assert 'dir="auto"' in render(model_text("x"))


def test_a_page_allows_its_own_code_only() -> None:
    html = page(
        "T <b>", element("main", "x", id="main"), modules=["1;"], data={"board": {"a": "</script><b>"}}
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
