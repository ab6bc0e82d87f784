"""The diagnosis of the given runs as rows: each run alone, each further one against the first, and the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.analysis.diagnosis import DiagnosisOptions, diagnose
from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.registry.registry import Registry
    from harness.storage.run_folder import Run

__all__ = ["Row", "Weakness", "by_attribute", "edges_text", "find_weakness", "interval_of"]

Row = Mapping[str, Any]
EXAMPLES = 3
MOST_ITEMS = 20_000
"""Items of a cell that the page diagnoses, so that its memory does not grow with the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """What the diagnosis says."""

    runs: tuple[tuple[Row, ...], ...]
    """By given run: its rows of the kinds single, calibration and confusion."""
    pairs: tuple[Row, ...]
    """Rows of every further run against the first."""
    data: tuple[Row, ...]
    titles: Mapping[str, str]
    """Attribute -> what it is, in a few words."""
    notes: tuple[str, ...]

    def title(self, attribute: str) -> str:
        """Return what an attribute is; its name where no description exists."""
        return self.titles.get(attribute) or attribute


def find_weakness(runs: Sequence[Run], registry: Registry) -> Weakness:
    """Return the diagnosis of runs; what cannot be diagnosed has a sentence in its notes."""
    notes: list[str] = []

    def rows(*own: Run, data_only: bool = False) -> list[dict[str, Any]]:
        return _rows(own, registry, notes, data_only=data_only)

    table = registry.features
    return Weakness(
        runs=tuple(tuple(rows(run)) for run in runs),
        pairs=tuple(row for run in runs[1:] for row in rows(runs[0], run)),
        data=tuple(rows(runs[0], data_only=True)),
        titles={name: table.get(name).title for name in table.names if name not in table.conflicts},
        notes=tuple(dict.fromkeys(notes)),
    )


def _rows(
    runs: Sequence[Run], registry: Registry, notes: list[str], *, data_only: bool, task: str = ""
) -> list[dict[str, Any]]:
    """Return the rows of all tasks; where one cannot be diagnosed, those of the others."""
    options = DiagnosisOptions(examples=EXAMPLES, tasks=(task,) if task else (), most_items=MOST_ITEMS)
    try:
        found = diagnose(runs, registry, options, data_only=data_only)
    except HarnessError as error:
        tasks = sorted({cell.task for cell in runs[0].cells if cell.status == "ok"})
        if not task and len(tasks) > 1:
            return [
                row for own in tasks for row in _rows(runs, registry, notes, data_only=data_only, task=own)
            ]
        notes.append(f"{task}: {error}" if task else str(error))
        return []
    notes += found.notes
    return found.rows()


def by_attribute(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Return rows of buckets by task with its view, system or systems, and attribute; in their order."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        view = ", ".join(f"{name}={value}" for name, value in row["view"].items())
        task = f"{row['task']} ({view})" if view else row["task"]
        system = row["system"] if "system" in row else " / ".join(row["systems"])
        groups.setdefault((task, system, row["attribute"]), []).append(row)
    return groups


def interval_of(row: Row) -> str:
    """Return the edges of a bucket with both ends, ``(2, 5]``, or its name."""
    if row["low"] is None or row["high"] is None:
        return str(row["bucket"])
    return edges_text(row)


def edges_text(row: Row) -> str:
    """Return the edges of a bucket: ``(2, 5]``, ``[1, 2]``, ``2``, ``> 13``; empty where there are none."""
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "" if low is high else f"<= {high:.3g}" if low is None else f"> {low:.3g}"
    if low == high:
        return f"{low:.3g}"
    return f"{'[' if row.get('low_closed') else '('}{low:.3g}, {high:.3g}]"
