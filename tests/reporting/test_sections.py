"""Sections of plugins: read from a dotted target, skipped where empty, and never in the way of the scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.errors import BrokenPluginError
from harness.registry.declarations import ReportFormat, ReportSection
from harness.registry.registry import Registry
from harness.reporting.blocks.model import Note
from harness.reporting.overview.summary import summarise
from harness.reporting.overview.summary_blocks import detail_blocks, part_blocks
from harness.reporting.render.console import render_blocks
from harness.reporting.sections import SectionReport, installed_sections, read_section, read_sections
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


def read_with_bad_rows(runs: Sequence[Run]) -> SectionReport:
    return SectionReport(blocks=[Note("fine")], rows=lambda: [{"share": 1 / len(runs[1:])}])


def read_lazily(runs: Sequence[Run]) -> SectionReport:
    return SectionReport(blocks=(Note(str(1 / (count - 1))) for count in [len(runs)]))  # type: ignore[arg-type]


def read_text(runs: Sequence[Run]) -> str:
    return "no report"


def read_text_block(runs: Sequence[Run]) -> SectionReport:
    return SectionReport(blocks=["no block"])  # type: ignore[list-item]


SOURCES = {
    "raises": "def read(runs):\n    return 1 / 0\n",
    "exits": "import no_such_module_at_all\n\n\ndef read(runs): ...\n",
    "misspelt": "def read(runs):\n    return runs[\n",
}


@pytest.mark.parametrize(("name", "line"), [("raises", 2), ("exits", 1), ("misspelt", 2)])
@pytest.mark.parametrize("is_package", [True, False])
def test_the_sentence_names_distribution_file_and_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: int, is_package: bool
) -> None:
    package = f"acme_{name}_{is_package}".lower()
    module = tmp_path / "site" / (f"{package}/report.py" if is_package else f"{package}.py")
    module.parent.mkdir(parents=True)
    module.write_text(SOURCES[name], encoding="utf-8")
    info = tmp_path / "site" / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: acme-{name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "top_level.txt").write_text(package, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    section = _section(f"{package}.report:read" if is_package else f"{package}:read")
    [report] = read_sections([run], [section]).values()
    [sentence] = report.notes
    where = f"{package}/report.py" if is_package else f"{package}.py"
    assert f"'read' of acme-{name} " in sentence
    assert f"{where}, line {line})" in sentence
    assert str(tmp_path) not in sentence


@pytest.mark.parametrize("reader", [read_lazily, read_text, read_text_block])
def test_a_report_of_a_wrong_type_is_a_fault_of_the_section(run: Run, reader: Callable[..., Any]) -> None:
    section = _section(f"{HERE}:{reader.__name__}")
    with pytest.raises(BrokenPluginError, match=reader.__name__):
        read_section(section, [run])
    [report] = read_sections([run], [section]).values()
    assert len(report.notes) == 1


def test_rows_that_raise_are_a_fault_of_the_section(run: Run) -> None:
    report = read_section(_section(f"{HERE}:read_with_bad_rows"), [run])
    assert report is not None
    with pytest.raises(BrokenPluginError, match=r"read_with_bad_rows.*test_sections\.py, line \d+"):
        report.rows()


def test_one_hook_declares_formats_and_sections() -> None:
    from harness.registry.discovery import discover

    registry = Registry(discover())
    assert {"console", "probing-csv"} <= set(registry.reports.names)
    assert {"cases", "probing"} <= set(registry.report_sections.names)
    assert all(isinstance(item, ReportFormat) for item in registry.reports)
    assert installed_sections() == tuple(registry.report_sections)
    assert registry.plugins.problems == []
