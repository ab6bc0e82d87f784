"""The map of a report's first screen: tasks against languages as tiles, whose colour says how well it works."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reporting.glance import TaskGlance
from harness.reporting.material import Material
from harness.reporting.model import Field, TileMap
from harness.reporting.score import Score
from harness.reporting.summary_blocks import score_shades

__all__ = ["task_names", "tile_map"]


FEWEST = 3
"""Tiles that a map must have to make anything clearer."""


def task_names(tasks: Sequence[TaskGlance]) -> list[str]:
    """Return what tasks are called; with protocol and conditions where these are not the same for all."""
    conditions = [task.column.title.split("\n")[1:-1] for task in tasks]
    differ = any(own != conditions[0] for own in conditions)
    return [
        " ".join([task.column.task, *(own if differ else [])])
        for task, own in zip(tasks, conditions, strict=True)
    ]


def tile_map(material: Material, tasks: Sequence[TaskGlance], names: Sequence[str]) -> TileMap | None:
    """Return the map of the first run; None for fewer than three tiles."""
    summary = material.summary
    shades = score_shades(summary)
    rows = []
    for task, name in zip(tasks, names, strict=True):
        place = summary.columns.index(task.column)
        scores = {language.code: language.score for language in task.languages}
        fields = [
            _tile(scores.get(code), shades.get((code, place), "absent")) for code, _, _ in material.languages
        ]
        if any(field.text for field in fields):
            rows.append((name, fields))
    count = sum(bool(field.text) for _, fields in rows for field in fields)
    if count < FEWEST:
        return None
    return TileMap(
        title="Tasks by languages",
        families=[(part.family, len(part.rows)) for part in summary.sections],
        languages=[(code, name) for code, name, _ in material.languages],
        rows=rows,
    )


def _tile(score: Score | None, shade: str) -> Field:
    if score is None:
        return Field(shade="absent")
    if score.value is None:
        return Field(text="!" if score.mark == "!" else "", shade="absent")
    return Field(text=f"{score.value * 100:.0f}", shade=shade)
