"""Opens the classifier of a run's cells: from the fit store, or from a folder that the user names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness import Adapter, CapabilityError, Classifies, ExposesAttentions, Run, UsageError
from harness.planning.planner import resolve_model
from harness.registry.registry import Registry
from harness.storage.files import cache_folder
from harness_translation.overlap.item import OverlapGroup, source_items

__all__ = ["open_model"]

CHECKED = 64
"""The number of English items on which a model that the user names is compared with the run."""
AGREEMENT = 0.95
"""The share of them that must have the run's label: other machines round differently, other models differ more."""
FITTED = "fit.json"


def open_model(
    run: Run, group: OverlapGroup, registry: Registry, *, named: str | None, options: Mapping[str, str]
) -> Adapter:
    """Return the model of a group's cells; close it afterwards.

    Args:
        run: The run.
        group: The cells of one model on one task.
        registry: The registry of adapters.
        named: A ``--model`` value: the folder of the fine-tuned classifier, for runs whose fit is not in this cache.
        options: Options of the adapter, over those of the run.

    Raises:
        UsageError: If the fit is not in the cache, or the predictions of the named model differ from the run's.
        CapabilityError: If the model does not expose its attention.
    """
    text = named or _reference(run, group)
    given = {str(key): str(value) for key, value in run.manifest["config"].get("options", {}).items()}
    found = resolve_model(registry.adapters, text, {**given, **options})
    model = found.entry.open(found.description, found.options)
    try:
        if not isinstance(model, ExposesAttentions):
            raise CapabilityError(
                f"The model {text!r} ({found.description.adapter}) does not expose its attention; "
                "overlap needs a fine-tuned encoder.",
                hint="Use a run of an encoder: harness eval --tasks xnli --model hf:xlm-roberta-base",
            )
        if named is not None:
            _require_same(run, group, model, named)
    except BaseException:
        model.close()
        raise
    return model


def _reference(run: Run, group: OverlapGroup) -> str:
    adapter, fit = run.results["model"]["adapter"], group.source["fit"]
    if fit == "none":
        return f"{adapter}:{run.results['model']['ref']}"
    folder = cache_folder() / "fits" / str(fit)
    if not (folder / FITTED).is_file():
        raise UsageError(
            f"The fine-tuned model of {str(run.path)!r} ({fit}) is not in the cache {str(folder.parent)!r}.",
            hint="Run its harness eval again here, or name the folder of the classifier: --model hf:FOLDER.",
        )
    return f"{adapter}:{folder}"


def _require_same(run: Run, group: OverlapGroup, model: Any, named: str) -> None:
    """Raise `UsageError` unless a model predicts the run's labels on items that the run's model got right."""
    if not isinstance(model, Classifies):
        raise CapabilityError(f"The model {named!r} has no classification head.")
    items, _ = source_items(run, group)
    checked = items[:CHECKED]
    labels = {record.id: record.prediction["label"] for record in run.records(group.source)}
    scores = np.asarray(model.classify([item.input for item in checked], group.labels))
    found = [group.labels[index] for index in scores.argmax(axis=1)]
    same = sum(labels[item.id] == label for item, label in zip(checked, found, strict=True))
    if same < AGREEMENT * len(checked):
        raise UsageError(
            f"The model {named!r} is not the one of {str(run.path)!r}: it predicts the run's label for {same} of "
            f"{len(checked)} items.",
            hint="Name the folder that the run's model was saved in.",
        )
