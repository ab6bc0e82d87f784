"""The columns of reports: what stands over a mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.storage.results import CellResult
from harness.storage.run_folder import Run

__all__ = ["METRIC_SHORT", "PROTOCOL_SHORT", "Column", "cells_of", "conditions_of", "short_protocol"]

PROTOCOL_SHORT = {
    "zero_shot_transfer": "",
    "in_language": "in-lang.",
    "translate_train": "tr-train",
    "translate_train_all": "tr-train+",
    "frozen": "frozen",
    "prompted": "prompted",
}
METRIC_SHORT = {
    "accuracy": "acc",
    "pass_rate": "passed",
    "f1": "F1",
    "exact_match": "EM",
    "mlqa_f1": "F1",
    "mlqa_exact_match": "EM",
    "weighted_f1": "wF1",
    "macro_f1": "mF1",
    "chunk_f1": "F1",
    "span_f1": "span F1",
    "token_accuracy": "acc",
    "top1_accuracy": "acc",
    "map_at_20": "mAP",
    "mrr_at_20": "MRR",
    "one_target_map_at_20": "mAP, one target",
}


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
        return "\n".join([line for line in lines if line] + [METRIC_SHORT.get(self.metric, self.metric)])

    @property
    def plain_title(self) -> str:
        """Its head on one line."""
        return self.title.replace("\n", " ")


def conditions_of(view: Mapping[str, str]) -> str:
    """Return the conditions of a cell as the summary writes them: ``prompt=lm_eval variant=translated``."""
    return " ".join(f"{name}={value}" for name, value in sorted(view.items()))


def cells_of(run: Run, column: Column, language: str | None = None) -> list[CellResult]:
    """Return the cells of a column, of all languages or of one: several where there are several seeds."""
    wanted = (column.task, column.protocol, column.method, column.view)
    return [
        cell
        for cell in run.cells
        if cell.has("method")
        and (language is None or cell.language == language)
        and (cell.task, cell.protocol, cell.method, conditions_of(cell.view)) == wanted
    ]
