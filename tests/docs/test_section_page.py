"""The example of docs/add-a-report-section.md, as it stands and with a fault."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli.main import run_command
from harness.reporting.documents import html_text
from harness.storage.run_folder import Run
from tests.docs.page import DOCS, blocks

pytestmark = pytest.mark.thorough
PAGE = DOCS / "add-a-report-section.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with the package of the page, as pip installs it, and a run."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    info = tmp_path / "harness_label_shares-1.0.dist-info"
    for block in blocks(PAGE):
        if name := block.attributes.get("file"):
            path = tmp_path / name.rpartition("src/")[2].replace("harness-label-shares/", "")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(block.lines), encoding="utf-8")
    info.mkdir()
    (info / "METADATA").write_text("Name: harness-label-shares\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[harness]\nlabel_shares = label_shares\n", encoding="utf-8")
    (info / "top_level.txt").write_text("label_shares\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    run = ("--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample", "--limit", "6")
    assert run_command(["eval", *run, "--output", str(tmp_path / "run")]) == 0
    yield tmp_path
    forget()


def forget() -> None:
    """Import the package anew."""
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "label_shares"]:
        del sys.modules[name]


def test_the_section_is_in_every_format_and_its_fault_in_none_of_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(folder / "run")
    capsys.readouterr()
    assert run_command(["report", run, "--section", "labels", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    for name in ("answered", "gold"):
        assert sum(float(row[name]) for row in rows) == pytest.approx(1)
    assert run_command(["report", run, "--section", "labels"]) == 0
    assert "Answered labels, percent" in capsys.readouterr().out
    assert "Answered labels, percent" in html_text([Run(run)])
    assert run_command(["report", run, "--section", "lables"]) == 2

    module = folder / "label_shares" / "section.py"
    source = module.read_text(encoding="utf-8")
    module.write_text(source.replace("/ len(records)", "/ (len(records) - 6)"), encoding="utf-8")
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "/ len(records)" in text)
    forget()
    capsys.readouterr()
    assert run_command(["report", run]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in (printed, html_text([Run(run)])):
        assert "of harness-label-shares" in text
        assert f"label_shares/section.py, line {line})" in text
    assert "xnli acc" in printed
    assert run_command(["report", run, "--section", "labels", "--format", "csv"]) == 2
    assert f"line {line})" in capsys.readouterr().err
