"""Opens the classifier of a run's cells from the fit store."""

from __future__ import annotations

from collections.abc import Mapping

from harness import CapabilityError, Run, UsageError
from harness.models import Adapter, ExposesAttentions
from harness.planning import resolve_model
from harness.running import Session
from harness.storage import cache_folder
from harness_translation.overlap.item import OverlapGroup

FITTED = "fit.json"


def open_model(run: Run, group: OverlapGroup, session: Session, options: Mapping[str, str]) -> Adapter:
    """Return the model of a group's cells; close it afterwards. `options` are used over those of the run.

    Raises:
        UsageError: If the fit is not in the cache.
        CapabilityError: If the model does not expose its attention.
    """
    adapter, fit = run.results.model.adapter, group.source.fit
    text = f"{adapter}:{run.results.model.ref}"
    if fit != "none":
        folder = cache_folder() / "fits" / str(fit)
        text = f"{adapter}:{folder}"
        if not (folder / FITTED).is_file():
            raise UsageError(
                f"The fine-tuned model of {str(run.path)!r} ({fit}) is not in the cache {str(folder.parent)!r}.",
                hint="Run its harness eval again here.",
            )
    run_options = {str(key): str(value) for key, value in run.manifest.config.get("options", {}).items()}
    resolved = resolve_model(session.registry.adapters, text, {**run_options, **options})
    model = resolved.entry.open(resolved.description, resolved.options)
    if not isinstance(model, ExposesAttentions):
        model.close()
        raise CapabilityError(
            f"The model {text!r} ({resolved.description.adapter}) does not expose its attention; "
            "overlap needs a fine-tuned encoder.",
            hint="Use a run of an encoder: harness eval --tasks xnli --model hf:xlm-roberta-base",
        )
    return model
