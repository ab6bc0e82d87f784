"""Errata: corrections of benchmarks' items, as files in git; a run is scored as published and corrected."""

from __future__ import annotations

from pathlib import Path

from harness import hookimpl

FINISHED: list[Path] = []
"""The run folders that this process finished: a command does not say where its run is."""


@hookimpl
def harness_run_finished(run: Path) -> None:
    """Remember a finished run for ``eval --errata``."""
    FINISHED.append(run)
