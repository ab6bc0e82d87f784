"""Our tables against rich's, which lays them out in the same way."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli.table import print_table, render_table

WORD = st.text("abcdé", min_size=1, max_size=30)
FIELD = st.lists(WORD, max_size=12).map(" ".join)
WIDTHS = st.sampled_from([20, 40, 60, 100])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    columns = draw(st.integers(1, 5))
    row = st.lists(FIELD, min_size=columns, max_size=columns)
    return draw(st.lists(WORD, min_size=columns, max_size=columns)), draw(st.lists(row, max_size=4))


def _by_rich(heads: list[str], rows: list[list[str]], width: int) -> list[str]:
    file = io.StringIO()
    table = Table(*heads, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*map(Text, row))
    Console(file=file, width=width, color_system=None, highlight=False).print(table)
    return file.getvalue().split("\n")[:-1]


@given(tables(), WIDTHS)
def test_a_table_is_laid_out_as_rich_does_it(table: tuple[list[str], list[list[str]]], width: int) -> None:
    heads, rows = table
    assert render_table(heads, rows, width=width) == _by_rich(heads, rows, width)


def test_wide_characters_and_several_lines() -> None:
    heads, rows = ["a", "b"], [["語語語", "x"], ["one\ntwo", "y z"], ["", "語"]]
    assert render_table(heads, rows, width=60) == _by_rich(heads, rows, 60)
    assert render_table(["name"], [["語語 語語"]], width=5) == ["name ", "語語 ", "語語 "]


def test_what_would_steer_a_terminal_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a"], [["\x1b[31mred\x07 :smile: [bold]x[/bold]\x9b2J"]])
    assert (
        capsys.readouterr().out.splitlines()[1] == "⟦U+001B⟧[31mred⟦U+0007⟧ :smile: [bold]x[/bold]⟦U+009B⟧2J"
    )
