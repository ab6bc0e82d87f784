"""Tables, runs without a name, and what would steer a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.display import PLAIN_WIDTH, print_table
from tests.conftest import Cli, InstallPlugin

EVAL = (
    *("eval", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample"),
    *("--limit", "2", "--train-limit", "20"),
)


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
    assert err.startswith("Error: KeyError: 'x'.") and err.count("\n") == 1
    assert "Traceback" in cli("--debug", "fails")[2]


def test_a_long_field_is_folded_between_words(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "words"], [["a", "word " * 40], ["語 [bold]", "one\ntwo"]])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= PLAIN_WIDTH
    assert "".join(lines).count("word ") >= 40
    assert any(line.startswith("語 [bold]") for line in lines)


def test_what_would_steer_a_terminal_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a"], [["\x1b[31mred\x07 :smile: [bold]x[/bold]\x9b2J"]])
    assert (
        capsys.readouterr().out.splitlines()[1] == "⟦U+001B⟧[31mred⟦U+0007⟧ :smile: [bold]x[/bold]⟦U+009B⟧2J"
    )
