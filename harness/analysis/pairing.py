"""Differences between compared systems and runs, and the items that two systems have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.analysis.systems import System
from harness.data.features import Items
from harness.errors import UsageError
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

COLUMNS = ("ids", "digests", "fields", "predictions", "references", "clusters", "tags", "scores")
"""The columns of `Items`."""


def differences_of(first: System, second: System, task: str) -> list[str]:
    """Return in what two systems of a task differ so that their scores may not mean the same, as clauses."""
    sides = (first, second)
    clauses = {}
    for name in ("version", "protocol", "method"):
        values = [sorted({str(getattr(cell, name)) for cell in system.cells.values()}) for system in sides]
        if values[0] != values[1]:
            clauses[name] = f"{' and '.join(values[0])} and {' and '.join(values[1])}"
    data = [system.run.results.run.data for system in sides]
    texts = [f"they are of version {clauses.pop('version')} of {task!r}"] if "version" in clauses else []
    if "sample" in data and data[0] != data[1]:
        texts.append(f"they are on the data {data[0]!r} and {data[1]!r}")
    texts += [f"their {name}s are {values}" for name, values in clauses.items()]
    for system, counterpart in (sides, sides[::-1]):
        codes = sorted(set(system.cells) - set(counterpart.cells))
        texts += [f"only {system.name} has {' '.join(codes)}"] if codes else []
    return texts


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
    row_of = {identifier: row for row, identifier in enumerate(second.ids)}
    rows = [(row, row_of[identifier]) for row, identifier in enumerate(first.ids) if identifier in row_of]
    same_inputs = [pair for pair in rows if first.digests[pair[0]] == second.digests[pair[1]]]
    same = [pair for pair in same_inputs if first.references[pair[0]] == second.references[pair[1]]]
    counts = {
        "only the first run has": len(first) - len(rows),
        "only the second run has": len(second) - len(rows),
        "were asked something else": len(rows) - len(same_inputs),
        "have another gold answer": len(same_inputs) - len(same),
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
    skipped = f"{first.task} {first.language.code}: skipped items: {', '.join(differences)}."
    notes = [skipped] if differences else []
    return (
        _select_rows(first, [row for row, _ in same]),
        _select_rows(second, [row for _, row in same]),
        notes,
    )


def _select_rows(items: Items, rows: Sequence[int]) -> Items:
    if len(rows) == len(items) and list(rows) == list(range(len(items))):
        return items
    columns: dict[str, Any] = {name: [getattr(items, name)[row] for row in rows] for name in COLUMNS}
    return replace(items, kept={}, **columns)


def run_difference_notes(runs: Sequence[Run]) -> list[str]:
    """Return a sentence for versions of the harness, and one for test data, that are not the same in all runs.

    Scores of the same items may differ by either, so a comparison names them also where it skips nothing.
    """
    versions = harness_versions(runs)
    digests: dict[tuple[str, str, str], set[str]] = {}
    for run in runs:
        for cell in run.cells:
            if cell.status == "ok" and "digest" in cell.data:
                key = (cell.task, cell.language, item_view(run, cell))
                digests.setdefault(key, set()).add(str(cell.data["digest"]))
    changed = list(
        dict.fromkeys(
            f"{task}:{code}" for (task, code, _), cell_digests in digests.items() if len(cell_digests) > 1
        )
    )
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    notes = (
        [f"The versions of the harness are not the same: {' and '.join(versions)}."]
        if len(versions) > 1
        else []
    )
    if changed:
        notes.append(f"The digests of the test data are not the same: {', '.join(changed[:3])}{more}.")
    return notes


def harness_versions(runs: Sequence[Run]) -> list[str]:
    """Return the versions of the harness that made runs, as their manifests and their results say."""
    versions = {run.results.run.harness for run in runs}
    versions |= {run.manifest.versions.get("multilingual-harness") for run in runs}
    return sorted(filter(None, versions))


def item_view(run: Run, cell: CellResult) -> str:
    """Return the conditions of a cell that change its items, as JSON: the variant, the translator and the axes."""
    axes = run.manifest.tasks[cell.task].axes if cell.task in run.manifest.tasks else ()
    names = {"variant", "translator", *axes}
    return json.dumps({name: value for name, value in cell.view.items() if name in names}, sort_keys=True)
