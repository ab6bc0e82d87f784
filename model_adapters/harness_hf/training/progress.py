"""Show the progress of training on stderr: a bar on a terminal, a plain line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["TrainingProgress"]

SECONDS_BETWEEN_LINES = 10.0


class TrainingProgress:
    """Follows one training run; use it as a context manager, so that the bar ends with the run."""

    def __init__(self, what: str, metric: str, total: int, *, shown: bool = True) -> None:
        self._what = what
        self._metric = metric
        self._total = total
        self._shown = shown
        self._last_line = time.monotonic()
        self._bar: Progress | None = None
        self._task: Any = None
        if shown and sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True))

    def __enter__(self) -> TrainingProgress:
        """Start the bar."""
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the bar, whatever happened."""
        if self._bar is not None:
            self._bar.stop()

    def advance(self, step: int) -> None:
        """Show that so many steps have been taken."""
        if self._bar is not None:
            self._bar.update(self._task, completed=step)
        else:
            self._say(f"step {step}/{self._total}")

    def evaluated(self, step: int, score: float) -> None:
        """Show the score on the dev set after so many steps."""
        text = f"{self._metric} {100 * score:.1f} on the dev set"
        if self._bar is not None:
            self._bar.update(self._task, description=f"{self._what}, {text}")
        else:
            self._say(f"step {step}/{self._total}, {text}")

    def _say(self, text: str) -> None:
        if not self._shown or time.monotonic() - self._last_line < SECONDS_BETWEEN_LINES:
            return
        self._last_line = time.monotonic()
        print(f"{self._what}: {text}", file=sys.stderr, flush=True)  # noqa: T201  # the line is what this is for
