"""Logging of runs to Weights & Biases, MLflow and trackio; this module only declares them."""

from __future__ import annotations

from harness import hookimpl
from harness.registry import Tracker

__all__ = ["harness_register_trackers"]


@hookimpl
def harness_register_trackers() -> list[Tracker]:
    """Return the trackers, without importing their packages."""
    return [
        Tracker(
            name="mlflow",
            target="harness_trackers.mlflow_log:MlflowLog",
            summary="MLflow: a tracking server, a database or a folder.",
            extra="mlflow",
        ),
        Tracker(
            name="trackio",
            target="harness_trackers.trackio_log:TrackioLog",
            summary="trackio: local files, a server of your own or a Hugging Face Space.",
            extra="trackio",
        ),
        Tracker(
            name="wandb",
            target="harness_trackers.wandb_log:WandbLog",
            summary="Weights & Biases.",
            extra="wandb",
        ),
    ]
