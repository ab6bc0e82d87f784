"""The report in Chromium: tabs by hand and by keyboard, links into them, paper, and readers without a script."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.documents import html_text
from harness.storage.run_folder import Run

from .conftest import make_cell as cell, make_record as record

Make = Callable[..., Any]
SELECTED = "[...document.querySelectorAll('[role=tab][aria-selected=true]')].map((tab) => tab.textContent)"
SHOWN = (
    "[...document.querySelectorAll('.panel')].filter((panel) => panel.offsetHeight).map((panel) => panel.id)"
)
PANELS = ["tab-overview", "tab-languages", "tab-tasks", "tab-items", "tab-how-it-was-made"]
A4 = (841.89, 595.28)


@pytest.fixture
def report(write_run: Make, tmp_path: Path) -> Path:
    """Return the page of a run with every tab but that of cost."""
    records = [record(number, right=number % 2 == 0) for number in range(40)]
    codes = ("en", "de", "ar", "zh", "sw", "hi")
    run: Run = write_run(
        *(cell(code, 0.4 + place / 20) for place, code in enumerate(codes)),
        cell("ur", None, status="skipped", reason="No data.", n=0),
        records=dict.fromkeys(codes, records),
    )
    path = tmp_path / "report.html"
    path.write_text(html_text([run]), encoding="utf-8")
    return path


@contextmanager
def opened(browser: Any, report: Path, place: str = "", **options: Any) -> Iterator[Any]:
    """Open the report; fails for a request or a message of the console."""
    faults: list[str] = []
    context = browser.new_context(accept_downloads=True, **options)
    page = context.new_page()
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request",
        lambda request: (
            faults.append(request.url)
            if not request.url.startswith((report.as_uri(), "data:text/"))
            else None
        ),
    )
    page.goto(report.as_uri() + place)
    yield page
    context.close()
    assert faults == []


def test_a_click_shows_one_tab_and_back_returns(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        assert (page.evaluate(SELECTED), page.evaluate(SHOWN)) == (["Overview"], PANELS[:1])
        for name, panel in (("Tasks", "tab-tasks"), ("How it was made", "tab-how-it-was-made")):
            page.get_by_role("tab", name=name).click()
            assert (page.evaluate(SELECTED), page.evaluate(SHOWN)) == ([name], [panel])
            assert page.evaluate("scrollY") == 0
        page.go_back()
        page.locator("#tab-tasks").wait_for()
        assert page.evaluate(SELECTED) == ["Tasks"]


def test_arrow_keys_move_between_tabs(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        page.get_by_role("tab", name="Overview").focus()
        for key, panel in (
            ("ArrowRight", 1),
            ("ArrowRight", 2),
            ("ArrowLeft", 1),
            ("End", 4),
            ("ArrowRight", 0),
            ("ArrowLeft", 4),
            ("Home", 0),
        ):
            page.keyboard.press(key)
            page.locator(f"#{PANELS[panel]}").wait_for()
            assert page.evaluate(SHOWN) == [PANELS[panel]]
            assert page.evaluate("document.activeElement.getAttribute('aria-controls')") == PANELS[panel]
        assert page.evaluate("[...document.querySelectorAll('[role=tab]')].map((tab) => tab.tabIndex)") == [
            0,
            -1,
            -1,
            -1,
            -1,
        ]


def test_a_link_into_a_section_opens_its_tab(browser: Any, report: Path) -> None:
    with opened(browser, report, "#missing") as page:
        assert page.evaluate(SHOWN) == ["tab-how-it-was-made"]
        assert page.locator("#missing").is_visible()
    with opened(browser, report) as page:
        page.locator(".map a", has_text="sw").click()
        page.locator("#language-sw").wait_for()
        assert page.evaluate(SHOWN) == ["tab-languages"]
        page.get_by_role("tab", name="Overview").click()
        page.get_by_role("link", name="What is missing").click()
        page.locator("#missing").wait_for()
        assert page.evaluate(SHOWN) == ["tab-how-it-was-made"]


def test_without_a_script_everything_is_shown_in_sequence(browser: Any, report: Path) -> None:
    with opened(browser, report, java_script_enabled=False) as page:
        assert [panel.is_visible() for panel in page.locator(".panel").all()] == [True] * len(PANELS)
        assert page.locator("button.print").is_hidden()
        assert page.locator("[role=tab]").count() == 0


@pytest.mark.parametrize("tab", ["", "#tab-tasks"])
def test_paper_has_every_tab_on_landscape_pages(browser: Any, report: Path, tab: str) -> None:
    with opened(browser, report, tab, color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="light")
        assert page.evaluate(SHOWN) == PANELS
        # The width of a page of A4 without its margins.
        page.set_viewport_size({"width": 1032, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 1032
        assert page.evaluate(
            "[...document.querySelectorAll('.scroll')].every((box) => getComputedStyle(box).overflowX === 'visible')"
        )
        assert page.evaluate(
            "[...document.querySelectorAll('table')].every((table) => table.getBoundingClientRect().right <= 1033)"
        )
        paper = page.pdf(prefer_css_page_size=True, print_background=True)
    boxes = re.findall(rb"/MediaBox \[[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)\]", paper)
    assert boxes
    assert all([float(side) for side in box] == pytest.approx(A4, abs=1) for box in boxes)
    pages = len(re.findall(rb"/Type /Page\b", paper))
    assert len(PANELS) <= pages <= 12
    assert len(paper) < 2_000_000


def test_the_files_can_be_downloaded(browser: Any, report: Path) -> None:
    with opened(browser, report) as page:
        with page.expect_download() as found:
            page.get_by_role("link", name="CSV").click()
        text = Path(found.value.path()).read_text(encoding="utf-8")
        assert found.value.suggested_filename.endswith(".csv")
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["value"]]
    assert [row["language"] for row in rows] == ["en", "de", "ar", "zh", "sw", "hi"]
    assert [float(row["value"]) for row in rows] == pytest.approx([0.4, 0.45, 0.5, 0.55, 0.6, 0.65])


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_no_tab_is_wider_than_the_window(browser: Any, report: Path, width: int) -> None:
    with opened(browser, report, viewport={"width": width, "height": 900}) as page:
        for panel in (*PANELS, PANELS[0]):
            if page.locator("button.menu").is_visible():
                page.click("button.menu")
            page.locator(f'[aria-controls="{panel}"]').click()
            page.locator(f"#{panel}").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        dots = page.locator(".task svg[role=img]").first
        assert dots.bounding_box()["width"] > width / 4
