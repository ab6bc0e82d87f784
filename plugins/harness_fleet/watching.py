"""Display of ``harness submit`` while jobs run: a few lines, drawn again in a terminal, or a line per change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.live import Live
from rich.text import Text

from harness.cli import echo, printable, stderr
from harness.registry import JobState
from harness_fleet.folder import Fleet
from harness_fleet.state import count_cells, last_line, read_status, state_counts

ENDED = frozenset({JobState.DONE, JobState.FAILED, JobState.LOST})
BROKEN = frozenset({JobState.FAILED, JobState.LOST})
SHOWN = 10
"""Running models that a terminal shows."""


@contextmanager
def watching(fleet: Fleet, states: Mapping[str, JobState]) -> Iterator[Callable[[str, JobState], None]]:
    """Yield the function that takes changes of states and shows them on stderr."""
    current = dict(states)
    console = stderr()
    in_terminal = console.is_terminal and sys.stderr.isatty() and not console.is_dumb_terminal

    def report(name: str, state: JobState) -> None:
        current[name] = state
        if state in BROKEN or (state is not JobState.WAITING and not in_terminal):
            ended = sum(state in ENDED for state in current.values())
            echo(f"[{ended}/{len(current)}] {job_line(fleet, name, state)}", err=True)

    if not in_terminal:
        yield report
        return
    with Live(
        console=console,
        get_renderable=lambda: _lines(fleet, current),
        refresh_per_second=1,
        transient=True,
    ):
        yield report


def job_line(fleet: Fleet, name: str, state: JobState) -> str:
    """Return a job with its state; where it broke, with the last line that it printed."""
    if state not in BROKEN:
        return f"{name}: {state}"
    folder = fleet.folder(name)
    status = read_status(folder)
    if status is None:
        return f"{name}: not started: a job that it needs failed"
    outcome = "interrupted" if state is JobState.LOST and "code" in status else state
    return f"{name}: {outcome}: {last_line(folder) or f'it printed nothing; its folder is {folder}'}"


def _lines(fleet: Fleet, states: Mapping[str, JobState]) -> Text:
    lines = [f"Jobs: {state_counts(states)}"]
    running = {name for name, state in states.items() if state is JobState.RUNNING}
    busy = {job.model for job in fleet.file.jobs if job.name in running}
    models = [model for model in fleet.file.models if model.name in busy]
    for model in models[:SHOWN]:
        count = count_cells(fleet, fleet.jobs_of(model))
        failed = f", {count.failed:,} failed" if count.failed else ""
        lines.append(f"  {printable(model.model)}: {count.done:,} of {count.planned:,} cells{failed}")
    if len(models) > SHOWN:
        lines.append(f"  and {len(models) - SHOWN} more models")
    return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
