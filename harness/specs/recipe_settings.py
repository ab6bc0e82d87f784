"""From a recipe to the settings of one training stage."""

from __future__ import annotations

from typing import Any

from harness.errors import UsageError
from harness.models.capabilities import Head, ModelDescription, TrainingSettings
from harness.specs.recipe import RecipeSpec, SettingsPatch


def resolve_settings(recipe: RecipeSpec, head: Head, stage: str, model: ModelDescription) -> TrainingSettings:
    """Return the settings for a head and stage; later patches win, those for large models last.

    Raises `UsageError` where learning rate, epochs or batch size are given nowhere, and for `quantize` without
    `lora_rank`.
    """
    patches: list[SettingsPatch | None] = [
        recipe.settings,
        recipe.heads.get(head.value),
        recipe.stages.get(stage),
    ]
    if model.layers is not None and model.layers >= recipe.large_layers:
        patches += [recipe.large, recipe.large_heads.get(head.value), recipe.large_stages.get(stage)]
    values: dict[str, Any] = {}
    for patch in patches:
        if patch is not None:
            values |= patch.model_dump(exclude_none=True)
    missing = [name for name in ("learning_rate", "epochs", "batch_size") if name not in values]
    if missing:
        raise UsageError(
            f"The recipe {recipe.recipe!r} gives no {', '.join(missing)} for the stage {stage!r} ({head.value})."
        )
    if "quantize" in values and "lora_rank" not in values:
        raise UsageError(
            f"The recipe {recipe.recipe!r} has quantize: {values['quantize']} but no lora_rank: quantised weights "
            "cannot be trained themselves."
        )
    return TrainingSettings(**values)
