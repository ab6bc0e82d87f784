"""The ledger in the HTML report and on a board: its content, and no barrier in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.cost.cost import equity_report
from harness.reporting.documents import html_text
from harness.storage.run_folder import Run
from harness_board.gathering import gather
from harness_board.rendering import board_page, part_page

RunTasks = Callable[..., Run]
AXE_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


@pytest.fixture
def runs(run: RunTasks) -> list[Run]:
    return [
        run("xnli:en+de+hi+ru+tr+zh,xcopa:it"),
        run("xnli:en+de,xquad:en+hi", "counts:writes", options={"says": "yes"}, protocols=("prompted",)),
    ]


def section(page: str) -> str:
    found = re.search(r'<section id="equity".*?</section>', page, re.DOTALL)
    assert found is not None
    return re.sub(r"<[^>]+>", " ", found[0])


def test_the_report_has_the_numbers_of_the_ledger(runs: list[Run]) -> None:
    text = section(html_text(runs))
    report = equity_report(runs)
    assert [table.title for table in report.tables][:2] == ["xnli prompted rank", "xcopa prompted rank"]
    for table in report.tables:
        for row in table.rows:
            assert row.cost.fertility is not None
            assert f"{row.cost.fertility:.2f}" in text
            assert row.premium.tokens is None or f"{row.premium.tokens:.2f}" in text
    assert "no premium: the run has no English items of this task" in text


def test_all_tasks_count_equal_texts_once(run: RunTasks) -> None:
    finished = run("xnli:en+de", seeds=(1, 2), limit=4)
    both = run("xnli:en+de,xquad:en+de", "counts:writes", protocols=("prompted",), limit=4)
    assert len(equity_report([finished]).overall[0].rows) == 2
    report = equity_report([both])
    own = {row.code: row.cost for row in report.overall[0].rows}
    for code, cost in own.items():
        parts = [row.cost for table in report.tables for row in table.rows if row.code == code]
        assert cost.tokens == sum(part.tokens for part in parts)
    assert {row.premium.items for row in report.overall[0].rows} == {8}


def test_a_board_shows_every_system_task_and_language(runs: list[Run]) -> None:
    board = gather(runs=runs)
    whole = board_page(board)
    assert "Of all tasks, by system" in whole
    assert "Of xcopa, by system" in part_page(board, task="xcopa")
    german = part_page(board, language="de")
    table = german[german.index("Of all tasks, by system") :]
    assert "de German" in table
    assert "hi Hindi" not in table
    assert "What the languages cost" not in part_page(board, language="vi")


def test_no_barrier_is_found(runs: list[Run], tmp_path: Path, browser: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    source = next(Path(axe.__file__).parent.rglob("axe*.js")).read_text(encoding="utf-8")
    for name, text in (("report", html_text(runs)), ("board", board_page(gather(runs=runs)))):
        path = tmp_path / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        for scheme, width in (("light", 400), ("dark", 1400)):
            context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
            page = context.new_page()
            page.goto(path.as_uri())
            page.evaluate(source + "; undefined")
            found = page.evaluate("async (rules) => (await axe.run(document, rules)).violations", AXE_RULES)
            assert [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            context.close()
