"""The page in Chromium, from a file, under its own policy: every control, every address, no request, no fault."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.page import style
from harness_board.document import Board
from harness_board.rendering import board_page, board_style, script, site_pages

Open = Callable[..., Any]
AXE_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


def _labels(page: Any) -> list[str]:
    return [str(text) for text in page.locator("#board-rows th").all_inner_texts()]


def _column(page: Any, place: int) -> list[str]:
    return [str(text) for text in page.locator(f"#board-rows tr td:nth-child({place})").all_inner_texts()]


def _field(page: Any, key: str) -> Any:
    return page.locator(f'[data-key="{key}"]')


def _until(page: Any, condition: str) -> None:
    """Wait for a condition; the page's policy does not let the driver poll it inside the page."""
    end = time.monotonic() + 60
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


def _axe(page: Any) -> list[str]:
    """Return the violations; the script is put in from outside, past the page's policy."""
    axe_playwright = pytest.importorskip(
        "axe_playwright_python", reason="axe-playwright-python is not installed"
    )
    source = next(Path(axe_playwright.__file__).parent.rglob("axe*.js"))
    page.evaluate(source.read_text(encoding="utf-8") + "; undefined")
    found = page.evaluate("async (rules) => (await axe.run(document, rules)).violations", AXE_RULES)
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


@pytest.fixture(scope="module")
def page_text(published: Board) -> str:
    return board_page(published)


def test_the_code_is_small() -> None:
    assert len((script() + style() + board_style()).encode()) < 100_000


def test_a_page_is_readable_without_its_script(page_text: str, open_page: Open) -> None:
    page = open_page(page_text, java_script_enabled=False)
    assert _labels(page)[:3] == ["XLM-R Large", "mT5-XXL", "mBERT"]
    assert not page.locator(".controls").is_visible()


def test_the_script_keeps_the_order_and_the_scores_that_python_wrote(
    page_text: str, hostile: Board, open_page: Open
) -> None:
    for html in (page_text, board_page(hostile)):
        plain = open_page(html, java_script_enabled=False)
        labels, totals = _labels(plain), _column(plain, 3)
        page = open_page(html)
        assert _labels(page) == labels
        shown = page.evaluate("harnessBoard.shown().rows.map((row) => row.total.value)")
        assert [f"{value:.1f}" for value in shown if value is not None] == [
            text.rstrip("~") for text in totals if text != "-"
        ]


def test_filters_sorting_and_the_address(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    _field(page, "q").fill("xlm")
    _until(page, "harnessBoard.shown().rows.length === 1")
    assert page.inner_text("#count") == "1 of 7 systems shown, 6 hidden by filters or without a score here."
    assert "q=xlm" in page.url
    page.click('[data-deed="reset"]')
    assert len(_labels(page)) == 7
    assert _field(page, "q").input_value() == ""
    page.click('[data-sort="t:xnli"]')
    assert _labels(page)[0] == "Human"
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert _labels(page)[0] == "mBERT"
    _field(page, "agg").select_option("flat")
    assert "mean of all tasks" in page.inner_text("#formula")
    _field(page, "family").select_option("Niger-Congo")
    heads = page.locator("#board-head th").all_inner_texts()
    assert "xcopa" in heads and "lareqa" not in heads


def test_an_address_restores_the_view(page_text: str, open_page: Open) -> None:
    page = open_page(page_text, "#/task/xquad?sort=l%3Ahi&dir=a&metric=f1")
    assert page.inner_text("#place") == "Task xquad"
    assert _field(page, "metric").input_value() == "f1"
    known = [row for row in page.locator("#board-rows tr").all_inner_texts() if "XLM-R" in row]
    assert "55.0" in known[0]
    page.evaluate("location.hash = '#/language/sw'")
    _until(page, "document.getElementById('place').textContent === 'Language Swahili'")
    assert "72.7" in page.inner_text("#board-rows")
    page.click("#back a")
    _until(page, "document.getElementById('place').textContent === 'xtreme_r board'")
    page.evaluate("location.hash = '#/task/<b>'")
    _until(page, "document.getElementById('place').textContent.includes('is not on this board')")


def test_columns_can_be_chosen(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    page.click("details.filters > summary")
    page.check('[data-fact="monolingual"]')
    assert "85B bytes" in page.inner_text("#board-rows")
    head = page.locator("#board-head th", has_text="Monolingual data")
    assert head.locator("button").count() == 0, "amounts of different units are not sorted"
    page.uncheck('[data-fact="parameters"]')
    assert "Parameters" not in page.inner_text("#board-head")


def test_what_is_shown_can_be_saved(page_text: str, open_page: Open) -> None:
    page = open_page(page_text, "#/?q=zero&agg=flat")
    with page.expect_download() as saved:
        page.click('[data-deed="csv"]')
    rows = list(csv.DictReader(io.StringIO(Path(saved.value.path()).read_text(encoding="utf-8"))))
    assert [row["system"] for row in rows] == ["XLM-R Large", "mT5-XXL", "mBERT"]
    assert float(rows[0]["xnli"]) == 79.2
    with page.expect_download() as saved:
        page.click('[data-deed="json"]')
    found = json.loads(Path(saved.value.path()).read_text(encoding="utf-8"))
    assert found[2]["overall"] == pytest.approx(52.12)
    page.click('[data-deed="link"]')
    _until(page, "document.getElementById('said').textContent !== ''")


def test_a_bucket_leads_to_its_examples(hostile: Board, open_page: Open) -> None:
    page = open_page(board_page(hostile))
    page.click('[data-panel="single"]')
    assert page.locator("#drill svg[role=img]").count() == 1
    page.click('[data-bucket="XL"]')
    shown = page.locator("#drill article")
    assert shown.locator("dt").all_inner_texts()[:4] == ["premise", "hypothesis", "context", "reference"]
    assert shown.locator(".text[dir=auto][lang=sw]").count() >= 5
    assert "show all 100,000 characters" in shown.inner_text()
    assert "⟦U+202E⟧" in shown.inner_text()
    assert _axe(page) == []
    page.reload()
    _until(page, "document.querySelector('#drill article') !== null")
    page.click('[data-panel="pairwise"]')
    assert "0.040" in page.inner_text("#drill table") and "10.0" in page.inner_text("#drill table")
    assert "Difference: <img" in page.inner_text("#drill") and "minus plain" in page.inner_text("#drill")
    page.click('[data-panel="data"]')
    assert page.locator("#drill h2").inner_text() == "Dataset bias"
    page.click('[data-panel="data"]')
    assert not page.locator("#drill").is_visible()


def test_a_board_without_a_diagnosis_says_how_to_get_one(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    page.click('[data-panel="pairwise"]')
    assert "--with-diagnosis" in page.inner_text("#drill")


def test_texts_never_become_markup(hostile: Board, open_page: Open) -> None:
    page = open_page(board_page(hostile))
    for update in ({}, {"cols": "paper,setting"}, {"panel": "data"}, {"panel": "pairwise"}, {"task": "xnli"}):
        page.evaluate("(update) => harnessBoard.draw(update)", update)
        assert page.locator("main img").count() == 0
        assert "\u202e" not in page.inner_text("body")
        assert page.title().startswith("Board <img")


def test_intervals_ties_and_ranks(hostile: Board, open_page: Open) -> None:
    page = open_page(board_page(hostile))
    assert _column(page, 2) == ["1–1 A", "2–2 B", "3–3 C"]
    page.click("details.filters > summary")
    _field(page, "ci").check()
    assert "68.0 ±1.4" in page.inner_text("#board-rows")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_no_barrier_is_found(scheme: str, width: int, page_text: str, open_page: Open) -> None:
    page = open_page(page_text, color_scheme=scheme, viewport={"width": width, "height": 900})
    page.click("details.filters > summary")
    assert _axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_pages_of_a_site_lead_to_each_other(published: Board, open_page: Open) -> None:
    pages = site_pages(published)
    assert len(pages) == 1 + 10 + 50
    page = open_page(pages["task-xnli.html"]())
    assert page.inner_text("#place") == "Task xnli"
    assert page.locator("#back a").get_attribute("href") == "index.html"
    assert "92.8" in page.inner_text("#board-rows")
    page.evaluate("harnessBoard.draw({q: 'mT5'})")
    assert re.search(r"board\.html#\?q=mT5$", page.url)
    page = open_page(pages["language-sw.html"](), "#?agg=flat")
    assert page.inner_text("#place") == "Language Swahili"
    assert _axe(page) == []
