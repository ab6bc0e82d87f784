"""Every command of the page's table of the paper's tables and figures, on the first sentences of the Tamil treebank."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from harness.cli.main import run_command
from harness.data.readers.conllu import read_sentences
from harness_probing.settings import PRESETS
from harness_vyakarana.treebank import write_sentences

pytestmark = pytest.mark.thorough

DOCS = Path(__file__).parents[2] / "docs"
LAYERED = Path(__file__).parents[1] / "probing" / "layered_adapter.py"
SENTENCES = 15


def test_the_commands_of_the_page_make_the_tables_and_figures(
    data_root: Path,
    tmp_path: Path,
    install_plugin: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install_plugin("layered_adapter", LAYERED.read_text(encoding="utf-8"))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    quick = {name: replace(preset, max_epochs=1, fractions=()) for name, preset in PRESETS.items()}
    monkeypatch.setattr("harness_probing.settings.PRESETS", quick)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "DATA/ud/UD_Tamil-TTB"
    folder.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        name = f"ta_ttb-ud-{split}.conllu"
        write_sentences(
            folder / name, islice(read_sentences(data_root / "ud/UD_Tamil-TTB" / name), SENTENCES)
        )
    page = (DOCS / "syntax-tasks.md").read_text(encoding="utf-8")
    table = page.partition("## The tables and figures of the paper")[2].partition("\n## ")[0]
    commands = re.findall(r"\| `(harness [^`]+)` \|", table)
    assert len(commands) == 10
    printed = {}
    for command in commands:
        words = command.replace("hf:MODEL", "layered:a").split()[1:]
        assert run_command(words) == 0, f"{command}: {capsys.readouterr().err}"
        if words[-1] == "runs/a":
            second = [word.replace("layered:a", "layered:b").replace("runs/a", "runs/b") for word in words]
            assert run_command(second) == 0
        printed[command] = capsys.readouterr().out
    latex = (tmp_path / "tables.tex").read_text(encoding="utf-8").partition(r"\end{table}")[0]
    rows = re.findall(r"^(?:\\quad |\\textit\{)(\w+)", latex, flags=re.MULTILINE)
    assert rows == [part for treebank in ("original", "CG", "csCG") for part in (treebank, *TASKS)]
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {
        "layers-ta-probe_paper-vyakarana_pos-a.svg",
        "models-ta-probe_paper-vyakarana_stdp-csCG.svg",
    } <= figures
    assert "majority" in (tmp_path / "layers.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert "org4 latin" in (tmp_path / "examples.tex").read_text(encoding="utf-8")
    assert "Average" in printed["harness report runs/a --probing --against runs/b"]


TASKS = ("POS", "STDP", "GCM", "GCM", "Average")
