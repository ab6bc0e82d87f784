"""A run in trackio."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO

import trackio

from harness.registry import LoggedResults, TrackedRun


class TrackioLog:
    """A run that is open in trackio: in local files, or where ``TRACKIO_SERVER_URL`` or ``TRACKIO_SPACE_ID`` says.

    Its project is that of ``TRACKIO_PROJECT``, or ``harness``. trackio prints to standard output, which belongs to
    the harness: that is dropped.
    """

    def __init__(self, run: TrackedRun) -> None:
        project = os.environ.get("TRACKIO_PROJECT", "harness")
        with redirect_stdout(StringIO()):
            self._run = trackio.init(
                project=project,
                name=run.id or run.name,
                config=dict(run.config),
                resume="must" if run.id else "never",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        self.id = str(self._run.name)
        self.place = f"project {project}, run {self.id}; to see it: trackio show --project {project}"

    def log(self, values: Mapping[str, float]) -> None:
        """Log the metrics of a cell as one step."""
        with redirect_stdout(StringIO()):
            self._run.log(dict(values))

    def finish(self, results: LoggedResults) -> None:
        """Log the means and the table as one step, and ``results.json`` as an artifact."""
        with redirect_stdout(StringIO()):
            table = trackio.Table(data=[dict(row) for row in results.table])
            self._run.log({**results.values, "results": table})
            self._run.log_artifact(results.file, name=f"results-{self.id}", type="results")

    def close(self, *, finished: bool) -> None:
        """Write what is left."""
        with redirect_stdout(StringIO()):
            trackio.finish()  # of its current run, which `trackio.init` set
