"""A comparison for a paper: its tables have the numbers of the comparison, and its files are what their names say."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import MagicMock

import pytest

import harness
from harness.analysis.comparison import Comparison, compare
from harness.registry.registry import Registry
from harness.reporting.blocks.model import Notes, Table
from harness.reporting.comparison.paper import paper_blocks, paper_rows, paper_text
from harness.reporting.documents import latex_text, markdown_text
from harness.reporting.overview.figures import forest_figure
from harness.statistics import holm
from harness.storage.run_folder import Run

from .conftest import LABELS, Cells, difference_of, labelled, write_runs

MakeRun = Callable[..., Run]
Cli = Callable[..., tuple[int, str, str]]
GOLD = "abc" * 20
WRONG = "bca" * 20
ANSWERS = {"de": GOLD[:30] + WRONG[30:], "sw": WRONG[:5] + GOLD[5:], "tr": GOLD}


@pytest.fixture
def runs(make_run: MakeRun) -> list[Run]:
    """A run with all right, and one that is wrong on 30 items, 5 items and no item."""
    cells: Cells = [("xnli", code, labelled(text, GOLD), {}) for code, text in ANSWERS.items()]
    return [*write_runs(make_run, GOLD, *ANSWERS, x_1=GOLD), make_run("y", cells)]


def _tables(compared: Comparison, registry: Registry) -> list[Table]:
    return [block for block in paper_blocks(compared, registry.metrics) if isinstance(block, Table)]


def test_the_rows_are_those_of_the_comparison(runs: list[Run], registry: Registry) -> None:
    compared = compare(runs, registry.metrics)
    rows = list(csv.DictReader(io.StringIO(paper_text(compared, registry.metrics, "csv"))))
    assert [(row["language"], row["system"]) for row in rows] == [
        (code, name) for code in (*ANSWERS, "") for name in ("x_1", "y")
    ]
    values = {row["language"]: float(row["value"]) for row in rows if row["system"] == "y"}
    assert values == pytest.approx({"de": 0.5, "sw": 55 / 60, "tr": 1.0, "": fmean((0.5, 55 / 60, 1.0))})
    adjusted = holm([difference_of(part).p or 0.0 for part in compared.tasks[0].languages])
    shown = [row for row in rows if row["system"] == "y"]
    assert [float(row["p_holm"]) for row in shown[:3]] == pytest.approx(list(adjusted))
    mean = difference_of(compared.tasks[0])
    printed = [float(shown[3][name]) for name in ("difference", "ci_low", "ci_high", "p")]
    assert printed == pytest.approx([mean.value, mean.low, mean.high, mean.p])
    assert [row["significant"] for row in shown] == ["True", "False", "False", "True"]


def test_the_best_is_bold_and_a_difference_is_marked(runs: list[Run], registry: Registry) -> None:
    scores, differences = _tables(compare(runs, registry.metrics), registry)
    assert scores.heads == ("de", "sw", "tr", "mean")
    shown = {str(row.label): [(str(own), own.style) for own in row.fields] for row in scores.rows}  # type: ignore[union-attr]
    assert shown["x_1"] == [("100.0", "best")] * 4
    assert shown["y"] == [("50.0*", ""), ("91.7", ""), ("100.0", "best"), ("80.6*", "")]
    assert [row.fields[2] for row in differences.rows] == ["+50.0", "+8.3", "+0.0", "+19.4"]
    assert [row.fields[-1] for row in differences.rows] == ["60", "60", "60", "180"]


def test_one_pair_on_several_tasks_is_one_table(make_run: MakeRun, registry: Registry) -> None:
    tasks = ("xnli", "pawsx", "sib200")
    specs = dict.fromkeys(tasks, LABELS)
    runs = []
    for name, text in (("x", GOLD), ("y", WRONG[:40] + GOLD[40:])):
        cells: Cells = [(task, code, labelled(text, GOLD), {}) for task in tasks for code in ("de", "sw")]
        runs.append(make_run(name, cells, specs=specs))
    compared = compare(runs, registry.metrics)
    [table] = _tables(compared, registry)
    assert table.heads[:2] == ("x", "y")
    labels = [(str(row.label).split()[0], row.depth) for row in table.rows]
    assert labels == [own for task in tasks for own in ((task, 0), ("German", 1), ("Swahili", 1))]
    means = [row["value"] for row in paper_rows(compared, registry.metrics) if row["language"] is None]
    shown = [str(field) for row in table.rows if row.depth == 0 for field in row.fields[:2]]
    assert shown == [f"{value * 100:.1f}" for value in means]
    text = paper_text(compared, registry.metrics, "latex")
    assert (text.count(r"\begin{table}"), text.count(r"\label{tab:")) == (1, 1)


def test_three_systems_keep_a_table_per_task(make_run: MakeRun, registry: Registry) -> None:
    cells: Cells = [(task, "de", labelled(GOLD, GOLD), {}) for task in ("xnli", "pawsx")]
    runs = [make_run(name, cells, specs={"xnli": LABELS, "pawsx": LABELS}) for name in "xyz"]
    assert len(_tables(compare(runs, registry.metrics), registry)) == 6


def test_of_a_metric_that_falls_the_lowest_is_the_best(runs: list[Run], registry: Registry) -> None:
    falling: Any = MagicMock()
    falling.__contains__.return_value = True
    falling.get.return_value.higher_is_better = False
    best = [row["system"] for row in paper_rows(compare(runs, registry.metrics), falling) if row["best"]]
    assert best == ["y", "y", "x_1", "y", "y"]


def test_many_languages_are_rows(make_run: MakeRun, registry: Registry) -> None:
    codes = [f"q{letter}" for letter in "abcdefghijklmnopq"]
    runs = write_runs(make_run, GOLD, *codes, x=GOLD, y=WRONG)
    scores, _ = _tables(compare(runs, registry.metrics), registry)
    assert scores.heads == ("x", "y")
    assert [row.label for row in scores.rows] == [*codes, "mean"]


def test_the_sentence_to_quote_is_in_every_document(runs: list[Run], registry: Registry) -> None:
    compared = compare(runs, registry.metrics)
    [sentence] = [
        block.texts[0] for block in paper_blocks(compared, registry.metrics)[:1] if isinstance(block, Notes)
    ]
    assert re.fullmatch(
        r"xnli: x_1 is 19\.4 points above y \([\d.]+ to [\d.]+\), p < \.001, 180 items in 3 languages\.",
        sentence,
    )
    assert f"% {sentence}" in paper_text(compared, registry.metrics, "latex")
    assert "**100.0** | **100.0**" in paper_text(compared, registry.metrics, "markdown")


@pytest.mark.thorough
def test_a_report_of_several_runs_has_all_of_them_and_compiles(registry: Registry, tmp_path: Path) -> None:
    runs: list[Run] = [
        harness.evaluate("xnli:de+sw", f"baseline:{name}", data="sample", output=tmp_path / name)
        for name in ("majority", "random")
    ]
    text = latex_text(runs)
    for caption in ("majority on sample data", "random on sample data", "Means over languages"):
        assert text.count(rf"\caption{{{caption}") == 1
    assert "### random on sample data" in markdown_text(runs)
    latex = shutil.which("pdflatex")
    if latex is None:
        pytest.skip("pdflatex is not installed")
    text += paper_text(compare(runs, registry.metrics), registry.metrics, "latex")
    head = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}"
    (tmp_path / "paper.tex").write_text(f"{head}\n{text}\\end{{document}}\n", encoding="utf-8")
    done = subprocess.run(
        [latex, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize(("format_name", "start"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_figures(format_name: str, start: bytes, runs: list[Run], registry: Registry, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed: pip install '.[plots]'")
    path = tmp_path / f"figure.{format_name}"
    forest_figure(compare(runs, registry.metrics)).save(path)
    content = path.read_bytes()
    assert content.startswith(start)
    if format_name == "svg":
        assert {"xnli", "+19.4", "Swahili (sw)", "x_1 minus y, points"} <= {
            text.strip("\xa0").partition(" (+")[0]
            for text in re.findall(r">([^<>]+)</text>", content.decode())
        }


@pytest.mark.thorough
def test_the_suffix_is_the_format(runs: list[Run], cli: Cli, tmp_path: Path) -> None:
    folders = [str(run.path) for run in runs]
    for name, start in (
        ("c.tex", "% Needs"),
        ("c.md", "\n- xnli"),
        ("c.csv", "task,view"),
        ("c.txt", "xnli: "),
    ):
        status, out, _ = cli("compare", *folders, "--output", str(tmp_path / name))
        assert (status, out) == (0, f"wrote {tmp_path / name}\n")
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    assert cli("compare", *folders, "--format", "latex")[1] == (tmp_path / "c.tex").read_text(
        encoding="utf-8"
    )
    for given, named in (
        (["--format", "pdf"], "--output FILE.pdf"),
        (["--format", "latx"], "latex"),
        (["--output", str(tmp_path / "c.docx")], "docx"),
    ):
        status, _, error = cli("compare", *folders, *given)
        assert status == 2
        assert named in error


@pytest.mark.thorough
def test_a_report_as_figures(cli: Cli, trained_sample_run: Run, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed: pip install '.[plots]'")
    folder = tmp_path / "figures"
    status, out, _ = cli("report", trained_sample_run.path, "--format", "pdf", "--output", str(folder))
    names = ["heatmap-char-ngram.pdf", "gap-char-ngram.pdf", "families.pdf"]
    assert (status, out.splitlines()) == (0, [f"wrote {folder / name}" for name in names])
    assert all((folder / name).read_bytes().startswith(b"%PDF") for name in names)
    status, _, error = cli("report", trained_sample_run.path, "--format", "pdf")
    assert status == 2
    assert "--output" in error
