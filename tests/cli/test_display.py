from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import harness.cli.display

Cli = Callable[..., tuple[int, str, str]]
InstallPlugin = Callable[..., Path]

EVAL = (
    *("eval", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample"),
    *("--limit", "2", "--train-limit", "20"),
)


def test_tables_and_data_keep_their_colons(capsys: pytest.CaptureFixture[str]) -> None:
    harness.cli.display.stdout().print("a :smile: of the data")
    assert capsys.readouterr().out == "a :smile: of the data\n"


def test_runs_without_a_name_get_one_each(cli: Cli) -> None:
    for _ in range(3):
        status, out, _ = cli(*EVAL)
        assert status == 0
        assert "Run folder: runs/" in out
    folders = sorted(path.name for path in Path("runs").iterdir())
    assert len(folders) == 3
    assert all("-majority" in name for name in folders)


def test_tables_by_language_come_when_asked_for(cli: Cli) -> None:
    status, brief, err = cli(*EVAL, "--output", "brief")
    assert status == 0
    assert len(brief.splitlines()) <= 11, "two of them: sample data, and a limit"
    assert len([line for line in err.splitlines() if "mnli" in line or "cell" in line]) <= 4
    status, whole, _ = cli(*EVAL, "--output", "whole", "--details")
    assert status == 0
    assert " de  German" in whole
    assert " de  German" not in brief
    assert whole.splitlines()[-2] == brief.splitlines()[-2]


def test_a_fault_of_a_plugin_ends_in_one_line(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin(
        "fails",
        "import typer\napp = typer.Typer()\n@app.command()\ndef fails() -> None:\n    raise KeyError('x')\n",
        entry_points="[harness.commands]\nfails = fails:app\n",
    )
    status, out, err = cli("fails")
    assert (status, out) == (1, "")
    assert (
        err == "Error: KeyError: 'x'. This is a fault of the harness or of a plugin; --debug shows where.\n"
    )
    assert "Traceback" in cli("--debug", "fails")[2]
