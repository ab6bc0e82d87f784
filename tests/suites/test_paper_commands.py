"""The commands of the page on XTREME-R make the tables and figures of its paper, on the sample."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from harness.cli.main import run_command

PAGE = (Path(__file__).parents[2] / "docs" / "xtreme-r.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## The paper's tables and figures")[2].partition("\n## ")[0]
RUNS = re.findall(r"^harness (eval .*)$", SECTION, re.MULTILINE)
ROWS = re.findall(r"^\| ([^|]+) \| [^|]+ \| `harness ([^`]+)` \|$", SECTION, re.MULTILINE)
"""What is in the paper, and its command."""
PAPER = {
    *(f"Table {number}" for number in (2, *range(4, 30))),
    *(f"Figure {number}" for number in range(1, 8)),
}


def _named(cell: str) -> Iterator[str]:
    """Yield every table or figure of ``Tables 15 to 24`` or ``Tables 6, 27``."""
    kind, numbers = cell.split(" ", 1)
    for part in numbers.split(", "):
        first, _, last = part.partition(" to ")
        for number in range(int(first), int(last or first) + 1):
            yield f"{kind.removesuffix('s')} {number}"


def test_every_table_and_figure_has_a_command() -> None:
    assert {name for cell, _ in ROWS for name in _named(cell)} == PAPER


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("paper")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        for command in RUNS:
            assert run_command(shlex.split(command)) == 0
        yield folder


@pytest.mark.thorough
@pytest.mark.parametrize("command", [command for _, command in ROWS])
def test_a_command_writes_its_file(folder: Path, command: str) -> None:
    arguments = shlex.split(command)
    if {"pdf", "png"} & {part.rpartition(".")[2] for part in arguments}:
        pytest.importorskip("vl_convert", reason="vl-convert-python is not installed: pip install '.[plots]'")
    assert run_command(arguments) == 0
    names = [after for option, after in pairwise(arguments) if option in {"--output", "--csv"}]
    for name in names:
        path = folder / name
        assert any(path.iterdir()) if path.is_dir() else path.stat().st_size > 200
