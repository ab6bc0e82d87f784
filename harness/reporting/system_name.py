"""What a report calls its runs."""

from __future__ import annotations

from collections.abc import Sequence

from harness.storage.run_folder import Run

__all__ = ["system_names"]


def system_names(runs: Sequence[Run]) -> list[str]:
    """Return the models, with the folder where several runs are of one: its name, or its path where names are equal."""
    models = [str(run.manifest.model) for run in runs]
    names = []
    for run, model in zip(runs, models, strict=True):
        same = [other.path.name for other, name in zip(runs, models, strict=True) if name == model]
        folder = run.path.name if same.count(run.path.name) == 1 else str(run.path)
        names.append(model if len(same) == 1 else f"{model} ({folder})")
    return names
