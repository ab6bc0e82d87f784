"""The probes of the HTML report in Chromium: no barrier, no request, no fault, and nothing wider than the window."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.html.report import render_html
from harness.results import Run
from tests.board.test_report_page import AXE_RULES
from tests.reporting.probing.conftest import vyakarana_cells, write_probed_run


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probes")
    runs: list[Run] = [
        write_probed_run(folder / name, vyakarana_cells(f"hf:{name}"), model=f"hf:{name}")
        for name in ("first", "second")
    ]
    path = folder / "report.html"
    path.write_text(render_html(runs), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_no_barrier_is_found(report: Path, browser: Any, scheme: Any, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    source = next(Path(axe.__file__).parent.rglob("axe*.js")).read_text(encoding="utf-8")
    faults: list[str] = []
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: faults.append(request.url) if request.url != report.as_uri() else None)
    page.goto(report.as_uri())
    page.evaluate(source + "; undefined")
    found = page.evaluate("async (rules) => (await axe.run(document, rules)).violations", AXE_RULES)
    assert [f"{one['id']}: {json.dumps(one['nodes'][0]['html'][:200])}" for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    strokes = page.evaluate(
        "[...document.querySelectorAll('#probing svg .curve')].map(path => getComputedStyle(path).stroke)"
    )
    assert len(set(strokes)) > 3, "curves of different groups have different colours"
    context.close()
    assert faults == []
