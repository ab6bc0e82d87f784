"""The HTML report of a real run in Chromium: no barrier, no request, no fault, and nothing wider than the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.reporting.html.report import render_html

AXE_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


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
    assert [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
    assert faults == []
