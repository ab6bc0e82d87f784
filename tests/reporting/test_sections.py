"""Sections of plugins: read from a dotted target, skipped where empty, and never in the way of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from harness.registry.registry import Registry
from harness.reporting.console import render_blocks
from harness.reporting.formats import ReportFormat, ReportSection, SectionReport
from harness.reporting.model import Note
from harness.reporting.sections import installed_sections, read_sections
from harness.reporting.summary import summarise
from harness.reporting.summary_blocks import detail_blocks, part_blocks
from harness.storage.run_folder import Run
from tests.reporting.probing.conftest import kept_details, make_cells, write_probed_run

HERE = "tests.reporting.test_sections"


def read_covering(runs: Sequence[Run]) -> SectionReport:
    """Return a section that shows the scores of every cell of a run."""
    covered = frozenset((cell.task, str(cell.method), "") for cell in runs[0].cells)
    return SectionReport(blocks=[Note("all of it")], brief=[Note("a part")], covered=covered)


def read_nothing(runs: Sequence[Run]) -> None:
    return None


def _section(target: str) -> ReportSection:
    return ReportSection(name=target.rpartition(":")[2], title="T", target=target, empty="Nothing of it.")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    cells = make_cells("p", {}, kept_details()["vyakarana_pos", "", "cg"])
    return write_probed_run(tmp_path / "run", cells, model="hf:first")


def _text(part: object) -> str:
    console = Console(width=100, color_system=None)
    with console.capture() as capture:
        console.print(part)
    return capture.get()


def test_a_section_covers_columns_of_the_summary(run: Run) -> None:
    section = _section(f"{HERE}:read_covering")
    assert "wF1" in _text(render_blocks(detail_blocks(summarise([run]), width=100), width=100))
    summary = summarise([run], sections=[section])
    text = _text(render_blocks(detail_blocks(summary, width=100), width=100))
    assert "a part" in text
    assert "wF1" not in text
    assert "all of it" in _text(render_blocks(part_blocks(summary, section), width=80))


def test_a_section_without_results_is_skipped(run: Run) -> None:
    section = _section(f"{HERE}:read_nothing")
    summary = summarise([run], sections=[section])
    assert summary.extra == {}
    assert section.empty in _text(render_blocks(part_blocks(summary, section), width=80))


@pytest.mark.parametrize("target", [f"{HERE}:no_such_name", "no_such_module:read"])
def test_a_section_that_raises_is_one_sentence(run: Run, target: str) -> None:
    section = _section(target)
    [report] = read_sections([run], [section]).values()
    [sentence] = report.notes
    assert section.name in sentence
    text = " ".join(
        _text(
            render_blocks(detail_blocks(summarise([run], sections=[section]), width=100), width=100)
        ).split()
    )
    assert sentence in text
    assert "wF1" in text


def test_one_hook_declares_formats_and_sections() -> None:
    from harness.registry.discovery import discover

    registry = Registry(discover())
    assert {"console", "probing-csv"} <= set(registry.reports.names)
    assert {"cases", "probing"} <= set(registry.report_sections.names)
    assert all(isinstance(item, ReportFormat) for item in registry.reports)
    assert installed_sections() == tuple(registry.report_sections)
    assert registry.plugins.problems == []
