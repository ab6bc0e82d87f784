"""A recipe: named training settings, as a YAML document of its own sort."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.specs.schema import Name, SpecModel

__all__ = ["HeadName", "RecipeSpec", "SettingsPatch"]

HeadName = Literal[
    "classification", "multiple_choice", "tagging", "span_extraction", "dual_encoder", "text_to_text"
]
"""The values of `harness.capabilities.Head`, which is not imported here because it brings numpy."""


class SettingsPatch(SpecModel):
    """Some of the numbers of `harness.capabilities.TrainingSettings`."""

    learning_rate: Annotated[float, Field(gt=0)] | None = None
    epochs: Annotated[float, Field(gt=0)] | None = None
    batch_size: Annotated[int, Field(ge=1)] | None = None
    max_length: Annotated[int, Field(ge=8)] | None = None
    stride: Annotated[int, Field(ge=0)] | None = None
    max_query_length: Annotated[int, Field(ge=1)] | None = None
    max_answer_length: Annotated[int, Field(ge=1)] | None = None
    n_best: Annotated[int, Field(ge=1)] | None = None
    warmup_steps: Annotated[int, Field(ge=0)] | None = None
    warmup_share: Annotated[float, Field(ge=0, lt=1)] | None = None
    weight_decay: Annotated[float, Field(ge=0)] | None = None
    adam_epsilon: Annotated[float, Field(gt=0)] | None = None
    max_grad_norm: Annotated[float, Field(gt=0)] | None = None
    eval_steps: Annotated[int, Field(ge=1)] | None = None
    select_best: bool | None = None
    validation_limit: Annotated[int, Field(ge=1)] | None = None
    freeze_embeddings: bool | None = None
    max_steps: Annotated[int, Field(ge=1)] | None = None
    group_by_length: bool | None = None
    pooling: Literal["pooler", "mean", "cls"] | None = None
    max_target_length: Annotated[int, Field(ge=1)] | None = None
    lr_schedule: Literal["linear", "constant"] | None = None
    optimizer: Literal["adamw", "adafactor"] | None = None


class RecipeSpec(SpecModel):
    """Named training settings. Later ones win: settings, head, stage, then the same three for large models."""

    recipe: Name
    description: str
    source: str
    settings: SettingsPatch
    heads: dict[HeadName, SettingsPatch] = Field(default={})
    stages: dict[Name, SettingsPatch] = Field(default={})
    large_layers: Annotated[int, Field(ge=1)] = 24
    """Models with at least so many layers also take the settings under `large`."""
    large: SettingsPatch | None = None
    large_heads: dict[HeadName, SettingsPatch] = Field(default={})
    large_stages: dict[Name, SettingsPatch] = Field(default={})
