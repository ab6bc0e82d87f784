"""Brings two systems to the same items, in the same order; what differs is an error or, on request, skipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.analysis.systems import System
from harness.data.features import Items
from harness.errors import UsageError

__all__ = ["COLUMNS", "common_items", "differences_of"]

COLUMNS = ("ids", "digests", "fields", "predictions", "references", "clusters", "tags", "scores")
"""The columns of `Items`."""


def differences_of(first: System, second: System, task: str) -> list[str]:
    """Return in what two systems of a task differ so that their scores may not mean the same, as clauses."""
    clauses = []
    versions = [sorted({str(cell.version) for cell in own.cells.values()}) for own in (first, second)]
    if versions[0] != versions[1]:
        clauses.append(
            f"they are of version {' and '.join(versions[0])} and {' and '.join(versions[1])} of {task!r}"
        )
    data = [own.run.results.run.data for own in (first, second)]
    if "sample" in data and data[0] != data[1]:
        clauses.append(f"they are on the data {data[0]!r} and {data[1]!r}")
    for name in ("protocol", "method"):
        names = [sorted({str(getattr(cell, name)) for cell in own.cells.values()}) for own in (first, second)]
        if names[0] != names[1]:
            clauses.append(f"their {name}s are {' and '.join(names[0])} and {' and '.join(names[1])}")
    only_in = [sorted(set(own.cells) - set(other.cells)) for own, other in ((first, second), (second, first))]
    for own, codes in zip((first, second), only_in, strict=True):
        if codes:
            clauses.append(f"only {own.name} has {' '.join(codes)}")
    return clauses


def common_items(first: Items, second: Items, *, strict: bool) -> tuple[Items, Items, list[str]]:
    """Return the items of two systems that are the same, in the order of the first, and notes on what was skipped.

    Items are the same when they have the same id, what was asked and the gold answer.

    Args:
        first: Those of the one system.
        second: Those of the other.
        strict: Whether items that are not the same are an error; else they are skipped.

    Raises:
        UsageError: Where items differ and `strict` is true, and where no item is left.
    """
    place = {identifier: row for row, identifier in enumerate(second.ids)}
    rows = [(row, place[identifier]) for row, identifier in enumerate(first.ids) if identifier in place]
    asked = [pair for pair in rows if first.digests[pair[0]] == second.digests[pair[1]]]
    same = [pair for pair in asked if first.references[pair[0]] == second.references[pair[1]]]
    counts = {
        "only the first run has": len(first) - len(rows),
        "only the second run has": len(second) - len(rows),
        "were asked something else": len(rows) - len(asked),
        "have another gold answer": len(asked) - len(same),
    }
    differences = [f"{count} {reason}" for reason, count in counts.items() if count]
    where = f"{first.task!r} in {first.language.code!r}"
    if differences and strict:
        raise UsageError(
            f"The items of {where} are not the same: of {max(len(first), len(second))}, {', '.join(differences)}.",
            hint="Without --strict, the common ones are diagnosed.",
        )
    if not same:
        raise UsageError(
            f"No item of {where} is common to the two runs: {', '.join(differences) or 'there are none'}."
        )
    notes = (
        [f"{first.task} {first.language.code}: skipped items: {', '.join(differences)}."]
        if differences
        else []
    )
    return _taken(first, [row for row, _ in same]), _taken(second, [row for _, row in same]), notes


def _taken(items: Items, rows: Sequence[int]) -> Items:
    if len(rows) == len(items) and list(rows) == list(range(len(items))):
        return items
    columns: dict[str, Any] = {name: [getattr(items, name)[row] for row in rows] for name in COLUMNS}
    return replace(items, kept={}, **columns)
