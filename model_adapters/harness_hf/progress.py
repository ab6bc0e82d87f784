"""Show how training goes on stderr: a bar on a terminal, a plain line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers import TrainerCallback

__all__ = ["TrainingProgress"]

SECONDS_BETWEEN_LINES = 10.0


class TrainingProgress(TrainerCallback):  # type: ignore[misc, unused-ignore]  # the base is untyped in some versions
    """Follows one training run; use it as a context manager, so that the bar ends with the run."""

    def __init__(self, what: str, metric: str) -> None:
        self._what = what
        self._metric = metric
        self._last_line = time.monotonic()
        self._bar: Progress | None = None
        self._task: Any = None
        if sys.stderr.isatty():
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
            self._task = self._bar.add_task(self._what, total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the bar, whatever happened."""
        if self._bar is not None:
            self._bar.stop()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Advance by one optimiser step."""
        if self._bar is not None:
            self._bar.update(self._task, completed=state.global_step, total=state.max_steps)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._say(f"step {state.global_step}/{state.max_steps}")

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        """Show the score on the dev set."""
        score = (metrics or {}).get("eval_score")
        if score is not None:
            text = f"{self._metric} {100 * score:.1f} on the dev set"
            if self._bar is not None:
                self._bar.update(self._task, description=f"{self._what}, {text}")
            elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
                self._say(f"step {state.global_step}/{state.max_steps}, {text}")

    def _say(self, text: str) -> None:
        self._last_line = time.monotonic()
        print(f"{self._what}: {text}", file=sys.stderr, flush=True)  # noqa: T201  # the line is what this is for
