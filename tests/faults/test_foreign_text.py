"""Records, exports, terminals and reports: what a run has written is shown as it is, and harms nothing."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.analysis.items import read_items
from harness.api import evaluate
from harness.cli.display import PrintableConsole
from harness.cli.output import printable
from harness.reporting.weakness.diagnosis import MOST_ITEMS
from harness.storage.records import (
    DERIVED_COLUMNS,
    ItemRecord,
    RecordWriter,
    answer_text,
    is_correct,
    read_records,
)
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

from ..conftest import Cli
from ..docs.page import DOCS, ROOT, blocks

TASKS = ("xnli:sw", "xcopa:sw", "udpos:de", "xquad:de", "tatoeba:de", "lareqa:de")


@pytest.fixture(scope="session")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of six kinds of tasks on the sample data."""
    folder = tmp_path_factory.mktemp("sampled") / "run"
    return evaluate(TASKS, "baseline:random", data="sample", recipe="quick", output=folder)


# The answer, and whether it is right


@pytest.mark.parametrize(
    ("prediction", "reference", "scores", "answer", "correct"),
    [
        ({"label": "b", "scores": [0.1, 0.9]}, "b", {}, "b", True),
        ({"label": "a", "scores": [0.9, 0.1]}, "b", {}, "a", False),
        ({"label": None, "raw": "Well"}, "b", {}, None, False),
        ({"label": "a"}, None, {}, "a", None),
        ({"text": "Rio", "start": 1, "end": 4}, ["Rio", "the Rio"], {"exact_match": 1.0}, "Rio", True),
        ({"text": "Rio"}, ["Oslo"], {"mlqa_f1": 0.0, "mlqa_exact_match": 0.0}, "Rio", False),
        ({"text": "Rio"}, ["Rio"], {"example_error": 0.0}, "Rio", True),
        ({"text": "Rio"}, ["Rio"], {"chrf": [1.0, 2.0]}, "Rio", None),
        ({"text": ""}, ["Rio"], {"exact_match": 0.0}, "", False),
        (["DET", "NOUN"], ["DET", "NOUN"], {}, "DET NOUN", True),
        (["DET", "NOUN"], ["DET", "VERB"], {}, "DET NOUN", False),
        ({"candidate": "7", "similarity": 0.5}, "7", {}, "7", True),
        ({"candidates": ["a", "b"], "further": []}, {"targets": ["b"]}, {"map_at_20": 0.5}, "a", None),
        ({"spans": [[0, 3, "LOC"]]}, [[0, 3, "LOC"]], {}, "Rio (LOC)", True),
        ({"spans": []}, [[0, 3, "LOC"]], {}, "", False),
        ({"metrics": {"acc,none": 1.0}}, "x", {}, '{"metrics": {"acc,none": 1.0}}', None),
    ],
)
def test_an_answer_is_shown_as_a_person_reads_it(
    prediction: Any, reference: Any, scores: dict[str, Any], answer: str | None, correct: bool | None
) -> None:
    assert answer_text(prediction, '{"text": "Rio is warm."}') == answer
    assert is_correct(prediction, reference, scores) is correct


def test_the_columns_of_records_agree_with_the_scores(sampled: Run) -> None:
    seen: dict[str, int] = {}
    for cell in sampled.cells:
        records = list(sampled.records(cell))
        table = pq.read_table(Run.at(sampled.path).records_of(cell))
        assert table["answer"].to_pylist() == [record.answer for record in records]
        assert table["correct"].to_pylist() == [record.correct for record in records]
        for metric in ("accuracy", "exact_match", "top1_accuracy"):
            if metric in cell.metrics:
                share = sum(record.correct is True for record in records) / len(records)
                assert share == pytest.approx(cell.metrics[metric].value)
                seen[cell.task] = len(records)
    assert {"xnli", "xcopa", "xquad", "tatoeba"} <= seen.keys()


def test_records_of_older_versions_open(sampled: Run, tmp_path: Path) -> None:
    [cell] = [cell for cell in sampled.cells if cell.task == "xnli"]
    path = Run.at(sampled.path).records_of(cell)
    old = tmp_path / "old.parquet"
    pq.write_table(pq.read_table(path).drop_columns(sorted(DERIVED_COLUMNS)), old)
    assert list(read_records(old)) == list(read_records(path))
    assert isinstance(next(read_records(old)), ItemRecord)


def test_the_recipe_of_the_page_lists_the_wrong_items_alone(sampled: Run, tmp_path: Path) -> None:
    [recipe] = [
        own for own in blocks(DOCS / "work-in-a-notebook.md") if own.attributes.get("file") == "wrong.py"
    ]
    (tmp_path / "wrong.py").write_text("\n".join(recipe.lines) + "\n", encoding="utf-8")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "first").symlink_to(sampled.path)
    environment = {**os.environ, "PYTHONPATH": str(DOCS.parent)}
    printed = subprocess.run(
        [sys.executable, "wrong.py"],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    wrong = [
        (cell.language, record.id)
        for cell in sampled.cells
        for record in sampled.records(cell)
        if record.correct is False
    ]
    assert [tuple(line.split(" ", 2)[:2]) for line in printed.splitlines()] == wrong
    assert 0 < len(wrong) < sum(cell.n for cell in sampled.cells)


# What reaches a terminal

STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b1A\rhidden"
"""Sets the title of the window, clears the screen, moves up a line, and overwrites the line."""


@pytest.fixture
def foreign(sampled: Run, tmp_path: Path) -> Path:
    """A copy of the run whose model, notes, item ids and a failure send sequences to the terminal."""
    folder = tmp_path / "foreign"
    shutil.copytree(sampled.path, folder)
    for name in ("manifest.json", "results.json"):
        document = json.loads((folder / name).read_text(encoding="utf-8"))
        if name == "manifest.json":
            document["model"] += HOSTILE
        else:
            document["model"]["ref"] += HOSTILE
            document["notes"] = [f"note {HOSTILE}"]
            failed = next(cell for cell in document["cells"] if cell["task"] == "tatoeba")
            failed |= {"status": "failed", "reason": f"reason {HOSTILE}", "metrics": {}}
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
    for path in (folder / "records" / "xnli").rglob("*.parquet"):
        records = [replace(record, id=f"{record.id}{HOSTILE}") for record in read_records(path)]
        with RecordWriter(path) as writer:
            writer.add(records)
            writer.close()
    return folder


@pytest.mark.parametrize(
    "given",
    [
        "report RUN",
        "report RUN --format markdown",
        "report RUN --format csv",
        "report RUN --format console",
        "diagnose RUN --tasks xnli",
        "diagnose RUN --tasks xnli --format json",
        "compare RUN RUN",
        "score RUN",
        "report RUN/none",
    ],
)
def test_no_control_character_of_a_run_reaches_the_terminal(cli: Cli, foreign: Path, given: str) -> None:
    _, out, err = cli(*given.replace("RUN", str(foreign)).split())
    assert out + err
    assert STEERING.search(out + err) is None


def test_control_characters_are_shown(cli: Cli, foreign: Path) -> None:
    _, out, err = cli("report", foreign)
    assert "owned" in out + err
    assert "⟦U+001B⟧" in out + err
    assert printable("a\tb\r\nc\n") == "a\tb\r\nc\n"
    assert STEERING.search(printable(HOSTILE)) is None


def test_an_error_shows_what_a_server_or_file_wrote(cli: Cli, tmp_path: Path) -> None:
    data = tmp_path / "data" / "xnli"
    data.mkdir(parents=True)
    (data / "test-sw.tsv").write_bytes(b"a\tb\tentail\x1b[2Jment\n")
    (data / "train-en.tsv").write_text("a\tb\tentailment\n", encoding="utf-8")
    given = ("eval", "--tasks", "xnli:sw", "--data", data.parent, "--output", tmp_path / f"run{HOSTILE[:4]}")
    status, out, err = cli(*given, "--model", "baseline:majority", "--debug")
    assert status != 0
    assert STEERING.search(out + err) is None


def test_a_console_keeps_its_own_colours() -> None:
    file = io.StringIO()
    console = PrintableConsole(file=file, force_terminal=True, color_system="standard", highlight=False)
    console.print("\x1b[2Jx", style="bold", markup=False)
    assert file.getvalue() == "\x1b[1m⟦U+001B⟧[2Jx\x1b[0m\n"


@pytest.mark.thorough
def test_commands_print_through_one_function() -> None:
    """Check that no command prints past `echo` and the consoles of `harness.cli.display`."""
    allowed = {"harness/cli/output.py", "harness/cli/main.py"}
    found = []
    for folder in ("harness/cli", "plugins"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in allowed and "templates" not in path.parts:
                tree = ast.parse(path.read_text(encoding="utf-8"))
                found += [f"{name}: {ast.unparse(node)}" for node in ast.walk(tree) if _prints(node)]
    assert found == []


def _prints(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    if called == "Console":
        return not any(word.arg in {"file", "color_system"} for word in node.keywords)
    return called in {"print", "typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write"}


# The memory of an HTML report

PEAK = """
import resource, sys
from harness.cli.main import run_command
assert run_command(sys.argv[1:]) == 0
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def _enlarged(run: Run, folder: Path, items: int) -> Path:
    """Write a copy of a run that has its XNLI cell alone, with so many items."""
    shutil.copytree(run.path, folder)
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    results["cells"] = [cell for cell in results["cells"] if cell["task"] == "xnli"]
    results["tasks"] = [row for row in results["tasks"] if row["task"] == "xnli"]
    [cell] = results["cells"]
    cell["n"] = cell["size"] = items
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    path = Run.at(folder).records_of(CellResult.model_validate(cell))
    records = list(read_records(path))
    with RecordWriter(path) as writer:
        for start in range(0, items, 1_000):
            numbers = range(start, min(start + 1_000, items))
            writer.add([replace(records[n % len(records)], id=str(n), cluster=None) for n in numbers])
        writer.close()
    return folder


def _peak(folder: Path) -> int:
    given = ("report", folder, "--format", "html", "--output", folder / "page.html")
    finished = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, given)], check=True, capture_output=True, text=True
    )
    return int(finished.stdout.split()[-1])


@pytest.mark.thorough
def test_the_memory_of_an_html_report_does_not_grow_with_the_run(sampled: Run, tmp_path: Path) -> None:
    small, large = (_enlarged(sampled, tmp_path / str(items), items) for items in (MOST_ITEMS, 100_000))
    assert _peak(large) - _peak(small) < 60, "MiB, for 80,000 items more"
    page = (large / "page.html").read_text(encoding="utf-8")
    assert f"{MOST_ITEMS:,} of 100,000 items" in page
    assert "of 20,000 items" not in (small / "page.html").read_text(encoding="utf-8")


def test_languages_and_runs_draw_the_same_items(sampled: Run, tmp_path: Path) -> None:
    one, other = (Run(_enlarged(sampled, tmp_path / str(items), items)) for items in (500, 600))
    [cell] = one.cells
    spec = one.manifest.tasks["xnli"]
    drawn = read_items(one, cell, spec, most=100)
    assert len(drawn) == len(set(drawn.ids)) == 100
    again = set(read_items(other, cell, spec, most=120).ids)
    assert len(again & set(drawn.ids)) > 80, "by id, not by place"
    assert len(read_items(one, cell, spec)) == 500


# CSV exports


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " ="])
def test_a_csv_export_starts_no_cell_with_a_formula(cli: Cli, foreign: Path, start: str) -> None:
    document = json.loads((foreign / "manifest.json").read_text(encoding="utf-8"))
    document["name"] = f"{start}HYPERLINK(1)"
    (foreign / "manifest.json").write_text(json.dumps(document), encoding="utf-8")
    written = foreign / "rows.csv"
    assert cli("report", foreign, "--format", "csv", "--output", written)[0] == 0
    with written.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["model"] for row in rows} == {f"'{start}HYPERLINK(1)".replace("\r", "\n")}
    assert len({len(row) for row in rows}) == 1, "no text begins a row"
    numbers = [float(row["value"]) for row in rows if row["value"]]
    assert numbers, "numbers stay numbers"
