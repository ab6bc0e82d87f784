"""How the benchmarks time things: alternating repetitions, medians, plain tables."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.table import Table

__all__ = ["alternate", "show"]


def alternate(contenders: Mapping[str, Callable[[], None]], *, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of every round of every contender; they take turns, so that a busy machine hits all."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return seconds


def show(title: str, rows: Mapping[str, list[float]], *, limits: Mapping[str, str] | None = None) -> None:
    """Print minimum, median and maximum of every contender, and the ratio of medians to the last one."""
    table = Table(
        "", "min s", "median s", "max s", "ratio to the last", "limit", title=title, title_justify="left"
    )
    reference = statistics.median(list(rows.values())[-1])
    for name, seconds in rows.items():
        median = statistics.median(seconds)
        numbers = [f"{value:.3f}" for value in (min(seconds), median, max(seconds))]
        table.add_row(name, *numbers, f"{median / reference:.2f}", (limits or {}).get(name, ""))
    Console(width=110).print(table)
