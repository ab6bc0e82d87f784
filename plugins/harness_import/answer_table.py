"""Reads a plain table of answers: CSV, TSV, JSON lines or Parquet, a row per model, task, language and item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness import DataError, near_names
from harness.data import CSV, TSV, Row, read_jsonl, read_parquet
from harness_import.logged import LoggedCell, LoggedItem, joined, language_code, plain_scores, without_gold

NAME: Final = "table"
COLUMNS: Final = ("model", "task", "language", "id", "answer", "gold", "score")
READERS: Final = {
    ".csv": (CSV.read, {}),
    ".tsv": (TSV.read, {"header": "true", "quoting": "rfc4180"}),
    ".jsonl": (read_jsonl, {}),
    ".parquet": (read_parquet, {}),
}
"""By suffix: what reads a table, and with which options."""
_TRUTH: Final = {"true": 1.0, "false": 0.0}


def read_table(path: Path) -> Iterator[LoggedCell]:
    """Yield the cells of a table; further columns are what was asked.

    ``cluster`` marks what is resampled together, and ``protocol`` how the model was prepared.

    Raises `DataError` where a column is missing, and for a score that is no number.
    """
    yield from joined((_cell(row, path), _item(row)) for row in read_rows(path))


def _cell(row: Row, path: Path) -> LoggedCell:
    missing = [name for name in COLUMNS if name not in row.fields]
    if missing:
        near = near_names(missing[0], row.fields)
        raise DataError(
            f"{row.where}: a table of answers has the columns {', '.join(COLUMNS)}; {missing[0]!r} is missing.",
            hint=f"Did you mean the column {near[0]!r}? Rename it." if near else None,
        )
    return LoggedCell(
        harness=NAME,
        version=path.suffix.removeprefix("."),
        model=_text(row, "model"),
        task=_text(row, "task"),
        language=language_code(_text(row, "language"), row.where),
        files=(path,),
        protocol=str(row.fields.get("protocol") or "prompted"),
    )


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a table; raises `DataError` where one is broken."""
    read, options = READERS[path.suffix]
    yield from read([path], options)


def _text(row: Row, name: str) -> str:
    value = row.fields[name]
    if value is None or not str(value).strip():
        raise DataError(f"{row.where}: the column {name!r} is empty.")
    return str(value).strip()


def _optional(row: Row, name: str) -> str | None:
    value = row.fields[name]
    return None if value is None or value == "" else str(value)


def _item(row: Row) -> LoggedItem:
    fields: Mapping[str, Any] = {
        name: value for name, value in row.fields.items() if name not in {*COLUMNS, "cluster", "protocol"}
    }
    cluster = row.fields.get("cluster")
    text = _text(row, "score")
    try:
        scores = plain_scores({"score": _TRUTH[text.lower()] if text.lower() in _TRUTH else float(text)})
    except ValueError:
        scores = {}
    if not scores:
        raise DataError(f"{row.where}: expected a finite number as the score, found {text!r}.")
    return LoggedItem(
        id=_text(row, "id"),
        answer=_optional(row, "answer"),
        gold=_optional(row, "gold"),
        scores=scores,
        fields=without_gold(fields),
        cluster=None if cluster is None or cluster == "" else str(cluster),
    )
