"""Examples of hooks that no shipped plugin implements. The hook reference shows them, and a test runs them."""

from __future__ import annotations

import json
from pathlib import Path

from harness import hookimpl
from harness.storage import CellResult


@hookimpl
def harness_cell_finished(cell: CellResult) -> None:
    """Append a line about the cell to a log."""
    with Path("cells.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps({"task": cell.task, "language": cell.language, "status": cell.status}) + "\n")


@hookimpl
def harness_run_finished(run: Path) -> None:
    """Append the folder of the run to a list of runs."""
    with Path("runs.txt").open("a", encoding="utf-8") as log:
        log.write(f"{run}\n")
