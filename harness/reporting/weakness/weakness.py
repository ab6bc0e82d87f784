"""The diagnosis of the given runs as rows: each run alone, and each further one against the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.analysis.diagnosis import DiagnosisOptions, diagnose
from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.registry.registry import Registry
    from harness.storage.run_folder import Run

Row = Mapping[str, Any]
EXAMPLES = 3
MOST_ITEMS = 20_000
"""Items of a cell that the page diagnoses, so that its memory does not grow with the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """Results of the diagnosis."""

    runs: tuple[tuple[Row, ...], ...]
    """By given run: its rows of the kinds single, calibration and confusion."""
    pairs: tuple[Row, ...]
    """Rows of every further run against the first."""
    titles: Mapping[str, str]
    """Attribute -> what it is, in a few words."""
    notes: tuple[str, ...]
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Attribute -> what has its lowest and its highest values: ``("shortest answers", "longest answers")``."""
    inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Task -> the names of its texts, for tasks with pairs of texts."""

    def title(self, attribute: str) -> str:
        """Return the description of an attribute; its name where no description exists."""
        return self.titles.get(attribute) or attribute

    def phrase(self, row: Row, buckets: Sequence[Row]) -> str:
        """Return the content of a bucket in words: ``longest premises (13, 40]``, ``tag of the span: PROPN``.

        Args:
            row: The bucket.
            buckets: All buckets of its attribute, in their order.
        """
        attribute, index = row["attribute"], next(at for at, bucket in enumerate(buckets) if bucket is row)
        edges = edges_text(row)
        ends = self.ends.get(attribute)
        if ends is not None and index in {0, len(buckets) - 1}:
            words = ends[0] if index == 0 else ends[1]
            return f"{_named_inputs(words, self.inputs.get(row['task'], ()))} {edges}".rstrip()
        if edges:
            return f"{self.title(attribute)} in {edges}"
        if ends is not None:
            return f"{self.title(attribute)}, part {index + 1} of {len(buckets)} from the lowest"
        return f"{self.title(attribute)}: {row['bucket']}"


def _named_inputs(words: str, names: Sequence[str]) -> str:
    """Return the words with a task's own names of its two texts."""
    for ordinal, name in zip(("first", "second"), names, strict=False):
        words = words.replace(f"{ordinal} text", name)
    return words


def find_weakness(runs: Sequence[Run], registry: Registry) -> Weakness:
    """Return the diagnosis of runs; what cannot be diagnosed has a sentence in its notes."""
    notes: list[str] = []

    def rows(*own: Run) -> list[dict[str, Any]]:
        return _rows(own, registry, notes)

    table = registry.features
    features = [table.get(name) for name in table.names if name not in table.conflicts]
    specs = {task: spec for run in reversed(runs) for task, spec in run.manifest.specs.items()}
    return Weakness(
        runs=tuple(tuple(rows(run)) for run in runs),
        pairs=tuple(row for run in runs[1:] for row in rows(runs[0], run)),
        titles={feature.name: feature.title for feature in features},
        notes=tuple(dict.fromkeys(notes)),
        ends={feature.name: feature.ends for feature in features if feature.ends is not None},
        inputs={task: tuple(spec.get("inputs") or ()) for task, spec in specs.items()},
    )


def _rows(runs: Sequence[Run], registry: Registry, notes: list[str], task: str = "") -> list[dict[str, Any]]:
    """Return the rows of all tasks; where one cannot be diagnosed, those of the others."""
    options = DiagnosisOptions(examples=EXAMPLES, tasks=(task,) if task else (), most_items=MOST_ITEMS)
    try:
        diagnosis = diagnose(runs, registry, options)
    except HarnessError as error:
        tasks = sorted({cell.task for cell in runs[0].cells if cell.status == "ok"})
        if not task and len(tasks) > 1:
            return [row for name in tasks for row in _rows(runs, registry, notes, name)]
        notes.append(f"{task}: {error}" if task else str(error))
        return []
    notes += diagnosis.notes
    return diagnosis.rows()


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


def things_of(row: Row) -> str:
    """Return the number of items or spans in a bucket: ``1 item``, ``214 spans``."""
    noun = "span" if row.get("level") == "span" else "item"
    return f"{row['n']:,} {noun}{'' if row['n'] == 1 else 's'}"
