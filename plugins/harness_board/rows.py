"""The scores of a board as rows of plain values: what ``--csv`` and ``--json`` write."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from harness_board.document import Board

__all__ = ["COLUMNS", "board_rows", "csv_text"]

COLUMNS = (
    "system",
    "protocol",
    "view",
    "method",
    "task",
    "metric",
    "language",
    "value",
    "se",
    "complete",
    "note",
)


def board_rows(board: Board) -> list[dict[str, Any]]:
    """Return one row for every task score (no language) and every language's score, as fractions in [0, 1]."""
    rows = []
    for system in board.systems:
        about = {
            "system": system.label,
            "protocol": system.protocol,
            "view": system.view,
            "method": system.method,
        }
        for score in system.scores:
            shared = {**about, "task": score.task, "metric": score.metric}
            if score.mean is not None:
                whole = {"language": "", "value": score.mean / 100, "se": _fraction(score.se)}
                rows.append({**shared, **whole, "complete": score.is_whole, "note": score.note})
            for code, value in score.by_language.items():
                part = {
                    "language": code,
                    "value": value / 100,
                    "se": _fraction(score.se_by_language.get(code)),
                }
                rows.append({**shared, **part, "complete": True, "note": score.note})
    return rows


def _fraction(value: float | None) -> float | None:
    return None if value is None else value / 100


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as CSV with a header; a field that a spreadsheet would run as a formula gets a quote."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _inert(value) for name, value in row.items()})
    return out.getvalue()


def _inert(value: Any) -> Any:
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "@", "-", "\t", "\r"))
        else value
    )
