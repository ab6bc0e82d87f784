"""A page of a report in Chromium that has no barrier, loads nothing, reports no error and fits its window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


def violations(page: Any) -> list[str]:
    """Return the barriers that axe finds; its script is put in from outside, past the page's policy."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    source = next(Path(axe.__file__).parent.rglob("axe*.js")).read_text(encoding="utf-8")
    page.evaluate(source + "; undefined")
    found = page.evaluate("async (rules) => (await axe.run(document, rules)).violations", AXE_RULES)
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


@contextmanager
def sound_page(browser: Any, report: Path, scheme: str, width: int) -> Iterator[Any]:
    """Open a report, assert that it is sound, and give the page; faults of what is done with it count, too."""
    faults: list[str] = []
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: faults.append(request.url) if request.url != report.as_uri() else None)
    page.goto(report.as_uri())
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    yield page
    context.close()
    assert faults == []
