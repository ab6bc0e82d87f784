"""A run in MLflow."""

from __future__ import annotations

import csv
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before its import

import mlflow
from mlflow.entities import Metric, Param

from harness.registry import LoggedResults, TrackedRun

BATCH = 100
"""Parameters that a server takes in one request."""
LONGEST = 500
"""Characters of a parameter that every store takes."""


class MlflowLog:
    """A run that is open in MLflow, where ``MLFLOW_TRACKING_URI`` says, or else in ``mlflow.db``.

    Its experiment is that of ``MLFLOW_EXPERIMENT_NAME``, or ``harness``. The whole configuration is the artifact
    ``config.json``, short values of it are parameters.
    """

    def __init__(self, run: TrackedRun) -> None:
        logging.getLogger("mlflow.store.db.utils").setLevel(
            logging.WARNING
        )  # reports how it makes a database
        self._client = mlflow.MlflowClient()
        if run.id is None:
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "harness")
            existing = self._client.get_experiment_by_name(name)
            experiment = self._client.create_experiment(name) if existing is None else existing.experiment_id
            self.id = str(self._client.create_run(experiment, run_name=run.name).info.run_id)
            self._log_config(run.config)
        else:
            self.id = str(self._client.get_run(run.id).info.run_id)
            self._client.update_run(self.id, status="RUNNING")
        self.place = f"{mlflow.get_tracking_uri()}, run {self.id}"

    def _log_config(self, config: Mapping[str, Any]) -> None:
        params = [Param(_name(name), text) for name, text in _flat(config) if 0 < len(text) <= LONGEST]
        for start in range(0, len(params), BATCH):
            self._client.log_batch(self.id, params=params[start : start + BATCH])
        self._client.log_dict(self.id, dict(config), "config.json")

    def log(self, values: Mapping[str, float]) -> None:
        """Log metrics, but none that the run has already with the same value."""
        metrics = self._client.get_run(self.id).data.metrics
        now = int(time.time() * 1000)
        new = [
            Metric(_name(name), value, now, 0)
            for name, value in values.items()
            if metrics.get(_name(name)) != value
        ]
        for start in range(0, len(new), BATCH):
            self._client.log_batch(self.id, metrics=new[start : start + BATCH])

    def finish(self, results: LoggedResults) -> None:
        """Log the means, the table as ``results.csv``, and ``results.json``."""
        self.log(results.values)
        text = StringIO()
        if results.table:
            writer = csv.DictWriter(text, list(results.table[0]))
            writer.writeheader()
            writer.writerows(results.table)
        self._client.log_text(self.id, text.getvalue(), "results.csv")
        self._client.log_artifact(self.id, str(results.file))

    def close(self, *, finished: bool) -> None:
        """Set the status of the run."""
        self._client.set_terminated(self.id, "FINISHED" if finished else "KILLED")


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of nested mappings as texts, by names with dots; digests of data are in the artifact only."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            if name != "data":
                yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield f"{prefix}{name}", ", ".join(map(str, value))
        elif value is not None:
            yield f"{prefix}{name}", str(value)


def _name(name: str) -> str:
    """Return a name with the characters that every store takes."""
    return re.sub(r"[^\w\-./: ]", "-", name)
