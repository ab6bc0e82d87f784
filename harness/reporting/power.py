"""The smallest detectable differences as a table, and as rows of plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.analysis.power import Detectable

__all__ = ["power_rows", "render_power"]

NOTHING = "-"
LEGEND = (
    "Smallest true difference between two systems, x100, that a paired test finds with 80 % power at 5 %, two-sided: "
    "2.80 SD / sqrt(clusters). SD: of the difference of two systems' scores of one cluster; * assumed, not measured."
)


def render_power(found: Sequence[Detectable]) -> RenderableType:
    """Return the table as something rich can print."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("task")
    table.add_column("language")
    for head in ("items", "clusters", "SD", "difference"):
        table.add_column(head, justify="right", no_wrap=True)
    for own in found:
        view = ", ".join(f"{name}={value}" for name, value in own.view.items())
        table.add_row(
            Text(f"{own.task} ({view})" if view else own.task),
            own.language or "mean",
            f"{own.items:,}",
            f"{own.clusters:,}",
            NOTHING if own.sd is None else f"{own.sd * 100:.1f}{'*' if own.assumed else ''}",
            NOTHING if own.difference is None else f"{own.difference * 100:.1f}",
            style="bold" if own.language is None else "",
        )
    return Group(table, Text(LEGEND, style="dim"))


def power_rows(found: Sequence[Detectable]) -> list[dict[str, Any]]:
    """Return one row for every language, and for the mean of a task (language None); fractions in [0, 1]."""
    return [asdict(own) for own in found]
