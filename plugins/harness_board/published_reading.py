"""Scores that papers print, from the documents that task specs ship."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from harness_board.document import Score, System, TaskColumn
from harness_board.metadata import SystemMetadata, read_metadata

if TYPE_CHECKING:
    from harness.specs.catalog import Catalog

__all__ = ["catalog_tasks", "published_metadata", "published_systems"]


def published_systems(catalog: Catalog, suite: str) -> list[System]:
    """Return the systems that were published on a suite; raises `UnknownNameError` for no suite."""
    catalog.suite(suite)
    return [
        System(
            label=item.label,
            origin="published",
            protocol=item.protocol,
            scores=tuple(
                Score(
                    task=task,
                    metric=metric,
                    mean=value,
                    by_language=dict(item.languages.get(task, {}).get(metric, {})),
                    note=" ".join(
                        part
                        for part in (
                            f"Not comparable: {item.comparable[task]}." if task in item.comparable else "",
                            f"Erratum: {item.errata[task]}." if task in item.errata else "",
                        )
                        if part
                    ),
                )
                for task, metrics in item.scores.items()
                for metric, value in metrics.items()
            ),
            metadata={"paper": item.source, "fine_tuning": item.recipe, "reported": "self_reported"},
        )
        for item in catalog.published_for(suite)
    ]


def published_metadata(suite: str) -> list[SystemMetadata]:
    """Return what this package knows of the systems that were published on a suite."""
    folder = resources.files("harness_board") / "metadata"
    names = sorted(item.name for item in folder.iterdir() if item.name.startswith(f"{suite}_"))
    return [read_metadata(Path(str(folder / name))) for name in names]


def catalog_tasks(catalog: Catalog, names: Iterable[str]) -> list[TaskColumn]:
    """Return those of the named tasks that are installed, with the languages that the task itself has."""
    known = set(catalog.names("task"))
    found = []
    for name in dict.fromkeys(names):
        if name not in known:
            continue
        entry = catalog.task(name)
        found.append(
            TaskColumn(
                task=name,
                metrics=tuple(entry.spec.metrics),
                headline=tuple(entry.spec.headline),
                languages=tuple(code for code in entry.spec.languages if code not in entry.added),
                source=entry.spec.transfer.source if entry.spec.transfer is not None else None,
                chance=None if entry.spec.chance is None else entry.spec.chance * 100,
            )
        )
    return found
