"""The page to label in: by keys alone, without network, whatever the texts are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_translation.annotation.key import Key, make_key
from harness_translation.annotation.sample import draw_samples
from harness_translation.annotation.sheet import annotator_rows, default_instructions
from harness_translation.annotation.sheet_page import sheet_page
from harness_translation.annotation.sheet_reading import read_sheets
from tests.annotation.conftest import text_items

HOSTILE = (
    "<img src=x onerror=\"document.title='broken'\"></script><script>document.title='broken'</script>\u202e"
)
URDU = "یہ ایک جملہ ہے"
Open = Callable[[Key], Any]


def key_of(*texts: str, choices: bool = False) -> Key:
    """Return a sheet in Urdu whose premises are these texts."""
    source = text_items(len(texts), language="ur")
    items = [
        replace(
            item,
            fields={"premise": text, "hypothesis": HOSTILE},
            choices={label: f"{label} {text}" for label in source.labels} if choices else {},
        )
        for item, text in zip(source.items, texts, strict=True)
    ]
    samples = draw_samples([replace(source, items=items)], size=len(texts), seed=0)
    return make_key(samples, seed=0, annotators=["1"], instructions={})


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Any:
    """Open a sheet from a file; fails on errors of the console and on any request."""
    faults: list[str] = []
    context = browser.new_context(accept_downloads=True, viewport={"width": 390, "height": 800})

    def opened(key: Key) -> Any:
        path = tmp_path / "sheet.html"
        sheet = key.sheets[0]
        instructions = [*default_instructions(sheet.labels), HOSTILE]
        path.write_text(sheet_page(sheet, "1", annotator_rows(sheet, "1"), instructions), encoding="utf-8")
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request",
            lambda one: faults.append(one.url) if not one.url.startswith((path.as_uri(), "blob:")) else None,
        )
        page.goto(path.as_uri())
        return page

    yield opened
    context.close()
    assert faults == []


def saved(page: Any, button: str, path: Path) -> Path:
    with page.expect_download() as download:
        page.click(button)
    download.value.save_as(path)
    return path


def test_a_sheet_is_labelled_by_keys_and_imported(open_page: Open, tmp_path: Path) -> None:
    key = key_of(URDU, "Latin text", URDU)
    page = open_page(key)
    page.keyboard.press("2")
    page.keyboard.press("1")
    page.keyboard.press("c")
    page.keyboard.type("3, غلط")
    page.keyboard.press("Escape")
    assert page.inner_text("#progress") == "2 of 3 rows have a label."
    page.keyboard.press("3")
    order = [keyed.row for keyed in annotator_rows(key.sheets[0], "1")]
    expected = dict(zip(order, ("no", "yes", "maybe"), strict=True))
    for button, name in (("#save-csv", "one.csv"), ("#save-json", "one.json")):
        found = read_sheets([saved(page, button, tmp_path / name)], key)
        assert found.labels == {"1": expected}
        assert found.comments == {"1": {order[2]: "3, غلط"}}
    assert page.title() == "nli-ur-1, annotator 1"


def test_labels_stay_in_the_browser_and_come_back_from_a_file(open_page: Open, tmp_path: Path) -> None:
    key = key_of(URDU, URDU)
    page = open_page(key)
    page.keyboard.press("2")
    path = saved(page, "#save-json", tmp_path / "half.json")
    page.reload()
    assert page.inner_text("#progress") == "1 of 2 rows have a label."
    page.evaluate("localStorage.clear()")
    page.reload()
    assert page.inner_text("#progress") == "0 of 2 rows have a label."
    page.set_input_files("#load", str(path))
    page.wait_for_selector("#progress:has-text('1 of 2')")
    other = tmp_path / "other.json"
    other.write_text('{"sheet": "another", "rows": []}', encoding="utf-8")
    page.set_input_files("#load", str(other))
    page.wait_for_selector("#notice:has-text('it is of the sheet another')")


def test_texts_are_texts_in_their_own_direction(open_page: Open) -> None:
    page = open_page(key_of(f"{URDU} <b>", choices=True))
    premise, hypothesis = page.query_selector_all("#texts .text")
    assert premise.inner_text() == f"{URDU} <b>" and premise.get_attribute("lang") == "ur"
    assert premise.evaluate("node => node.matches(':dir(rtl)')")
    assert hypothesis.inner_text() == HOSTILE.replace("\u202e", "⟦U+202E⟧")
    assert hypothesis.evaluate("node => node.matches(':dir(ltr)')")
    assert page.inner_text(".choice >> nth=1") == f"no {URDU} <b>"
    assert page.query_selector("main img") is None and page.title() != "broken"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "it fits a telephone"


def test_the_page_is_accessible(open_page: Open) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    page = open_page(key_of(URDU, URDU))
    found = axe.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]})
    assert [one["id"] for one in found.response["violations"]] == []
