"""The columns of reports: what stands over a mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.metrics.naming import metric_name
from harness.reporting.overview.memo import once_per_run

if TYPE_CHECKING:
    from harness.storage.results import CellResult
    from harness.storage.run_folder import Run

PROTOCOL_SHORT = {
    "zero_shot_transfer": "",
    "in_language": "in-lang.",
    "translate_train": "tr-train",
    "translate_train_all": "tr-train+",
    "frozen": "frozen",
    "prompted": "prompted",
}
PROTOCOL_WORDS = {
    "zero_shot_transfer": "fine-tuned",
    "in_language": "fine-tuned in each language",
    "translate_train": "fine-tuned on translations",
    "translate_train_all": "fine-tuned on translations into all languages",
    "frozen": "not fine-tuned",
    "prompted": "prompted, not fine-tuned",
}
"""Training of a model before its test."""

OWN_HEAD = "fine-tuned by you"
"""A model that came with a head for the task."""


def short_protocol(protocol: str, method: str) -> str:
    """Return a protocol as heads of columns name it; empty for the usual one."""
    if (protocol, method) == ("frozen", "head"):
        return OWN_HEAD
    return PROTOCOL_SHORT.get(protocol, protocol)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One headline metric of a task under one protocol, method and view."""

    task: str
    protocol: str
    method: str
    view: str
    metric: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Task, method and view."""
        return self.task, self.method, self.view

    @property
    def title(self) -> str:
        """The lines of its head: task, protocol where it is not the usual one, metric."""
        lines = [self.task, short_protocol(self.protocol, self.method), self.view]
        return "\n".join([line for line in lines if line] + [metric_name(self.metric)])

    @property
    def plain_title(self) -> str:
        """Its head on one line."""
        return self.title.replace("\n", " ")


def conditions_of(view: Mapping[str, str]) -> str:
    """Return the conditions of a cell as the summary writes them: ``prompt=lm_eval variant=translated``."""
    return " ".join(f"{name}={value}" for name, value in sorted(view.items()))


def cells_of(run: Run, column: Column, language: str | None = None) -> list[CellResult]:
    """Return the cells of a column, of all languages or of one: several where there are several seeds."""
    return _cells(run).get((column.task, column.protocol, column.method, column.view, language), [])


@once_per_run
def _cells(run: Run) -> dict[tuple[str | None, ...], list[CellResult]]:
    """Return the cells by the task, protocol, method and view of their columns and by language, None for all."""
    groups: dict[tuple[str | None, ...], list[CellResult]] = {}
    for cell in run.cells:
        if cell.has("method"):
            for language in (None, cell.language):
                key = (cell.task, cell.protocol, cell.method, conditions_of(cell.view), language)
                groups.setdefault(key, []).append(cell)
    return groups
