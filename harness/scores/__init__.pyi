"""Names of harness.scores that plugins, adapters and programs use, and the modules that define them."""

from .aggregation import (
    CellGroups as CellGroups,
    aggregate_tasks as aggregate_tasks,
    cells_of_row as cells_of_row,
    group_cells as group_cells,
    overall as overall,
)
