"""The page of two runs in Chromium: no barrier, no request, and nothing wider than the window, with all folds open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.documents import html_text
from tests.board.sound_page import sound_page

from .conftest import make_cell as cell, make_record as record

Make = Callable[..., Any]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_the_page_of_two_runs_has_no_barrier(
    write_run: Make, browser: Any, tmp_path: Path, scheme: str, width: int
) -> None:
    codes = ("de", "en", "ar")
    runs = [
        write_run(
            *(cell(code, value) for code in codes),
            records={code: [record(n, right=n % every == 0) for n in range(80)] for code in codes},
            model=model,
        )
        for model, value, every in (("hf:/models/first", 0.5, 2), ("hf:/models/second", 0.25, 4))
    ]
    text = html_text(runs).replace("<details", "<details open")
    report = tmp_path / "report.html"
    report.write_text(text, encoding="utf-8")
    with sound_page(browser, report, scheme, width) as page:
        [heading] = [own for own in page.locator("#comparison h3").all_inner_texts() if "points" in own]
        assert "first is 25.0 points above second" in heading
        assert page.locator(".forest .up circle").count() >= 1
        assert page.locator("#languages table.item, #items table.item").count() > 0
