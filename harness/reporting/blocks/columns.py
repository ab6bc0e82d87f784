"""Tables from records and the declarations of their columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from harness.reporting.blocks.model import Field, Table, TableRow

Record = TypeVar("Record")


def table_of(
    title: str,
    records: Iterable[Record],
    columns: Mapping[str, Callable[[Record], str | Field]],
    *,
    words: Collection[str] = (),
    **options: Any,
) -> Table:
    """Return a table with one row per record.

    Args:
        title: Heading.
        records: What the rows are of.
        columns: Head -> the text of a record's field; the first column names the rows.
        words: Heads of the columns that hold words rather than numbers.
        options: Other fields of `Table`.
    """
    corner, *heads = columns
    rows = ([text(record) for text in columns.values()] for record in records)
    return Table(
        title=title,
        corner=corner,
        heads=tuple(heads),
        rows=tuple(TableRow(label=label, fields=tuple(fields)) for label, *fields in rows),
        words=frozenset(at for at, head in enumerate(heads) if head in words),
        **options,
    )
