from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness.errors import DataError, UsageError
from harness_xtreme_r.submission.command import app

LANGUAGES = (
    "af ar bg de el en es et eu fa fi fr he hi hu id it ja kk ko mr nl pt ru ta te th tl tr ur".split()
)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for side in ("p", "g"):
        for language in LANGUAGES:
            path = tmp_path / side / "udpos" / f"test-{language}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("DET\nNOUN\n\nVERB\n" if side == "g" else "DET\nADJ\n\nVERB\n")
    return tmp_path / "p", tmp_path / "g"


def invoke(*arguments: object, columns: int = 80) -> Result:
    runner = CliRunner(env={"COLUMNS": str(columns), "NO_COLOR": "1"})
    return runner.invoke(app, ["score", *map(str, arguments)])


def test_prints_a_table_of_80_columns_and_writes_json(folders: tuple[Path, Path], tmp_path: Path) -> None:
    (folders[0] / "udpos" / "test-ur.tsv").unlink()
    output = tmp_path / "scores.json"
    result = invoke("--predictions", folders[0], "--gold", folders[1], "--json", output)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [word for word in result.stdout.split() if word in LANGUAGES] == LANGUAGES[:-1]
    assert any("udpos" in line and "f1" in line and "66.7" in line and "29*" in line for line in lines)
    assert any("precision" in line for line in lines)
    assert "missing from the mean" in result.stdout
    assert "warning: udpos: no predictions for ur; the mean is over 29 of 30 languages." in result.stderr
    rows = json.loads(output.read_text())
    assert rows["udpos"]["languages"]["de"] == pytest.approx(
        {"f1": 200 / 3, "precision": 200 / 3, "recall": 200 / 3}
    )
    assert rows["udpos"]["missing"] == ["ur"]


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_no_score_is_cut_off(folders: tuple[Path, Path], columns: int) -> None:
    result = invoke("--predictions", folders[0], "--gold", folders[1], columns=columns)
    assert max(map(len, result.stdout.splitlines())) <= columns
    assert result.stdout.count("66.7") == len(LANGUAGES) + 3
    assert "…" not in result.stdout


def test_errors_reach_the_caller(folders: tuple[Path, Path], tmp_path: Path) -> None:
    absent = invoke("--predictions", tmp_path / "absent", "--gold", folders[1])
    assert isinstance(absent.exception, UsageError)
    unwritable = invoke("--predictions", folders[0], "--gold", folders[1], "--json", tmp_path / "no/x")
    assert isinstance(unwritable.exception, UsageError)
    assert "its folder is not there" in str(unwritable.exception)
    (folders[0] / "udpos" / "test-af.tsv").write_text("DET\n")
    malformed = invoke("--predictions", folders[0], "--gold", folders[1])
    assert isinstance(malformed.exception, DataError)
    assert malformed.exception.exit_code == 1
