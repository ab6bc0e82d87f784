from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness.cli.display
from harness.cli.display import ConsoleProgress, PrintableConsole

Cli = Callable[..., tuple[int, str, str]]
InstallPlugin = Callable[..., Path]

EVAL = (
    *("eval", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample"),
    *("--limit", "2", "--train-limit", "20"),
)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal that progress is shown on."""
    file = io.StringIO()

    def console(**given: Any) -> PrintableConsole:
        own = {"file": file, "force_terminal": True, "width": 80, "color_system": None}
        return PrintableConsole(**{**given, **own, "legacy_windows": False})

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(harness.cli.display, "PrintableConsole", console)
    return file


def test_a_terminal_gets_bars(screen: io.StringIO) -> None:
    with ConsoleProgress() as progress:
        progress.start("xnli:[de]", 10, "items")
        progress.advance(4)
        progress._bars.refresh()
        progress.announce("shown [between]")
        progress.advance(6)
        progress.finish()
        progress.finish()
    shown = screen.getvalue()
    assert "xnli:[de]" in shown
    assert "4/10" in shown
    assert "items/s" in shown
    assert "shown [between]" in shown
    assert "items in" not in shown, "the bar says it"


def test_names_between_colons_are_no_emoji(screen: io.StringIO) -> None:
    with ConsoleProgress() as progress:
        progress.start("lm_eval:repeat:und", 2, "items")
        progress.advance(1)
        progress._bars.refresh()
        progress.announce("lm_eval:heart:en failed")
        progress.finish()
    assert "lm_eval:repeat:und" in screen.getvalue()
    assert "lm_eval:heart:en failed" in screen.getvalue()


def test_tables_and_data_keep_their_colons(capsys: pytest.CaptureFixture[str]) -> None:
    harness.cli.display.stdout().print("a :smile: of the data")
    assert capsys.readouterr().out == "a :smile: of the data\n"


def test_a_pipe_gets_one_plain_line_for_each_piece_of_work(capsys: pytest.CaptureFixture[str]) -> None:
    with ConsoleProgress() as progress:
        progress.start("xnli:[de]", 1200, "items")
        progress.advance(600)
        progress.advance(600)
        progress.finish()
        progress.finish()
    err = capsys.readouterr().err
    assert err.startswith("xnli:[de]: 1,200 items in ")
    assert err.count("\n") == 1


def test_long_work_prints_to_a_pipe_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.cli.display, "PLAIN_EVERY", 0.0)
    with ConsoleProgress() as progress:
        progress.start("xnli:de", 4, "items")
        progress.advance(1)
        progress.finish()
    assert capsys.readouterr().err.startswith("xnli:de: 1 of 4 items, ")


def test_work_that_did_not_end_is_not_shown_as_done(capsys: pytest.CaptureFixture[str]) -> None:
    with ConsoleProgress() as progress:
        progress.start("xnli:de", 4, "items")
        progress.advance(3)
        progress.finish()
    assert capsys.readouterr().err == ""


def test_runs_without_a_name_get_one_each(cli: Cli) -> None:
    for _ in range(3):
        status, out, _ = cli(*EVAL)
        assert status == 0
        assert "Run folder: runs/" in out
    folders = sorted(path.name for path in Path("runs").iterdir())
    assert len(folders) == 3
    assert all("-majority" in name for name in folders)


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
