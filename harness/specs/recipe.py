"""A recipe: named training settings, as a YAML document of its own sort."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.specs.schema import Name, SpecModel

__all__ = ["HeadName", "RecipeSpec", "SettingsPatch"]

HeadName = Literal[
    "classification", "multiple_choice", "tagging", "span_extraction", "dual_encoder", "text_to_text"
]
"""The values of `harness.models.capabilities.Head`, which is not imported here because it brings numpy."""


class SettingsPatch(SpecModel):
    """Some of the numbers of `harness.models.capabilities.TrainingSettings`."""

    learning_rate: Annotated[float, Field(gt=0)] | None = None
    """The highest one, after the warm-up."""
    epochs: Annotated[float, Field(gt=0)] | None = None
    """How often all training items are seen."""
    batch_size: Annotated[int, Field(ge=1)] | None = None
    """Examples of one step of the optimiser, over all devices."""
    max_length: Annotated[int, Field(ge=8)] | None = None
    """Tokens that an input is cut at."""
    stride: Annotated[int, Field(ge=0)] | None = None
    """Tokens from the start of one window of a long context to the start of the next."""
    max_query_length: Annotated[int, Field(ge=1)] | None = None
    """Tokens that a question is cut at."""
    max_answer_length: Annotated[int, Field(ge=1)] | None = None
    """The longest answer, in tokens, that is looked for."""
    n_best: Annotated[int, Field(ge=1)] | None = None
    """So many starts and ends of answers are combined."""
    warmup_steps: Annotated[int, Field(ge=0)] | None = None
    """Steps in which the learning rate rises."""
    warmup_share: Annotated[float, Field(ge=0, lt=1)] | None = None
    """The same as a share of all steps."""
    weight_decay: Annotated[float, Field(ge=0)] | None = None
    """Of the optimiser, not for biases and norms."""
    adam_epsilon: Annotated[float, Field(gt=0)] | None = None
    """Of AdamW."""
    max_grad_norm: Annotated[float, Field(gt=0)] | None = None
    """Longer gradients are cut to it."""
    eval_steps: Annotated[int, Field(ge=1)] | None = None
    """Steps between evaluations on the dev set; null evaluates once an epoch."""
    select_best: bool | None = None
    """Whether the checkpoint that is best on the dev set is kept, rather than the last one."""
    validation_limit: Annotated[int, Field(ge=1)] | None = None
    """At most so many items of the dev set choose the checkpoint."""
    freeze_embeddings: bool | None = None
    """Whether the embeddings stay as they are."""
    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Training ends after so many steps, whatever `epochs` says."""
    group_by_length: bool | None = None
    """Whether a batch holds examples of like length."""
    pooling: Literal["pooler", "mean", "cls"] | None = None
    """How a dual encoder makes one vector of a text."""
    max_target_length: Annotated[int, Field(ge=1)] | None = None
    """Tokens that the target of a text pair is cut at."""
    lr_schedule: Literal["linear", "constant"] | None = None
    """The learning rate after the warm-up."""
    optimizer: Literal["adamw", "adafactor"] | None = None
    """Which one."""


class RecipeSpec(SpecModel):
    """Named training settings. Later ones win: settings, head, stage, then the same three for large models."""

    recipe: Name
    """The name."""
    description: str
    source: str
    """Where the numbers come from."""
    settings: SettingsPatch
    """What all stages have."""
    heads: dict[HeadName, SettingsPatch] = Field(default={})
    """By head: what differs."""
    stages: dict[Name, SettingsPatch] = Field(default={})
    """By training set: what differs."""
    large_layers: Annotated[int, Field(ge=1)] = 24
    """Models with at least so many layers also take the settings under `large`."""
    large: SettingsPatch | None = None
    """`settings` of large models."""
    large_heads: dict[HeadName, SettingsPatch] = Field(default={})
    """`heads` of large models."""
    large_stages: dict[Name, SettingsPatch] = Field(default={})
    """`stages` of large models."""
