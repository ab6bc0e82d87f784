"""Plain tables that fold long fields."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cli.output import printable


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, err: bool = False) -> None:
    """Print a plain table that folds long fields, to stderr where `err`.

    Control characters are shown, since names come from third parties.
    """
    from rich.table import Column, Table
    from rich.text import Text

    from harness.cli.display import stderr, stdout

    table = Table(
        *(Column(Text(printable(head))) for head in heads), box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for row in rows:
        table.add_row(*(Text(printable(field)) for field in row))
    (stderr if err else stdout)().print(table)
