"""A tracker for tests: a plugin that writes every call as a line of JSON into the file of ``DIARY``.

``DIARY_FAILS`` names calls that raise; ``DIARY_STOPS`` the number of logged cells after which the user stops the run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import hookimpl
from harness.registry import LoggedResults, TrackedRun, Tracker


@hookimpl
def harness_register_trackers() -> list[Tracker]:
    """Declare the tracker under two names, and one whose package is missing."""
    return [
        Tracker(name="diary", target="diary:Diary"),
        Tracker(name="second", target="diary:Diary"),
        Tracker(name="absent", target="diary_absent:Log", extra="wandb"),
    ]


class Diary:
    """A run in the diary."""

    place = "in the diary"

    def __init__(self, run: TrackedRun) -> None:
        _write("open", {"name": run.name, "id": run.id, "config": dict(run.config)})
        self.id = run.id or f"id of {run.name}"
        self._cells = 0

    def log(self, values: Mapping[str, float]) -> None:
        """Write the values."""
        if str(self._cells) == os.environ.get("DIARY_STOPS"):
            raise KeyboardInterrupt
        self._cells += 1
        _write("log", dict(values))

    def finish(self, results: LoggedResults) -> None:
        """Write the results."""
        table = [dict(row) for row in results.table]
        _write("finish", {"values": dict(results.values), "table": table, "file": str(results.file)})

    def close(self, *, finished: bool) -> None:
        """Write how it ended."""
        _write("close", finished)


def _write(call: str, content: Any) -> None:
    if call in os.environ.get("DIARY_FAILS", "").split(","):
        raise ConnectionError(f"no {call} today")
    with Path(os.environ["DIARY"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps([call, content]) + "\n")
