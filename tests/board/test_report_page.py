"""Pages of HTML reports in Chromium: no barrier, no request, no fault, and nothing wider than the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.reporting.documents import html_text
from harness.storage.run_folder import Run
from tests.board.sound_page import sound_page
from tests.reporting.probing.conftest import vyakarana_cells, write_probed_run


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, trained_sample_run: Run, sample_run: Run) -> Path:
    folder, runs = tmp_path_factory.mktemp("report"), [trained_sample_run, sample_run]
    path = folder / "report.html"
    path.write_text(html_text(runs), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_no_barrier_is_found(report: Path, browser: Any, scheme: Any, width: int) -> None:
    with sound_page(browser, report, scheme, width):
        pass


@pytest.fixture(scope="module")
def probing_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probes")
    runs: list[Run] = [
        write_probed_run(folder / name, vyakarana_cells(f"hf:{name}"), model=f"hf:{name}")
        for name in ("first", "second")
    ]
    path = folder / "probing_report.html"
    path.write_text(html_text(runs), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_no_barrier_is_found_in_probes(probing_report: Path, browser: Any, scheme: Any, width: int) -> None:
    with sound_page(browser, probing_report, scheme, width) as page:
        strokes = page.evaluate(
            "[...document.querySelectorAll('#probing svg .curve')].map(path => getComputedStyle(path).stroke)"
        )
        assert len(set(strokes)) > 3, "curves of different groups have different colours"
