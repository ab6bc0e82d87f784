"""Names of runs in a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.storage.model_name import folder_names
from harness.storage.run_folder import Run


def system_names(runs: Sequence[Run]) -> list[str]:
    """Return the names of the models, each once.

    Where several runs are of one name, what they were trained on follows where it differs, else the run's folder.
    """
    pairs = zip(runs, train_names(runs), strict=True)
    models = [
        f"{run.manifest.model_name} ({trained})" if trained else run.manifest.model_name
        for run, trained in pairs
    ]
    counts = Counter(models)
    folders = folder_names([run.path for run in runs])
    return [
        f"{model} ({folder})" if counts[model] > 1 else model
        for model, folder in zip(models, folders, strict=True)
    ]


def train_names(runs: Sequence[Run]) -> list[str]:
    """Return by run the variant of its training sets, ``orig`` without one; empty where it distinguishes no runs."""
    keys = [(str(run.manifest.model), _train_variant(run)) for run in runs]
    variants: dict[str, set[str]] = {}
    for model, variant in keys:
        variants.setdefault(model, set()).add(variant)
    return [
        variant or "orig" if keys.count((model, variant)) == 1 and len(variants[model]) > 1 else ""
        for model, variant in keys
    ]


def _train_variant(run: Run) -> str:
    return ", ".join(
        dict.fromkeys(row.view["train_variant"] for row in run.results.tasks if "train_variant" in row.view)
    )
