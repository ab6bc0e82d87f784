"""How the benchmarks time things: alternating repetitions, medians, plain tables."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROWS = "HARNESS_BENCHMARK_ROWS"
"""Environment variable with the file that rows are added to, one JSON object per line."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table of all benchmarks."""

    name: str
    value: str = ""
    limit: str = ""
    state: str
    """``held``, ``missed``, ``no limit``, or what became of a benchmark that recorded nothing."""


def record(
    name: str, value: float, limit: float | None = None, *, least: bool = False, unit: str = ""
) -> None:
    """Print a figure with its limit, the most that it may be or `least`; add it to the table of all benchmarks."""
    held = limit is None or (value >= limit if least else value <= limit)
    row = Row(
        name=name,
        value=f"{value:,.3g}{unit}" if abs(value) < 1000 else f"{value:,.0f}{unit}",
        limit="" if limit is None else f"{'at least' if least else 'at most'} {limit:,g}{unit}",
        state="no limit" if limit is None else "held" if held else "missed",
    )
    print(f"{row.name}: {row.value} ({row.limit or 'no limit'}; {row.state})", flush=True)
    if ROWS in os.environ:
        with Path(os.environ[ROWS]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")
