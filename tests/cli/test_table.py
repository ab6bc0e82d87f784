"""Plain tables show what would steer a terminal."""

from __future__ import annotations

import pytest

from harness.cli.display import PLAIN_WIDTH
from harness.cli.table import print_table


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
