"""The HTML report of a real run in Chromium: no barrier, no request, no fault, and nothing wider than the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.reporting.html.report import render_html
from tests.board.sound_page import sound_page


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        runs = [
            harness.evaluate(
                ["xnli:en+de+zh", "xquad:en+ar", "udpos:en+hi"],
                f"baseline:{name}",
                data="sample",
                recipe="quick",
                output=folder / name,
            )
            for name in ("char-ngram", "majority")
        ]
    path = folder / "report.html"
    path.write_text(render_html(runs), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_no_barrier_is_found(report: Path, browser: Any, scheme: Any, width: int) -> None:
    with sound_page(browser, report, scheme, width):
        pass
