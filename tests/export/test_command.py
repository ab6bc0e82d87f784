"""``harness export``: which formats there are, where files go, and the table of systems in LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.registry.registry import Registry
from harness.storage.run_folder import Run
from harness_export.catalog import TARGETS
from harness_export.formats import latex_files
from tests.builders import make_shown_cell, write_run

from .conftest import SUMMARY

Cli = Callable[..., tuple[int, str, str]]


def test_all_targets_are_report_formats(registry: Registry) -> None:
    assert {target.name for target in TARGETS} <= {found.name for found in registry.reports}


def test_csv_is_that_of_reports(sample_run: Run, cli: Cli) -> None:
    status, out, _ = cli("export", str(sample_run.path), "--to", "csv")
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == sum(max(1, len(cell.metrics)) for cell in sample_run.cells)
    assert {"ci_low", "ci_high", "n", "protocol", "split", "data"} <= rows[0].keys()


def test_files_are_written_where_they_were_asked_for(sample_run: Run, cli: Cli, tmp_path: Path) -> None:
    run = str(sample_run.path)
    status, out, _ = cli("export", run, "--to", "mteb", "--output", str(tmp_path / "mteb"))
    assert status == 0
    named = sorted(path.name for path in (tmp_path / "mteb").iterdir())
    assert named == ["tatoeba_frozen.json", "tatoeba_zero_shot_transfer.json"]
    assert all(name in out for name in named)
    cli("export", run, "--to", "model-index", "--allow-sample", "--output", str(tmp_path / "card.yaml"))
    assert (tmp_path / "card.yaml").read_text(encoding="utf-8").startswith("model-index:")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--to", "ee"),
        ("--to", "mteb"),
        ("--to", "eee", "--output", "no/such/folder/x.json", "--allow-sample"),
        (),
    ],
)
def test_wrong_usage_has_status_2(sample_run: Run, cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("export", str(sample_run.path), *arguments)[0] == 2


def test_one_run_a_file(sample_run: Run, trained_sample_run: Run, cli: Cli) -> None:
    runs = (str(sample_run.path), str(trained_sample_run.path))
    assert cli("export", *runs, "--to", "eee", "--allow-sample")[0] == 2
    status, out, _ = cli("export", *runs, "--to", "latex")
    assert status == 0
    assert "SAMPLE DATA" in out


def _run(folder: Path, model: str, scores: dict[tuple[str, str], float]) -> Run:
    cells = [
        make_shown_cell(
            task, code, {"accuracy": {"value": value, "se": 0.01, "ci": [value - 0.1, value + 0.1]}}
        )
        for (task, code), value in scores.items()
    ]
    specs = {task: SUMMARY for task, _ in scores}
    return write_run(folder, cells, specs, model={"adapter": "hf-encoder", "ref": model})


def test_the_best_of_comparable_means_is_bold(tmp_path: Path) -> None:
    first = _run(tmp_path / "a", "me/a_b", {("xnli", "de"): 0.5, ("xnli", "sw"): 0.7, ("pawsx", "de"): 0.4})
    second = _run(tmp_path / "b", "me/b", {("xnli", "de"): 0.6, ("xnli", "sw"): 0.7})
    third = _run(tmp_path / "c", "me/c", {("xnli", "de"): 0.99})
    [text] = latex_files([first, second, third]).values()
    rows = {
        line.split(" & ")[0]: line.split(" & ")[1:] for line in text.splitlines() if line.startswith("me/")
    }
    assert list(rows) == [r"me/a\_b", "me/b", "me/c"]
    assert [("textbf" in own[0], own[0].split()[0]) for own in rows.values()] == [
        (False, "60.0"),
        (True, r"\textbf{65.0}"),
        (False, r"99.0\textasciitilde{}"),
    ]
    assert "over other cells" in text[: text.index("tabular")]
    assert rows["me/b"][1].startswith("--")
    assert "textbf" not in rows[r"me/a\_b"][1], "a single system is no best one"


def test_the_table_needs_booktabs_and_graphicx_alone(sample_run: Run, trained_sample_run: Run) -> None:
    [text] = latex_files([sample_run, trained_sample_run]).values()
    assert set(re.findall(r"(?<!\\)\\([a-zA-Z]+)", text)) <= {
        *(
            "begin",
            "end",
            "centering",
            "caption",
            "label",
            "toprule",
            "midrule",
            "bottomrule",
            "small",
            "pm",
            "textbf",
            "textasciitilde",
            "S",
            *("sbox", "ifdim", "wd", "linewidth", "resizebox", "usebox", "else", "fi", "shortstack"),
        ),
        "usepackage",
    }
    begins, ends = re.findall(r"\\begin\{(\w+)", text), re.findall(r"\\end\{(\w+)", text)
    assert begins == list(reversed(ends))
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len({line.count(" & ") for line in body}) == 1
