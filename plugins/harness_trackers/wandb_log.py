"""A run in Weights & Biases."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import wandb

from harness.registry import LoggedResults, TrackedRun


class WandbLog:
    """A run that is open in Weights & Biases.

    Only what the harness logs is sent: no console output, code, git state, host or load of the machine. Account,
    project and mode come from its own settings: ``wandb login``, ``WANDB_PROJECT``, ``WANDB_MODE=offline``.
    """

    def __init__(self, run: TrackedRun) -> None:
        with redirect_stdout(StringIO()):  # no terminal: a missing key is an error, not a question
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "harness"),
                name=run.name,
                id=run.id,
                resume="allow" if run.id else None,
                config=dict(run.config),
                settings=wandb.Settings(
                    silent=True,
                    console="off",
                    host="",
                    disable_code=True,
                    disable_git=True,
                    x_disable_meta=True,
                    x_disable_stats=True,
                    x_save_requirements=False,
                ),
            )
        self.id = str(self._run.id)
        self.place = str(Path(self._run.dir).parent if self._run.offline else self._run.url)

    def log(self, values: Mapping[str, float]) -> None:
        """Log the metrics of a cell as one step."""
        self._run.log(dict(values))

    def finish(self, results: LoggedResults) -> None:
        """Put the means into the run's summary, and log a table and an artifact."""
        self._run.summary.update(dict(results.values))
        names = list(results.table[0]) if results.table else []
        rows = [[row[name] for name in names] for row in results.table]
        self._run.log({"results": wandb.Table(columns=names, data=rows, allow_mixed_types=True)})
        artifact = wandb.Artifact(f"results-{self.id}", type="results")
        artifact.add_file(str(results.file))
        self._run.log_artifact(artifact)

    def close(self, *, finished: bool) -> None:
        """Send what is left, and mark a stopped run as failed."""
        self._run.finish(exit_code=0 if finished else 1)
