"""What a report calls its runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.storage.run_folder import Run

__all__ = ["short_name", "short_system", "system_names"]


def short_name(model: str) -> str:
    """Return the name of a model without its adapter, and without the folders of a local one.

    ``hf:/models/e5-small`` is ``e5-small``, ``baseline:majority`` is ``majority``; a name of the Hub keeps its owner.
    """
    _, _, name = model.rpartition(":") if "://" not in model else ("", "", model.partition(":")[2])
    is_local = name.startswith(("/", ".", "~")) or "\\" in name or name.count("/") > 1
    if "://" in name or not is_local:
        return name or model
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1] or model


def short_system(name: str) -> str:
    """Return the name of a system with the short name of its model: ``e5-small (prompted, seed=2)``."""
    model, opened, conditions = name.partition(" (")
    return f"{short_name(model)}{opened}{conditions}"


def system_names(runs: Sequence[Run]) -> list[str]:
    """Return short names of the models, each once.

    Where several runs are of one name, the run's folder follows: its name, or its path where names are equal.
    """
    models = [short_name(str(run.manifest.model)) for run in runs]
    names = []
    for run, model in zip(runs, models, strict=True):
        same = [other.path.name for other, name in zip(runs, models, strict=True) if name == model]
        folder = run.path.name if same.count(run.path.name) == 1 else str(run.path)
        names.append(model if len(same) == 1 else f"{model} ({folder})")
    return names
