"""The first paragraph of a page, the bars of a task that is alone, and marks that differ by system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from harness.reporting.blocks.chart import BarChart, Mark, MarkKind, TaskChart, TaskRow
from harness.reporting.blocks.model import Charts, Columns, Note
from harness.reporting.documents import html_text
from harness.reporting.overview.glance import glance
from harness.reporting.overview.overview import overview_blocks
from harness.reporting.overview.provenance import DEEDS, lead
from harness.reporting.overview.summary import read_material
from harness.reporting.render.page import html_blocks
from harness.running.session import open_session
from harness.storage.run_folder import Run

from .conftest import make_cell as cell

Make = Callable[..., Any]
SYSTEMS = st.lists(st.text("abc", min_size=1), min_size=1, max_size=4, unique=True)


def _blocks(run: Run) -> list[Any]:
    material = read_material([run])
    return overview_blocks(material, glance(material.every, material.summary), {})


def test_a_page_begins_with_model_task_languages_metric_and_chance(write_run: Make) -> None:
    run = write_run(cell("en", 0.6), cell("sw", 0.4), cell("de", None, status="skipped", reason="x", n=0))
    first = _blocks(run)[0]
    assert isinstance(first, Note)
    assert first.style == "lead"
    for words in (
        "mine",
        "200 items",
        "English and Swahili",
        "xnli",
        "accuracy",
        "from 0 to 100",
        "33.3",
        "±",
    ):
        assert words in first.text
    assert "German" not in first.text
    assert '<p class="lead">' in html_text([run])


def test_many_languages_are_counted_with_their_families(write_run: Make) -> None:
    codes = ("en", "de", "ar", "bg", "el", "es", "fr", "hi", "sw")
    [text] = [block.text for block in _blocks(write_run(*(cell(code) for code in codes)))[:1]]
    assert "9 languages of 3 families" in text


def test_a_run_without_a_score_has_no_paragraph(write_run: Make) -> None:
    material = read_material([write_run(cell("en", None, status="failed", reason="x", n=0))])
    assert lead(material, glance(material.every, material.summary)) == ""


def test_every_kind_of_task_is_a_deed() -> None:
    kinds = open_session().registry.kinds
    assert {name for name in kinds.names if kinds.plugin_of(name) == "core"} <= DEEDS.keys()


@pytest.mark.parametrize(("tasks", "charts"), [(("xnli",), 2), (("xnli", "pawsx"), 1)])
def test_one_task_alone_has_its_languages_as_bars(
    tasks: tuple[str, ...], charts: int, write_run: Make
) -> None:
    values = {"en": 0.6, "sw": 0.4, "hi": 0.5}
    run = write_run(*(cell(code, value, task=task) for task in tasks for code, value in values.items()))
    [columns] = [block for block in _blocks(run) if isinstance(block, Columns)]
    found = [block for block in columns.first if isinstance(block, Charts)]
    assert len(found) == charts
    if charts == 2:
        [bars] = found[1].charts
        assert isinstance(bars, BarChart)
        assert [bar.label for bar in bars.bars] == ["English", "Hindi", "Swahili"]
        assert bars.line == pytest.approx(100 / 3)
        assert bars.high == 100.0


@given(runs=SYSTEMS, baselines=SYSTEMS, published=SYSTEMS)
def test_systems_of_one_kind_have_marks_of_their_own(
    runs: list[str], baselines: list[str], published: list[str]
) -> None:
    named: dict[MarkKind, list[str]] = {"run": runs, "baseline": baselines, "published": published}
    marks = [Mark(kind=kind, label=label, value=50.0) for kind, names in named.items() for label in names]
    row = TaskRow(label="xnli", words="", value=50.0, text="50.0", small="", marks=marks)
    chart = TaskChart(title="T", rows=[row])
    assert {(mark.kind, chart.variant(mark)) for mark in marks} == {
        (kind, place) for kind, names in named.items() for place in range(len(names))
    }
    legend = [entry for entry in chart.keys if entry[0] in get_args(MarkKind) and entry[0] != "language"]
    assert [(kind, place) for kind, place, _ in legend] == [
        (mark.kind, chart.variant(mark)) for mark in marks
    ]


def test_four_marks_of_a_kind_are_four_shapes() -> None:
    marks = [Mark(kind="baseline", label=f"b{place}", value=50.0) for place in range(4)]
    row = TaskRow(label="xnli", words="", value=None, text="", small="", marks=marks)
    page = html_blocks([Charts(charts=(TaskChart(title="T", rows=[row]),))])
    shapes = [part.partition('"')[0] for part in page.split('<path d="') if 'class="base v' in part[:200]]
    assert len(set(shapes)) == 4


def test_what_colours_of_bars_are_is_in_a_legend() -> None:
    chart = BarChart(title="T", bars=(), groups=("Arab", "Latn"))
    assert "Arab" not in html_blocks([Charts(charts=(BarChart(title="T", bars=()),))])
    assert {"Arab", "Latn"} <= set(html_blocks([Charts(charts=(chart,))]).replace("<", " ").split())


@given(st.integers(1, 400))
def test_long_notes_on_method_are_folded(length: int) -> None:
    page = html_blocks([Note("x" * length, "note")])
    assert ("<details" in page) is (length > 170)
    assert "<details" not in html_blocks([Note("x" * length)])


def test_tabs_are_a_menu_on_a_narrow_screen(browser: Any, write_run: Make, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(html_text([write_run(cell("en"), cell("sw"), cell("de"))]), encoding="utf-8")
    for width, is_menu in ((390, True), (1440, False)):
        page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
        page.goto(path.as_uri())
        menu, tab = page.locator("button.menu"), page.get_by_role("tab", name="Languages")
        assert (menu.is_visible(), tab.is_visible()) == (is_menu, not is_menu)
        if is_menu:
            menu.click()
            assert menu.get_attribute("aria-expanded") == "true"
        tab.click()
        assert page.locator("#tab-languages").is_visible()
        assert tab.is_visible() is not is_menu
        assert "Languages" in (menu.text_content() or "")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.context.close()
