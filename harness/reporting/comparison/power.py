"""The smallest detectable differences as a table, and as rows of plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.analysis.plan_estimates import Detectable
from harness.reporting.blocks.model import BLANK, Block, Note, TableRow, make_table
from harness.reporting.blocks.number import percent
from harness.reporting.legends import legend


def power_blocks(found: Sequence[Detectable]) -> list[Block]:
    """Return the table with its legend."""
    rows, detect = [], any(detectable.needed_items is not None for detectable in found)
    for detectable in found:
        view = ", ".join(f"{name}={value}" for name, value in detectable.view.items())
        fields = (
            detectable.language or "mean",
            f"{detectable.items:,}",
            f"{detectable.clusters:,}",
            percent(detectable.sd) + ("*" if detectable.sd is not None and detectable.assumed else ""),
            percent(detectable.difference),
            *([_needed(detectable)] if detect else []),
        )
        label = f"{detectable.task} ({view})" if view else detectable.task
        rows.append(TableRow(label=label, fields=fields, style="bold" if detectable.language is None else ""))
    needed = ["needed"] if detect else []
    heads = ("task", "language", "items", "clusters", "SD", "difference", *needed)
    table = make_table("Smallest detectable differences", heads, rows, words={0}, untitled=True, folding=True)
    return [table, Note(legend("power") + (" " + legend("needed items") if detect else ""), "note")]


def _needed(own: Detectable) -> str:
    if own.needed_items is None:
        return BLANK
    languages = "" if own.needed_languages is None else f", or {own.needed_languages:,} languages"
    return f"{own.needed_items:,} items{languages}"


def power_rows(found: Sequence[Detectable]) -> list[dict[str, Any]]:
    """Return one row for every language, and for the mean of a task (language None); fractions in [0, 1]."""
    return [asdict(detectable) for detectable in found]
